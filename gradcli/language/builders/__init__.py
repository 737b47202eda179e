"""What the parser calls to build the syntax tree: a function for each rule, and further checks."""
