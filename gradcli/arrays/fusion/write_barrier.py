"""The memory that plans read: a write to it leaves them the values that it held."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradcli.arrays.backend import device_of
from gradcli.state import active


def hold(array: Any) -> None:
    """Let the values of a lazy array outlive a write to their memory, while plans read them."""
    if active.state.sources is None:
        active.state.sources = WeakValueDictionary()
    active.state.sources[id(array.value)] = array


def held(array: Any) -> Any:
    """The lazy array that holds an ndarray, None if no plan reads it."""
    sources = active.state.sources
    source = None if sources is None else sources.get(id(array))
    return None if source is None or source.value is not array else source


def write_barrier(array: Any) -> None:
    """Let plans that read an ndarray's memory keep the values that are about to be overwritten."""
    sources = active.state.sources
    if not sources:
        return
    device = device_of(array)
    for key, source in list(sources.items()):
        if device_of(source.value) == device and np.may_share_memory(source.value, array):
            source.value = source.value.copy()
            del sources[key]
