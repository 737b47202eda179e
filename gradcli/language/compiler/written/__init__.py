"""Functions of a program that are called often, written as functions of the host's."""
