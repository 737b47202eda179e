"""The modules that programs import beside torch's: which there are, and what stands in for others.

A module is a table of names, made when a program first asks for one of them. To add a module, write
its table (a dict from name to value) in a file of this folder and give it a line in `LIBRARY`; to
say what to write in place of one that stays outside, give it a line in `INSTEAD`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gradcli.language.objects.attributes import Module
from gradcli.language.objects.types import define, host_name

LIBRARY: dict[str, str] = {
    "__future__": "typing:FUTURE",
    "abc": "python.contextlib:ABSTRACT_CLASSES",
    "argparse": "python.argparse:ARGPARSE",
    "bisect": "python.sequences:BISECT",
    "collections": "python.collections:COLLECTIONS",
    "collections.abc": "typing:ABSTRACT",
    "contextlib": "python.contextlib:CONTEXTLIB",
    "copy": "copy:COPY",
    "dataclasses": "python.dataclasses:DATACLASSES",
    "datetime": "python.datetime:DATETIME",
    "enum": "python.enum:ENUM",
    "functools": "python.functools:FUNCTOOLS",
    "gc": "python.system:GC",
    "heapq": "python.sequences:HEAPQ",
    "io": "python.system:IO",
    "itertools": "python.itertools:ITERTOOLS",
    "json": "python.json:JSON",
    "logging": "python.logging:LOGGING",
    "math": "math:MATH",
    "numpy": "math:NUMPY",
    "operator": "python.operator:OPERATOR",
    "os": "python.system:OS",
    "os.path": "python.system:OS_PATH",
    "platform": "python.system:PLATFORM",
    "pprint": "python.text:PPRINT",
    "random": "python.random:RANDOM",
    "re": "python.text:RE",
    "statistics": "python.sequences:STATISTICS",
    "string": "python.text:STRING",
    "sys": "python.system:SYS",
    "textwrap": "python.text:TEXTWRAP",
    "time": "python.time:TIME",
    "timeit": "python.time:TIMEIT",
    "types": "typing:TYPES",
    "typing": "typing:TYPING",
    "unicodedata": "python.text:UNICODEDATA",
    "warnings": "python.logging:WARNINGS",
}
"""Each module with the file of this folder and the table in it that holds its names."""

_DATA = "tensors come in as `NAME=@FILE`: npy, npz, csv, json, safetensors"
_TENSORS = "what it computes is written with torch here"
_PROCESSES = "a program here is one process of its own"
_NETWORK = "a program here reaches no network: download first, then bind the file: `NAME=@FILE`"
_FILES = "files come in as `NAME=@FILE`, and `load('x.npy')` reads one"
_MODELS = "write the layers with torch.nn, and load weights with `load('w.safetensors')`"

INSTEAD: dict[str, str] = {
    "PIL": _DATA,
    "asyncio": _PROCESSES,
    "ctypes": "no code of the host can be reached",
    "cv2": _DATA,
    "datasets": _DATA,
    "flax": _TENSORS,
    "glob": _FILES,
    "h5py": _DATA,
    "importlib": "modules are imported with `import`",
    "inspect": "the host's objects cannot be looked into",
    "jax": _TENSORS,
    "joblib": _DATA,
    "keras": _TENSORS,
    "multiprocessing": _PROCESSES,
    "networkx": "`trace(x)` draws the graph of a tensor",
    "pandas": f"{_DATA}; a column of a table is `NAME=@t.csv:column`",
    "pathlib": "a path is a string; `os.path` joins them",
    "pickle": "pickles could run any code: `save(x, 'x.npz')` and `load` keep tensors",
    "pytest": "`assert` checks, and a run that fails ends with exit code 1",
    "pytorch_lightning": "write the training loop with torch.optim",
    "lightning": "write the training loop with torch.optim",
    "requests": _NETWORK,
    "scipy": "special functions are in torch.special, decompositions in torch.linalg",
    "seaborn": "results go to a file with -o, or as text with print",
    "shutil": _FILES,
    "signal": _PROCESSES,
    "sklearn": f"{_TENSORS}; data: {_DATA}",
    "socket": _NETWORK,
    "subprocess": _PROCESSES,
    "sympy": "`gradcli derive` writes gradients as formulas",
    "tempfile": _FILES,
    "tensorflow": _TENSORS,
    "threading": _PROCESSES,
    "timm": _MODELS,
    "torchaudio": _DATA,
    "torchtext": _DATA,
    "torchvision": f"data: {_DATA}; models: {_MODELS}",
    "torchviz": "`trace(x)` draws the graph of a tensor",
    "transformers": _MODELS,
    "unittest": "`assert` checks, and a run that fails ends with exit code 1",
    "urllib": _NETWORK,
    "wandb": "print the values, or keep them with -o",
    "yaml": "settings are written as a dict, or come in as `NAME=VALUE`",
}
"""What to write in place of the modules that programs import most, by their first name."""


def library_modules() -> dict[str, Module]:
    """The modules of `LIBRARY`, each inside its parent; their tables are filled when asked for."""
    found = {name: Module(name, {}) for name in LIBRARY}
    for name, module in found.items():
        module.load = _filling(module, LIBRARY[name])
        parent, _, own = name.rpartition(".")
        if parent:
            found[parent].modules[own] = module
    return found


def _filling(module: Module, place: str) -> Callable[[], None]:
    """What fills the table of a module."""
    file, _, table = place.partition(":")

    def load() -> None:
        found: dict[str, Any] = getattr(import_module(f"gradcli.language.library.{file}"), table)
        module.names.update(found)
        name_classes(module.names)

    return load


def name_classes(table: dict[str, Any]) -> None:
    """Put classes of the language in place of a table's host classes."""
    for name, value in table.items():
        if isinstance(value, type):
            table[name] = define(host_name(value), value, construct=value)
