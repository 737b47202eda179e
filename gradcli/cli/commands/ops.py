"""`gradcli ops`: the list of ops as text or JSON."""

from __future__ import annotations

from gradcli.render.style import Style


def listing(pattern: str | None, json: bool, style: Style) -> str:
    """The ops that match a pattern; "" where there is none."""
    from gradcli.render.help.op_list import op_list, op_list_document

    if not json:
        return op_list(pattern, style)
    from json import dumps

    document = op_list_document(pattern)
    return dumps(document, ensure_ascii=False, indent=2) + "\n" if document["ops"] else ""
