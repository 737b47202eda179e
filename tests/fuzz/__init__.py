"""Inputs of all kinds that gradcli must answer: with a result or a coded error, in time, within its
memory, and never with a traceback.

    python -m tests.fuzz --count 200000 --seed 1     that many inputs
    python -m tests.fuzz --seconds 60                as many as there is time for
    python -m tests.fuzz --show 1:4711               the input with this number, and its answer

Each input follows from the seed and its number alone (`inputs.py` says of which kinds there are).
Worker processes run them one after the other inside one interpreter (`worker.py`); a worker that
hangs or dies is reported with its input and replaced.
"""
