"""Copies of views, `torch.t_copy` and its like: each computes what a view shows, in memory of its
own.
"""

from __future__ import annotations

from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import function, methods
from gradcli.ops.creation.copies import clone
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Function, Op, op, registry
from gradcli.ops.elementwise.complex import view_as_complex_function, view_as_real_function
from gradcli.ops.indexing.strided import as_strided
from gradcli.ops.shape.joining import split, split_with_sizes, unbind
from gradcli.ops.shape.slicing import (
    alias,
    diagonal_function,
    narrow,
    select_function,
    slice_op,
    unfold,
)
from gradcli.ops.shape.views import (
    expand_function,
    permute_function,
    squeeze,
    t_function,
    transpose_function,
    unsqueeze_function,
    view_function,
)
from gradcli.state import active

_VIEWS = """alias as_strided diagonal expand permute select slice split split_with_sizes squeeze
    squeeze.SqueezeBackward1 squeeze.SqueezeBackward2 t transpose unbind unfold unsqueeze view
    view_as_complex view_as_real"""
"""The entries of which there are copies, by their keys in the registry."""


def _own(shown: Any) -> Any:
    return module_of(shown).array(forced(shown), order="C", copy=True)


def _copy_of(view: Op, **facts: Any) -> Op:
    """The entry of a view's copy: it has the view's rules."""

    def forward(*args: Any) -> Any:
        shown = view.forward(*args)
        return [_own(each) for each in shown] if view.outputs == ("*",) else _own(shown)

    forward.parameters = view.parameters  # type: ignore[attr-defined]
    facts = {"node": f"{view.node_name}_copy", "outputs": view.outputs, **facts}
    return op(
        facts.pop("name", f"{view.name}_copy"), forward, **facts, **view.rules, raises=BY_KINDS
    )


_COPIES = {key: _copy_of(registry[key]) for key in _VIEWS.split()}
_narrow = _copy_of(slice_op, name="narrow_copy", node="NarrowCopyBackward0")


class _Heard(Listener):
    """Hears which entry a function of views calls, and with what; it tells nobody else."""

    __slots__ = ("args", "op")

    def __init__(self) -> None:
        super().__init__()
        self.op: Any = None

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        self.op, self.args = op, tuple(operands.values())


def _copied(view: Function, input: Tensor, args: Any, kwargs: Any, entry: Op | None = None) -> Any:
    """The copy of what a function of views gives for arguments."""
    heard = _Heard()
    heard.install()
    try:
        shown = view(input, *args, **kwargs)
    finally:
        heard.remove()
    own = entry or next((_COPIES[key] for key in _COPIES if registry[key] is heard.op), None)
    if own is None or active.state.batch is not None:  # bits as another dtype, or examples
        return clone.apply(shown) if type(shown) is Tensor else tuple(map(clone.apply, shown))
    return own.apply(*heard.args)


def _expose(name: str, view: Function, example: str, entry: Op | None = None) -> Function:
    @function(f"{name}_copy")
    def copied(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _copied(view, input, args, kwargs, entry)

    vars(copied)["__wrapped__"] = view  # where the parameters are read from
    arguments = f", {example}" if example else ""
    sample = "[[2., 1.], [1., 3.]]" if name != "view_as_complex" else "[2., 1.]"
    sample = sample if name != "view_as_real" else "[1+2j]"
    describe(
        copied,
        f"What `{name}` shows, in memory of its own.",
        example=f"torch.{name}_copy(tensor({sample}){arguments})",
    )
    return copied


def _slice(
    input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    at = normal_dim("slice_copy", dim, input.array.ndim)
    if step <= 0:
        raise runtime_error("slice step must be positive")
    first, last, by = slice(start, end, step).indices(input.array.shape[at])
    return slice_op.apply(input, at, first, max(first, last), by)


for _name, _view, _example in (
    ("alias", alias.apply, ""),
    ("as_strided", as_strided, "(2, 2), (1, 1)"),
    ("diagonal", diagonal_function, ""),
    ("expand", expand_function, "(2, 2, 2)"),
    ("permute", permute_function, "(1, 0)"),
    ("select", select_function, "0, 1"),
    ("slice", _slice, "0, 0, 1"),
    ("split", split, "1"),
    ("split_with_sizes", split_with_sizes, "(1, 1)"),
    ("squeeze", squeeze, ""),
    ("t", t_function, ""),
    ("transpose", transpose_function, "0, 1"),
    ("unbind", unbind, ""),
    ("unfold", unfold, "0, 2, 1"),
    ("unsqueeze", unsqueeze_function, "0"),
    ("view", view_function, "(4,)"),
    ("view_as_complex", view_as_complex_function, ""),
    ("view_as_real", view_as_real_function, ""),
):
    _expose(_name, _view, _example)
methods["narrow_copy"] = _expose("narrow", narrow, "0, 0, 1", _narrow)
