"""What PyTorch asks and sets of the machine: threads, precision, determinism, random states.

The settings are for PyTorch's own kernels: they are kept and read back, and results here are the
same whatever they say.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, type_error
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.random import generator_of, get_state, set_state
from gradcli.ops.definition.doc import RANDOM, STATE
from gradcli.state import active

_PRECISIONS = ("highest", "high", "medium")


def _kept() -> dict[str, Any]:
    return active.state.library.setdefault("torch", {})


def _check_count(name: str, count: Any) -> None:
    if type(count) is not int:
        kind = type(count).__name__
        raise type_error(f"{name} expects an int, but got {kind}", raises="RuntimeError")
    if count < 1:
        raise runtime_error(f"{name} expects a positive integer")


@function("set_num_threads", "set_num_interop_threads", effects=(STATE,))
def set_num_threads(int: Any, /) -> None:
    """How many threads PyTorch's kernels take. Raises E202, E204 for what is no positive integer.

    Example: torch.set_num_threads(1)
    """
    _check_count("set_num_threads", int)
    _kept()["threads"] = int


@function("get_num_threads", "get_num_interop_threads")
def get_num_threads() -> int:
    """The number of threads that was set, else 1."""
    return _kept().get("threads", 1)


@function("use_deterministic_algorithms", effects=(STATE,))
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are alike from run to run, as all here are.

    Example: torch.use_deterministic_algorithms(True)
    """
    _kept()["deterministic"] = bool(mode)


@function("are_deterministic_algorithms_enabled")
def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was asked for."""
    return _kept().get("deterministic", False)


@function("set_float32_matmul_precision", effects=(STATE,))
def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 have to be on a GPU: "highest", "high" or "medium".

    Example: torch.set_float32_matmul_precision("highest")
    """
    if precision in _PRECISIONS:
        _kept()["precision"] = precision


@function("get_float32_matmul_precision")
def get_float32_matmul_precision() -> str:
    """The precision that was set."""
    return _kept().get("precision", "highest")


@function("get_rng_state", effects=(RANDOM,))
def get_rng_state() -> Tensor:
    """Where the session's generator stands, in bytes, as PyTorch writes it down.

    Example: torch.get_rng_state().shape
    """
    return get_state(generator_of(None))


@function("set_rng_state", effects=(STATE,))
def set_rng_state(new_state: Tensor) -> None:
    """Go back to where the session's generator stood. Raises E204 for bytes that are no state.

    Example: torch.set_rng_state(torch.get_rng_state())
    """
    set_state(generator_of(None), new_state)
