"""`python -m gradcli.cli.sweep.child FD`: a process that a worker of a cluster hands parcels to.

It reads what it needs to know and then one parcel after the other from standard input, and writes
the answers to standard output. It ends when the other end of the pipe FD closes.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import warnings

from gradcli.cli.sweep.on_worker import DONE, FAILED
from gradcli.cli.sweep.sweep import Runner
from gradcli.running.process.terminal import Terminal
from gradcli.running.process.workers import end_with, receive, send
from gradcli.session import Session


def main(lifeline: int) -> None:
    """Answer parcels until there are no more."""
    end_with(lifeline)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked decides when it is over
    gc.set_threshold(100_000, 20, 100)
    warnings.simplefilter("ignore")
    tasks = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but answers may come into the pipe
    text, name, arguments, options = pickle.loads(receive(tasks))
    runner = Runner(Session.parse(text, name), arguments, options, Terminal().error)
    with runner.within_memory():
        while True:
            parcel = receive(tasks)
            try:
                answer = DONE + runner.answers(parcel)
            except Exception as error:
                answer = FAILED + f"{type(error).__name__}: {error}".encode()
            send(answers, answer)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (EOFError, OSError):
        os._exit(0)  # nobody asks any more
