"""Names by which a person knows tensors and modules; looked up when a report needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from gradcli.autograd.node import Node


class ModuleCall:
    """One call of a module that a recorder heard.

    Attributes:
        result: the node that made what it returned, None for no tensor with a history.
    """

    __slots__ = ("module", "result")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.result: ref[Node] | None = None


def _nothing() -> None:
    """Nothing has a path where no program runs."""


name_parameters: Callable[[], None] = _nothing
"""Names the parameters of every module by their path; installed by gradcli.library."""

module_paths: Callable[[], dict[int, tuple[str, Any]]] = dict
"""Every living module by its `id`, with its path, `net.layers.2`; installed by gradcli.library."""
