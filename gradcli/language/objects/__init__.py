"""Python's object model as programs see it: types, instances, attributes, operators, text."""
