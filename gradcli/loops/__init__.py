"""Loops whose iterations are compiled, by what one of them was seen to do.

A training loop runs the same operations on arrays of the same shapes in every iteration, and of the
tensors and nodes that it makes only those of the last one are ever seen. So a hot loop is captured:
one iteration is walked through the program's own syntax, into the functions, methods and modules
that it calls, while a recorder hears the ops, writes, draws and backward passes. What comes of it
is a trace of instructions with their effects. The trace becomes straight-line Python that makes no
tensors and no nodes, with the same forward functions and derivative rules in the same order. Before
it serves, it is compared with an interpreted iteration, bit for bit, in all that either can reach.
What cannot be recorded, or not be compared, ends in a GraphBreak, with its place and reason
(`gradcli run --explain-loops`).

It is safe by default. A value of the program is a literal, an input of the iteration whose kind is
checked, or guarded by its value: numbers that vary are symbols of the walk, whose data structures
hold the program's own values, and what takes a symbol without recording what it does with it
(`Capture.evaluate`) has it guarded. What may raise by values stands on entries and kernels; it is
neither dropped nor delayed, and goes ahead of all effects, so that an iteration which is left in
its middle has left nothing, or is undone, and the interpreter runs it from its beginning. Where
code of the program runs between two iterations, the guards are looked at again.
"""
