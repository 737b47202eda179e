"""`python -m gradcli`."""

import os

try:
    from gradcli.cli.main import main
except KeyboardInterrupt:  # nothing has begun
    os._exit(130)

if __name__ == "__main__":  # not where a worker of `--cluster local:N` begins anew
    main()
