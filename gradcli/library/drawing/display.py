"""`IPython.display` outside of a notebook: `display` prints values, and shows figures."""

from __future__ import annotations

from typing import Any

from gradcli.language.events import Printed
from gradcli.language.objects.repr import display as representation
from gradcli.language.objects.types import called
from gradcli.library.drawing.pyplot import Figure
from gradcli.library.drawing.undrawn import Anything
from gradcli.state import active


def display(*objs: Any, **settings: Any) -> None:
    """Show values, each on a line of its own as IPython does in a script, and figures as `show()`
    does; the settings say how a notebook would.
    """
    for obj in objs:
        if type(obj) is Figure:
            obj.show()
        else:
            active.state.emit(Printed(f"{representation(obj)}\n"))


DISPLAY: dict[str, Any] = Anything(
    display=display,
    clear_output=called("clear_output", lambda wait=False: None),
)
"""What `IPython.display` holds: all else is accepted, and not drawn."""
