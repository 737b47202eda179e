"""What of PyTorch gradcli has not, every name with its reason: `gradcli help left-out`.

The page is made by asking a session for each public name, so an op that is added leaves it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gradcli.errors import GradcliError
from gradcli.language.hints.unsupported import RULES, pytorch_names, reason_unsupported
from gradcli.session import Session
from gradcli.show.help.manual import rendered
from gradcli.show.style import PLAIN, Style

_START = """import torch
Tensor = torch.ones(2, requires_grad=True)
Module = torch.nn.Module()
Optimizer = torch.optim.SGD([Tensor], lr=0.1)
"""


def started() -> Session:
    """A session that knows an object of each class whose names are listed."""
    session = Session()
    for _ in session.run(_START, "start"):
        pass
    return session


def left_out(session: Session, home: str) -> Iterator[tuple[str, GradcliError]]:
    """The names of a module or class that a program cannot read, each with its error."""
    for name in sorted(pytorch_names()[home]):
        try:
            for _ in session.run(f"{home}.{name}\n", "name"):
                pass
        except GradcliError as error:
            if error.code not in ("E203", "E301"):  # this tensor has none, as in PyTorch
                yield name, error


def left_out_page(style: Style = PLAIN) -> str:
    """The names by reason."""
    session, names_by_reason = started(), dict.fromkeys((reason for reason, _ in RULES), "")
    known = count = 0
    for home in sorted(pytorch_names()):
        if reason_unsupported(*home.rpartition(".")[::2]) and not _is_there(session, home):
            continue  # its name stands for all in it
        known += len(pytorch_names()[home])
        for name, _ in left_out(session, home):
            reason = reason_unsupported(home, name) or ""
            names_by_reason[reason] = f"{names_by_reason.get(reason, '')} {home}.{name}"
            count += 1
    parts = [
        "# What of PyTorch is left out\n",
        f"gradcli has {known - count:,} of the {known:,} public names that PyTorch 2.13 has in the"
        " modules that are there. The others, by reason; a module's name stands for all in it. A"
        " program that uses one ends in `E205`, and `gradcli port FILE` finds it without running"
        " the program.\n",
    ]
    for reason, names in names_by_reason.items():
        if names:
            listed = textwrap.fill(names.strip(), (style.width or 80) - 2, break_on_hyphens=False)
            parts.append(f"{reason[0].upper()}{reason[1:]}:\n\n```text\n{listed}\n```\n")
    return rendered("\n".join(parts), style)


def _is_there(session: Session, home: str) -> bool:
    try:
        for _ in session.run(f"{home}\n", "name"):
            pass
    except GradcliError:
        return False
    return True
