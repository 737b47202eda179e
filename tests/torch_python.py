"""The Python that has PyTorch, where one is here."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache


@cache
def torch_python() -> str | None:
    """A Python that has PyTorch: GRADCLI_TORCH_PYTHON, or one on the path."""
    named = os.environ.get("GRADCLI_TORCH_PYTHON")
    for each in [named] if named else [shutil.which("python3"), shutil.which("python")]:
        if (
            each
            and not subprocess.run([each, "-c", "import torch"], capture_output=True).returncode
        ):
            return each
    return None
