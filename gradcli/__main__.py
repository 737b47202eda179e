"""`python -m gradcli`."""

import os

try:
    from gradcli.cli.main import main
except KeyboardInterrupt:  # nothing has begun
    os._exit(130)

main()
