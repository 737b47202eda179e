"""`python -m gradcli`."""

import os

try:
    from gradcli.cli import main
except KeyboardInterrupt:  # nothing has begun
    os._exit(130)

main()
