"""The write barrier: before memory is overwritten, plans that read it get a copy of the old
values.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradcli.arrays.backend import device_of
from gradcli.state import active


def hold(array: Any) -> None:
    """Register a lazy array whose memory plans read, so that a write leaves them the old values."""
    if active.state.pending_readers is None:
        active.state.pending_readers = WeakValueDictionary()
    active.state.pending_readers[id(array.value)] = array


def held(array: Any) -> Any:
    """The registered lazy array of an ndarray, None if no plan reads it."""
    readers = active.state.pending_readers
    reader = None if readers is None else readers.get(id(array))
    return None if reader is None or reader.value is not array else reader


def write_barrier(array: Any) -> None:
    """Copy the values that plans read from an ndarray's memory, which is about to be
    overwritten.
    """
    readers = active.state.pending_readers
    if not readers:
        return
    device = device_of(array)
    for key, reader in list(readers.items()):
        if device_of(reader.value) == device and np.may_share_memory(reader.value, array):
            reader.value = reader.value.copy()
            del readers[key]
