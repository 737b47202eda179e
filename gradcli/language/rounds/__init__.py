"""Rounds of a loop, traced once and written out as straight-line Python.

A training loop runs the same operations on arrays of the same shapes in every round, and of the
tensors and nodes that it makes only those of the last round are ever seen. So after some ordinary
rounds one is traced: it runs as always, and its operations are noted with the arrays they work on.
From them a function is generated that does to the parameters what a round does, with the same
forward functions and the same derivative rules in the same order, and makes no tensors and no
nodes. The last round is an ordinary one again, so that all that can be seen afterwards is there.

    admission       which loops may be traced: what their syntax alone tells
    straight_line   the text that is generated, and the arrays that its variables stand for
    derivative      a backward pass as such text
    trace           runs a round and writes it
    loop            decides which rounds of a loop are ordinary
"""
