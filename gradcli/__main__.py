"""`python -m gradcli`."""

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Python looks for modules in the current folder first: a `numpy.py` there would be run as ours.
if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] != _ROOT:
    del sys.path[0]

try:
    from gradcli.cli.main import main
except KeyboardInterrupt:  # nothing has begun
    os._exit(130)

if __name__ == "__main__":  # not where a worker of `--cluster local:N` begins anew
    main()
