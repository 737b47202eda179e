"""Writes Parquet, through pyarrow: a row for each of many results, a column for each array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.arrays.files.writing import replace
from gradcli.errors import GradcliError
from gradcli.packages import imported


def write_rows(path: str, columns: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write columns that are equally long, whole or not at all.

    A row of more than one dimension becomes nested lists of fixed sizes.

    Raises:
        GradcliError: E603 for a dtype that Parquet has not, or where the file cannot be written;
            E606 where files are out of bounds; E609 without pyarrow.
    """
    arrow = imported("pyarrow")
    parquet = imported("pyarrow.parquet")
    table = arrow.table({name: _column(arrow, name, each) for name, each in columns.items()})
    replace(path, lambda stream: parquet.write_table(table, stream))


def _column(arrow: Any, name: str, array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind not in "biuf":
        raise GradcliError(
            "E603",
            f"Parquet has no dtype for {name}, which is {array.dtype.name}",
            help="write to a .npz file",
        )
    column = arrow.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        column = arrow.FixedSizeListArray.from_arrays(column, size)
    return column
