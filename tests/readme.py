"""README's set-up commands: `python3 -m tests.readme N` prints the N-th. Needs nothing but
Python.
"""

from __future__ import annotations

import sys

from tests.blocks import README, blocks

if __name__ == "__main__":
    setting_up = [block.text for block in blocks(README) if block.language == "sh"]
    print(setting_up[int(sys.argv[1]) - 1], end="")
