"""Rounds of a loop, traced once and written out as straight-line Python.

A training loop runs the same operations on arrays of the same shapes in every round, and of the
tensors and nodes that it makes only those of the last round are ever seen. So after some ordinary
rounds one is traced: it runs as always, and its operations are noted with the arrays they work on.
From them a trace (`gradcli.trace`) is built, and a function generated that does to the parameters
what a round does, with the same forward functions and the same derivative rules in the same order,
and makes no tensors and no nodes. Before it is used it is compared with an ordinary round, bit for
bit. Whatever could be looked at is there when it could be: the last round, and those that do more
than others, are ordinary ones. Where that shows only inside a round, by an `if` or a check of
values, the function finds out before it has any effect, and the round is run again in the ordinary
way.

    expressions     what only computes
    admission       which loops may be traced: what their syntax alone tells
    operations      the operations of a statement as such text
    derivative      a backward pass
    gradients       what happens to `.grad`
    numbers         what is added up or collected
    optimizers      `step()` and `zero_grad()`
    modules         which modules only compute
    watch, guard    what a round takes for constant, and whether it still is
    trace           runs a round and writes it
    written         what a trace leaves
    effects         what a round changes, to compare two ways of running it
    loop            decides which rounds of a loop are ordinary
"""
