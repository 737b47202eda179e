"""The codes: of errors, one per kind of mistake, and of warnings, one per likely slip.

The text that `gradcli help CODE` shows stands in `gradcli/manual/codes/CODE.md`.
"""

from __future__ import annotations


class Code:
    """What a code stands for: a title, the Python class it raises, the stage it belongs to and its
    exit code.
    """

    __slots__ = ("exit_code", "raises", "stage", "title")

    def __init__(self, title: str, raises: str, stage: str, exit_code: int = 3) -> None:
        self.title = title
        self.raises = raises
        self.stage = stage
        self.exit_code = exit_code


# One code per kind of mistake. The hundreds follow the stages: E0 text that is no program, E1
# names, E2 calls and types, E3 shapes and indices, E4 differentiation, E5 values from outside, E6
# limits, E7 what a program raises itself, E9 ours.
CODES: dict[str, Code] = {
    "E001": Code("invalid syntax", "SyntaxError", "parsing"),
    "E002": Code("unexpected character", "SyntaxError", "parsing"),
    "E003": Code("unfinished string or bracket", "SyntaxError", "parsing"),
    "E004": Code("inconsistent indentation", "IndentationError", "parsing"),
    "E005": Code("nested too deeply", "SyntaxError", "parsing"),
    "E006": Code("statement out of place", "SyntaxError", "parsing"),
    "E007": Code("outside the language", "NotImplementedError", "parsing"),
    "E101": Code("name without a value", "NameError", "evaluating"),
    "E102": Code("no such attribute", "AttributeError", "evaluating"),
    "E103": Code("module or name that cannot be imported", "ModuleNotFoundError", "evaluating"),
    "E104": Code("no such dot-command", "NameError", "evaluating", exit_code=2),
    "E105": Code("wrong arguments of a dot-command", "ValueError", "evaluating", exit_code=2),
    "E201": Code("wrong arguments", "TypeError", "evaluating"),
    "E202": Code("wrong type", "TypeError", "evaluating"),
    "E203": Code("wrong dtype", "RuntimeError", "evaluating"),
    "E204": Code("invalid value", "ValueError", "evaluating"),
    "E205": Code("outside the catalogue", "NotImplementedError", "evaluating"),
    "E206": Code("division by zero", "ZeroDivisionError", "evaluating"),
    "E207": Code("no such key", "KeyError", "evaluating"),
    "E208": Code("tensors on different devices", "RuntimeError", "evaluating"),
    "E209": Code("a value that was not expected", "SystemError", "evaluating"),
    "E301": Code("shapes do not fit", "RuntimeError", "evaluating"),
    "E302": Code("index out of range", "IndexError", "evaluating"),
    "E303": Code("cannot unpack", "ValueError", "evaluating"),
    "E401": Code("seed missing", "RuntimeError", "differentiating"),
    "E402": Code("nothing to differentiate", "RuntimeError", "differentiating"),
    "E403": Code("graph already freed", "RuntimeError", "differentiating"),
    "E404": Code("saved value was modified", "RuntimeError", "differentiating"),
    "E405": Code("in-place change refused", "RuntimeError", "evaluating"),
    "E406": Code("seed does not fit", "RuntimeError", "differentiating"),
    "E407": Code("input not in the graph", "RuntimeError", "differentiating"),
    "E408": Code("cannot require grad", "RuntimeError", "evaluating"),
    "E409": Code("no derivative", "RuntimeError", "differentiating"),
    "E410": Code("invalid gradient", "RuntimeError", "differentiating"),
    "E411": Code("nan in a backward pass", "RuntimeError", "differentiating"),
    "E412": Code("gradient check failed", "GradcheckError", "differentiating"),
    "E413": Code("no formula", "NotImplementedError", "differentiating"),
    "E501": Code("unreadable value", "ValueError", "reading", exit_code=4),
    "E502": Code("unreadable file", "OSError", "reading", exit_code=4),
    "E503": Code("unreadable program", "OSError", "reading", exit_code=2),
    "E504": Code("damaged file", "ValueError", "reading", exit_code=4),
    "E505": Code("no numbers of PyTorch's", "ValueError", "reading", exit_code=4),
    "E506": Code("no such part of a file", "KeyError", "reading", exit_code=4),
    "E507": Code("wrong record", "ValueError", "reading", exit_code=4),
    "E601": Code("too many calls", "RecursionError", "evaluating", exit_code=5),
    "E602": Code("too much work", "MemoryError", "evaluating", exit_code=5),
    "E603": Code("output file", "OSError", "evaluating", exit_code=5),
    "E604": Code("no such device", "RuntimeError", "evaluating", exit_code=5),
    "E605": Code("too many steps", "TimeoutError", "evaluating", exit_code=5),
    "E606": Code("files are out of bounds", "PermissionError", "evaluating", exit_code=5),
    "E607": Code("out of time", "TimeoutError", "evaluating", exit_code=5),
    "E608": Code("lost process", "RuntimeError", "evaluating", exit_code=5),
    "E609": Code("a package that is missing", "ImportError", "evaluating", exit_code=5),
    "E610": Code("a worker of another version", "RuntimeError", "evaluating", exit_code=5),
    "E701": Code("assertion failed", "AssertionError", "evaluating", exit_code=1),
    "E702": Code("raised by the program", "Exception", "evaluating"),
    "E703": Code("iteration ended", "StopIteration", "evaluating"),
    "E901": Code("internal error", "SystemError", "evaluating", exit_code=70),
}


def _warning(title: str, stage: str = "evaluating") -> Code:
    return Code(title, "UserWarning", stage, 0)


WARNINGS: dict[str, Code] = {
    "W001": _warning("a column and a vector make a matrix"),
    "W002": _warning("a leaf is replaced in a loop"),
    "W003": _warning("the gradient of a non-leaf is not kept"),
    "W004": _warning("target and input differ in shape"),
    "W005": _warning("a tensor is copied by torch.tensor"),
    "W006": _warning("the dimension is guessed"),
    "W007": _warning("a number leaves the graph"),
    "W008": _warning("too few elements for a variance"),
    "W009": _warning("an argument is not used", "reading"),
    "W010": _warning("an output is resized"),
    "W011": _warning("NumPy warns of a result"),
    "W012": _warning("something is not drawn"),
    "W013": _warning("an op has no batching rule"),
    "W014": _warning("anomaly detection is on"),
    "W015": _warning("a name is deprecated"),
    "W016": _warning("a result is NaN, or a gradient infinite", "differentiating"),
    "W017": _warning("gradients are never cleared"),
    "W018": _warning("a sum of losses keeps their graphs"),
    "W019": _warning("an evaluation is recorded"),
    "W020": _warning("probabilities where scores are expected"),
    "W021": _warning("layers that are not registered"),
    "W022": _warning("a logarithm that rounds or overflows"),
    "W023": _warning("an optimizer that changes nothing"),
    "W024": _warning("a comparison used as a loss", "differentiating"),
    "W025": _warning("nothing is compiled"),
    "W026": _warning("a schedule steps before its optimizer"),
    "W027": _warning("a replay that differs from the run"),
    "W028": _warning("a gradient keeps its graph alive", "differentiating"),
}

BY_TENSORS = frozenset({"E203", "E204", "E301", "E302", "E401", "E406", "E408"})
"""The codes whose errors the shapes and dtypes of the tensors explain."""

BY_OPERANDS = frozenset({"E202"})
"""The codes whose errors the types of all operands explain."""
