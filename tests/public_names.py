"""Records the public names of PyTorch: run with a Python that has it.

PYTHON tests/public_names.py > gradcli/language/hints/pytorch_names.txt
"""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
import warnings
from typing import Any

MODULES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.forward_ad torch.autograd.functional
torch.autograd.graph torch.autograd.profiler torch.backends torch.cpu torch.cuda torch.distributed
torch.distributions torch.distributions.constraints torch.distributions.kl
torch.distributions.transforms torch.fft torch.func torch.linalg torch.masked torch.mps torch.nn
torch.nn.attention torch.nn.functional torch.nn.init torch.nn.parameter torch.nn.utils
torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn
torch.nn.utils.stateless torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.random
torch.signal.windows torch.sparse torch.special torch.testing torch.utils torch.utils.checkpoint
torch.utils.data
"""


def names_of(module: Any) -> list[str]:
    """The public names: those that `__all__` has, and those that are defined inside PyTorch."""
    found = set(getattr(module, "__all__", ()))
    if not found or module.__name__ == "torch":
        for name, value in vars(module).items():
            home = getattr(value, "__module__", None) or ""
            if isinstance(value, types.ModuleType):
                home = value.__name__
            if not home or home.split(".")[0] == "torch":
                found.add(name)
    if module.__name__ == "torch":
        found.update(each.name for each in pkgutil.iter_modules(module.__path__))
        found -= {"torch", "windows"}
    else:
        found -= {"Tensor", "torch"}
    return sorted(each for each in found - set(dir(typing)) if not each.startswith("_"))


def main() -> None:
    """Write a line for each module and class: its name, and the public names in it."""
    warnings.simplefilter("ignore")
    import torch  # lazy: any other Python that reads this file has none

    homes: dict[str, Any] = {name: importlib.import_module(name) for name in MODULES.split()}
    for name, module in homes.items():
        below = [each.removeprefix(f"{name}.") for each in homes if each.startswith(f"{name}.")]
        names = {*names_of(module), *(each for each in below if "." not in each)}
        print(f"{name}:", *sorted(names))
    for kind in (torch.Tensor, torch.nn.Module, torch.optim.Optimizer):
        names = {each for each in dir(kind) if not each.startswith("_")}
        print(f"{kind.__name__}:", *sorted(names))


if __name__ == "__main__":
    main()
