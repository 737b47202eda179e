"""Custom functions: operations whose forward and backward a program writes.

`Function.apply` runs the program's `forward` outside the graph and makes one node for it, which is
also the context `ctx` that forward and backward share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd.hooks import Pack, Packed, SavedTensor, Unpack
from gradcli.autograd.inplace.writes import check_inplace, rebase
from gradcli.autograd.modes import name_of
from gradcli.autograd.node import FREED, Node, freed, modified, printed_number
from gradcli.autograd.tensor import (
    Tensor,
    alias,
    gradient_edge,
    join_graph,
    meta_of,
    refresh,
    storage_of,
    with_history,
)
from gradcli.errors import GradcliError, Label, Span, runtime_error, type_error
from gradcli.state import active


class Saved:
    """A tensor that a context saved.

    Attributes:
        value: the tensor; for an output of the node, its array, so that the node does not hold
            itself alive.
        output_nr: which output of the node it is, -1 for none.
    """

    __slots__ = ("output_nr", "storage", "value", "version")

    def __init__(self, tensor: Tensor, output_nr: int) -> None:
        self.value = tensor if output_nr < 0 else tensor.array
        self.storage = tensor.storage
        self.version = tensor.version
        self.output_nr = output_nr

    @property
    def current_version(self) -> int:
        """The version of the memory now."""
        if self.output_nr < 0:
            return int(self.value.version)
        return self.version if self.storage is None else self.storage.version

    @property
    def place(self) -> Span | None:
        """The span of the last write to the memory."""
        storage = self.value.storage if self.output_nr < 0 else self.storage
        return None if storage is None else storage.place


class PackedSaved(Packed):
    """A tensor that a context saved and a hook packed; `edge` is where its gradient flows to."""

    edge: tuple[Node | None, int]


class FunctionNode(Node):
    """The node of a custom function and the `ctx` of its methods.

    Attributes:
        input_metadata: shape and NumPy dtype of each tensor among the arguments.
        output_nrs: for each result of forward, which output it is, -1 for what is no tensor.
        saved: what `saved_tensors` returns, `FREED` after it was freed.
        saved_forward: what it returns in `jvp`, None for the same.
        materialize: whether backward gets zeros for a gradient that is undefined.
        constants: the numbers of the outputs that carry no gradient.
    """

    __slots__ = (
        "attributes",
        "constants",
        "dirty",
        "function",
        "input_metadata",
        "is_tensor",
        "materialize",
        "multiple",
        "needs_input_grad",
        "non_differentiable",
        "saved",
        "saved_forward",
        "to_save",
    )

    multiple: bool
    leaves_complex = True

    language_attributes = Node.language_attributes | {
        "mark_dirty",
        "mark_non_differentiable",
        "needs_input_grad",
        "save_for_backward",
        "save_for_forward",
        "saved_tensors",
        "set_materialize_grads",
    }

    def __init__(self, function: Any, args: Sequence[Any]) -> None:
        tensors = [value for value in args if isinstance(value, Tensor)]
        recorded = active.state.grad_enabled
        edges = [gradient_edge(tensor) if recorded else (None, 0) for tensor in tensors]
        self.next_nodes = tuple([node for node, _ in edges])
        self.input_nrs = tuple([output_nr for _, output_nr in edges])
        self.metadata = ()
        self.input_metadata = tuple(
            [(tensor.array.shape, tensor.array.dtype) for tensor in tensors]
        )
        self.sequence_nr = 0
        self.place = active.state.place
        self.assigned = None
        self.extra = None
        self.multiple = True
        self.function = function
        self.is_tensor = tuple([isinstance(value, Tensor) for value in args])
        self.needs_input_grad = tuple(
            [isinstance(value, Tensor) and value.requires_grad for value in args]
        )
        self.to_save: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.saved: Any = ()
        self.saved_forward: Any = None
        self.materialize = True
        self.constants: set[int] = set()
        self.attributes: dict[str, Any] = {}

    # --- the context --------------------------------------------------------------------------

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for backward; raises E202 for anything else once forward ends."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for `jvp`; backward does not use them."""
        for value in tensors:
            if value is not None and not isinstance(value, Tensor):
                raise type_error(f"save_for_forward() takes tensors, not {_kind(value)}")
        self.saved_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare the inputs that forward changes in place; each must be an output."""
        self.dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs that carry no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: Any) -> None:
        """Whether backward gets zeros for an undefined gradient, or None."""
        self.materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that were saved, with their histories.

        Raises E403 where a backward pass freed them, E404 where one was written to since.
        """
        if self.saved is FREED:
            raise freed(self)
        return tuple([self._unpacked(number, kept) for number, kept in enumerate(self.saved)])

    def pack_saved(self, pack: Pack, unpack: Unpack, only: Any = None) -> None:
        """Keep what `pack` makes of each saved tensor, or of a number's; `unpack` turns it back."""
        packed: list[Any] = []
        for number, kept in enumerate(self.saved):
            if isinstance(kept, Saved) and only in (None, number):
                tensor = self._tensor(kept)
                kept = PackedSaved(pack(tensor), unpack, gradient_edge(tensor))
            packed.append(kept)
        self.saved = tuple(packed)

    def _tensor(self, kept: Saved) -> Tensor:
        """A saved tensor with its history."""
        if kept.output_nr >= 0:
            return with_history(kept.value, self, kept.output_nr)
        return kept.value

    def _unpacked(self, number: int, kept: Saved | PackedSaved | None) -> Tensor | None:
        if kept is None:
            return None
        if isinstance(kept, PackedSaved):
            return kept.tensor(*kept.edge)
        if kept.current_version != kept.version:
            name = self.assigned if kept.output_nr >= 0 else kept.value.name
            name = name or f"saved_tensors[{number}]"
            value = kept.value
            producer = (self if kept.output_nr >= 0 else value.grad_fn, max(kept.output_nr, 0))
            array = getattr(value, "array", value)
            held = (array.shape, array.dtype)
            raise modified(
                self, name, held, producer, kept.current_version, kept.version, kept.place
            )
        return self._tensor(kept)

    def language_getattr(self, name: str) -> Any:
        """An attribute stored on `ctx`, or a raw saved tensor; raises AttributeError."""
        if name == "_raw_saved_tensors":
            if self.saved is FREED:
                raise freed(self)
            return tuple([self._raw_saved(number) for number in range(len(self.saved))])
        try:
            return self.attributes[name]
        except KeyError:
            return super().language_getattr(name)

    def _raw_saved(self, number: int) -> SavedTensor:
        return SavedTensor(
            lambda: FREED if self.saved is FREED else self.saved[number],
            lambda kept: isinstance(kept, Packed),
            lambda pack, unpack: self.pack_saved(pack, unpack, number),
        )

    def language_setattr(self, name: str, value: Any) -> None:
        """Store a value on `ctx`; raises E102 for what can only be read."""
        if name in _READ_ONLY:
            raise GradcliError("E102", f"the attribute '{name}' of ctx cannot be set")
        self.attributes[name] = value

    def language_delattr(self, name: str) -> None:
        """Forget a value stored on `ctx`; raises AttributeError."""
        if name not in self.attributes:
            raise AttributeError(name)
        del self.attributes[name]

    def name(self) -> str:
        return self.node_name

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.node_name} object at {hex(printed_number(self))}>"

    # --- forward ------------------------------------------------------------------------------

    def finish(self, args: Sequence[Any], results: tuple[Any, ...], recorded: bool) -> list[Any]:
        """Make the function's outputs of what forward returned, and save what it asked for."""
        state = active.state
        if recorded:
            state.sequence_nr += 1
            self.sequence_nr = state.sequence_nr
        self._bump_dirty(args, results)
        self.multiple = len(results) > 1
        self.metadata = tuple(
            [
                (value.array.shape, value.array.dtype) if isinstance(value, Tensor) else _NOTHING
                for value in results
            ]
        )
        inputs = [value for value in args if isinstance(value, Tensor)]
        outputs = [
            self._output(value, number, inputs, recorded) if isinstance(value, Tensor) else value
            for number, value in enumerate(results)
        ]
        self._mark_views(outputs, recorded)
        if recorded:
            self._save()
        self.to_save = self.dirty = ()
        return outputs

    def _bump_dirty(self, args: Sequence[Any], results: tuple[Any, ...]) -> None:
        marks = {"mark_dirty": self.dirty, "mark_non_differentiable": self.non_differentiable}
        for mark, values in marks.items():
            for value in values:
                if not isinstance(value, Tensor):
                    raise GradcliError(
                        "E202", f"{mark}() takes tensors, not {_kind(value)}", raises="RuntimeError"
                    )
        for value in self.dirty:
            if not any(value is argument for argument in args):
                text = (
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors"
                    " that have been mutated should be passed to ctx.mark_dirty()."
                )
                active.state.warn("W009", "mark_dirty() got a tensor that is no input", text=text)
            storage_of(value).version += 1
            if not any(value is result for result in results):
                raise GradcliError(
                    "E405",
                    f"{self.function.__name__} marked a tensor dirty that forward did not return",
                    text="Some elements marked as dirty during the forward method were not returned"
                    " as output. The inputs that are modified inplace must all be outputs of the"
                    " Function.",
                    help="return every tensor that is given to ctx.mark_dirty()",
                )

    def _output(self, value: Tensor, number: int, inputs: list[Tensor], recorded: bool) -> Tensor:
        """One result of forward, with its history."""
        is_input = any(value is each for each in inputs)
        is_dirty = any(value is each for each in self.dirty)
        differentiable = (
            recorded
            and value.array.dtype.kind not in "iub"
            and not any(value is each for each in self.non_differentiable)
        )
        if not differentiable:
            self.constants.add(number)
            base = value.base
            if not (value.requires_grad or (base is not None and base.requires_grad)):
                return _shown(value) if is_input and not is_dirty else value
            # A view of an input stays one, as one that is made under no_grad.
            return alias(value) if is_input or value.base is None else value
        if is_dirty:
            check_inplace(self.function.__name__, value)
            if value.base is not None and self.multiple:
                raise GradcliError(
                    "E405",
                    f"{self.function.__name__} changed a view in place, and returned more than it",
                    text=_VIEW_AND_MORE,
                    help="return the view alone, or clone() it in forward",
                )
            rebase(value, self, number)
        else:
            if is_input:
                value = _shown(value)
            value.grad_fn = self
            value.output_nr = number
            value.requires_grad = True
        if value.storage is not None:
            self.save_result_storage(number, value.storage, value.array)
        return value

    def _mark_views(self, outputs: list[Any], recorded: bool) -> None:
        """Forbid writes to outputs that are views: they would bypass this function's backward."""
        own = [
            value
            for value in outputs
            if isinstance(value, Tensor) and (value.grad_fn is self or not recorded)
        ]
        for value in own:
            if value.base is not None:
                meta = meta_of(value)
                meta.creation = "custom_function" if len(own) == 1 else "multi_output"
                meta.attr_version = value.version

    def _save(self) -> None:
        saved: list[Saved | None] = []
        for value in self.to_save:
            if value is None:
                saved.append(None)
                continue
            if not isinstance(value, Tensor):
                raise type_error(
                    f"save_for_backward() takes tensors, not {_kind(value)}",
                    text="save_for_backward can only save variables, but argument"
                    f" {len(saved)} is of type {_kind(value)}",
                )
            saved.append(Saved(value, value.output_nr if value.grad_fn is self else -1))
        self.saved = tuple(saved)

    def save_result_storage(self, output_nr: int, storage: Any, array: Any) -> None:
        for kept in () if self.saved is FREED else self.saved:
            if isinstance(kept, Saved) and kept.output_nr == output_nr:
                kept.value = array
                kept.storage = storage
                kept.version = storage.version

    # --- backward -----------------------------------------------------------------------------

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        several = grads if isinstance(grads, list) else [grads]
        identity_map = active.state.backward_pass.identity_map
        arrived = [None if array is None else identity_map.shown(array) for array in several]
        gradients = self._gradients(arrived, keep)
        for gradient in gradients:
            if gradient is not None and gradient.requires_grad:
                identity_map.add(gradient)
        return tuple([None if g is None else g.array for g in gradients])

    def run_recorded(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        return tuple(self._gradients(grads if isinstance(grads, list) else [grads], keep))

    def pass_over(self, grads: list[None], recorded: bool, keep: bool) -> tuple[Any, ...]:
        """Run the program's backward, which runs even without a gradient."""
        return (self.run_recorded if recorded else self.run)(grads, keep)

    def _gradients(self, grads: list[Tensor | None], keep: bool) -> list[Tensor | None]:
        """The gradients that the program's backward returns for the tensors among the arguments."""
        beside = next((gradient.array for gradient in grads if gradient is not None), None)
        gradients = [
            self._zeros(number, beside) if gradient is None and self.materialize else gradient
            for number, gradient in enumerate(grads)
        ]
        if self.attributes.get("_materialize_non_diff_grads") is False:
            gradients = [None if n in self.constants else each for n, each in enumerate(gradients)]
        returned = self.function.backward(self, *gradients)
        active.state.forget_methods(self.function.__name__)
        if not keep:
            self.saved = FREED
        return self._checked(returned if isinstance(returned, tuple) else (returned,))

    def jvp(self, tangents: dict[int, Tensor]) -> list[Tensor | None]:
        """The tangents that the program's `jvp` returns, for tangents of some of the tensors among
        the arguments, by the numbers of their edges.
        """
        edges = iter(enumerate(self.input_metadata))
        arguments = [
            self._tangent(tangents, *next(edges)) if yes else None for yes in self.is_tensor
        ]
        saved = self.saved
        if self.saved_forward is not None:
            self.saved = tuple(
                [None if value is None else Saved(value, -1) for value in self.saved_forward]
            )
        try:
            returned = self.function.jvp(self, *arguments)
        finally:
            self.saved = saved
        return list(returned) if isinstance(returned, tuple) else [returned]

    def _tangent(self, tangents: dict[int, Tensor], number: int, metadata: Any) -> Tensor | None:
        """The tangent of an argument; zeros where it has none."""
        if number in tangents or not self.materialize:
            return tangents.get(number)
        beside = next(iter(tangents.values())).array
        return Tensor(module_of(beside).zeros(*metadata)[()])

    def _zeros(self, number: int, beside: Any) -> Tensor | None:
        if self.metadata[number] is _NOTHING:
            return None
        shape, dtype = self.metadata[number]
        return Tensor(module_of(beside).zeros(shape, dtype)[()])

    def _checked(self, returned: tuple[Any, ...]) -> list[Tensor | None]:
        """The gradients of the tensors; raises E410 for a wrong number or kind."""
        count = len(self.is_tensor)
        if len(returned) < count or any(extra is not None for extra in returned[count:]):
            wanted = "1 gradient" if count == 1 else f"{count} gradients"
            parts = ", ".join(["…" if each else "None" for each in self.is_tensor])
            example = "" if all(self.is_tensor) else f"`return {parts}`: "
            raise self._invalid(
                f"has to return {wanted}, one for each argument of forward, and returned"
                f" {len(returned)}",
                f"{example}return None for an argument that has no gradient",
                f"function {self.node_name} returned an incorrect number of gradients (expected"
                f" {count}, got {len(returned)})",
            )
        gradients: list[Tensor | None] = []
        for number, (value, is_tensor) in enumerate(zip(returned, self.is_tensor, strict=False)):
            if value is not None and not is_tensor:
                raise self._invalid(
                    f"returned a gradient for argument {number} of forward, which is no tensor",
                    "return None for it",
                    f"function {self.node_name} returned a gradient different than None at position"
                    f" {number + 1}, but the corresponding forward input was not a Variable",
                )
            if value is not None and not isinstance(value, Tensor):
                raise self._invalid(
                    f"returned {_kind(value)} for a gradient",
                    "return a tensor",
                    f"expected Variable or None (got {_kind(value)})",
                )
            if is_tensor:
                gradients.append(value)
        return gradients

    def _invalid(self, problem: str, help: str, text: str) -> GradcliError:
        labels = (Label(self.place, "the function was applied here"),) if self.place else ()
        return GradcliError(
            "E410", f"{self.node_name} {problem}", text=text, help=help, labels=labels
        )


_VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function"
    " cannot return more than one Tensor. This is not supported by the current autograd engine. You"
    " should either make sure the input is not a view (using .clone() for example) or make your"
    " Function only return one Tensor (potentially splitting it into two Functions: one doing the"
    " inplace that returns a single Tensor and a second one that does the other operations). You"
    " can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)

_READ_ONLY = frozenset({"metadata", "next_functions", "saved_tensors"})

_NOTHING: tuple[tuple[int, ...], Any] = ((), np.dtype(np.float32))
"""The metadata of a result that is no tensor, to which no gradient flows."""


def _kind(value: Any) -> str:
    return type(value).__name__


def _shown(tensor: Tensor) -> Tensor:
    """A view of the whole tensor, outside the graph."""
    view = alias(tensor)
    if isinstance(view.storage, InferenceStorage):
        return view
    meta = meta_of(view)
    meta.base = tensor if tensor.base is None else tensor.base
    meta.attr_version = tensor.version
    return view


# --- the class ------------------------------------------------------------------------------------


DETAILS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class FunctionCall:
    """A call of a custom function, reported to recorders in place of an op.

    Attributes:
        inputs: the parameters that are tensors; parameters are named by their numbers.
        node: the node of the call, which is in no graph where grad mode was off.
    """

    __slots__ = ("inputs", "name", "node", "node_name")

    lists: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, node: FunctionNode) -> None:
        self.name = name
        self.node = node
        self.node_name = node.node_name
        self.inputs = tuple([str(number) for number, yes in enumerate(node.is_tensor) if yes])


