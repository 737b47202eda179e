"""What makes a number that is not finite, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.explain.blame.nonfinite import BACKWARD, DATA, SEED
from gradcli.ops.definition.doc import NO_HAZARD, Hazard

if TYPE_CHECKING:
    from gradcli.explain.blame.nonfinite import Birth


def kind_of(birth: Birth) -> tuple[str, str]:
    """A word for machines, and a sentence."""
    if birth.phase == DATA:
        return "from the data", f"{birth.called} holds {number_text(birth.value)}"
    if birth.phase == SEED:
        return "from the seed", f"the backward pass starts from {number_text(birth.value)}"
    return _backward(birth) if birth.phase == BACKWARD else _forward(birth)


def name_of(birth: Birth) -> str:
    """What the operation of a birth is called."""
    name = birth.called if birth.op is None else birth.op.name
    return str(name).partition(".")[0].strip("_")


# --- forward ------------------------------------------------------------------------------------


def _forward(birth: Birth) -> tuple[str, str]:
    name, hazard = name_of(birth), _hazard_of(birth)
    found = hazard.of_value(_values(birth))
    if found is not None:
        return found
    if not _all_finite(birth):
        return hazard.infinities or ("undefined", f"{name} of an infinity has no value")
    if np.isnan(birth.value):
        return (
            ("0/0", hazard.nothing)
            if hazard.nothing
            else ("undefined", f"{name} is not defined there")
        )
    largest = np.finfo(birth.dtype).max if birth.dtype.kind == "f" else None
    beyond = "" if largest is None else f" {number_text(largest)}, the largest {birth.dtype}"
    return "overflow", f"the result of {name} is beyond{beyond}"


# --- backward -----------------------------------------------------------------------------------


def _backward(birth: Birth) -> tuple[str, str]:
    name, hazard = name_of(birth), _hazard_of(birth)
    singular = _singular(birth)
    nothing = birth.incoming is not None and birth.incoming == 0
    if singular:
        if nothing:
            return "0*inf", f"the gradient that arrives is 0, and {singular}: 0 · inf is NaN"
        if np.isnan(birth.value) and hazard.undefined:
            return "0/0", f"{singular}: its formula divides 0 by 0"
        return "infinite slope", singular
    if nothing and np.isnan(birth.value) and (hazard.steep or not _all_finite(birth)):
        text = f"the gradient that arrives is 0, and {name} overflowed: 0 · inf is NaN"
        return "0*inf", text
    if np.isinf(birth.value):
        return "overflow", f"the gradient of {name} is beyond the largest {birth.dtype}"
    return "undefined", f"the gradient of {name} has no value there"


def _singular(birth: Birth) -> str:
    """Why the slope is not finite at the operands, "" if it is."""
    hazard, first = _hazard_of(birth), birth.operands[:1]
    if first and first[0].value is None and first[0].low == first[0].high == 0:
        return hazard.zeros
    return hazard.of_slope(_values(birth))


# --- what a birth was made from -----------------------------------------------------------------


def _hazard_of(birth: Birth) -> Hazard:
    return NO_HAZARD if birth.op is None else birth.op.hazard


def _values(birth: Birth) -> dict[str, Any]:
    """The operands' numbers at the element, by parameter."""
    return {operand.parameter: operand.value for operand in birth.operands}


def _all_finite(birth: Birth) -> bool:
    return all(_finite(each) for each in _values(birth).values() if each is not None)


def _finite(value: Any) -> bool:
    return bool(np.isfinite(value))


def number_text(value: Any) -> str:
    """A number in few digits."""
    return f"{float(value):.6g}"
