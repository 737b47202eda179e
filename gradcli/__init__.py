"""PyTorch's autograd at the shell: values, gradients and the graph behind them.

For Python programs: `gradcli.run("y = x * x", x=3.0).grads`, and what else `__all__` names. All of
it is imported when it is first used.
"""

import sys

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from gradcli.doors.library.answer import Answer as Answer
    from gradcli.doors.library.host import GradcliWarning as GradcliWarning
    from gradcli.doors.library.program import grad as grad
    from gradcli.doors.library.program import run as run
    from gradcli.doors.library.questions import blame as blame
    from gradcli.doors.library.questions import check as check
    from gradcli.doors.library.questions import derive as derive
    from gradcli.doors.library.questions import explain as explain
    from gradcli.doors.library.questions import flow as flow
    from gradcli.doors.library.questions import why as why
    from gradcli.doors.library.result import Edge as Edge
    from gradcli.doors.library.result import Graph as Graph
    from gradcli.doors.library.result import Node as Node
    from gradcli.doors.library.result import Place as Place
    from gradcli.doors.library.result import Result as Result
    from gradcli.doors.library.session import Session as Session
    from gradcli.doors.torch.library import torch as torch
    from gradcli.errors import GradcliError as GradcliError

__version__ = "0.1.0"

_HOMES = {
    "Answer": "doors.library.answer",
    "GradcliWarning": "doors.library.host",
    "grad": "doors.library.program",
    "run": "doors.library.program",
    "blame": "doors.library.questions",
    "check": "doors.library.questions",
    "derive": "doors.library.questions",
    "explain": "doors.library.questions",
    "flow": "doors.library.questions",
    "why": "doors.library.questions",
    "Edge": "doors.library.result",
    "Graph": "doors.library.result",
    "Node": "doors.library.result",
    "Place": "doors.library.result",
    "Result": "doors.library.result",
    "Session": "doors.library.session",
    "torch": "doors.torch.library",
    "load_ipython_extension": "doors.notebook.magics",
    "GradcliError": "errors",
}
"""The module of each name that Python programs use."""

__all__ = tuple(name for name in _HOMES if name != "load_ipython_extension")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'gradcli' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"gradcli.{_HOMES[name]}"), name)


class _Package(type(sys)):  # type: ignore[misc]
    """This package: `explain` is the function for Python, also where the folder of that name has
    been imported, which would take its place.
    """

    @property
    def explain(self) -> object:
        return __getattr__("explain")

    @explain.setter
    def explain(self, folder: object) -> None:
        pass


sys.modules[__name__].__class__ = _Package
