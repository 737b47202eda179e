"""PyTorch's autograd at the shell: values, gradients and the graph behind them.

For Python programs: `gradcli.run("y = x * x", x=3.0).grads`, and what else `__all__` names. All of
it is imported when it is first used.
"""

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from gradcli.doors.python.host import GradcliWarning as GradcliWarning
    from gradcli.doors.python.program import grad as grad
    from gradcli.doors.python.program import run as run
    from gradcli.doors.python.questions import Answer as Answer
    from gradcli.doors.python.questions import blame as blame
    from gradcli.doors.python.questions import check as check
    from gradcli.doors.python.questions import derive as derive
    from gradcli.doors.python.questions import explain as explain
    from gradcli.doors.python.questions import flow as flow
    from gradcli.doors.python.questions import why as why
    from gradcli.doors.python.result import Edge as Edge
    from gradcli.doors.python.result import Graph as Graph
    from gradcli.doors.python.result import Node as Node
    from gradcli.doors.python.result import Place as Place
    from gradcli.doors.python.result import Result as Result
    from gradcli.doors.python.session import Session as Session
    from gradcli.doors.torch.library import torch as torch
    from gradcli.errors import GradcliError as GradcliError

__version__ = "0.2.0"

_HOMES = {
    "Answer": "doors.python.questions",
    "GradcliWarning": "doors.python.host",
    "grad": "doors.python.program",
    "run": "doors.python.program",
    "blame": "doors.python.questions",
    "check": "doors.python.questions",
    "derive": "doors.python.questions",
    "explain": "doors.python.questions",
    "flow": "doors.python.questions",
    "why": "doors.python.questions",
    "Edge": "doors.python.result",
    "Graph": "doors.python.result",
    "Node": "doors.python.result",
    "Place": "doors.python.result",
    "Result": "doors.python.result",
    "Session": "doors.python.session",
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


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
