"""PyTorch's autograd at the shell: values, gradients and the graph behind them.

For Python programs: `gradcli.run("y = x * x", x=3.0).grads`, and what else `__all__` names. All of
it is imported when it is first used. Their types stand in `__init__.pyi`.
"""

__version__ = "0.2.0"

_HOMES = {
    "Answer": "doors.python.questions",
    "GradcliWarning": "doors.python.host",
    "Compiled": "doors.python.program",
    "compile": "doors.python.program",
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
