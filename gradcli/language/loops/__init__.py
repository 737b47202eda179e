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

    hot_loop         which iterations are interpreted, captured, compiled
    loop_carried     what scopes tell: the names that may hold another value in every iteration
    capture          runs one iteration and records it
    walk             its statements, expressions and calls, and what it reads of the program
    holes            code that is walked, with holes in the places of operands
    recorder         what ops, writes, checks and draws come to as instructions
    symbols          the trace while it is built, and the numbers that vary
    outside          the tensors that an iteration finds when it begins
    gradients, lower_backward, optimizers
                     `.grad`, backward passes, steps
    locations        where values are kept from one iteration to the next
    guards           what a compiled iteration relies on
    finishing        from a captured iteration to a compiled one
    compiled         the compiled iteration
    verify           what an iteration changes, to compare two ways of running it
"""
