"""What `gradcli check-doc` found: as text, and as JSON of the schema `gradcli.document/1`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import ndiff

from gradcli.record import Record

SCHEMA = "gradcli.document/1"


class Compared(Record):
    """An output of a document beside what is printed there.

    Attributes:
        place: the document and the line, or the cell.
        expected: the output that stands in the document.
    """

    place: str
    expected: str
    printed: str
    same: bool


def document_text(path: str, outputs: Sequence[Compared], updated: bool) -> str:
    """The outputs that differ, `-` what stands there and `+` what is printed, and how many."""
    lines = []
    differing = [each for each in outputs if not each.same]
    for each in [] if updated else differing:
        lines.append(f"{each.place}: the output differs")
        both = each.expected.split("\n"), each.printed.split("\n")
        lines += [f"    {line}".rstrip() for line in ndiff(*both) if not line.startswith("?")]
    if not outputs:
        lines.append(f"{path}: it ran, and no output stands in it")
    elif not differing:
        agrees = "the output agrees" if len(outputs) == 1 else f"all {len(outputs)} outputs agree"
        lines.append(f"{path}: {agrees}")
    else:
        verb = "written" if updated else "differ" if len(differing) > 1 else "differs"
        lines.append(f"{path}: {len(differing)} of {len(outputs)} outputs {verb}")
    return "\n".join(lines) + "\n"


def document_json(path: str, compared: Sequence[Compared], updated: bool) -> str:
    """The same as one object, with the outputs that agree."""
    outputs = [
        {
            "place": each.place,
            "expected": each.expected,
            "printed": each.printed,
            "same": each.same,
        }
        for each in compared
    ]
    document = {"schema": SCHEMA, "file": path, "updated": updated, "outputs": outputs}
    return json.dumps(document, ensure_ascii=False) + "\n"