class Function:
    """`torch.autograd.Function`: the base of a program's own differentiable operations.

    A class that derives from it defines `forward(ctx, …)`, or `forward(…)` with
    `setup_context(ctx, inputs, output)`, and `backward(ctx, *grads)`.
    """

    __slots__ = ()

    language_name: ClassVar[str] = "torch.autograd.function.Function"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"backward", "forward", "jvp", "setup_context", "vjp", "vmap"}
    )
    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"apply"})
    node_class: ClassVar[type[FunctionNode] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise GradcliError(
            "E202",
            f"{name} has no instances",
            text="Legacy autograd function with non-static forward method is deprecated. Please use"
            " new-style autograd function with static forward method. (Example:"
            " https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
            raises="RuntimeError",
            help=f"run it: `{name}.apply(…)`",
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """What the function computes; raises E205 where the program does not say."""
        raise GradcliError(
            "E205",
            "a custom function has to define forward()",
            text="You must implement the forward function for custom autograd.Function.",
        )

    @staticmethod
    def vjp(*grads: Any) -> Any:
        """Another name of `backward`; raises E205 where the program defines neither."""
        raise GradcliError(
            "E205",
            "a custom function has to define backward() to be differentiated",
            text="You must implement either the backward or vjp method for your custom"
            " autograd.Function to use it with backward mode AD.",
        )

    @staticmethod
    def jvp(*tangents: Any) -> Any:
        """The tangents of the results; by default forward mode goes by `backward`."""
        raise GradcliError("E205", "a custom function has to define jvp() for forward mode")

    @classmethod
    def backward(cls, *grads: Any) -> Any:
        """The gradients of the arguments."""
        return cls.vjp(*grads)

    @staticmethod
    def setup_context(ctx: FunctionNode, inputs: tuple[Any, ...], output: Any) -> None:
        """Where it is overridden, forward gets no `ctx`, and this saves what backward needs."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The function of a batch of examples, and where their dimension is in the results; raises
        E204 where the program does not say.
        """
        raise runtime_error("a custom function has to define vmap() to be batched")

    @classmethod
    def _check_vmap(cls) -> None:
        """Raise E204 unless the function defines how it runs inside `vmap`."""
        generated = False
        for each in cls.__mro__:
            names = getattr(each.__dict__.get("language_class"), "names", {})
            if "generate_vmap_rule" in names:
                generated = bool(names["generate_vmap_rule"])
                break
        if generated is (cls.vmap is not Function.vmap):
            problem = (
                "it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please"
                " set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid"
                " ambiguity."
                if generated
                else "it does not have vmap support. Please override and implement the vmap"
                " staticmethod or set generate_vmap_rule=True."
            )
            raise runtime_error(
                f"vmap() cannot run {cls.__name__}, which has"
                f" {'a vmap() besides' if generated else 'no vmap() and no'} generate_vmap_rule",
                text=f"You tried to vmap over {cls.__name__}, but {problem} {DETAILS}",
                help="write `generate_vmap_rule = True` in the class, or define vmap()",
            )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record one node for it.

        Raises E201 for a keyword that does not follow the other arguments, E204 for a forward with
        `ctx` inside a transform of `torch.func`, E405 for a tensor that was changed in place and
        may not be, E202 for a saved value that is no tensor.
        """
        state = active.state
        in_two_parts = cls.setup_context is not Function.setup_context
        forward = cls.forward
        # setup_context sees every argument, those with a default too.
        if in_two_parts:
            args, kwargs = _placed(forward, "positional_arguments", args, kwargs)
        elif kwargs:
            (_, *rest), kwargs = _placed(forward, "placed_arguments", (None, *args), kwargs)
            args = tuple(rest)
        if state.transforms and not in_two_parts:
            raise runtime_error(
                f"a transform of torch.func cannot run {cls.__name__}, whose forward takes ctx",
                text="In order to use an autograd.Function with functorch transforms (vmap, grad,"
                " jvp, jacrev, ...), it must override the setup_context staticmethod."
                f" {DETAILS}",
                help="define forward(…) without ctx, and setup_context(ctx, inputs, output)",
            )
        batch = state.batch
        if batch is not None and batch.level_of(args):
            cls._check_vmap()
            if cls.vmap is not Function.vmap:
                forward = batch.forward_of(cls)
            elif batch.records_below(args):
                return batch.looped(cls.apply, args, kwargs)
        for value in args:
            if isinstance(value, Tensor) and value.storage is not None and state.grad_enabled:
                refresh(value)
        node = node_class_of(cls)(cls, args)
        before = state.grad_enabled
        recorded = before and True in node.needs_input_grad
        state.grad_enabled = False
        try:
            if in_two_parts:
                returned = forward(*args, **kwargs)
                cls.setup_context(node, args, returned)
            else:
                returned = cls.forward(node, *args, **kwargs)
        finally:
            state.grad_enabled = before
            state.forget_methods(cls.__name__)
        single = not isinstance(returned, tuple)
        outputs = node.finish(args, (returned,) if single else returned, recorded)
        result = outputs[0] if single else tuple(outputs)
        # Of examples side by side a recorder hears what forward() computes, not their sizes here.
        if state.recorder is not None and (batch is None or not batch.level_of(args)):
            call = FunctionCall(cls.__name__, node)
            operands = {str(number): value for number, value in enumerate(args)}
            state.recorder.operation(call, operands, result)
        return result


def _placed(
    forward: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a program's function or class method in their places, by its method `name`;
    as they are for other functions.
    """
    function = getattr(forward, "function", forward)
    placed = getattr(function, name, None)
    if placed is None:
        return args, kwargs
    receiver = () if function is forward else (forward.receiver,)
    return placed((*receiver, *args), kwargs)[len(receiver) :], {}


def node_class_of(function: type[Function]) -> type[FunctionNode]:
    """The class of a function's nodes, `NameBackward`."""
    node_class = function.__dict__.get("node_class")
    if node_class is None:
        name = f"{function.__name__}Backward"
        full_name = f"torch.autograd.function.{name}"
        node_class = type(
            name,
            (FunctionNode,),
            {"__slots__": (), "node_name": name, "language_name": full_name},
        )
        function.node_class = node_class
    return node_class


class Error(Node):
    """The node of gradients that cannot be differentiated, because of `once_differentiable`."""

    __slots__ = ()

    node_name = "Error"
    multiple = True

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        raise GradcliError(
            "E409",
            "the gradient of a function that can be differentiated only once was differentiated",
        )

    run_recorded = run


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose results cannot be differentiated again: trying is E409."""

    def once(ctx: Any, *grads: Any) -> Any:
        state = active.state
        before = state.grad_enabled
        state.grad_enabled = False
        try:
            returned = function(ctx, *grads)
        finally:
            state.grad_enabled = before
        if not before or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return returned
        several = returned if isinstance(returned, tuple) else (returned,)
        shown = refused(several)
        return shown if isinstance(returned, tuple) else shown[0]

    once.__name__ = name_of(function)
    return once


def refused(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gradients whose own gradient is E409, outputs of one node; None stays None."""
    leaves = [
        alias(value) if isinstance(value, Tensor) else Tensor(np.float32()) for value in gradients
    ]
    for leaf, gradient in zip(leaves, gradients, strict=True):
        leaf.requires_grad = gradient is not None
    node = Error()
    join_graph(node, leaves, leaves)
    shown = []
    for number, gradient in enumerate(gradients):
        if isinstance(gradient, Tensor):
            gradient = with_history(alias(gradient).array, node, number)
        shown.append(gradient)
    return tuple(shown)
