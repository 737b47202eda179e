"""Loops in which something changes or fails late, when compiled iterations have long been serving.

A compiled loop is the loop, whatever happens in it. Each table makes programs of rows that a reader
can add to; every program runs compiled and interpreted, and what it prints, where and how it fails,
and all that it leaves must be the same, to the last bit.

    python -m tests.late [--table NAME] [--count N] [--seed S] [--jobs N] [--oracle PYTHON]
"""
