"""Notebooks: the cells of an .ipynb file, and the outputs that stand in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.cli.documents.cells import Cell, Output
from gradcli.errors import GradcliError, Source

_FORMAT = 4
"""The format of notebooks since 2015."""


def notebook_cells(path: str, text: str) -> list[Cell]:
    """The code cells of a notebook, numbered from 1 as they count when all are run in order.

    Raises E503 for what is no notebook of Python.
    """
    cells: list[Cell] = []
    for place, cell in _code_cells(_loaded(path, text)):
        source = Source(f"{path}:cell {len(cells) + 1}", joined(cell["source"]))
        shows = "none" if source.text.rstrip().endswith(";") else "last"
        cells.append(Cell(source, place, shows, [Output(_printed(cell), None, place, place)]))
    return cells


def with_outputs(path: str, text: str, outputs: Mapping[int, str]) -> str:
    """The text of a notebook with other outputs of cells, by the number of the cell in the file.

    An output is text of its standard output; pictures and numbers of runs go with what was there.
    """
    notebook = _loaded(path, text)
    for place, output in outputs.items():
        cell = notebook["cells"][place]
        lines = output.splitlines(keepends=True)
        cell["outputs"] = (
            [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        )
        cell["execution_count"] = None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _loaded(path: str, text: str) -> dict[str, Any]:
    """The notebook as data, its cells checked."""
    try:
        notebook = json.loads(text)
    except RecursionError as error:
        raise GradcliError("E503", f"{path} is no notebook: it is nested too deep") from error
    except ValueError as error:
        raise GradcliError("E503", f"{path} is no notebook: it is not JSON: {error}") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        older = isinstance(notebook, dict) and "worksheets" in notebook
        raise GradcliError(
            "E503",
            f"{path} is no notebook of format {_FORMAT}: it has no list of cells",
            help="`jupyter nbconvert --to notebook` brings an older one to it" if older else None,
        )
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    language = kernel.get("language", "python") if isinstance(kernel, dict) else "python"
    if language != "python":
        raise GradcliError("E503", f"{path} is a notebook of {language}, not of Python")
    return notebook


def _code_cells(notebook: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cells that hold code, each with its number in the file."""
    for place, cell in enumerate(notebook["cells"]):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield place, {**cell, "source": cell.get("source", "")}


def joined(text: Any) -> str:
    """A text as notebooks hold it, whole or in a list of lines."""
    if isinstance(text, list):
        return "".join(each for each in text if isinstance(each, str))
    return text if isinstance(text, str) else ""


def _printed(cell: dict[str, Any]) -> str:
    """What a cell printed on standard output, and the value that it showed."""
    parts = []
    for output in cell.get("outputs") or ():
        if not isinstance(output, dict):
            continue
        kind, data = output.get("output_type"), output.get("data")
        if kind == "stream" and output.get("name") == "stdout":
            parts.append(joined(output.get("text")))
        elif kind == "execute_result" and isinstance(data, dict):
            parts.append(joined(data.get("text/plain")))
        elif kind == "error":
            parts.append(f"{output.get('ename')}: {joined(output.get('evalue'))}")
    ended = [part if part.endswith("\n") else f"{part}\n" for part in parts]
    return "".join(ended).rstrip("\n")
