"""What `gradcli port` found: as text, and as JSON of the schema `gradcli.port/1`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gradcli.errors import GradcliError
from gradcli.show.diagnostics.json import error_object

SCHEMA = "gradcli.port/1"


def port_text(path: str, errors: Sequence[GradcliError]) -> str:
    """A line for each place, with what to write instead below it."""
    if not errors:
        return f"{path}: nothing in it would be refused\n"
    lines: list[str] = []
    for error in errors:
        place = "" if error.span is None else f":{error.span.line}:{error.span.column}"
        lines.append(f"{path}{place}: {error.message} [{error.code}]")
        if error.help is not None:
            lines.append(f"    {error.help}")
    count = "1 place" if len(errors) == 1 else f"{len(errors)} places"
    return "\n".join([*lines, f"{path}: {count} would be refused"]) + "\n"


def port_json(path: str, errors: Sequence[GradcliError]) -> str:
    """The same as one object."""
    refused = [error_object(error) for error in errors]
    return json.dumps({"schema": SCHEMA, "file": path, "refused": refused}) + "\n"
