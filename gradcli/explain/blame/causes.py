"""Says what made a number non-finite: a cause as one word, and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.explain.blame.nonfinite import BACKWARD, DATA, SEED

if TYPE_CHECKING:
    from gradcli.explain.blame.nonfinite import FirstNonFinite

_LOGS = ("log", "log2", "log10", "log1p")

_STEEP = ("exp", "pow", "mul", "div")

_LENGTHS = ("linalg_vector_norm", "norm", "hypot", "dist", "cdist")


def cause_of(nonfinite: FirstNonFinite) -> tuple[str, str]:
    """The cause of a first NaN or infinity: a word for machines, and a sentence."""
    if nonfinite.phase == DATA:
        return "from the data", f"{nonfinite.called} holds {number_text(nonfinite.value)}"
    if nonfinite.phase == SEED:
        return "from the seed", f"the backward pass starts from {number_text(nonfinite.value)}"
    return _backward(nonfinite) if nonfinite.phase == BACKWARD else _forward(nonfinite)


def name_of(nonfinite: FirstNonFinite) -> str:
    """The name of the operation that gave a first NaN or infinity."""
    name = nonfinite.called if nonfinite.op is None else nonfinite.op.name
    return str(name).partition(".")[0].strip("_")


# --- forward ------------------------------------------------------------------------------------


def _forward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name = name_of(nonfinite)
    values = [operand.value for operand in nonfinite.operands]
    x = values[0] if values else None
    y = values[1] if len(values) > 1 else None
    found = _undefined(name, x, y)
    if found is not None:
        return found
    if not all(_finite(value) for value in values if value is not None):
        return _of_infinities(name, x, y)
    if np.isnan(nonfinite.value):
        if name in ("std", "var", "std_mean", "var_mean"):
            return "0/0", f"{name} of so few elements divides by 0"
        if name in ("mean", "nanmean"):
            return "0/0", "the mean of nothing divides 0 by 0"
        return "undefined", f"{name} is not defined there"
    largest = np.finfo(nonfinite.dtype).max if nonfinite.dtype.kind == "f" else None
    beyond = "" if largest is None else f" {number_text(largest)}, the largest {nonfinite.dtype}"
    return "overflow", f"the result of {name} is beyond{beyond}"


def _undefined(name: str, x: Any, y: Any) -> tuple[str, str] | None:
    """Arguments for which a function has no finite value."""
    if x is None:
        return None
    if name in _LOGS:
        edge = -1 if name == "log1p" else 0
        if x < edge:
            return f"{name} of a negative", f"{name} is not defined below {edge}"
        if x == edge:
            return f"{name} of zero", f"{name} falls to -inf at {edge}"
    if name in ("div", "true_divide", "reciprocal", "fmod", "remainder"):
        below = x if name == "reciprocal" else y
        if below is not None and below == 0:
            if name != "reciprocal" and x == 0:
                return "0/0", "0 / 0 has no value"
            return "division by zero", "a number divided by 0"
    if name in ("sqrt", "rsqrt") and x < 0:
        return f"{name} of a negative", f"{name} is not defined below 0"
    if name == "rsqrt" and x == 0:
        return "division by zero", "rsqrt divides by 0"
    if name == "pow" and y is not None:
        if x == 0 and y < 0:
            return "division by zero", "a negative power of 0 divides by 0"
        if x < 0 and y != int(y):
            return "root of a negative", "a power that is no integer is not defined below 0"
    if name in ("acos", "asin") and abs(x) > 1:
        return f"{name} out of range", f"{name} is defined from -1 to 1"
    if name == "atanh" and abs(x) >= 1:
        return "atanh out of range", "atanh is defined between -1 and 1"
    if name == "logit" and (x <= 0 or x >= 1):
        return "logit out of range", "logit is finite between 0 and 1"
    if name == "xlogy" and y is not None and y <= 0:
        return "log of zero" if y == 0 else "log of a negative", "its logarithm is not finite"
    return None


def _of_infinities(name: str, x: Any, y: Any) -> tuple[str, str]:
    if name in ("sub", "add", "rsub"):
        return "inf - inf", "the difference of two infinities has no value"
    if name == "mul":
        return "0*inf", "0 times an infinity has no value"
    if name == "div":
        return "inf/inf", "the ratio of two infinities has no value"
    if name in ("softmax", "log_softmax", "_softmax"):
        return "inf - inf", f"{name} of nothing but infinities subtracts them from each other"
    return "undefined", f"{name} of an infinity has no value"


# --- backward -----------------------------------------------------------------------------------


def _backward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name = name_of(nonfinite)
    singular = _singular(nonfinite, name)
    nothing = nonfinite.incoming is not None and nonfinite.incoming == 0
    if singular:
        if nothing:
            return "0*inf", f"the gradient that arrives is 0, and {singular}: 0 · inf is NaN"
        if np.isnan(nonfinite.value) and name in ("atan2", "div"):
            return "0/0", f"{singular}: its formula divides 0 by 0"
        return "infinite slope", singular
    values = [operand.value for operand in nonfinite.operands if operand.value is not None]
    overflowed = name in _STEEP or not all(_finite(value) for value in values)
    if nothing and np.isnan(nonfinite.value) and overflowed:
        text = f"the gradient that arrives is 0, and {name} overflowed: 0 · inf is NaN"
        return "0*inf", text
    if np.isinf(nonfinite.value):
        return "overflow", f"the gradient of {name} is beyond the largest {nonfinite.dtype}"
    return "undefined", f"the gradient of {name} has no value there"


def _singular(nonfinite: FirstNonFinite, name: str) -> str:
    """Why the slope is not finite at the operands, "" if it is."""
    operands = nonfinite.operands
    x = operands[0].value if operands else None
    y = operands[1].value if len(operands) > 1 else None
    if x is None:
        if name in _LENGTHS and operands and operands[0].low == operands[0].high == 0:
            return f"{name} has no slope where all is 0"
        return ""
    if name in ("sqrt", "rsqrt") and x == 0:
        return f"the slope of {name} at 0 is infinite"
    if name == "pow" and x == 0 and (y is None or y < 1):
        return "the slope of such a power at 0 is infinite"
    if name in ("special_entr", "entr") and x == 0:
        return "the slope of entr at 0 is infinite"
    if name in _LOGS and x == (-1 if name == "log1p" else 0):
        return f"the slope of {name} at {x:g} is infinite"
    if name in ("div", "reciprocal") and (x if name == "reciprocal" else y) == 0:
        return "the slope of a division by 0 is infinite"
    if name in ("acos", "asin", "atanh") and abs(x) == 1:
        return f"the slope of {name} at {x:g} is infinite"
    if name == "acosh" and x == 1:
        return "the slope of acosh at 1 is infinite"
    if name == "atan2" and x == 0 and y == 0:
        return "atan2 has no slope at (0, 0)"
    if name == "xlogy" and y == 0:
        return "the slope of a logarithm at 0 is infinite"
    if name == "logit" and x in (0, 1):
        return f"the slope of logit at {x:g} is infinite"
    return ""


def _finite(value: Any) -> bool:
    return bool(np.isfinite(value))


def number_text(value: Any) -> str:
    """A number in few digits."""
    return f"{float(value):.6g}"
