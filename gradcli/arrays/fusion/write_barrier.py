"""The memory that plans read: a write to it leaves them the values that it held."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradcli.arrays.backend import device_of
from gradcli.state import active


def hold(array: Any) -> None:
    """Let the values of a lazy array outlive a write to their memory, while plans read them."""
    if active.state.pending_readers is None:
        active.state.pending_readers = WeakValueDictionary()
    active.state.pending_readers[id(array.value)] = array


def held(array: Any) -> Any:
    """The lazy array that holds an ndarray, None if no plan reads it."""
    readers = active.state.pending_readers
    reader = None if readers is None else readers.get(id(array))
    return None if reader is None or reader.value is not array else reader


def write_barrier(array: Any) -> None:
    """Let plans that read an ndarray's memory keep the values that are about to be overwritten."""
    readers = active.state.pending_readers
    if not readers:
        return
    device = device_of(array)
    for key, reader in list(readers.items()):
        if device_of(reader.value) == device and np.may_share_memory(reader.value, array):
            reader.value = reader.value.copy()
            del readers[key]
