"""A derived gradient as JSON, schema `gradcli.derivation/1`."""

from __future__ import annotations

from typing import Any

from gradcli.questions.derive.program import Derivation
from gradcli.recorded.symbols.text import text_of
from gradcli.show.result_json import number

SCHEMA = "gradcli.derivation/1"


def derivation_document(found: Derivation, output: str | None) -> dict[str, Any]:
    """The formulas as a JSON object: inputs, lines in order, each input's gradient."""
    return {
        "schema": SCHEMA,
        "output": output,
        "kind": found.kind,
        "inputs": [{"name": name, **_array(array)} for name, array in found.inputs.items()],
        "lines": [
            {
                "name": line.name,
                "formula": text_of(line.formula),
                "shape": list(line.array.shape),
                "dtype": line.array.dtype.name,
            }
            for line in found.lines
        ],
        "gradients": [
            {"of": found.paths.get(name, name), "name": called, **_array(found.values[name])}
            for name, called in found.gradients.items()
        ],
    }


def _array(array: Any) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.name, "value": number(array)}
