"""Loops whose iterations are compiled, by what one of them was seen to do.

A training loop runs the same operations on arrays of the same shapes in every iteration, and of the
tensors and nodes that it makes only those of the last one are ever seen. So a hot loop is captured:
one iteration is walked through the program's own syntax, into the functions, methods and modules
that it calls, while a recorder hears the ops, writes, draws and backward passes. What comes of it
is a trace of instructions with their effects: numbers that vary are values of the trace, tests are
checks with a side exit, and everything that was taken for constant is guarded. The trace becomes
straight-line Python that makes no tensors and no nodes, with the same forward functions and
derivative rules in the same order. Before it serves, it is compared with an interpreted iteration,
bit for bit. What may end a compiled iteration in its middle stands ahead of all its effects, so
that the interpreter can run it again; what cannot be recorded ends in a GraphBreak, with its place
and reason (`gradcli run --explain-loops`).
"""
