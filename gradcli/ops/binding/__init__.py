"""The names of ops: modules, methods, operators, lazy families, checks of arguments."""
