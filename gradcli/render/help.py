"""What `gradcli help` shows: the codes of errors, exit codes and topics."""

from __future__ import annotations

from gradcli.codes import CODES
from gradcli.render.style import PLAIN, Style

_EXIT_CODES = """\
Exit codes

    0  all good
    1  a check failed: an `assert` of the program did not hold
    2  the command line is wrong, or a program file cannot be read
    3  the program is wrong: any error that Python or PyTorch would raise
    4  a bound input is wrong or unreadable: NAME=VALUE, NAME=@FILE
    5  a limit, memory, or an output file that cannot be written
   70  a bug of gradcli
  130  interrupted with Ctrl-C
  141  the reader of the output went away

Several files: the code of the first that failed.
"""

_VALUES = """\
Values for a program's names: NAME=VALUE, behind the program or the files

  a=2                     a number binds as a floating tensor
  a=[[1,2],[3,4]]         so does a list of numbers
  'a=randn(3, 4)'         any expression of the language
  a=@x.npy                an array from a NumPy file
  a=@m.npz:weight         one array of several
  k:const=3               Python's own 3: no tensor, no gradient

Bound floating tensors require grad; --wrt a,b leaves that to a and b. What is integer stays
integer: 'i=tensor([0, 2])'. --dtype float64 sets the dtype of numbers and lists.

A name that the program assigns itself is replaced where it is first assigned, and takes the kind of
the value that stood there: steps=10 stays an int, and a tensor requires grad if the script's did.
"""

_TRACES = """\
Traces: what a value was computed from

  --trace=tree    the backward graph, each node below the one that its gradient comes from; [0] is
                  the number of the input; a node that is reached twice has a number, #4, and is
                  drawn once
  --trace=next    next_functions of every node, as a program prints it
  --trace=steps   the backward pass in the order in which it ran: the gradient that came in, what
                  each edge passed on, and old + incoming = new where gradients meet

A one-shot prints the tree of a small graph unless told otherwise: --no-trace, or -q. In a program,
trace(e) and trace(e, "steps") print the same.
"""

_LANGUAGE = """\
The language: the part of Python that programs for PyTorch's autograd need, meaning what it means in
a file that imports torch

  statements    assignment, if, for, while, def, return, lambda, with, try, raise, assert, del,
                import of torch, numpy and math, comprehensions, f-strings
  names         torch.exp(x), x.exp() and plain exp(x) are the same; F is torch.nn.functional; a
                builtin's name (sum, max, abs) is the builtin, as in a file
  numbers       float32 unless told otherwise, promoted as PyTorch does
  differences   error messages are gradcli's own; nodes are told apart by small numbers, not by
                addresses; trace(e) prints the graph of e

Nothing else of Python is reachable: no files, no modules of the host, no `__` attributes.
"""

TOPICS = {
    "exit-codes": _EXIT_CODES,
    "language": _LANGUAGE,
    "traces": _TRACES,
    "values": _VALUES,
}
"""The topics by name."""


def topic(name: str, style: Style = PLAIN) -> str | None:
    """The text of a topic or a code, None for one that there is not."""
    code = name.upper()
    if code in CODES:
        return _code(code, style)
    if name == "codes":
        return _codes(style)
    found = TOPICS.get(name)
    if found is None:
        return None
    head, _, rest = found.partition("\n")
    return f"{style.paint(head, 'strong')}\n{rest}"


def overview(style: Style = PLAIN) -> str:
    """What there is help on."""
    names = ", ".join(["codes", *TOPICS])
    return (
        f"{style.paint('gradcli help TOPIC', 'strong')}  one of: {names}\n"
        f"{style.paint('gradcli help CODE', 'strong')}   an error's code, such as E301\n"
        f"{style.paint('gradcli --help', 'strong')}      commands and options\n"
    )


def _code(code: str, style: Style) -> str:
    found = CODES[code]
    lines = [
        style.paint(f"{code}: {found.title}", "strong"),
        f"raised as {found.raises} while {found.stage}; exit code {found.exit_code}",
        "",
        *_wrapped(found.explanation),
    ]
    if found.example:
        lines += ["", "For example:", "", *(f"    {line}" for line in found.example.split("\n"))]
    return "\n".join(lines) + "\n"


def _codes(style: Style) -> str:
    lines = [style.paint("Codes of errors", "strong"), ""]
    lines += [f"  {code}  {found.title}" for code, found in CODES.items()]
    return "\n".join([*lines, "", "gradcli help CODE explains one."]) + "\n"


def _wrapped(text: str, width: int = 80) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
