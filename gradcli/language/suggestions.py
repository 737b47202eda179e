"""What was likely meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

_FOREIGN = {
    "array": "tensor",
    "axis": "dim",
    "axes": "dim",
    "expand_dims": "unsqueeze",
    "false": "False",
    "keepdims": "keepdim",
    "ln": "log",
    "nil": "None",
    "none": "None",
    "null": "None",
    "sigm": "sigmoid",
    "true": "True",
    "undefined": "None",
}
"""Spellings of other tools, with ours."""


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a misspelt name was likely meant to be, None if none is near."""
    names = [candidate for candidate in candidates if not candidate.startswith("_")]
    foreign = _FOREIGN.get(name.lower())
    if foreign in names:
        return foreign
    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(candidate.lower(), candidate)
    if name.lower() in folded:
        return folded[name.lower()]
    if len(name) < 3:
        return None
    # Swapped letters are the commonest slip, and weigh much in a short name.
    letters = sorted(name.lower())
    for candidate in folded:
        if len(candidate) == len(name) and sorted(candidate) == letters:
            return folded[candidate]
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None
