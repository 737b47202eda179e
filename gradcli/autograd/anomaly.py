"""Anomaly detection: a backward pass that meets a NaN stops and reports the operation that made
it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Label
from gradcli.state import active

_ENABLED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be"
    " enabled for debugging."
)


class AnomalyListener(Listener):
    """Checks the gradients that each node returns.

    Attributes:
        check_nan: whether a NaN among them is an error.
        since: the number of the node that was made last when detection was switched on.
    """

    __slots__ = ("check_nan", "since")

    detects_anomalies: ClassVar[bool] = True

    def __init__(self, check_nan: bool) -> None:
        super().__init__()
        self.check_nan = check_nan
        self.since = active.state.sequence_nr

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """Raise E411 where the node returned a NaN."""
        super().step(node, grads, gradients, fitted)
        if not self.check_nan:
            return
        for number, gradient in enumerate(gradients):
            if gradient is None:
                continue
            array = forced(gradient.array if isinstance(gradient, Tensor) else gradient)
            if np.isnan(array).any():
                self._tell(node)
                raise _anomaly(node, number, grads)

    def _tell(self, node: Node) -> None:
        """Give a program that looks at warnings PyTorch's, which says where the node was made. On
        the terminal the error says it.
        """
        filters = active.state.library.get("warnings")
        if filters is None:
            return
        text = f"Error detected in {node.node_name}."
        if node.place is None or node.sequence_nr <= self.since:
            text += (
                " No forward pass information available. Enable detect anomaly during forward pass"
                " for more information."
            )
        else:
            place = node.place
            text += (
                " Traceback of forward call that caused the error:\n"
                f'  File "{place.source.name}", line {place.line}\n'
                f"    {place.source.line(place.line).strip()}\n"
            )
        with suppress(GradcliError):  # where warnings are errors, the NaN is the one that is raised
            filters.takes("UserWarning", text)


def _anomaly(node: Node, number: int, grads: Any) -> GradcliError:
    labels = () if node.place is None else (Label(node.place, f"{node.node_name} was made here"),)
    arrived = grads if isinstance(grads, list) else [grads]
    arrays = [
        forced(each.array if isinstance(each, Tensor) else each)
        for each in arrived
        if each is not None
    ]
    was_nan = any(np.isnan(array).any() for array in arrays)
    where = "the gradient that it was given holds nan too" if was_nan else "the nan begins here"
    variable = f" of `{node.assigned}`" if node.assigned else ""
    return GradcliError(
        "E411",
        f"Function '{node.node_name}' returned nan values in its {number}th output{variable}",
        text=f"Function '{node.node_name}' returned nan values in its {number}th output.",
        labels=labels,
        notes=(where,),
        help="look at the inputs of that operation: its derivative has no value there",
    )


def _installed() -> AnomalyListener | None:
    """The installed listener, None while anomaly detection is off."""
    current = active.state.recorder
    while isinstance(current, Listener):
        if isinstance(current, AnomalyListener):
            return current
        current = current.former
    return None


def _switch(mode: bool, check_nan: bool) -> None:
    listener = _installed()
    if listener is not None:
        listener.remove()
    if mode:
        AnomalyListener(check_nan).install()


class SetDetectAnomaly:
    """`torch.autograd.set_detect_anomaly(mode)`: takes effect at once, and ends with the context
    where it is used as one.

    Example: torch.autograd.set_detect_anomaly(True)
    """

    __slots__ = ("_before",)

    language_name: ClassVar[str] = "torch.autograd.anomaly_mode.set_detect_anomaly"
    language_context: ClassVar[bool] = True

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _installed()
        _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        before = self._before
        _switch(before is not None, before is not None and before.check_nan)


class DetectAnomaly:
    """`torch.autograd.detect_anomaly()`: a context in which a NaN in a backward pass is an
    error.

    Example: torch.autograd.detect_anomaly()
    """

    __slots__ = ("_before", "_check_nan")

    language_name: ClassVar[str] = "torch.autograd.anomaly_mode.detect_anomaly"
    language_context: ClassVar[bool] = True

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        self._before: list[AnomalyListener | None] = []
        active.state.warn("W014", _ENABLED, text=_ENABLED)

    def __enter__(self) -> None:
        self._before.append(_installed())
        _switch(True, self._check_nan)

    def __exit__(self, *exception: object) -> None:
        before = self._before.pop()
        _switch(before is not None, before is not None and before.check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on.

    Example: torch.is_anomaly_enabled()
    """
    return _installed() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN in a backward pass is an error now; PyTorch says True while detection is
    off.

    Example: torch.is_anomaly_check_nan_enabled()
    """
    listener = _installed()
    return listener is None or listener.check_nan
