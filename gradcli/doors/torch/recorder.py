"""Runs a PyTorch program under its own Python and writes down what PyTorch ran.

This file stands alone: it needs torch and NumPy, and nothing of gradcli, so that the Python of any
environment can run it: `PYTHON recorder.py SETTINGS SCRIPT ARGS…`. A `TorchFunctionMode` hears each
function of PyTorch that the script calls. What ran in one window, from one step of an optimizer to
the next, is written as a straight-line program of gradcli's language, with the arrays that came
from outside and, for each line, the place in the user's file. `gradcli help formats` has the format
of the file.

The script runs as it does under `python`: `torch` is watched for and not imported before the script
does it, nothing is traced by the interpreter, and a debugger works.
"""

from __future__ import annotations

import copy
import dis
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import keyword
import math
import multiprocessing.process
import operator
import os
import runpy
import signal
import struct
import sys
import tempfile
import threading
import traceback
import types
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

torch: Any = None
np: Any = None


def use(torch_module: Any, numpy: Any) -> None:
    """Take PyTorch and NumPy, once the script has imported them."""
    global torch, np
    torch, np = torch_module, numpy


MAGIC = b"\x89GRUN\r\n\x1a"
VERSION = 1
ALIGNED = 64
HEADER = struct.Struct("<8sIIQQQ")
"""Magic, version, 0, bytes of the packed index, bytes of the index, bytes of the whole file."""

SAMPLES = 32
BLOCKS = 16
"""A result is checked by this many of its elements and sums, or by all where it has no more."""

MOST_SHARED = 1 << 22
"""Elements of a tensor that is compared with its copy, once NumPy may write to it."""

SMALL = 1 << 16
"""Elements of a tensor that is copied when it is first read, whatever becomes of it."""


# --- the file -----------------------------------------------------------------------------------


def write_recording(path: str, index: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a recording whole or not at all, readable by its owner alone.

    Args:
        index: all but the arrays; JSON, whose `arrays` has a row for each that is left out.
        arrays: contiguous arrays of NumPy by name, whose rows are added.
    """
    offset = 0
    rows = index["arrays"]
    for name, array in arrays.items():
        rows.append([name, index["dtypes"].get(name, array.dtype.name), list(array.shape), offset])
        offset += -(-array.nbytes // ALIGNED) * ALIGNED
    text = json.dumps(index, separators=(",", ":"), allow_nan=False).encode()
    packed = zlib.compress(text, 6)
    start = -(-(HEADER.size + len(packed)) // ALIGNED) * ALIGNED
    folder = os.path.dirname(os.path.abspath(path))
    number, temporary = tempfile.mkstemp(prefix=".", suffix=".gradrun", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:  # mkstemp: mode 0600
            file.write(HEADER.pack(MAGIC, VERSION, 0, len(packed), len(text), start + offset))
            file.write(packed)
            file.write(bytes(start - HEADER.size - len(packed)))
            for array in arrays.values():
                file.write(array.reshape(-1).view("u1").data if array.size else b"")
                file.write(bytes(-array.nbytes % ALIGNED))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def array_of(tensor: Any) -> Any:
    """A tensor's elements as a contiguous array; those that NumPy lacks as integers."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy()


def digest(tensor: Any) -> Any:
    """What a result is known by: its elements, or samples, sums of blocks and sums of absolutes."""
    flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    count = flat.numel()
    if count <= SAMPLES + 2 * BLOCKS:
        return flat.to("cpu", torch.float64).numpy()
    places = torch.tensor([i * (count - 1) // (SAMPLES - 1) for i in range(SAMPLES)])
    samples = flat[places.to(flat.device)].to(torch.float64)
    # In pieces: the whole in float64 may be large.
    sums, sizes = [], []
    for i in range(BLOCKS):
        block = flat[i * count // BLOCKS : (i + 1) * count // BLOCKS].to(torch.float64)
        sums.append(block.sum())
        sizes.append(block.abs().sum())
    return torch.cat([samples, torch.stack(sums), torch.stack(sizes)]).cpu().numpy()


# --- what the program sees of its stack -----------------------------------------------------------

OWN = frozenset(
    os.path.join(os.path.dirname(__file__), name)
    for name in (os.path.basename(__file__), "watcher.py", "step_rerun.py")
)
"""The files whose frames no traceback shows, and no warning counts."""

_CALLER = "call of gradcli's recorder"
"""The name of functions that call another where the program would have called it."""

_CALL = (lambda function, args, kwargs: function(*args, **kwargs)).__code__

_callers: dict[tuple[int, int], tuple[Any, Any]] = {}


def caller_at(frame: Any) -> Callable[[Any, Any, Any], Any]:
    """What calls a function with its operands as the instruction does at which a frame is: what
    PyTorch warns of in C it places in the Python that called it, whose file, line and variables
    these are.
    """
    code = frame.f_code
    key = id(code), frame.f_lasti
    caller = _callers.get(key)
    if caller is None:
        line = frame.f_lineno or code.co_firstlineno
        call = _CALL.replace(co_filename=code.co_filename, co_firstlineno=line, co_name=_CALLER)
        caller = _callers[key] = types.FunctionType(call, frame.f_globals, _CALLER), code
    return caller[0]


def call_plainly(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function that says by frames to count where it warns."""
    return function(*args, **kwargs)


def _is_hidden(code: Any) -> bool:
    return code.co_filename in OWN or code.co_name == _CALLER


def mode_of(name: str, hears: Callable[[Any, Any, Any, Any], Any]) -> Any:
    """A mode of PyTorch that gives each function that is called to another one, with its operands,
    their names, and what calls it as the program would have.
    """

    def hear(_: Any, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        in_python = type(function) is types.FunctionType
        call = call_plainly if in_python else caller_at(sys._getframe(1))
        try:
            return hears(function, args, kwargs or {}, call)
        except BaseException as error:
            leave_own_frames(error)
            raise

    kind = type(name, (torch.overrides.TorchFunctionMode,), {"__torch_function__": hear})
    return kind()


def hidden(function: Any) -> Any:
    """A function that the program calls unknowingly: tracebacks leave it out."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_own_frames(error)
            raise  # which enters no frame anew

    return call


class Replacements:
    """What hears functions of PyTorch in their places."""

    def __init__(self) -> None:
        self.former: list[tuple[Any, str, Any]] = []

    def put(self, room: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put what `make` makes of a function into its place."""
        former = vars(room).get(name)
        self.former.append((room, name, former))
        if former is None:  # a class before it in the order has it
            former = getattr(room, name)
        if isinstance(former, classmethod):
            method = former.__func__
            setattr(room, name, classmethod(functools.wraps(method)(hidden(make(method)))))
        else:
            setattr(room, name, functools.wraps(former)(hidden(make(former))))

    def restore(self) -> None:
        """Put all functions back."""
        for room, name, former in reversed(self.former):
            if former is None:
                delattr(room, name)
            else:
                setattr(room, name, former)
        self.former.clear()


def let_hear_indexing(mode: Any, replaced: Replacements) -> None:
    """Let a mode hear `x[i]` and `x[i] = y`, which those of PyTorch 2.0 do not hear of a tensor."""
    heard: list[Any] = []

    def hears(function: Any, args: Any, kwargs: Any, call: Callable[..., Any]) -> Any:
        heard.append(function)
        return call(function, args, kwargs)

    one = torch.ones(1)
    with mode_of("Trying", hears):
        one[0]
    if heard:
        return

    def indexing(former: Any) -> Any:
        def index(*args: Any) -> Any:
            if not is_on_top(mode):
                return former(*args)
            mode.__exit__(None, None, None)
            try:
                return mode.__torch_function__(former, (), args)
            finally:
                mode.__enter__()

        return index

    for name in ("__getitem__", "__setitem__"):
        replaced.put(torch.Tensor, name, indexing)


def warning_past_own_frames(former: Any) -> Any:
    """`warnings.warn`, which counts the frames of the program alone."""

    def warn(
        message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **named: Any
    ) -> None:
        level = max(stacklevel, 1)
        behind = 2  # this function, and what hides it
        behind += _passed(sys._getframe(behind), level)
        former(message, category, level + behind, source, **named)

    return warn


def _passed(frame: Any, level: int) -> int:
    """The frames from a frame to the one that is at a level from there, beyond those that
    `warnings.warn` would count without this file.
    """
    passed = 0
    while level > 1 and frame is not None:
        level -= 1
        inner, frame = frame.f_code, frame.f_back
        before = passed
        while frame is not None and (_is_hidden(frame.f_code) or _is_import(frame.f_code)):
            passed += not _is_import(frame.f_code)
            frame = frame.f_back
        if passed > before and frame is not None and _hands_on(frame.f_code):
            twice = frame
            while twice is not None and twice.f_code is not inner:
                passed, twice = passed + 1, twice.f_back
            passed, frame = passed + 1, twice and twice.f_back
    return passed


def _is_import(code: Any) -> bool:
    """Whether `warnings.warn` itself does not count a frame: it imports."""
    return "importlib" in code.co_filename and "_bootstrap" in code.co_filename


def _hands_on(code: Any) -> bool:
    """Whether a frame is PyTorch's in which a function hands itself to a mode. The mode calls it
    once more, so that it stands on the stack twice.
    """
    return code.co_name == "handle_torch_function" and code.co_filename.endswith("overrides.py")


def leave_own_frames(error: BaseException) -> None:
    """Take the frames of these files out of the traceback of an error, and the first of two frames
    of a function that handed itself to a mode.
    """
    entries: list[types.TracebackType] = []
    trace, count = error.__traceback__, 0
    while trace is not None:
        code = trace.tb_frame.f_code
        count += 1
        if not _is_hidden(code):
            if entries and _hands_on(entries[-1].tb_frame.f_code):
                codes = [each.tb_frame.f_code for each in entries]
                if code in codes:
                    del entries[len(codes) - 1 - codes[::-1].index(code) :]
            entries.append(trace)
        trace = trace.tb_next
    if len(entries) == count:
        return
    for each in reversed(entries):
        trace = types.TracebackType(trace, each.tb_frame, each.tb_lasti, each.tb_lineno)
    error.__traceback__ = trace


def leave_all_own_frames(error: BaseException | None, seen: set[int]) -> None:
    """Take them out of an error and of those that led to it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    leave_own_frames(error)
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        leave_all_own_frames(other, seen)


# --- what a frame does with a value ---------------------------------------------------------------

PASSED, DROPPED = "passed on", "dropped"

_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR")
_SKIPPED = ("CACHE", "EXTENDED_ARG", "NOP", "COPY", "DUP_TOP", "PRECALL", "RESUME", "CHECK_EXC")

_uses: dict[tuple[Any, int], Any] = {}


def use_of(code: Any, at: int) -> Any:
    """What the instruction behind a call does with the result: the names that it is stored under,
    `PASSED` where it is returned, `DROPPED` for all else.
    """
    use = _uses.get((code, at))
    if use is None:
        use = _uses[code, at] = _use_of(code, at)
    return use


def _use_of(code: Any, at: int) -> Any:
    behind = (each for each in dis.get_instructions(code) if each.offset > at)
    wanted = 1
    names: list[str] = []
    # Behind `at` stand the rest of the call itself, which is no instruction to us, and its use.
    for each in behind:
        if each.opname in _SKIPPED:
            continue
        if each.opname == "UNPACK_SEQUENCE" and not names:
            wanted = each.arg or 0
        elif each.opname == "UNPACK_SEQUENCE":  # `out, (h, c) = …`
            wanted += (each.arg or 1) - 1
        elif each.opname.startswith(_STORES):
            held = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            names += [str(name) for name in held]
            if "LOAD" in each.opname:
                names = names[:1]
            if len(names) >= wanted:
                return tuple(names[:wanted])
        elif each.opname.startswith("RETURN"):
            return PASSED
        elif each.opname not in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_NAME") or wanted == 1:
            follows = next(behind, None)
            if (
                each.opname in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_NAME")
                and follows is not None
                and follows.opname == "STORE_ATTR"
            ):
                return (str(follows.argval),)
            return DROPPED
    return DROPPED


def line_of(code: Any, at: int) -> int:
    """The line of an instruction."""
    line = code.co_firstlineno
    for start, number in dis.findlinestarts(code):
        if start > at:
            break
        line = number or line
    return int(line)


# --- functions ----------------------------------------------------------------------------------


class Spec:
    """How a function of PyTorch is written down.

    Attributes:
        kind: "op", "method", "attribute", "assign", "item", "backward", "grad", "ignored",
            "switch", which turns gradients off and on, or "foreach", a method of each tensor of
            a list.
        name: its name in the language: `F.relu`, or a method's or an attribute's.
        writes: whether it writes to its first operand.
        draws: whether it may take random numbers.
        is_uncounted: whether it writes to operands and counts no version.
        known: whether gradcli has it.
        defaults: the arguments that are left out where they have this value.
    """

    __slots__ = ("defaults", "draws", "is_uncounted", "kind", "known", "name", "writes")

    def __init__(self, kind: str, name: str, known: bool = True) -> None:
        self.kind = kind
        self.name = name
        short = name.rpartition(".")[2]
        self.writes = (short.endswith("_") and not short.endswith("__")) or short in (
            "__setitem__",
            *INPLACE,
        )
        self.draws = any(word in short for word in DRAWING)
        self.is_uncounted = short in UNCOUNTED
        self.known = known
        self.defaults: dict[str, Any] = {}


def _defaults(function: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # it wraps a function of C
        return {}
    return {name: p.default for name, p in parameters.items() if p.default is not p.empty}


DRAWING = (
    "rand", "normal", "bernoulli", "dropout", "multinomial", "poisson", "binomial", "uniform",
    "exponential", "geometric", "cauchy", "rrelu", "gumbel", "fractional", "attention", "lstm",
    "gru", "rnn", "gamma", "dirichlet", "trunc_normal", "kaiming", "xavier", "orthogonal",
)  # fmt: skip

INPLACE = {
    "__iadd__": "+=", "__isub__": "-=", "__imul__": "*=", "__itruediv__": "/=", "__idiv__": "/=",
    "__ipow__": "**=", "__iand__": "&=", "__ior__": "|=", "__ixor__": "^=", "__imod__": "%=",
}  # fmt: skip

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "true_divide": "/", "matmul": "@", "pow": "**",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "__and__": "&",
    "__or__": "|", "__xor__": "^", "__pow__": "**", "__eq__": "==", "__ne__": "!=", "__lt__": "<",
    "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__add__": "+", "__sub__": "-", "__mul__": "*",
    "__truediv__": "/", "__div__": "/", "__matmul__": "@", "__mod__": "%", "__floordiv__": "//",
    "__lshift__": "<<", "__rshift__": ">>", "floor_divide": "//", "remainder": "%",
}  # fmt: skip

REVERSED = {
    "__radd__": "+", "__rsub__": "-", "__rmul__": "*", "__rdiv__": "/", "__rtruediv__": "/",
    "__rpow__": "**", "__rmatmul__": "@", "__rmod__": "%", "__rfloordiv__": "//", "__rand__": "&",
    "__ror__": "|", "__rxor__": "^",
}  # fmt: skip

PREFIX = {"neg": "-", "__neg__": "-", "__invert__": "~", "bitwise_not": "~"}

IGNORED = frozenset(
    {
        "dim", "size", "stride", "numel", "element_size", "__len__", "__bool__", "__hash__",
        "data_ptr", "storage_offset", "nelement", "get_device", "__repr__", "__format__",
        "is_complex", "is_floating_point", "is_contiguous", "is_same_size", "untyped_storage",
        "storage", "is_nonzero", "is_signed", "ndimension", "has_names",
        "__contains__", "is_set_to", "is_shared", "is_pinned", "share_memory_", "__dir__",
        "broadcast_shapes", "can_cast", "result_type", "promote_types", "__reduce_ex__",
        "__deepcopy__", "manual_seed", "get_default_dtype", "set_default_dtype", "is_inference",
        "_is_view", "_version", "is_tensor", "is_storage", "__array_priority__", "__setstate__",
        "_record_function_enter_new", "_record_function_exit", "get_rng_state", "set_rng_state",
    }
)  # fmt: skip

ITEMS = frozenset({"item", "__float__", "__int__", "__index__", "tolist", "numpy", "__array__"})

LISTING = frozenset({"tolist", "numpy", "__array__"})
"""Those of them that give all elements."""

ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
ASSIGNED = frozenset({"data", "grad", "requires_grad", "real", "imag"})

CELLS = frozenset(
    {"torch.lstm_cell", "torch.gru_cell", "torch.rnn_tanh_cell", "torch.rnn_relu_cell"}
)

TRANSFORMS = ("grad", "grad_and_value", "vmap", "jacrev", "jacfwd", "hessian")
"""Functions of `torch.func` that return a function."""

RNNS = frozenset({"torch.lstm", "torch.gru", "torch.rnn_tanh", "torch.rnn_relu"})

RECORDED = {
    **{name: name.removeprefix("torch.") for name in RNNS | CELLS},
    "torch._pack_padded_sequence": "pack_padded_sequence",
    "torch._pad_packed_sequence": "pad_packed_sequence",
    "torch._amp_foreach_non_finite_check_and_unscale_": "unscale",
    "torch._amp_update_scale_": "update_scale",
}
"""Functions that the language has for recordings alone, and their names there."""

UNCOUNTED = ("batch_norm", "instance_norm", "_amp_foreach_non_finite_check_and_unscale_")
"""Functions that write to their second or third operand, as running statistics, and count no
version.
"""

DRAWN_FROM = frozenset(
    {"normal", "bernoulli", "multinomial", "poisson", "binomial", "_standard_gamma"}
)
"""What draws from a distribution that its operands say."""

ATTENTION = "F.scaled_dot_product_attention"

COMPOSITES = frozenset({"multi_head_attention_forward", "gumbel_softmax"})
"""Functions written in Python of several steps, of which one may draw or make a NaN: what they
call is heard instead.
"""


class Specs:
    """Finds out how each function is written down.

    Args:
        catalogue: the functions and methods that gradcli has, `F.relu` and `.relu`; None for all.
    """

    def __init__(self, catalogue: frozenset[str] | None) -> None:
        self.catalogue = catalogue
        self.by_function: dict[Any, Spec] = {}
        self.names: dict[Any, str] = {}
        self.backward = torch.Tensor.backward
        rooms = (
            (torch.nn.functional, "F"), (torch, "torch"), (torch.linalg, "torch.linalg"),
            (torch.special, "torch.special"), (torch.fft, "torch.fft"), (torch.nn.init, "nn.init"),
        )  # fmt: skip
        for room, prefix in rooms:
            for name, value in vars(room).items():
                if callable(value) and not isinstance(value, type):
                    plain = not name.startswith("_") and self._has(f"{prefix}.{name}")
                    if plain or (value not in self.names and value.__module__ != "typing"):
                        self.names.setdefault(value, f"{prefix}.{name}")

    def _has(self, name: str) -> bool:
        return self.catalogue is None or name in self.catalogue

    def of(self, function: Any) -> Spec:
        """How a function is written down."""
        spec = self.by_function.get(function)
        if spec is None:
            spec = self.by_function[function] = self._spec_of(function)
            if isinstance(function, types.FunctionType):
                spec.defaults = _defaults(function)
        return spec

    def _spec_of(self, function: Any) -> Spec:
        name = getattr(function, "__name__", str(function))
        if name in ("__get__", "__set__", "__delete__"):
            attribute = getattr(function.__self__, "__name__", "")
            wanted, kind = (ATTRIBUTES, "attribute") if name == "__get__" else (ASSIGNED, "assign")
            return Spec(kind if attribute in wanted else "ignored", attribute)
        if name in IGNORED:
            return Spec("ignored", name)
        if name == "_set_grad_enabled":
            return Spec("switch", name)
        if name in ITEMS:
            return Spec("item", name)
        if function is self.backward:
            return BACKWARD
        if function is torch.autograd.grad:
            return Spec("grad", name)
        module = getattr(function, "__module__", None)
        is_method = hasattr(function, "__objclass__") or module == "torch._tensor"
        if is_method:
            known = name in INFIX or name in REVERSED or name in PREFIX or name in INPLACE
            known = known or name in ("__getitem__", "__setitem__") or self._has(f".{name}")
            return Spec("method", name, known)
        each = name.removeprefix("_foreach_")
        if each != name and hasattr(torch.Tensor, each) and self._has(f".{each}"):
            return Spec("foreach", each)
        full = self.names.get(function)
        known = full is not None and (self._has(full) or full in RECORDED)
        return Spec("op", full or (f"{module}.{name}" if module else str(function)), known)


# --- what ran -----------------------------------------------------------------------------------


class Value:
    """A tensor of the window.

    Attributes:
        origin: "outside", "op", "grad" (of the leaf `of`), "unseen" (made by what nobody heard).
        version: the version of its memory when it was last seen.
        data: a copy of what it held when it was first seen, None while the tensor still holds it.
        hint: the name that the program gave it, in a frame with the code `home`.
        text: its name in the written program.
        of: for a gradient the leaf.
        same: the value that stands for this one, where two were made of a tensor.
        reads: how many events took it.
    """

    __slots__ = ("data", "hint", "home", "needs_grad", "of", "origin", "reads", "same", "tensor",
                 "text", "version")  # fmt: skip

    def __init__(self, tensor: Any, origin: str, hint: str = "") -> None:
        self.tensor = tensor
        self.origin = origin
        self.version = version_of(tensor)
        self.data: Any = None
        self.hint = hint
        self.home: Any = None
        self.of: Value | None = None
        self.same: Value | None = None
        self.reads = 0
        self.text = ""
        self.needs_grad = needs_grad(tensor)


def needs_grad(tensor: Any) -> bool:
    """Whether a tensor requires grad; not one whose history PyTorch refuses to make again."""
    try:
        return bool(tensor.requires_grad)
    except RuntimeError:  # a view whose base was written to
        return False


def is_differentiable_leaf(tensor: Any) -> bool:
    """Whether a backward pass gives a tensor a gradient."""
    try:
        return bool(tensor.requires_grad and tensor.is_leaf)
    except RuntimeError:
        return False


def node_of(tensor: Any) -> Any:
    """The node of the graph that a tensor is a result of; None for a leaf, and where PyTorch
    refuses to make a view's node again.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:  # made under no_grad(), and its base was written to outside
        return None


def version_of(tensor: Any) -> int:
    """The version of a tensor's memory; -1 where none is kept."""
    try:
        return int(tensor._version)
    except RuntimeError:  # an inference tensor
        return -1


class Place:
    """Where a function was called, and what became of the result."""

    __slots__ = ("frames", "names")

    def __init__(self, frames: list[tuple[Any, int]], names: tuple[str, ...]) -> None:
        self.frames = frames
        self.names = names


class Event:
    """A function that was called in the window, with the values it took and gave.

    Attributes:
        results: a value, or a list of values and None, as the function returned them.
        call: the number of the module call that it happened in, -1 outside of all.
        modes: what has to be said around it, `torch.no_grad()`.
        grads: what is read from the recording in the place of an op: a mask, or what was written.
        after: the gradients of leaves behind it.
        version: that of the result's memory behind it.
        written: the operands that were written to.
        is_plain: whether all operands have a text in the language.
        hook: of its registration, the hook.
        edges: what hears the gradients of an op that is not computed anew.
        leaves: those that a backward pass may give gradients to.
        before, state: the versions of the operands and the generator's state ahead of the call.
    """

    __slots__ = ("after", "args", "before", "call", "edges", "grads", "hook", "is_plain", "kwargs",
                 "leaves", "modes", "note", "place", "results", "spec", "state", "version",
                 "written")  # fmt: skip

    def __init__(
        self, spec: Spec, args: Any, kwargs: dict[str, Any], place: Place, call: int
    ) -> None:
        self.spec = spec
        self.args = args
        self.kwargs = kwargs
        self.place = place
        self.call = call
        self.modes: tuple[str, ...] = ()
        self.results: Any = None
        self.grads: list[tuple[Value, Any]] = []
        self.note = ""
        self.is_plain = True
        self.edges: Edges | None = None
        self.hook: Hook | None = None
        self.version = 0
        self.written: list[Any] = []
        self.before: list[tuple[Any, int]] = []
        self.state: Any = None
        self.leaves: list[Value] = []
        self.after: list[tuple[Value, Any]] = []


class Edges:
    """Hears the gradients that pass an operation which is not computed anew.

    Attributes:
        inputs: the operands that gradients flow to.
        passes: for each backward pass, by its number, the gradients that arrived, one for each
            result, and those that left, one for each operand.
    """

    def __init__(
        self, inputs: list[Value], results: list[Value], current: Callable[[], int]
    ) -> None:
        self.inputs = inputs
        self.results = results
        self.current = current
        self.passes: dict[int, tuple[list[Any], list[Any]]] = {}
        self.node = ""
        self.ends: list[tuple[Any, dict[int, int]]] = []
        self.handles: list[Any] = []
        targets = {_edge_of(each.tensor): number for number, each in enumerate(inputs)}
        seen = set()
        for number, each in enumerate(results):
            if each is not None and node_of(each.tensor) is not None:
                node, output = _edge_of(each.tensor)
                self.node = self.node or type(node).__name__
                node.register_prehook(self._arrived(number, output))
                seen.add(node)
        nodes = list(seen)
        while nodes:
            node = nodes.pop()
            ends: dict[int, int] = {}
            for position, edge in enumerate(node.next_functions):
                if edge in targets:
                    ends[position] = targets[edge]
                elif edge[0] is not None and edge[0] not in seen:
                    seen.add(edge[0])
                    nodes.append(edge[0])
            if ends:
                self.ends.append((node, ends))

    def listen(self) -> None:
        """Hear what leaves in the pass that begins now, behind all hooks that the program set."""
        for handle in self.handles:
            handle.remove()
        self.handles = [node.register_hook(self._left(ends)) for node, ends in self.ends]

    def is_identity(self) -> bool:
        """Whether what left was what arrived, in each pass."""
        return len(self.inputs) == len(self.results) and all(
            a is b or (a is not None and b is not None and torch.equal(a, b))
            for arrived, left in self.passes.values()
            for a, b in zip(arrived, left, strict=True)
        )

    def _pass(self) -> tuple[list[Any], list[Any]]:
        number = self.current()
        if number not in self.passes:
            self.passes[number] = [None] * len(self.results), [None] * len(self.inputs)
        return self.passes[number]

    def _arrived(self, number: int, output: int) -> Callable[..., None]:
        def hook(grads: Any) -> None:
            if grads[output] is not None:
                self._pass()[0][number] = grads[output].detach().clone()

        return hook

    def _left(self, ends: dict[int, int]) -> Callable[..., None]:
        def hook(grads: Any, _arrived: Any) -> None:
            left = self._pass()[1]
            for position, number in ends.items():
                grad = grads[position]
                if grad is not None:
                    grad = grad.detach()
                    left[number] = grad.clone() if left[number] is None else left[number] + grad

        return hook


def _edge_of(tensor: Any) -> tuple[Any, int]:
    """The edge of the graph that a tensor's gradient flows along."""
    if hasattr(torch.autograd.graph, "get_gradient_edge"):
        edge = torch.autograd.graph.get_gradient_edge(tensor)
        return edge.node, edge.output_nr
    node = node_of(tensor)
    if node is None:  # a leaf, whose node its readers know
        with torch.enable_grad():
            node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return node, tensor.output_nr


class Hook:
    """A hook of a tensor, which PyTorch runs and which keeps what it took and returned.

    Attributes:
        calls: for each window and pass the gradients before and behind it, where they differ.
    """

    def __init__(
        self, tensor: Any, hook: Callable[[Any], Any], place: Place, now: Callable[[], Any]
    ) -> None:
        self.tensor = weakref.ref(tensor)
        self.hook = hook
        self.place = place
        self.now = now
        self.calls: list[tuple[Any, Any, Any]] = []

    @hidden
    def __call__(self, grad: Any) -> Any:
        taken = grad.detach().clone()
        returned = self.hook(grad)
        window, _ = self.now()
        self.calls = [each for each in self.calls if each[0] is window]
        behind = grad if returned is None else returned
        if not torch.equal(taken, behind):
            self.calls.append((window, taken, behind.detach().clone()))
        return returned

    def calls_in(self, window: Any) -> list[tuple[Any, Any]]:
        """The gradients before and behind it in a window."""
        return [(taken, behind) for each, taken, behind in self.calls if each is window]


class Window:
    """What ran since an optimizer last stepped.

    Attributes:
        known: the values by the `id` of their tensors, which they keep alive.
        by_storage: those from outside, by their memory.
        written: the version of each memory behind the last write that was heard.
        calls: the calls of modules, each with the number of the call around it.
        adopted: the events that it took over from the window before, by the `id` of that one's.
        adopted_calls: where the calls of that window begin among its own; None where it took none.
        roots: the outermost modules and the names that the program has for them.
        idle: the `id` of those that no operation has used, which need no elements.
        numbers: the numbers that were read out of tensors, by their `id`.
        computed: the operands that are numbers which the program read out of tensors, or computed
            of them, by their `id`, with where it read them.
        number: how many windows were begun before.
        lists: the tensors whose elements the program read, and what they held.
        shared: by their memory, the tensors that NumPy may write to, and what they held.
        steps: the steps of optimizers behind the last backward pass.
        skipped: the events at which a GradScaler left out a step, by `id`, with the `id` of the
            optimizer and its name.
        uncounted: the `id` of tensors that were written to and whose version does not say so.
    """

    begun = itertools.count()

    def __init__(self) -> None:
        self.number = next(self.begun)
        self.uncounted: set[int] = set()
        self.events: list[Event] = []
        self.known: dict[int, Value] = {}
        self.by_storage: dict[int, list[Value]] = {}
        self.written: dict[int, int] = {}
        self.calls: list[tuple[Any, int]] = []
        self.adopted: dict[int, Event] = {}
        self.adopted_calls: int | None = None
        self.roots: dict[int, tuple[Any, str]] = {}
        self.idle: set[int] = set()
        self.numbers: dict[int, tuple[Any, Event]] = {}
        self.computed: dict[int, tuple[Any, list[Event]]] = {}
        self.lists: list[tuple[Value, Any]] = []
        self.shared: dict[int, tuple[Any, Any]] = {}
        self.notes: list[str] = []
        self.steps: list[Step] = []
        self.skipped: dict[int, tuple[int, str]] = {}
        self.backwards = 0
        self.transforms = 0
        self.sets_grads = False

    def outside(self) -> list[Value]:
        """The values that came from outside, in the order in which they were seen."""
        return [value for value in self.known.values() if value.origin == "outside"]

    def leaves(self) -> list[Value]:
        """The values that get gradients."""
        return [
            value
            for value in self.known.values()
            if value.origin != "grad" and is_differentiable_leaf(value.tensor)
        ]

    def keep(self, pool: Pool) -> None:
        """Copy what came from outside before it changes."""
        for value in self.outside():
            if value.data is None and value.version == version_of(value.tensor):
                value.data = pool.copy(value.tensor)


class Pool:
    """Copies of tensors, made in the memory of copies that nobody needs any more: new memory costs
    more than the copying.
    """

    def __init__(self) -> None:
        self.free: dict[tuple[Any, ...], list[Any]] = {}

    def copy(self, tensor: Any) -> Any:
        """A copy of a tensor, of which nothing else knows."""
        tensor = tensor.detach()
        room = self.free.get(_kind_of(tensor)) if tensor.numel() > SMALL else None
        return room.pop().copy_(tensor) if room else tensor.clone()

    def take_back(self, window: Window, but: Window) -> None:
        """Take the large copies of a window that is over, but for those that another one shares."""
        shared = {id(value.data) for value in but.known.values()}
        copies = [value.data for value in window.known.values() if value.data is not None]
        copies += [
            each
            for step in window.steps
            for _, kept in step.state
            for each in kept.values()
            if isinstance(each, torch.Tensor)
        ]
        self.free.clear()
        for each in copies:
            if id(each) not in shared and each.layout is torch.strided and each.numel() > SMALL:
                self.free.setdefault(_kind_of(each), []).append(each)
        window.known.clear()
        window.steps.clear()


def _kind_of(tensor: Any) -> tuple[Any, ...]:
    """What two tensors have in common of which one can hold a copy of the other."""
    if tensor.layout is not torch.strided:
        return (tensor.layout,)
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


class Step:
    """A step of an optimizer, with what it started from.

    Attributes:
        groups: the parameters and settings of each group.
        state: what the optimizer kept of each parameter.
        after: the parameters behind the step, with the versions that they had then.
    """

    def __init__(
        self,
        optimizer: Any,
        name: str,
        place: Place,
        creation: Place,
        of: Callable[[Any], Value],
    ) -> None:
        self.kind = type(optimizer)
        self.optimizer = id(optimizer)
        self.name = name
        self.place = place
        self.creation = creation
        self.ran = False
        self.groups = [
            (
                [of(each) for each in group["params"]],
                {k: v for k, v in group.items() if k != "params"},
            )
            for group in optimizer.param_groups
        ]
        self.state: list[tuple[Value, dict[str, Any]]] = []
        self.after: list[tuple[Value, Any, int]] = []

    def begin(self, optimizer: Any, of: Callable[[Any], Value], pool: Pool) -> None:
        """Keep what the step starts from."""
        self.ran = True
        for parameter, kept in optimizer.state.items():
            if isinstance(parameter, torch.Tensor) and isinstance(kept, dict):
                copies = {
                    name: pool.copy(each) if isinstance(each, torch.Tensor) else each
                    for name, each in kept.items()
                }
                self.state.append((of(parameter), copies))

    def end(self) -> None:
        """Note what the parameters are behind the step."""
        for parameters, _ in self.groups:
            for value in parameters:
                self.after.append((value, value.tensor, version_of(value.tensor)))

    def keep(self) -> None:
        """Copy the parameters before they change again."""
        self.after = [
            (value, tensor.detach().clone(), 0)
            for value, tensor, version in self.after
            if version_of(tensor) == version
        ]


class Creations:
    """Where the program made its modules and optimizers. They are known by their identity: what a
    class of its own calls equal, and how it hashes, is not asked.
    """

    def __init__(self) -> None:
        self.places: dict[int, tuple[Any, Place]] = {}

    def note(self, created: Any, place: Place) -> None:
        """Note where something was made, for as long as it is there."""
        key = id(created)
        self.places[key] = weakref.ref(created, lambda _: self.places.pop(key, None)), place

    def of(self, created: Any) -> Place:
        """Where something was made, nowhere if that was not noted."""
        reference, place = self.places.get(id(created), (None, NOWHERE))
        return place if reference is not None and reference() is created else NOWHERE


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _leave_all() -> None:
    for each in list(_recorders):
        each.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in what a function took or gave."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)


class Settings:
    """What is recorded, and where to.

    Attributes:
        at: "" for the last window, else "backward" or "step" with `number` from 1, or
            "first-nonfinite".
        data: whether arrays, numbers and strings go into the file.
        watch: whether every step is watched instead.
        rank: the number of the process in a group of several, None where there is none; the name of
            the file has it.
    """

    def __init__(self, path: str, at: str = "", number: int = 0, data: bool = True) -> None:
        self.watch = False
        self.rank: int | None = None
        self.path = path
        self.at = at
        self.number = number
        self.data = data
        self.argv: list[str] = []
        self.catalogue: frozenset[str] | None = None

    @property
    def output(self) -> str:
        """The file that is written."""
        if self.rank is None:
            return self.path
        path, _, suffix = self.path.rpartition(".")
        return f"{path}.rank{self.rank}.{suffix}"


def grouping(settings: Settings) -> Callable[[Any], Any]:
    """What hears how a process joins a group of several, for `init_process_group`."""

    def replacement(former: Any) -> Any:
        def init(*args: Any, **kwargs: Any) -> Any:
            result = former(*args, **kwargs)
            if torch.distributed.get_world_size() > 1:
                settings.rank = torch.distributed.get_rank()
            return result

        return init

    return replacement


def is_on_top(mode: Any) -> bool:
    """Whether a mode is the one that hears a function first."""
    count = torch._C._len_torch_function_stack()
    return bool(count) and torch._C._get_function_stack_at(count - 1) is mode


class Unheard:
    """A block in which nothing is heard, and the mode takes no time, unless the program has a mode
    of its own on top.
    """

    __slots__ = ("popped", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorder.here.silent += 1
        self.popped = self.recorder.mode if is_on_top(self.recorder.mode) else None
        if self.popped is not None:
            self.popped.__exit__(None, None, None)

    def __exit__(self, *_: object) -> None:
        self.recorder.here.silent -= 1
        if self.popped is not None:
            self.popped.__enter__()


class Here(threading.local):
    """What is going on in one thread.

    Attributes:
        is_heard: whether it is the main one, or one that the program started; not one of PyTorch's
            own, which run backward passes on a GPU.
        silent: how many blocks it is in where nothing is heard.
        passes: how many backward passes run.
        stack: the numbers of the module calls that are running, in the window `window`.
        recomputed, unrecorded: how many checkpointed regions it is in, with and without an input
            that requires grad.
        is_aside: whether the mode is left out because an optimizer steps.
        off: what switched gradients off last, as the program spells it.
        off_before: what it was ahead of each context that is entered.
    """

    def __init__(self) -> None:
        self.is_heard = False
        self.silent = 0
        self.passes = 0
        self.stack: list[int] = []
        self.window: Any = None
        self.recomputed = 0
        self.unrecorded = 0
        self.is_aside = False
        self.off = NO_GRAD
        self.off_before: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    @property
    def is_deaf(self) -> bool:
        """Whether nothing is heard now."""
        return self.silent > 0 or not self.is_heard


class Recorder:
    """Hears each function of PyTorch that the program calls.

    Attributes:
        lock: held while what ran is entered into the window, which all threads share.
        trainer: the thread that runs backward passes.
        constants: the numbers that were operands, with the window in which each first was one.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.specs = Specs(settings.catalogue)
        self.window = Window()
        self.last_trained: Window | None = None
        self.previous: Window | None = None
        self.here = Here()
        self.lock = threading.RLock()
        self.trainer: threading.Thread | None = None
        self.steps = 0
        self.backwards = 0
        self.has_late_hooks = False
        self.hooks: list[Hook] = []
        self.failure = ""
        self.is_done = False
        self.process = os.getpid()
        self.internal: dict[str, bool] = {}
        self.handles: list[Any] = []
        self.optimizers: list[Any] = []
        self.replaced = Replacements()
        self.creations = Creations()
        self.mode: Any = None
        self.pool = Pool()
        self.hints: dict[int, tuple[Any, tuple[str, Any]]] = {}
        self.constants: dict[float, int] = {}
        self.local: dict[int, Any] = {}
        self.distributed: set[int] = set()
        self.notes: list[str] = []
        self.restores: list[Callable[[], Any]] = []

    # --- beginning and end ------------------------------------------------------------------------

    def begin(self) -> None:
        """Hear everything from now on."""
        optimizers = importlib.import_module("torch.optim.optimizer")
        if not hasattr(optimizers, "register_optimizer_step_pre_hook"):
            raise RuntimeError(f"PyTorch 2.0 is needed, and this is {torch.__version__}")
        self.mode = mode_of("Recording", self._hears)
        let_hear_indexing(self.mode, self.replaced)
        self.mode.__enter__()
        self.here.is_heard = True
        self.handles = [
            optimizers.register_optimizer_step_pre_hook(self._guarded(self._step_begins)),
            optimizers.register_optimizer_step_post_hook(self._guarded(self._step_ends)),
        ]
        put = self.replaced.put
        put(warnings, "warn", warning_past_own_frames)
        put(threading.Thread, "start", self._starting)
        put(torch.nn.Module, "__call__", self._calling)
        put(torch.autograd.Function, "apply", self._applying)
        put(torch.Tensor, "backward", self._differentiating)
        put(torch.autograd, "backward", self._differentiating)
        for name in TRANSFORMS:
            put(torch.func, name, self._transforming)
        put(torch, "vmap", self._transforming)
        put(torch.optim.Optimizer, "__init__", self._optimizing)
        put(torch.nn.Module, "__init__", self._constructing)
        put(torch.nn.Module, "register_parameter", self._registering)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            put(torch.nn.utils, name, self._clipping)
        put(getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler), "step", self._scaling)
        if hasattr(torch, "compile"):
            put(torch, "compile", self._compiling)
        if torch.distributed.is_available():
            put(torch.distributed, "init_process_group", grouping(self.settings))
        _recorders.add(self)

    def _starting(self, former: Any) -> Any:
        """The start of a thread of the program's, which is heard too."""

        def start(thread: Any) -> None:
            if not self.is_done and self.mode is not None:
                thread.run = functools.partial(hidden(self._run), thread, thread.run)
            former(thread)

        return start

    def _run(self, thread: Any, run: Callable[[], Any]) -> None:
        """Run what a thread is for."""
        del thread.run
        mode = self.mode
        if mode is None:
            return run()
        self.here.is_heard = True
        mode.__enter__()
        try:
            return run()
        finally:
            if is_on_top(mode):
                mode.__exit__(None, None, None)

    def leave(self) -> None:
        """Hear nothing in a process that was forked: a worker that loads data."""
        self.is_done, self.last_trained = True, None
        self.window = Window()

    def _compiling(self, former: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            self._leave_uncompiled()
            return former(*args, **kwargs)

        return compile

    def _leave_uncompiled(self) -> None:
        """Let what is compiled run as it is written: the compiled code is not heard."""
        if UNCOMPILED in self.notes:
            return
        self.notes.append(UNCOMPILED)
        stance = getattr(torch.compiler, "set_stance", None) if hasattr(torch, "compiler") else None
        if stance is not None:
            stance("force_eager")
            self.restores.append(lambda: stance("default"))
        else:
            settings = importlib.import_module("torch._dynamo.config")
            self.restores.append(functools.partial(setattr, settings, "disable", False))
            settings.disable = True  # type: ignore[attr-defined]

    def _applying(self, apply: Any) -> Any:
        recorder = self

        def hear(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.is_unheard():
                return apply(cls, *args, **kwargs)
            if cls.__name__ == "CheckpointFunction":
                return recorder._checkpointed(apply, cls, args, kwargs)

            spec = Spec("op", cls.__name__, False)
            with Unheard(recorder):
                return recorder._op(spec, functools.partial(apply, cls), args, kwargs)

        return hear

    def _transforming(self, former: Any) -> Any:
        """A transform of `torch.func`, the call of whose function is heard as one operation."""

        def transform(function: Any, *args: Any, **kwargs: Any) -> Any:
            transformed = former(function, *args, **kwargs)

            def call(*inner: Any, **named: Any) -> Any:
                nested = torch._C._functorch.peek_interpreter_stack() is not None
                if nested or self.is_unheard():
                    return transformed(*inner, **named)
                spec = Spec("op", f"torch.func.{former.__name__}", False)
                try:
                    with self.lock:
                        event = self._begun(spec, inner, named)
                except Exception as error:
                    self._fail(error)
                    return transformed(*inner, **named)
                self.here.silent += 1
                try:
                    result = transformed(*inner, **named)
                finally:
                    self.here.silent -= 1
                self._guarded(self._transformed)(event, result)
                return result

            return functools.wraps(transformed)(hidden(call))

        return transform

    def _transformed(self, event: Event, result: Any) -> None:
        """Enter the call of a transformed function, whose closure may hold any leaf."""
        event.results = [self._result(event, each) for each in tensors_in(result)]
        event.note = "nested"
        event.before, event.is_plain = [], False
        event.args = [
            *values_in([event.args, list(event.kwargs.values())]),
            *self.window.leaves(),
        ]
        event.kwargs = {}
        if event.results:
            self._enter(event)

    def _checkpointed(self, apply: Any, cls: Any, args: Any, kwargs: Any) -> Any:
        """A checkpointed region, which is recorded as if it kept its values."""
        recorded = any(each.requires_grad for each in tensors_in([args, kwargs]))
        counts = torch.is_grad_enabled()
        self.here.recomputed += counts and recorded
        self.here.unrecorded += counts and not recorded
        try:
            result = apply(cls, *args, **kwargs)
        finally:
            self.here.recomputed -= counts and recorded
            self.here.unrecorded -= counts and not recorded
        return result

    def _differentiating(self, former: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self.is_unheard():
                return former(*args, **kwargs)
            spec = BACKWARD if former is self.specs.backward else BACKWARD_OF_SEVERAL
            with Unheard(self):
                return self._backward(spec, former, args, kwargs)

        return backward

    def _optimizing(self, former: Any) -> Any:
        note = self._guarded(self._note_creation)

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self.optimizers.append(weakref.ref(optimizer))
            note(optimizer)
            former(optimizer, *args, **kwargs)

        return init

    def _constructing(self, former: Any) -> Any:
        note = self._guarded(self._note_creation)

        def init(module: Any, *args: Any, **kwargs: Any) -> None:
            former(module, *args, **kwargs)
            note(module)

        return init

    def _registering(self, former: Any) -> Any:
        """The registration of a parameter that the program's own class makes."""
        note = self._guarded(self._note_registration)

        def register(module: Any, name: str, parameter: Any) -> None:
            former(module, name, parameter)
            if parameter is not None:
                note(parameter)

        return register

    def _note_registration(self, parameter: Any) -> None:
        frame: Any = sys._getframe(2)
        own = inspect.getfile(torch.nn.Module)
        while frame.f_code.co_filename in (__file__, own):
            frame = frame.f_back
        if not self._is_internal(frame.f_code.co_filename):
            self.creations.note(parameter, Place([(frame.f_code, frame.f_lasti)], ()))

    def _note_creation(self, created: Any) -> None:
        """Note where the program makes a module or an optimizer, outside of its own class."""
        frame: Any = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            is_own = code.co_varnames[:1] and frame.f_locals.get(code.co_varnames[0]) is created
            if not is_own and not self._is_internal(code.co_filename):
                self.creations.note(created, Place([(code, frame.f_lasti)], ()))
                return
            frame = frame.f_back

    def _clipping(self, former: Any) -> Any:
        spec = Spec("op", f"nn.utils.{former.__name__}")
        spec.defaults = _defaults(former)

        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if self.is_unheard():
                return former(parameters, *args, **kwargs)
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)

            with Unheard(self), self.lock:
                result = self._op(spec, former, (parameters, *args), kwargs)
                event = self.window.events[-1]
                for value in values_in(event.args[:1]):
                    grad = value.tensor.grad
                    if grad is not None:
                        self._wrote(grad)
                        event.after.append((value, grad.detach().clone()))
            return result

        return clip

    def _scaling(self, former: Any) -> Any:
        """The step of a GradScaler, which leaves out that of the optimizer where a gradient is not
        finite.
        """

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = self.steps
            result = former(scaler, optimizer, *args, **kwargs)
            if self.steps == before and not self.is_unheard() and self.window.backwards:
                self._skipped(optimizer)
            return result

        return step

    def _skipped(self, optimizer: Any) -> None:
        """Enter that a step was left out."""
        event = Event(SKIPPED_STEP, [], {}, self._place(sys._getframe(2)), -1)
        self.window.skipped[id(event)] = id(optimizer), self._name_of(optimizer)[0]
        self.window.events.append(event)

    def end(self) -> None:
        """Hear nothing any more."""
        self.replaced.restore()
        for restore in self.restores:
            restore()
        self.restores.clear()
        if self.mode is not None:
            mode, self.mode = self.mode, None
            for handle in self.handles:
                handle.remove()
            if is_on_top(mode):
                mode.__exit__(None, None, None)

    def chosen(self) -> Window | None:
        """The window that is written: the one asked for, or the last with a backward pass."""
        if self.is_done:
            return self.last_trained
        if self.settings.at:
            return None
        self._list_optimizers(self.window)
        if self.window.backwards or self.last_trained is None:
            behind = self.window if self.window.events else self.last_trained
            return behind or self.previous  # no pass ran, and steps that found nothing
        return self.last_trained

    # --- functions --------------------------------------------------------------------------------

    def _list_optimizers(self, window: Window) -> None:
        """Enter the optimizers of a window that ended before any of them stepped."""
        for reference in () if window.steps else self.optimizers:
            optimizer = reference()
            if optimizer is not None and window.backwards:
                self._step_of(optimizer)

    def _hears(
        self, function: Any, args: Any, kwargs: dict[str, Any], call: Callable[..., Any]
    ) -> Any:
        spec = self.specs.of(function)
        if spec.kind == "ignored" or self.is_unheard():
            return call(function, args, kwargs)
        if spec.kind == "switch":
            self._switched(sys._getframe(1))
            return call(function, args, kwargs)
        if torch._C._functorch.peek_interpreter_stack() is not None:
            self.window.transforms += 1
            return call(function, args, kwargs)
        if spec.kind == "backward":
            return self._backward(spec, function, args, kwargs)
        if spec.name == "grad" and self._leaves_no_trace(spec, args):
            return call(function, args, kwargs)
        if spec.name == "register_hook" and len(args) == 2:
            return self._hooked(function, args[0], args[1])
        if spec.name == "register_post_accumulate_grad_hook":
            self.has_late_hooks = True
        if (
            spec.kind == "assign"
            and spec.name == "requires_grad"
            and args[0].requires_grad == args[1]
        ):
            return call(function, args, kwargs)
        if spec.kind == "item":
            return self._item(spec, function, args, kwargs, call)
        if spec.name.rpartition(".")[2] in COMPOSITES:
            return self._opened(function, args, kwargs)
        if spec.kind == "foreach":
            return self._foreach(spec, function, args, kwargs, call)
        return self._op(spec, function, args, kwargs, call)

    def _switched(self, frame: Any) -> None:
        """Note what switches gradients off or on: a frame inside PyTorch's context for it."""
        while frame is not None and not frame.f_code.co_filename.endswith(CONTEXTS):
            frame = frame.f_back
        context, leaves = None, False
        while frame is not None and frame.f_code.co_filename.endswith(CONTEXTS):
            context = frame.f_locals.get("self")
            leaves = frame.f_code.co_name == "__exit__"
            frame = frame.f_back
        here = self.here
        if leaves:
            here.off = here.off_before.pop(context, here.off)
        elif context is not None:
            here.off_before.setdefault(context, here.off)
            here.off = SWITCHES.get(type(context).__name__, NO_GRAD)

    def _leaves_no_trace(self, spec: Spec, args: Any) -> bool:
        """Whether a use of `.grad` leaves no trace in the program: a read, or what clears the
        gradients of the window before.
        """
        if spec.kind == "attribute":
            return True
        if spec.kind != "assign":
            return False
        window = self.window
        window.sets_grads = window.sets_grads or args[1] is not None
        return not window.backwards and not window.sets_grads

    def _hooked(self, function: Any, tensor: Any, hook: Callable[[Any], Any]) -> Any:
        """Register a hook of a tensor so that what it takes and returns is kept."""
        place = self._place(sys._getframe(2))
        heard = Hook(tensor, hook, place, lambda: (self.window, self.backwards))
        self.hooks.append(heard)
        handle = function(tensor, heard)
        with self.lock:
            event = Event(HOOK, [self._value(tensor, place)], {}, place, self._call_now())
            event.hook = heard
            self.window.events.append(event)
        return handle

    def _call_now(self) -> int:
        """The number of the module call that is running, -1 for none."""
        here = self.here
        return here.stack[-1] if here.stack and here.window is self.window else -1

    def _op(
        self,
        spec: Spec,
        function: Any,
        args: Any,
        kwargs: dict[str, Any],
        call: Callable[..., Any] = call_plainly,
    ) -> Any:
        try:
            with self.lock:
                event = self._begun(spec, args, kwargs)
        except Exception as error:
            self._fail(error)
            return call(function, args, kwargs)
        result = call(function, args, kwargs)
        try:
            with self.lock:
                self._ended(event, args, kwargs, result)
        except Exception as error:
            self._fail(error)
        return result

    def _foreach(
        self, spec: Spec, function: Any, args: Any, kwargs: Any, call: Callable[..., Any]
    ) -> Any:
        """Hear a function of lists as the calls of a method of each of their tensors."""
        calls: list[tuple[list[Any], dict[str, Any]]] = []
        events: list[Event] = []
        try:
            method, count = self.specs.of(getattr(torch.Tensor, spec.name)), len(args[0])
            for index in range(count):
                one = [_of_list(each, index, count) for each in args]
                named = {name: _of_list(each, index, count) for name, each in kwargs.items()}
                if spec.name.startswith("addc") and len(one) == 4:
                    named["value"] = one.pop()
                calls.append((one, named))
            with self.lock:
                for one, named in calls:
                    events.append(self._begun(method, one, named))
        except Exception as error:
            self._fail(error)
            return call(function, args, kwargs)
        result = call(function, args, kwargs)
        results = [None] * len(calls) if result is None else result
        try:
            with self.lock:
                for event, (one, named), each in zip(events, calls, results, strict=True):
                    self._ended(event, one, named, each)
        except Exception as error:
            self._fail(error)
        return result

    def is_unheard(self) -> bool:
        """Whether nothing is heard now in this thread."""
        return self.is_done or self.mode is None or self.here.is_deaf

    def _fail(self, error: Exception) -> None:
        """Give up, and leave the program alone: what it does must not depend on the recorder."""
        self.is_done = True
        self.last_trained = None
        self.failure = f"{type(error).__name__}: {error}"
        if os.environ.get("GRADCLI_DEBUG"):
            traceback.print_exc()

    def _guarded(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """A hook whose failures are the recorder's own."""

        def call(*args: Any) -> Any:
            try:
                with self.lock:
                    return hook(*args)
            except Exception as error:
                self._fail(error)
                return None

        return call

    def _begun(self, spec: Spec, args: Any, kwargs: dict[str, Any]) -> Event:
        """The event of a function that is about to run."""
        place = self._place(sys._getframe(2))
        if spec.writes:
            self._keep_before_write(args)
        self._note_numbers([*args, *kwargs.values()] if kwargs else args, place)
        event = Event(
            spec,
            [self._frozen(each, place) for each in args],
            {name: self._frozen(each, place) for name, each in kwargs.items()},
            place,
            self._call_now(),
        )
        if spec.kind == "assign" and spec.name == "data" and event.args[0].data is None:
            event.args[0].data = args[0].detach()  # what it held lies elsewhere from now on
        tensors = list(tensors_in([*args, *kwargs.values()] if kwargs else args))
        event.modes = self._modes(tensors)
        event.state = torch.get_rng_state() if spec.draws else None
        self.backwards += spec.kind == "grad"
        event.before = [(each, version_of(each)) for each in tensors]
        event.is_plain = all(_is_plain(each) for each in [*args, *kwargs.values()])
        return event

    def _ended(self, event: Event, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Enter the event of a function that has run."""
        spec = event.spec
        if event.state is not None:
            self._drawn(event, event.state, args, kwargs, result)
            event.state = None
        event.written = [each for each, version in event.before if version_of(each) != version]
        event.before = []
        if spec.writes and not event.written and spec.kind != "assign":
            event.written = list(tensors_in(args[:1]))  # by a kernel that counts no version
        for each in event.written:
            self._wrote(each)
        if spec.is_uncounted:
            self.window.uncounted.update(id(each) for each in tensors_in([args[1:3], kwargs]))
        if isinstance(result, torch.Tensor):
            event.results = self._result(event, result)
        elif isinstance(result, (list, tuple)) and any(True for _ in tensors_in(result)):
            event.results = [self._result(event, each) for each in result]
        elif not event.written and spec.kind != "assign" and spec.name != "retain_grad":
            return
        if event.results is not None or event.written or spec.writes or result is None:
            self._enter(event)

    def _enter(self, event: Event) -> None:
        """Put an event into the window, unless it is what a leaf began with."""
        operands = list(values_in([event.args, list(event.kwargs.values())]))
        written = event.written
        if (written and not event.spec.known) or event.note == "drawn":
            # What was written is read from the recording.
            event.grads = [(self.window.known[id(each)], each.detach().clone()) for each in written]
        if len(operands) == 1 and len(written) == 1 and operands[0].tensor is written[0]:
            value = operands[0]
            if value.origin == "outside" and not value.reads and node_of(value.tensor) is None:
                value.data = None
                value.version = version_of(value.tensor)
                return
        results = [event.results] if isinstance(event.results, Value) else event.results or []
        if not operands and self._comes_back(event):
            operands = list(values_in(event.args))
        if not operands and (
            event.note == "drawn" or event.spec.name in MAKING or not event.is_plain
        ):
            for value in results:
                self._from_outside(value, event)
            return
        is_computed = event.spec.known and event.is_plain and not event.note
        if not is_computed and event.note != "mask" and _differentiable(results):
            self._hear_edges(event, operands, results)
        for value in operands:
            value.reads += 1
        self.window.events.append(event)

    def _comes_back(self, event: Event) -> bool:
        """Whether a tensor is made of the numbers that the program read out of others: then the
        event becomes one of those.
        """
        result = event.results
        if event.spec.name not in COPYING or not isinstance(result, Value) or not event.args:
            return False
        operand = self._sources_of(event.args[0])
        spec = NUMBERS_BACK
        if operand is None and result.tensor.numel() <= SMALL:
            for value, copy in self.window.lists:
                if copy.shape == result.tensor.shape and torch.equal(
                    copy, result.tensor.detach().to(copy.dtype)
                ):
                    operand, spec = value, ELEMENTS_BACK
        if operand is None:
            return False
        event.spec, event.args, event.kwargs = spec, [operand], {}
        event.is_plain = True
        return True

    def _sources_of(self, operand: Any) -> Any:
        """The values that numbers were read out of, in lists as they stand; None for others."""
        if isinstance(operand, float):
            read = self.window.numbers.get(id(operand))
            return read[1].args[0] if read is not None and read[0] is operand else None
        if not isinstance(operand, (list, tuple)) or not operand:
            return None
        parts = [self._sources_of(each) for each in operand]
        return None if any(each is None for each in parts) else parts

    def _from_outside(self, value: Value | None, event: Event) -> None:
        """Take what an op made of nothing as data."""
        if value is None:
            return
        value.origin = "outside"
        value.hint = event.place.names[0] if len(event.place.names) == 1 else ""
        value.home = event.place.frames[0][0] if event.place.frames else None
        if event.note == "drawn":
            value.hint = value.hint or "random"
        self._hold(value)

    def _hear_edges(self, event: Event, operands: list[Value], results: list[Any]) -> None:
        inputs: list[Value] = []
        for each in operands:
            if needs_grad(each.tensor) and each not in inputs:
                inputs.append(each)
        event.edges = Edges(inputs, results, lambda: self.backwards)

    def _result(self, event: Event, result: Any) -> Any:
        """The value of what an op returned, None for what leaves no trace."""
        if not isinstance(result, torch.Tensor):
            if isinstance(result, (list, tuple)) and any(True for _ in tensors_in(result)):
                event.note = "nested"
            return None
        known = self.window.known.get(id(result))
        if known is not None and known.tensor is result:
            if event.spec.writes or any(each is result for each in event.written):
                event.version = known.version
                return known
            return None  # what was given came back
        if event.spec.kind == "attribute" and event.spec.name == "grad":
            return None
        value = Value(result, "op")
        event.version = value.version
        self.window.known[id(result)] = value
        return value

    def _modes(self, tensors: list[Any]) -> tuple[str, ...]:
        """What an op on some tensors runs under that changes its result, as the `with` that the
        program needs.
        """
        modes: list[str] = []
        if torch.is_inference_mode_enabled():
            modes.append("torch.inference_mode()")
        elif (
            not torch.is_grad_enabled()
            and not self.here.recomputed
            and any(map(needs_grad, tensors))
        ):
            modes.append(UNRECORDED_CHECKPOINT if self.here.unrecorded else self.here.off)
        for _, dtype in autocast_regions()[:1]:
            modes.append(f'torch.autocast("cpu", dtype={dtype})')
        return tuple(modes)

    def _wrote(self, tensor: Any) -> None:
        """Note that a write was heard."""
        version = version_of(tensor)
        self.window.written[_storage(tensor)] = version
        known = self.window.known.get(id(tensor))
        if known is not None:
            known.version = version

    def _keep_before_write(self, args: Any) -> None:
        """Copy what came from outside and is about to be written to."""
        if args and isinstance(args[0], torch.Tensor):
            for value in self.window.by_storage.get(_storage(args[0]), ()):
                if value.data is None:
                    value.data = value.tensor.detach().clone()

    def _frozen(self, operand: Any, place: Place) -> Any:
        """An operand with its tensors as values, and lists as they are now."""
        if isinstance(operand, torch.Tensor):
            return self._value(operand, place)
        if isinstance(operand, (list, tuple)):
            parts = [self._frozen(each, place) for each in operand]
            return parts if isinstance(operand, list) else tuple(parts)
        if isinstance(operand, dict):
            return {key: self._frozen(each, place) for key, each in operand.items()}
        if isinstance(operand, slice):
            parts = [
                self._frozen(each, place) for each in (operand.start, operand.stop, operand.step)
            ]
            return slice(*parts)
        return operand

    def _value(self, tensor: Any, place: Place) -> Value:
        window = self.window
        value = window.known.get(id(tensor))
        if value is None:
            return self._outside(tensor, place)
        version = version_of(tensor)
        if value.origin == "outside" and not value.reads:
            if value.hint in ("", "random"):
                name, home = self._name_of(tensor)
                value.hint, value.home = name or value.hint, home or value.home
            if version != value.version and node_of(tensor) is None:  # it was still being filled
                value.data, value.version = None, version
                self._hold(value)
        if version != value.version:
            if window.written.get(_storage(tensor)) != version:
                self._changed_unseen(value, tensor, place)
            value.version = version
        elif window.shared:
            shared, copy = window.shared.get(_storage(tensor), (None, None))
            if shared is not None and not torch.equal(shared, copy):
                copy.copy_(shared)
                self._changed_unseen(value, tensor, place)
        return value

    def _outside(self, tensor: Any, place: Place) -> Value:
        """The value of a tensor that no function that was heard has made."""
        window = self.window
        value = Value(tensor, "outside" if node_of(tensor) is None else "unseen")
        value.hint, value.home = self._name_of(tensor)
        if value.origin == "unseen":
            former = self.previous.known.get(id(tensor)) if self.previous is not None else None
            if former is None or former.origin != "op":
                return self._unseen(value, place)
            events, values = self._made_by(former)
            if all(
                each.origin == "op" or (version_of(each.tensor) == each.version) for each in values
            ):
                return self._adopted(former, events, values)
            # A step has changed what it was made of: it is what it was, and has no gradient.
            value.origin, value.needs_grad = "outside", False
        window.known[id(tensor)] = value
        self._hold(value)
        return value

    def _hold(self, value: Value) -> None:
        """Copy what came from outside if that costs little."""
        tensor, window = value.tensor, self.window
        key = _storage(tensor)
        window.by_storage.setdefault(key, []).append(value)
        if key in window.written or (not tensor.requires_grad and tensor.numel() <= SMALL):
            value.data = tensor.detach().clone()

    def _unseen(self, value: Value, place: Place) -> Value:
        """Enter a value that was made unheard, as an op of what it was made of."""
        window = self.window
        event = Event(
            Spec("op", type(node_of(value.tensor)).__name__, False),
            [each for each in window.known.values() if needs_grad(each.tensor)],
            {},
            place,
            self._call_now(),
        )
        value.origin = "op"
        event.results = value
        event.version = value.version
        event.note = "unseen"
        window.known[id(value.tensor)] = value
        self._hear_edges(event, event.args, [value])
        window.events.append(event)
        return value

    def _made_by(self, wanted: Value) -> tuple[list[Event], list[Value]]:
        """The events of the former window that made a value, and all values that take part."""
        assert self.previous is not None
        needed, events = {id(wanted)}, []
        values = [wanted]
        for event in reversed(self.previous.events):
            results = list(values_in(event.results))
            if any(id(each) in needed for each in results):
                operands = list(values_in([event.args, list(event.kwargs.values())]))
                needed.update(id(each) for each in operands)
                values += [*operands, *results]
                events.append(event)
        return events, values

    def _adopted(self, wanted: Value, events: list[Event], values: list[Value]) -> Value:
        """Take over from the former window what a value was made by."""
        window, previous = self.window, self.previous
        assert previous is not None
        if window.adopted_calls is None:
            first = window.adopted_calls = len(window.calls)
            window.calls += [(each, up + first if up >= 0 else up) for each, up in previous.calls]
        window.roots = {**previous.roots, **window.roots}
        window.idle |= previous.idle
        window.uncounted |= previous.uncounted
        former = {id(each) for each in window.adopted.values()}
        for event in events:
            if id(event) not in window.adopted:
                taken = window.adopted[id(event)] = copy.copy(event)  # the window keeps its own
                taken.call += window.adopted_calls if taken.call >= 0 else 0
        ordered = (window.adopted.get(id(each)) for each in previous.events)
        window.events[:] = [
            *(each for each in ordered if each is not None),
            *(each for each in window.events if id(each) not in former),
        ]
        for value in values:
            known = window.known.setdefault(id(value.tensor), value)
            if known is not value:
                value.same = known
                known.reads += value.reads
                if known.data is None:
                    known.data = value.data
        return wanted

    def _changed_unseen(self, value: Value, tensor: Any, place: Place) -> None:
        """Let the program take what an operand holds now, and say so."""
        event = Event(UNSEEN_WRITE, [value], {}, place, self._call_now())
        event.results = value
        event.note = "written to by something that was not recorded"
        event.grads = [(value, tensor.detach().clone())]
        event.version = version_of(tensor)
        self.window.events.append(event)
        self._wrote(tensor)

    def _drawn(self, event: Event, state: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Note what a function drew: then its result is data, or a mask."""
        if torch.equal(state, torch.get_rng_state()):
            return
        event.note = "drawn"
        masks = _masks(event.spec.name, state, args, kwargs, result)
        if masks:
            event.grads = [(event.args[0], mask) for mask in masks]
            event.note = "mask"

    def _item(
        self,
        spec: Spec,
        function: Any,
        args: Any,
        kwargs: dict[str, Any],
        call: Callable[..., Any],
    ) -> Any:
        result = call(function, args, kwargs)
        if spec.name in ("numpy", "__array__") and args[0].numel() <= MOST_SHARED:
            self.window.shared[_storage(args[0])] = args[0].detach(), args[0].detach().clone()
        known = self.window.known.get(id(args[0]))
        if known is not None and spec.name in LISTING and args[0].numel() <= SMALL:
            self.window.lists.append((known, args[0].detach().clone()))
        if known is not None and spec.name in ARRAYS and known.origin == "op":
            self.window.events.append(
                Event(ARRAY, [known], {}, self._place(sys._getframe(2)), self._call_now())
            )
        if isinstance(result, float) and known is not None:
            event = Event(NUMBER, [known], {}, self._place(sys._getframe(2)), -1)
            self.window.numbers[id(result)] = (result, event)
            self.window.events.append(event)
        return result

    def _note_numbers(self, operands: Any, place: Place) -> None:
        """Note which operands are numbers that the program read out of tensors, or may have
        computed of such: those that are no constants, neither in the line's own code nor by having
        been an operand in an earlier window.
        """
        window = self.window
        for each in operands:
            if type(each) is not float:
                continue
            if len(self.constants) < MOST_CONSTANTS:
                self.constants.setdefault(each, window.number)
            if not window.numbers:
                continue
            read = window.numbers.get(id(each))
            if read is not None and read[0] is each:
                window.computed[id(each)] = each, [read[1]]
            elif self.constants.get(each) == window.number and self._is_computed(each, place):
                sources = [event for _, event in window.numbers.values()]
                window.computed[id(each)] = each, sources

    def _is_computed(self, number: float, place: Place) -> bool:
        """Whether an operand is a number that the user's own code computed."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        is_own = frame is not None and not self._is_internal(frame.f_code.co_filename)
        return is_own and bool(place.frames) and number not in place.frames[0][0].co_consts

    def _opened(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call a function written in Python so that what it calls is heard in its place."""
        names = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
        room = getattr(function, "__globals__", {})
        before = {name: room[name] for name in names if name in room}
        try:
            room.update({name: (lambda *_: False) for name in before})
            with self.mode:
                return function(*args, **kwargs)
        finally:
            room.update(before)

    # --- backward passes --------------------------------------------------------------------------

    def _backward(self, spec: Spec, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if self._trains_elsewhere():
            return function(*args, **kwargs)
        try:
            with self.lock:
                event = self._before_backward(spec, args, kwargs)
                self.backwards += 1
        except Exception as error:
            self._fail(error)
            return function(*args, **kwargs)
        self.here.silent += 1
        self.here.passes += 1
        steps = self.steps
        try:
            result = function(*args, **kwargs)
        finally:
            self.here.silent -= 1
            self.here.passes -= 1
        self._guarded(self._after_backward)(event)
        if self.steps != steps and not self.here.passes and not self.is_done:
            self._guarded(self._stepped_inside)()
        return result

    def _stepped_inside(self) -> None:
        """End the window behind a pass whose hooks stepped: they wrote to leaves, as any hook."""
        if self.settings.at == "step" and self.steps >= self.settings.number:
            self._finish()
        self.window.keep(self.pool)
        self.previous = self.last_trained = self.window
        self.window = Window()

    def _trains_elsewhere(self) -> bool:
        """Whether another thread runs backward passes: a window is that of one, and this thread is
        heard no more.
        """
        now = threading.current_thread()
        with self.lock:
            if self.trainer is None or not self.trainer.is_alive():
                self.trainer = now
            if self.trainer is now:
                return False
            self.here.is_heard = False
            if BESIDE not in self.notes:
                self.notes.append(BESIDE)
        return True

    def _before_backward(self, spec: Spec, args: Any, kwargs: dict[str, Any]) -> Event:
        """Enter a backward pass, and the gradients that are there before it."""
        window, place = self.window, self._place(sys._getframe(2))
        event = Event(
            spec,
            [self._frozen(each, place) for each in args],
            {name: self._frozen(each, place) for name, each in kwargs.items()},
            place,
            -1,
        )
        self._enter_held(sys._getframe(3))
        for each in window.events:
            if each.edges is not None:
                each.edges.listen()
        if self.has_late_hooks:
            window.keep(self.pool)
        event.leaves = self._leaves()
        for value in event.leaves:
            grad = value.tensor.grad
            if grad is not None and id(grad) not in window.known:
                before = Event(GRAD_BEFORE, [value], {}, place, -1)
                before.grads = [(value, grad.detach().clone())]
                window.events.append(before)
        window.events.append(event)
        return event

    def _after_backward(self, event: Event) -> None:
        """Keep the gradients behind a backward pass."""
        window = self.window
        if not window.backwards and self.last_trained is not None:
            # This window is the one that is written from now on.
            self.pool.take_back(self.last_trained, window)
            self.last_trained = self.previous = None
        window.backwards += 1
        averaged = Event(GRADS_AVERAGED, [], {}, NOWHERE, -1)
        for value in event.leaves:
            grad = value.tensor.grad
            if grad is not None:
                held = grad.detach().clone()
                local = self.local.pop(id(value.tensor), held)
                event.after.append((value, local))
                if local is not held and not torch.equal(local, held):
                    averaged.args.append(value)
                    averaged.grads.append((value, held))
                known = window.known[id(grad)] = Value(grad, "grad")
                known.of = value
        if self.has_late_hooks:
            self._after_late_hooks(event)
        if averaged.grads:
            window.events.append(averaged)
            window.notes.append(
                f"{len(averaged.grads)} gradients were averaged with those of other processes"
            )
        at = self.settings.at
        is_reached = at == "backward" and self.backwards >= self.settings.number
        if is_reached or (at == "first-nonfinite" and not self._is_finite(event)):
            self._finish()

    def _after_late_hooks(self, event: Event) -> None:
        """Enter what hooks behind the accumulation wrote to leaves, and the gradients they took."""
        for value in event.leaves:
            tensor = value.tensor
            if version_of(tensor) == value.version:
                continue
            self._changed_unseen(value, tensor, event.place)
            self.window.events[-1].note = WRITTEN_BY_HOOK
            if tensor.grad is None:
                cleared = Event(Spec("assign", "grad"), [value, None], {}, event.place, -1)
                cleared.note = "cleared"
                self.window.events.append(cleared)

    def _is_finite(self, event: Event) -> bool:
        """Whether what a backward pass began with and all its gradients are finite."""
        roots = [each.tensor.detach() for each in values_in(event.args[:1])]
        return all(
            bool(torch.isfinite(each).all()) for each in [*roots, *(g for _, g in event.after)]
        )

    def _leaves(self) -> list[Value]:
        """The leaves that may get a gradient: those seen, and all parameters of the modules."""
        window = self.window
        for root, _ in window.roots.values():
            for parameter in root.parameters():
                if id(parameter) not in window.known:
                    self._outside(parameter, NOWHERE)
        return window.leaves()

    # --- modules and optimizers -------------------------------------------------------------------

    def _calling(self, former: Any) -> Any:
        enter = self._guarded(self._module_called)

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            here = self.here
            if self.is_done or not here.is_heard:
                return former(module, *args, **kwargs)
            enter(module)
            window, depth = here.window, len(here.stack) - 1
            try:
                return former(module, *args, **kwargs)
            finally:
                if window is here.window:
                    del here.stack[depth:]

        return call

    def _module_called(self, module: Any) -> None:
        window, here = self.window, self.here
        if here.window is not window:
            # Calls that are still running belong to the former window.
            here.window, here.stack = window, []
        if not here.stack:
            self._root(module)
        window.calls.append((module, self._call_now()))
        here.stack.append(len(window.calls) - 1)

    def _root(self, module: Any) -> None:
        """Enter the outermost module that holds one which is called, by the name it has there."""
        roots = self.window.roots
        if id(module) in roots:
            self.window.idle.discard(id(roots[id(module)][0]))
            return
        first, module = module, self._unwrapped(module)
        module, name = holder_of(module, first, sys._getframe(2), self._is_internal)
        roots[id(module)] = module, name
        roots.setdefault(id(first), (module, name))

    def _unwrapped(self, module: Any) -> Any:
        """The program's own module inside of those that compile it or distribute it."""
        own = module
        for own in layers_of(module):
            if type(own).__name__ == "DistributedDataParallel":
                self._hear_local_gradients(own.module)
        return own

    def _hear_local_gradients(self, module: Any) -> None:
        """Keep the gradients of this process before they are averaged with those of others."""
        for parameter in module.parameters():
            if not parameter.requires_grad or id(parameter) in self.distributed:
                continue
            self.distributed.add(id(parameter))
            if hasattr(parameter, "register_post_accumulate_grad_hook"):
                hear = self._guarded(self._accumulated)
                self.handles.append(parameter.register_post_accumulate_grad_hook(hear))
            else:  # PyTorch 2.0
                arrived = functools.partial(self._arrived, parameter)
                self.handles.append(parameter.register_hook(self._guarded(arrived)))

    def _arrived(self, parameter: Any, grad: Any) -> None:
        if not self.is_done:
            before = parameter.grad
            local = grad.detach().clone()
            self.local[id(parameter)] = local if before is None else local.add_(before.detach())

    def _accumulated(self, parameter: Any) -> None:
        if not self.is_done:
            self.local[id(parameter)] = parameter.grad.detach().clone()

    def _enter_held(self, frame: Any) -> None:
        """Enter the modules and parameters that the user's frames hold and that nothing has used:
        they are asked about too.
        """
        window = self.window
        parts = {id(each) for root, _ in window.roots.values() for each in root.modules()}
        for users in users_frames(frame, self._is_internal):
            held = _objects_of(users)
            modules = [(n, each) for n, each in held if isinstance(each, torch.nn.Module)]
            for name, wrapper in modules:
                module = self._unwrapped(wrapper)
                inner = {id(each) for _, other in modules if self._unwrapped(other) is not module
                         for each in other.modules()}  # fmt: skip
                if id(module) in parts | inner or not any(True for _ in module.parameters()):
                    continue
                window.roots[id(module)] = module, name
                parts.update(id(each) for each in module.modules())
                window.idle.add(id(module))
            for name, tensor in held:
                if isinstance(tensor, torch.nn.Parameter) and id(tensor) not in window.known:
                    window.known[id(tensor)] = Value(tensor, "outside", name)

    def enter_root(self, module: Any, frame: Any) -> None:
        """Enter a module, called or not, under the name that a frame has for it."""
        name = _held_name(frame, module) or type(module).__name__.lower()
        self.window.roots[id(module)] = module, name

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if self.is_done or not self.here.is_heard:
            return None
        self.here.silent += 1
        if self.here.passes:
            return None
        self._stand_aside()
        if self.window.backwards:
            self.window.keep(self.pool)
            self._step_of(optimizer).begin(optimizer, self._parameter, self.pool)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            return None
        rest = {name: each for name, each in kwargs.items() if name != "closure"}
        return (args[0], self._heard_closure(optimizer, closure)), rest

    def _stand_aside(self) -> None:
        """Hear nothing while an optimizer steps: its many small operations cost most of what a mode
        costs. Not where the program has a mode of its own on top.
        """
        if self.here.silent == 1 and is_on_top(self.mode):
            self.mode.__exit__(None, None, None)
            self.here.is_aside = True

    def _stand_again(self) -> None:
        if self.here.is_aside and self.mode is not None:
            self.here.is_aside = False
            self.mode.__enter__()

    def _step_of(self, optimizer: Any) -> Step:
        """Enter an optimizer into the window, with the name that the program has for it."""
        place = self._place(sys._getframe(2))
        creation = self.creations.of(optimizer)
        name = self._name_of(optimizer)[0] or dict(self.window.skipped.values()).get(id(optimizer))
        name = name or "optimizer"
        step = Step(optimizer, name, place, creation, self._parameter)
        self.window.steps.append(step)
        return step

    def _parameter(self, tensor: Any) -> Value:
        value = self.window.known.get(id(tensor))
        return self._outside(tensor, NOWHERE) if value is None else value

    def _heard_closure(self, optimizer: Any, closure: Callable[[], Any]) -> Callable[[], Any]:
        """A closure of an optimizer, which runs inside the step. Where the optimizer calls it more
        than once each call begins a window of its own, and so does a call behind a backward pass,
        unless it runs none itself, as the closure with which Lightning steps by hand.
        """
        several = type(optimizer).__name__ in UNSTEPPED

        @hidden
        def call() -> Any:
            around = self.window
            if several or around.steps:
                self.window = Window()
            before, self.here.silent = self.here.silent, 0
            depth = torch._C._len_torch_function_stack()
            try:
                if depth:
                    return closure()
                with self.mode:
                    return closure()
            finally:
                self.here.silent = before + 1
                self._guarded(step)(around)
                self.here.silent = before

        def step(around: Window) -> None:
            if around.steps and not self.window.backwards and not several:
                self.window = around
                return
            self.window.keep(self.pool)
            if self.window.backwards and not several:
                self._step_of(optimizer).begin(optimizer, self._parameter, self.pool)

        return call

    def _step_ends(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self.is_done and self.here.silent:
            self._stepped(optimizer)
        self._stand_again()

    def _stepped(self, optimizer: Any) -> None:
        """End the window behind a step."""
        self.here.silent -= 1
        self.steps += 1
        if self.here.passes:
            return
        self.previous = self.window
        if self.window.backwards and not self.window.steps:
            # Its closure began a window of its own, behind what the step began with.
            self._step_of(optimizer).ran = True
        if self.window.steps:
            self.window.steps[-1].end()
        if self.window.backwards:
            self.last_trained = self.window
            if self.settings.at == "step" and self.steps >= self.settings.number:
                self._finish()
        self.window = Window()

    def _finish(self) -> None:
        """End with this window."""
        self.is_done = True  # what is copied now is not heard
        self.window.keep(self.pool)
        for step in self.window.steps:
            step.keep()
        self._list_optimizers(self.window)
        self.last_trained = self.window

    # --- places and names -------------------------------------------------------------------------

    def _is_internal(self, file: str) -> bool:
        known = self.internal.get(file)
        if known is None:
            own = os.path.dirname(torch.__file__) + os.sep
            known = file.startswith((own, "<frozen ")) or file in (__file__, *STARTING)
            self.internal[file] = known
        return known

    def _place(self, frame: Any) -> Place:
        """The user's frames that a function was called from, innermost first."""
        use: Any = PASSED
        frames: list[tuple[Any, int]] = []
        names: tuple[str, ...] = ()
        internal = self.internal
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if file == __file__:  # it returns what it heard, from inside a block
                frame = frame.f_back
                continue
            is_internal = internal.get(file)
            if is_internal is None:
                is_internal = self._is_internal(file)
            if use is PASSED:
                use = use_of(code, frame.f_lasti)
                if type(use) is tuple:
                    if not is_internal:
                        names = use
                    elif code.co_name in HANDING_ON or (use == RESULT and file.endswith(RECURRENT)):
                        use = PASSED
            if not is_internal:
                frames.append((code, frame.f_lasti))
                if use is not PASSED and "site-packages" not in file:
                    break
            frame = frame.f_back
        return Place(frames, names)

    def _name_of(self, tensor: Any) -> tuple[str, Any]:
        """The name that the outermost of the user's frames has for a tensor, and its code."""
        is_parameter = type(tensor) is torch.nn.Parameter
        known = self.hints.get(id(tensor)) if is_parameter else None
        if known is not None and known[0]() is tensor:
            return known[1]
        name, home = "", None
        for frame in users_frames(sys._getframe(3), self._is_internal):
            held = _held_name(frame, tensor)
            name, home = (held, frame.f_code) if held else (name, home)
        if is_parameter:
            self.hints[id(tensor)] = weakref.ref(tensor), (name, home)
        return name, home


UNCOMPILED = "torch.compile was left out: what it compiles ran uncompiled"
BESIDE = "what other threads trained is not in the recording"

STARTING = (
    threading.__file__,
    os.path.join(os.path.dirname(threading.__file__), "concurrent", "futures", "thread.py"),
)
"""Files of Python's own that a thread begins in."""

HANDING_ON = ("inner", "_call_impl", "handle_torch_function")
"""Functions of PyTorch's that give a name to what they return."""

RECURRENT, RESULT = os.path.join("nn", "modules", "rnn.py"), ("result",)
"""The file of PyTorch's whose modules return the parts of what an op gives, and its name there."""

CONTEXTS = os.path.join("autograd", "grad_mode.py")
NO_GRAD = "torch.no_grad()"
SWITCHES = {"set_grad_enabled": "torch.set_grad_enabled(False)"}
"""The contexts of PyTorch's that switch gradients off, beside `no_grad`, as a program has them."""

UNRECORDED_CHECKPOINT = "checkpoint(use_reentrant=True)"
"""What an op is under in a checkpoint with re-entry none of whose inputs requires grad."""

NOWHERE = Place([], ())
UNSEEN_WRITE = Spec("unseen write", "copy_")
SKIPPED_STEP = Spec("skipped step", "step")
WRITTEN_BY_HOOK = "written to by a hook, which is not run again"
HOOK = Spec("hook", "register_hook")
GRAD_BEFORE = Spec("grad before", "grad")
GRADS_AVERAGED = Spec("grads averaged", "grad")
WRAPPERS = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module",
            "DataParallel": "module"}  # fmt: skip
"""PyTorch's modules around one of the program's, and where they hold it."""

BACKWARD = Spec("backward", "backward")
BACKWARD_OF_SEVERAL = Spec("backward", "autograd.backward")

DROPOUTS = {"F.dropout": None, "torch.dropout": None, "F.dropout1d": 1, "F.dropout2d": 2,
            "F.dropout3d": 3, "torch.feature_dropout": 2, "torch.dropout_": None}  # fmt: skip


def _of_list(operand: Any, index: int, count: int) -> Any:
    """What an operand of a function of lists is in the call of one of their tensors."""
    is_list = isinstance(operand, (list, tuple)) and len(operand) == count
    return operand[index] if is_list else operand


def _masks(name: str, state: Any, args: Any, kwargs: Any, result: Any) -> list[Any]:
    """The masks that an op with dropout drew, scaled, drawn once more; none where they do not give
    the result.
    """
    if name in RNNS:
        plan = _recurrent_masks(*args) if len(args) == 9 else None
    elif name == ATTENTION:
        plan = _attention_mask(*args, **kwargs)
    elif name in DROPOUTS:
        plan = _dropout_mask(name, args, kwargs)
    else:
        plan = None
    if plan is None:
        return []
    likes, p = plan
    after = torch.get_rng_state()
    try:
        torch.set_rng_state(state)
        with torch.no_grad():
            masks = [like.bernoulli_(1 - p) for like in likes]
            same = torch.equal(torch.get_rng_state(), after)
            masks = [mask.div_(1 - p) if p < 1 else mask for mask in masks]
            same = same and _give(name, masks[0], args, kwargs, result)
    finally:
        torch.set_rng_state(after)
    return masks if same else []


def _give(name: str, mask: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether a mask gives the result of dropout, or the first matrix of attention."""
    if name in RNNS:
        return True
    if name != ATTENTION:
        x = args[0] if args else kwargs["input"]
        masked = result * (mask != 0) if x is result else x * mask
        return bool(torch.allclose(masked, result, rtol=0, atol=0, equal_nan=True))
    operands = {**dict(zip(OPERANDS, args, strict=False)), **kwargs}
    masked = _first_attended(
        _first_matrix(mask), **{key: _first_matrix(each) for key, each in operands.items()}
    )
    near = 1e-3 if result.dtype in (torch.float32, torch.float64) else 3e-2
    return bool(torch.allclose(masked, _first_matrix(result), near, near, equal_nan=True))


OPERANDS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def _first_matrix(operand: Any) -> Any:
    """The first matrix of a tensor of them, with as many dimensions."""
    if not isinstance(operand, torch.Tensor):
        return operand
    return operand.detach()[(slice(0, 1),) * (operand.dim() - 2)]


def _first_attended(
    drop: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention whose weights are multiplied with `drop`."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.softmax(scores, -1) * drop @ value


def _dropout_mask(name: str, args: Any, kwargs: Any) -> tuple[list[Any], float]:
    """What dropout draws its mask into, and how much of it is dropped."""
    x = args[0] if args else kwargs["input"]
    p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    if DROPOUTS[name] is None:
        return [torch.empty_like(x)], p
    return [x.new_empty([*x.shape[:2], *[1] * (x.dim() - 2)])], p


def _attention_mask(
    query: Any, key: Any, _value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *_: Any,
    **kwargs: Any,
) -> tuple[list[Any], float] | None:  # fmt: skip
    """As `_dropout_mask`, for the weights of attention, which are computed step by step."""
    shared = key.shape[:-2]
    if kwargs.get("enable_gqa"):  # heads of the query share those of the key
        shared = (*shared[:-1], query.shape[-3])
    leading = torch.broadcast_shapes(query.shape[:-2], shared)
    return [query.new_empty([*leading, query.shape[-2], key.shape[-2]])], dropout_p


def _recurrent_masks(
    x: Any, state: Any, weights: Any, _biases: Any, layers: Any, p: float, _train: Any,
    bidirectional: Any, batch_first: Any,
) -> tuple[list[Any], float] | None:  # fmt: skip
    """As `_dropout_mask`, for the outputs of all layers of a recurrent one but the last."""
    if isinstance(weights, torch.Tensor):  # packed sequences
        return None
    first = state[0] if isinstance(state, (list, tuple)) else state
    length, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    sizes = (length, batch, first.shape[-1] * (2 if bidirectional else 1))
    return [x.new_empty(sizes) for _ in range(layers - 1)], p


def autocast_regions() -> list[tuple[str, Any]]:
    """The devices whose operations autocast casts now, and what to."""
    if hasattr(torch, "get_autocast_dtype"):
        return [
            (device, torch.get_autocast_dtype(device))
            for device in ("cpu", "cuda")
            if torch.is_autocast_enabled(device)
        ]
    regions = []
    if torch.is_autocast_cpu_enabled():
        regions.append(("cpu", torch.get_autocast_cpu_dtype()))
    if torch.is_autocast_enabled():
        regions.append(("cuda", torch.get_autocast_gpu_dtype()))
    return regions


def _storage(tensor: Any) -> int:
    """What tensors on the same memory have in common."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _held_name(frame: Any, wanted: Any) -> str:
    """The name that a frame has for an object: a variable's, or an attribute's of its `self`."""
    for name, held in frame.f_locals.items():
        if held is wanted and name != "self":
            return str(name)
    holder = frame.f_locals.get("self")
    for name, held in getattr(holder, "__dict__", {}).items():
        if held is wanted:
            return str(name)
    if frame.f_globals is not frame.f_locals:
        for name, held in frame.f_globals.items():
            if held is wanted:
                return str(name)
    return ""


def layers_of(module: Any) -> Iterator[Any]:
    """A module and, inside of those of PyTorch's that compile or distribute, the program's own."""
    while module is not None:
        yield module
        held = type(module).__name__ if type(module).__module__.startswith("torch.") else ""
        inner = getattr(module, WRAPPERS.get(held, ""), None)
        module = inner if isinstance(inner, torch.nn.Module) else None


def users_frames(frame: Any, is_internal: Callable[[str], bool]) -> Iterator[Any]:
    """The user's frames from one outwards, and behind them, in another thread, those of the main
    one, which waits for it or gave it what it works on.
    """
    main = threading.main_thread().ident
    ends = [frame]
    if threading.get_ident() != main:
        ends.append(sys._current_frames().get(main or 0))
    for each in ends:
        while each is not None:
            if not is_internal(each.f_code.co_filename):
                yield each
            each = each.f_back


def holder_of(
    module: Any, first: Any, frame: Any, is_internal: Callable[[str], bool]
) -> tuple[Any, str]:
    """The outermost module that holds one which is called, and the name that it has there.

    Args:
        first: what is called: the module, or what wraps it.
        frame: the innermost frame that may hold them.
    """
    path, wrapped = "", ""
    for each in users_frames(frame, is_internal):
        holder = each.f_locals.get("self")
        if module is not first:
            wrapped = wrapped or _held_name(each, first)
        if (
            isinstance(holder, torch.nn.Module)
            and holder is not module
            and any(part is module for part in holder.modules())
        ):
            module, path = holder, ""
        if not path:
            module, path = _container_in(each, module) or (module, "")
        path = path or _held_name(each, module)
        if not path:
            module, path = _holder_in(each, module)
    return module, path or wrapped or type(module).__name__.lower()


def _objects_of(frame: Any) -> list[tuple[str, Any]]:
    """What a frame holds by its name: its variables, and what its `self` has."""
    held = list(frame.f_locals.items())
    holder = frame.f_locals.get("self")
    if not isinstance(holder, torch.nn.Module):
        held += getattr(holder, "__dict__", {}).items()
    if frame.f_globals is not frame.f_locals:
        held += frame.f_globals.items()
    return [(str(name), each) for name, each in held if name not in ("self", "_")]


def _is_listed(module: Any) -> bool:
    """Whether the parts of a module are numbered, from 0 on."""
    names = [name for name, each in module._modules.items() if each is not None]
    return bool(names) and names == [str(number) for number in range(len(names))]


MOST_CONSTANTS = 10_000
"""Numbers that are remembered as constants of the program."""

MOST_HELD = 10_000
"""Elements of a list or dict of a module that are looked at."""


def _is_key(key: Any) -> bool:
    """Whether a key of a dict can stand in a path."""
    return type(key) is int or (type(key) is str and key.isidentifier())


def _containers_of(module: Any) -> list[tuple[str, Any]]:
    """The lists, tuples and dicts of a module, by name, that hold modules or parameters."""
    own = vars(torch.nn.Module())
    return [
        (name, each)
        for name, each in vars(module).items()
        if type(each) in (list, tuple, dict) and name not in own and len(each) <= MOST_HELD
        if any(
            isinstance(part, (torch.nn.Module, torch.nn.Parameter))
            for part in (each.values() if type(each) is dict else each)
        )
        if type(each) is not dict or all(map(_is_key, each))
    ]


def _container_in(frame: Any, wanted: Any) -> tuple[Any, str] | None:
    """The list or dict of modules that a module is in, and its name in a frame: a loop's variable
    names another one each time.
    """
    kinds = torch.nn.ModuleList, torch.nn.ModuleDict
    for name, each in _objects_of(frame):
        if isinstance(each, kinds) and any(part is wanted for part in each.children()):
            return each, name
    return None


def _holder_in(frame: Any, wanted: Any) -> tuple[Any, str]:
    """The module with a name in a frame that a module is part of, and that name, or itself."""
    for name, each in _objects_of(frame):
        if isinstance(each, torch.nn.Module) and any(part is wanted for part in each.modules()):
            return each, name
    return wanted, ""


# --- the program --------------------------------------------------------------------------------

RESERVED = frozenset(
    {"torch", "F", "nn", "np", "math", "recorded", "opaque", "checkpoint", "recorded_step",
     "recorded_hook", "recorded_number", "print", "float", "slice", "_", "attention",
     *RECORDED.values(), *keyword.kwlist}
)  # fmt: skip

FOREVER = 1 << 60


class Unwritable(Exception):
    """An operand that the language has no text for."""


class Names:
    """Gives values names: each its own as long as another of that name is still read."""

    def __init__(self, reserved: set[str]) -> None:
        self.reserved = reserved
        self.free_from: dict[str, int] = {}
        self.numbers: dict[str, int] = {}

    def take(self, hint: str, now: int, until: int) -> str:
        """A name like a hint for a value that is made now and read until then."""
        base = hint if hint.isidentifier() and hint.isascii() else "value"
        name, number = base, 2
        while name in self.reserved or name in RESERVED or self.free_from.get(name, -1) > now:
            name = f"{base}_{number}"
            number += 1
        self.free_from[name] = until
        return name


class Line:
    """A line of the program, with its place and the results that are compared behind it."""

    __slots__ = ("call", "checks", "place", "text")

    def __init__(self, text: str, place: Place = NOWHERE, call: int = -1) -> None:
        self.text = text
        self.place = place
        self.call = call
        self.checks: list[tuple[str, str, Any]] = []


class Writer:
    """Writes a window as a program and its tables."""

    def __init__(
        self,
        window: Window,
        settings: Settings,
        creations: Creations,
        hooks: Sequence[Hook],
    ) -> None:
        self.window = window
        self.hooks = hooks
        self.settings = settings
        self.creations = creations
        self.lines: list[Line] = []
        self.arrays: dict[str, Any] = {}
        self.dtypes: dict[str, str] = {}
        self.opaque: list[dict[str, Any]] = []
        self.drawn: list[str] = []
        self.left_out: list[list[Any]] = []
        self.unwritten: list[str] = []
        self.notes = list(window.notes)
        if window.transforms:
            self.notes.append("what ran inside a transform of torch.func was not recorded")
        self.modules: dict[int, str] = {}
        self.counts: dict[str, int] = {}
        self.has_grad: set[int] = set()
        self.hooked: list[Hook] = []
        self.stepping: set[str] = set()
        self.read_numbers: list[str] = []
        self.bound: dict[tuple[Any, str], list[Value]] = {}
        self.sources = {id(event) for _, events in window.computed.values() for event in events}
        self.number_names: dict[int, str] = {}
        self.output = ""
        self.is_equation = False
        self.names = Names(set())
        self.last_use = self._last_uses()
        self.called = {
            id(tensor)
            for root, _ in window.roots.values()
            if id(root) not in window.idle
            for tensor in (*root.parameters(), *root.buffers())
        }

    def rebound(self) -> dict[str, str]:
        """The names that the script gave to another tensor since, with what that is called here."""
        first = {
            (value.home, value.hint): value
            for value in self.window.known.values()
            if value.origin == "outside"
        }
        found = {}
        for key, values in self.bound.items():
            name = first.get(key, values[0]).text
            if name == key[1] != values[-1].text:
                found[name] = values[-1].text
        return found

    # --- values and arrays ------------------------------------------------------------------------

    def _last_uses(self) -> dict[int, int]:
        """The number of the last event that reads each value, by its `id`."""
        uses: dict[int, int] = {}
        for number, event in enumerate(self.window.events):
            if event.spec is NUMBER and id(event) not in self.sources:
                continue
            operands = [event.args, list(event.kwargs.values())]
            asked = event.spec.name == "retain_grad" or event.spec.kind in ("backward", "grad")
            for value in values_in(operands):
                for each in (value, value.same, value.of):
                    if each is not None and uses.get(id(each)) != FOREVER:
                        uses[id(each)] = FOREVER if asked else number
            uses.update((id(value), FOREVER) for value, _ in event.after)
        for step in self.window.steps:
            uses.update((id(each), FOREVER) for group, _ in step.groups for each in group)
        return uses

    def keep(self, name: str, tensor: Any) -> str:
        """Enter an array of the file; the text that reads it."""
        dtype = str(tensor.dtype).removeprefix("torch.")
        if self.settings.data:
            self.arrays[name] = array_of(tensor)
            self.dtypes[name] = dtype
        else:
            self.left_out.append([name, dtype, list(tensor.shape), -1])
        return f"recorded({name!r})"

    # --- what comes from outside ------------------------------------------------------------------

    def write(self) -> None:
        """Write the whole program."""
        for root, name in self.window.roots.values():
            if id(root) not in self.modules:
                self._module(root, self.names.take(name, -1, FOREVER))
        for root, _ in list(self.window.roots.values()):
            for module in root.modules():
                self._hidden(module)
        held = {
            id(each) for step in self.window.steps for group, _ in step.groups for each in group
        }
        for value in list(self.window.known.values()):
            is_asked_about = value.needs_grad or id(value) in self.last_use or id(value) in held
            if value.origin == "outside" and not value.text and is_asked_about:
                self._outside(value)
        for step in self.window.steps:
            self._optimizer(step)
        registered = [each.hook for each in self.window.events if each.hook is not None]
        for hook in self.hooks:
            known = self.window.known.get(id(hook.tensor()))
            if known is not None and known.text and hook not in registered:
                self._hook(hook, known)  # it was registered in an earlier window
        for number, event in enumerate(self.window.events):
            self._event(number, event)
        for step in self.window.steps:
            if step.ran:
                computed = step.name in self.stepping
                text = f"{step.name}.step()" if computed else self._recorded_step(step)
                line = Line(text, step.place)
                line.checks = [
                    (self.text(value), "step", tensor)
                    for value, tensor, version in step.after
                    if computed and version_of(tensor) == version and not self._is_idle(value)
                ]
                self.lines.append(line)

    def _recorded_step(self, step: Step) -> str:
        """The step of an optimizer that gradcli does not have: what it left in the parameters."""
        for number, (value, tensor, version) in enumerate(step.after):
            if version_of(tensor) == version and not self._is_idle(value):
                self.keep(f"{step.name} after {number}", tensor)
        return f"recorded_step({step.name}, {step.name!r})"

    def _optimizer(self, step: Step) -> None:
        """An optimizer with its groups, settings and what it kept of its parameters."""
        step.name = self.names.take(step.name, -1, FOREVER)
        kind = step.kind.__name__
        standard = getattr(torch.optim, kind, None) is step.kind and kind not in UNSTEPPED
        defaults = _defaults(step.kind.__init__) if standard else {}
        groups = []
        for parameters, settings in step.groups:
            held = self._held_by(parameters)
            hyperparameters = {
                name: self._setting(each)
                for name, each in settings.items()
                if name in defaults and each != defaults[name] and name not in KERNELS
            }
            groups.append((held, hyperparameters))
        if len(groups) == 1:
            texts = [groups[0][0], *(f"{k}={v}" for k, v in groups[0][1].items())]
        else:
            texts = [
                f"[{', '.join(_group(held, hyperparameters) for held, hyperparameters in groups)}]"
            ]
        if standard:
            text = f"{step.name} = torch.optim.{kind}({', '.join(texts)})"
        else:
            text = f"{step.name} = torch.optim.SGD({', '.join(texts)}, lr=1.0)  # stands for {kind}"
            self.notes.append(f"the step of {step.name}, a {kind}, is not computed again")
        self.lines.append(Line(text, step.creation))
        for number, (_, settings) in enumerate(step.groups):
            first = settings.get("initial_lr")
            if first is not None and first != settings["lr"]:
                group = f"{step.name}.param_groups[{number}]"
                self.lines.append(Line(f"{group}['initial_lr'] = {self._setting(first)}"))
        if standard and step.ran:
            self.stepping.add(step.name)
            self._state(step)

    def _held_by(self, parameters: list[Value]) -> str:
        """Parameters as text: those of a module by its name."""
        wanted = [id(each.tensor) for each in parameters]
        for root, _ in self.window.roots.values():
            for module in root.modules():
                path = self.modules.get(id(module))
                if path and wanted and wanted == [id(each) for each in module.parameters()]:
                    return f"{path}.parameters()"
        return f"[{', '.join(self.text(each) for each in parameters)}]"

    def _state(self, step: Step) -> None:
        for value, kept in step.state:
            rows = []
            for key, each in kept.items():
                if isinstance(each, torch.Tensor):
                    name = f"{step.name} {self.text(value)} {key}"
                    rows.append(f"{key!r}: {self.keep(name, each)}")
                else:
                    rows.append(f"{key!r}: {self._setting(each)}")
            if rows:
                text = f"{step.name}.state[{self.text(value)}] = {{{', '.join(rows)}}}"
                self.lines.append(Line(text))

    def _setting(self, setting: Any) -> str:
        if isinstance(setting, torch.Tensor):
            setting = setting.item()
        try:
            return self.text(setting)
        except Unwritable:
            return "None"

    def _module(self, module: Any, path: str) -> None:
        """The tree of a module: its parts, parameters and buffers under their names."""
        place = self.creations.of(module)
        first, _, last = path.rpartition(".")
        if path.endswith("]"):
            holder, _, number = path[:-1].rpartition("[")
            self.lines.append(
                Line(f"{holder}.add_module({number!r}, {self._bare_module(module)})", place)
            )
        elif first and not last.isidentifier():
            return
        else:
            self.lines.append(Line(f"{path} = {self._bare_module(module)}", place))
        self._inside(module, path)

    def _bare_module(self, module: Any) -> str:
        """The text that makes a module without what is in it."""
        return (
            "nn.Sequential()" if _is_listed(module) else f"{self._class(type(module).__name__)}()"
        )

    def _inside(self, module: Any, path: str) -> None:
        """What a module holds, under its path."""
        self.modules[id(module)] = path
        for table, wrapped in ((module._parameters, True), (module._buffers, False)):
            for name, tensor in table.items():
                if tensor is not None and name.isidentifier():
                    self._held(f"{path}.{name}", path, name, tensor, wrapped)
        listed = _is_listed(module)
        for name, each in module._modules.items():
            if each is None:
                continue
            inner = f"{path}[{name}]" if listed else f"{path}.{name}"
            if id(each) in self.modules:
                known = self.modules[id(each)]
                text = f"{path}.add_module({name!r}, {known})" if listed else f"{inner} = {known}"
                self.lines.append(Line(text))
            elif listed or name.isidentifier():
                self._module(each, inner)

    def _hidden(self, module: Any) -> None:
        """The modules and parameters that lists and dicts of a module hold, where its
        `parameters()` does not look.
        """
        path = self.modules.get(id(module))
        for name, container in _containers_of(module) if path else ():
            holder = f"{path}.{name}"
            keys = container if isinstance(container, dict) else range(len(container))
            parts = {f"{holder}[{key!r}]": container[key] for key in keys}
            texts = {inner: self._hidden_text(each) for inner, each in parts.items()}
            if all(text in ("None", self._known(parts[inner])) for inner, text in texts.items()):
                continue
            hidden = {inner: each for inner, each in parts.items() if not self._known(each)}
            if isinstance(container, dict):
                pairs = zip(container, texts.values(), strict=True)
                text = "{" + ", ".join(f"{key!r}: {each}" for key, each in pairs) + "}"
            else:
                text = f"[{', '.join(texts.values())}]"
            first = next(iter(hidden.values()))
            self.lines.append(Line(f"{holder} = {text}", self.creations.of(first)))
            for inner, each in hidden.items():
                if isinstance(each, torch.nn.Module):
                    self._inside(each, inner)
                    self._hidden(each)
                elif isinstance(each, torch.nn.Parameter):
                    self._held(inner, holder, "", each, True)

    def _known(self, part: Any) -> str:
        """The path that a module or a parameter has already, "" for none."""
        known = self.window.known.get(id(part))
        return self.modules.get(id(part)) or ("" if known is None else known.text)

    def _hidden_text(self, part: Any) -> str:
        """What a list has in the place of a part: one that is filled in behind it is empty."""
        if isinstance(part, torch.nn.Module) and not self._known(part):
            return self._bare_module(part)
        return self._known(part) or "None"

    def _class(self, kind: str) -> str:
        """The name of a class of modules, which is defined when it is first needed."""
        name = kind if kind.isidentifier() and kind not in RESERVED else "Module"
        if f"class {name}" not in self.counts:
            self.counts[f"class {name}"] = 1
            self.names.reserved.add(name)
            self.lines.append(Line(f"class {name}(nn.Module): pass"))
        return name

    def _held(self, text: str, path: str, name: str, tensor: Any, is_parameter: bool) -> None:
        """A parameter or buffer of a module."""
        value = self.window.known.get(id(tensor))
        if value is not None and value.text:
            self.lines.append(Line(f"{text} = {value.text}"))
            return
        if value is None or value.origin != "outside":
            value = self.window.known[id(tensor)] = Value(tensor, "outside")
        value.text = text
        data = self._elements(text, value)
        grad = "" if value.needs_grad else ", requires_grad=False"
        if is_parameter:
            place = self.creations.of(tensor)
            self.lines.append(Line(f"{text} = nn.Parameter({data}{grad})", place))
        else:
            self.lines.append(Line(f"{path}.register_buffer({name!r}, {data})"))

    def _outside(self, value: Value) -> None:
        value.text = self.names.take(value.hint or "data", -1, FOREVER)
        data = self._elements(value.text, value)
        grad = ".requires_grad_()" if value.needs_grad else ""
        if value.hint == "random":
            self.drawn.append(value.text)
        self.lines.append(Line(f"{value.text} = {data}{grad}"))

    def _elements(self, name: str, value: Value) -> str:
        """The text that reads a value from outside; its shape alone where nothing used it."""
        if not self._is_idle(value):
            return self.keep(name, self._data(value))
        tensor = value.tensor
        return f"torch.empty({tuple(tensor.shape)}, dtype={tensor.dtype}, device='meta')"

    def _is_idle(self, value: Value) -> bool:
        """Whether nothing used a parameter, nor the module that it is of."""
        tensor = value.tensor
        return (
            value.origin == "outside"
            and not value.reads
            and id(value) not in self.last_use
            and id(tensor) not in self.called
            and (node_of(tensor), tensor.grad) == (None, None)
        )

    def _data(self, value: Value) -> Any:
        """What a value from outside held when it was first read."""
        if value.data is not None:
            return value.data
        if value.version != version_of(value.tensor):
            self.notes.append(f"{value.text or value.hint or 'a tensor'} was written to since")
        return value.tensor

    # --- operations -------------------------------------------------------------------------------

    def _event(self, number: int, event: Event) -> None:
        spec = event.spec
        if spec is UNSEEN_WRITE:
            self._unseen_write(event)
        elif spec in (GRAD_BEFORE, GRADS_AVERAGED):
            for value, grad in event.grads:
                data = self.keep(self._fresh(f"{value.text}.grad"), grad)
                self.lines.append(Line(f"{value.text}.grad = {data}", event.place))
                self.has_grad.add(id(value))
        elif spec is SKIPPED_STEP:
            left_out = self.window.skipped[id(event)][0]
            for step in self.window.steps:
                if step.optimizer == left_out:
                    self.lines.append(Line(f"skipped_step({step.name})", event.place))
        elif spec is HOOK:
            if event.hook is not None and event.hook not in self.hooked:
                self._hook(event.hook, event.args[0])
        elif spec is NUMBER:
            if id(event) in self.sources:
                self._read_number(event)
        elif spec is ARRAY:
            text = f"{self._operand(event.args[0])}.numpy()"
            self.lines.append(Line(text, event.place, event.call))
        elif spec.kind == "backward":
            self._backward(event)
        else:
            self._op(number, event)

    def _hook(self, hook: Hook, value: Value) -> None:
        """A hook of a tensor, by the gradients that PyTorch's run of it took and returned."""
        self.hooked.append(hook)
        calls = hook.calls_in(self.window)
        if not calls:
            return  # it changed nothing
        number = len(self.hooked)
        names = []
        for count, (taken, behind) in enumerate(calls):
            before, after = f"hook {number} took {count}", f"hook {number} returned {count}"
            self.keep(before, taken)
            self.keep(after, behind)
            names.append((before, after))
        listed = ", ".join(f"({before!r}, {after!r})" for before, after in names)
        text = f"{self._operand(value)}.register_hook(recorded_hook([{listed}]))"
        self.lines.append(Line(text, hook.place))
        self.notes.append(f"what the hook of {value.text} returned is read from the recording")

    def _unseen_write(self, event: Event) -> None:
        value, data = event.grads[0]
        name = self._fresh(f"{value.text} written")
        text = f"{value.text}.data.copy_({self.keep(name, data)})"
        if event.note == WRITTEN_BY_HOOK:  # which counts as a version
            text = f"with torch.no_grad(): {value.text}.copy_({self.keep(name, data)})"
        self.lines.append(Line(text, event.place, event.call))
        self.notes.append(f"{value.text} was {event.note}")

    def _fresh(self, name: str) -> str:
        """A name for an array that no other has."""
        count = self.counts[name] = self.counts.get(name, 0) + 1
        return name if count == 1 and name not in self.arrays else f"{name} {count}"

    def _backward(self, event: Event) -> None:
        function = "" if event.spec.name == "backward" else "torch.autograd."
        roots = list(values_in(event.args[:1]))
        self.output = self.text(roots[0]) if roots else ""
        if function:
            text = f"torch.autograd.backward({self._arguments(event, 0)})"
        else:
            text = f"{self._operand(event.args[0])}.backward({self._arguments(event, 1)})"
        self.has_grad.update(id(value) for value, _ in event.after)
        line = Line(text, event.place)
        line.checks = self._gradients(event)
        self.lines.append(line)

    def _op(self, number: int, event: Event) -> None:
        if event.spec.kind == "assign" and event.spec.name == "grad":
            held = id(event.args[0])
            if event.args[1] is None and held not in self.has_grad and event.note != "cleared":
                return
            self.has_grad.add(held)
        results = [event.results] if isinstance(event.results, Value) else event.results or []
        drawn = event.note == "drawn"
        if not event.args and not event.kwargs and not self._is_read(results):
            return
        try:
            text = self._masked(event) if event.note == "mask" else self._call(event)
            if self._passes_on(event, results):
                operand = self._operand(event.args[-1])
                text = f"{operand}.view_as({operand})"
                text = text if isinstance(event.results, Value) else f"({text},)"
            computed = event.spec.known and event.is_plain and not drawn
            computed = computed or self._passes_on(event, results)
            if not computed or event.note in ("nested", "unseen"):
                raise Unwritable(event.spec.name)
        except Unwritable as reason:
            text = ""
            unread = not event.grads and not self._is_read(results)
            if unread and not event.place.names and not _differentiable(results):
                return
            if not (drawn and not _differentiable(results)) and event.spec.name not in MAKING:
                self.unwritten.append(str(reason))
        self._named(number, event, results)
        self._line(event, results, text, drawn)

    def _passes_on(self, event: Event, results: list[Any]) -> bool:
        """Whether an op is what a module's hooks hear gradients by, and none changed one."""
        edges = event.edges
        return (
            event.spec.name == "BackwardHookFunction"
            and len(results) == len(event.args) == 1
            and edges is not None
            and edges.is_identity()
        )

    def _is_read(self, results: list[Any]) -> bool:
        return any(id(each) in self.last_use for each in results)

    def _named(self, number: int, event: Event, results: list[Any]) -> None:
        """Give the results of an op their names."""
        fresh = [each for each in results if each is not None and not each.text]
        hints = event.place.names
        short = event.spec.name.rpartition(".")[2].strip("_") or "value"
        for place, each in enumerate(results):
            if each is None or each.text:
                continue
            if len(hints) == len(results):
                hint = hints[place]
            elif len(hints) == 1 and len(fresh) == 1:
                hint = hints[0]
            elif 1 < len(hints) < len(results):  # `out, state = lstm(x)`: a tuple is the rest
                rest = f"{short}_" if hints[-1] == "_" else f"{hints[-1]}_{place}"
                hint = hints[place] if place < len(hints) - 1 else rest
            else:
                hint = f"{hints[0]}_{place}" if hints else f"{short}_"
            each.hint = hint
            if event.place.frames:
                self.bound.setdefault((event.place.frames[0][0], hint), []).append(each)
            if hint.endswith("_"):
                count = self.counts[hint] = self.counts.get(hint, 0) + 1
                hint = f"{hint}{count}"
            each.text = self.names.take(hint, number, self.last_use.get(id(each), number + 1))

    def _line(self, event: Event, results: list[Any], text: str, drawn: bool) -> None:
        """The statement of an op, and what is compared behind it."""
        if not text:
            self._read_in_place(event, results, drawn)
            return
        targets = ", ".join("_" if each is None else each.text for each in results)
        known = isinstance(event.results, Value) and event.results.tensor
        if targets and not any(each is known for each in event.written):
            ending = "," if len(results) == 1 and not isinstance(event.results, Value) else ""
            text = f"{targets}{ending} = {text}"
        if event.modes:
            text = f"with {', '.join(event.modes)}: {text}"
        line = Line(text, event.place, event.call)
        for each in results:
            if each is not None and self._is_still(each.tensor, event.version):
                line.checks.append((each.text, "value", each.tensor))
        line.checks += self._gradients(event)
        self.lines.append(line)

    def _is_still(self, tensor: Any, version: int) -> bool:
        """Whether a tensor holds what it did at a version. What `.data` gives counts no writes to
        the tensor that it is of, and a tensor of inference mode none at all.
        """
        if version_of(tensor) != version or id(tensor) in self.window.uncounted:
            return False
        if tensor.is_inference():
            return False
        owners = self.window.by_storage.get(_storage(tensor), ())
        return not owners or tensor._is_view() or any(each.tensor is tensor for each in owners)

    def _gradients(self, event: Event) -> list[tuple[str, str, Any]]:
        return [(f"{self.text(value)}.grad", "gradient", grad) for value, grad in event.after]

    def _read_in_place(self, event: Event, results: list[Any], drawn: bool) -> None:
        """Read the results of an op from the recording, and what it wrote, in place of computing
        them.
        """
        written = [(value, data) for value, data in event.grads if self.text(value)]
        for value, data in written:
            text = self.text(value)
            name = self._fresh(f"{text} {event.spec.name}")
            copied = f"{text}.data.copy_({self.keep(name, data)})"
            self.lines.append(Line(copied, event.place, event.call))
            if drawn:
                self.drawn.append(name)
        known = [value for value, _ in written]
        present = [each for each in results if each is not None and each not in known]
        if event.edges is not None and event.edges.passes and present:
            self.lines.append(Line(self._opaque(event, present), event.place, event.call))
            return
        sources = self._sources(event, drawn)
        for each in present:
            name = self._fresh(each.text)
            text = f"{each.text} = {self.keep(name, each.tensor)[:-1]}{sources})"
            if sources and event.modes:
                text = f"with {', '.join(event.modes)}: {text}"
            self.lines.append(Line(text, event.place, event.call))
            if drawn:
                self.drawn.append(name)

    def _sources(self, event: Event, drawn: bool) -> str:
        """What results that are read from the recording were computed from, behind the function
        that did it: no gradient flows there, and `why` says so.
        """
        short = event.spec.name.rpartition(".")[2]
        if event.spec.name in MAKING or (drawn and short.rstrip("_") not in DRAWN_FROM):
            return ""
        operands = [event.args, list(event.kwargs.values())]
        texts = [each.text for each in values_in(operands) if each.tensor.is_floating_point()]
        known = [each for each in dict.fromkeys(texts) if each]
        maker = f"{'drawn_by' if drawn else 'by'}={short!r}"
        return ", ".join(["", *known, maker]) if known else ""

    def _opaque(self, event: Event, results: list[Value]) -> str:
        """An operation with its results and the gradients that PyTorch computed."""
        edges = event.edges
        assert edges is not None
        number = len(self.opaque)

        def keep(tensor: Any, what: str) -> str | None:
            if tensor is None:
                return None
            name = f"opaque {number} {what}"
            self.keep(name, tensor)
            return name

        passes = []
        for count, (arrived, left) in enumerate(edges.passes.values()):
            passes.append(
                [
                    [keep(each, f"arrived {count} {n}") for n, each in enumerate(arrived)],
                    [keep(each, f"left {count} {n}") for n, each in enumerate(left)],
                ]
            )
        rows = [
            [keep(each.tensor, f"result {n}"), each.needs_grad] for n, each in enumerate(results)
        ]
        self.opaque.append(
            {"name": event.spec.name, "node": edges.node, "results": rows, "passes": passes}
        )
        targets = ", ".join(each.text for each in results)
        operands = ", ".join([str(number), *map(self.text, edges.inputs)])
        return f"{targets} = opaque({operands})"

    def _masked(self, event: Event) -> str:
        """An op that drew masks, with those masks."""
        masks = []
        for _, mask in event.grads:
            name = self._fresh("dropout")
            self.drawn.append(name)
            masks.append(self.keep(name, mask))
        if event.spec.name == ATTENTION:
            return f"attention({masks[0]}, {self._arguments(event, 0)})"
        if event.spec.name in RNNS:
            return f"{self._call(event)[:-1]}, [{', '.join(masks)}])"
        sign = "*=" if event.written else "*"
        return f"{self.text(event.grads[0][0])} {sign} {masks[0]}"

    # --- text -------------------------------------------------------------------------------------

    def _call(self, event: Event) -> str:
        spec, args = event.spec, event.args
        if spec.kind == "op" or spec.kind == "grad":
            name = "torch.autograd.grad" if spec.kind == "grad" else spec.name
            if name in RNNS | CELLS and len(args) != (6 if name in CELLS else 9):
                raise Unwritable(name)
            return f"{RECORDED.get(name, name)}({self._arguments(event, 0)})"
        if spec.kind == "read":
            return self._read_back(event)
        if spec.kind == "attribute":
            return f"{self._operand(args[0])}.{spec.name}"
        if spec.kind == "assign":
            return f"{self._operand(args[0])}.{spec.name} = {self.text(args[1])}"
        return self._method(event)

    def _read_back(self, event: Event) -> str:
        """A tensor that is made of numbers which were read out of others."""

        def text(operand: Any) -> str:
            if isinstance(operand, Value):
                return f"{self._operand(operand)}.{event.spec.name}()"
            return f"[{', '.join(map(text, operand))}]"

        tensor = event.results.tensor
        grad = ".requires_grad_()" if event.results.needs_grad else ""
        return f"torch.tensor({text(event.args[0])}, dtype={tensor.dtype}){grad}"

    def _method(self, event: Event) -> str:
        name, args = event.spec.name, event.args
        plain = len(args) == 2 and not event.kwargs
        if plain and name in INFIX:
            return f"{self._operand(args[0])} {INFIX[name]} {self._operand(args[1])}"
        if plain and name in REVERSED:
            return f"{self._operand(args[1])} {REVERSED[name]} {self._operand(args[0])}"
        if plain and name in INPLACE:
            return f"{self._operand(args[0])} {INPLACE[name]} {self._operand(args[1])}"
        if name in PREFIX and len(args) == 1:
            return f"{PREFIX[name]}{self._operand(args[0])}"
        if name == "__getitem__":
            return f"{self._operand(args[0])}[{self._index(args[1])}]"
        if name == "__setitem__":
            return f"{self._operand(args[0])}[{self._index(args[1])}] = {self.text(args[2])}"
        if name.startswith("__"):
            raise Unwritable(name)
        text = self._operand(args[0])
        if name in CONVERSIONS and event.modes and type(args[0].tensor) is torch.nn.Parameter:
            text += ".detach()"  # in another dtype it may be the parameter itself, and no copy
        return f"{text}.{name}({self._arguments(event, 1)})"

    def _arguments(self, event: Event, first: int) -> str:
        """The operands from the `first` on, without those that are what they are by default."""
        self.is_equation = event.spec.name == "torch.einsum"
        texts = [self.text(each) for each in event.args[first:]]
        defaults = event.spec.defaults
        for key, each in event.kwargs.items():
            is_default = key in defaults and each is defaults[key]
            if not is_default and key not in ELSEWHERE:
                texts.append(f"{key}={self.text(each)}")
        return ", ".join(texts)

    def _operand(self, operand: Any) -> str:
        text = self.text(operand)
        if text.startswith("recorded_number("):
            return text
        return f"({text})" if text.startswith(("-", "math.")) or " " in text else text

    def _index(self, index: Any) -> str:
        if isinstance(index, tuple) and index:
            return ", ".join(map(self._index_part, index)) + ("," if len(index) == 1 else "")
        return self._index_part(index)

    def _index_part(self, part: Any) -> str:
        if isinstance(part, slice):
            parts = ["" if each is None else self.text(each) for each in
                     (part.start, part.stop, part.step)]  # fmt: skip
            return ":".join(parts if part.step is not None else parts[:2])
        return self.text(part)

    def text(self, value: Any) -> str:
        """An operand as text of the language; raises `Unwritable`."""
        if isinstance(value, Value):
            while value.same is not None and self.window.known.get(id(value.tensor)) is not value:
                value = value.same
            if value.origin == "grad" and value.of is not None:
                return f"{self.text(value.of)}.grad"
            if not value.text:
                raise Unwritable("a tensor of an earlier window")
            return value.text
        if isinstance(value, (str, bytes)) and not self._is_setting(value):
            return repr("left out")
        if value is None or value is Ellipsis or isinstance(value, (bool, str, bytes)):
            return "..." if value is Ellipsis else repr(value)
        if isinstance(value, (int, float, complex)):
            return self._number(value)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.text, value))
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return str(value)
        if isinstance(value, torch.device):
            return "'cpu'"
        if isinstance(value, (np.integer, np.floating, np.bool_)):
            return self._number(value.item())
        if isinstance(value, torch.SymInt):
            return str(int(value))
        raise Unwritable(type(value).__name__)

    def _is_setting(self, text: str | bytes) -> bool:
        """Whether a text goes into the program; one that is no setting may be data."""
        return self.settings.data or text in SETTINGS or self.is_equation

    def _number(self, number: Any) -> str:
        if isinstance(number, float) and not math.isfinite(number):
            name = "nan" if math.isnan(number) else "inf"
            return f"-math.{name}" if number < 0 else f"math.{name}"
        number, sources = self.window.computed.get(id(number), (number, []))
        names = [self.number_names.get(id(event), "") for event in sources]
        if not names:
            return repr(number)
        shown = repr(number) if self.settings.data else "left out"
        read = ", ".join(f"{event.args[0].text or 'a tensor'}.item()" for event in sources)
        self.read_numbers.append(f"{shown}, {read}")
        text = shown if self.settings.data else "math.nan"
        return f"recorded_number({', '.join([text, *filter(None, names)])})"

    def _read_number(self, event: Event) -> None:
        """A number that the program read out of a tensor."""
        hint = event.place.names[0] if len(event.place.names) == 1 else "number"
        name = self.number_names[id(event)] = self.names.take(hint, -1, FOREVER)
        self.lines.append(Line(f"{name} = {self._operand(event.args[0])}.item()", event.place))


CONVERSIONS = ("half", "bfloat16", "float", "double", "to")

SETTINGS = frozenset(
    {"mean", "sum", "none", "batchmean", "tanh", "fro", "nuc", "constant", "reflect", "replicate",
     "circular", "zeros", "border", "nearest", "nearest-exact", "linear", "bilinear", "bicubic",
     "trilinear", "area", "floor", "trunc", "ij", "xy", "valid", "same", "prod", "amax", "amin",
     "fan_in", "fan_out", "relu", "leaky_relu", "sigmoid", "selu", "backward", "forward", "ortho",
     "reduced", "complete", "r", "L", "U", "max"}
)  # fmt: skip
"""Texts that PyTorch's functions take as settings: these are no data."""

ELSEWHERE = ("device", "layout", "pin_memory", "non_blocking")
"""Arguments that say where a result lies, which is elsewhere when it is computed again."""


def _is_plain(value: Any) -> bool:
    """Whether an operand has a text in the language."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, slice):
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    return value is None or value is Ellipsis or isinstance(
        value,
        (torch.Tensor, bool, int, float, complex, str, bytes, torch.dtype, torch.memory_format,
         torch.layout, torch.device, np.integer, np.floating, np.bool_, torch.SymInt),
    )  # fmt: skip


def _group(held: str, settings: dict[str, str]) -> str:
    """A group of an optimizer's parameters as text."""
    return (
        "{" + ", ".join([f"'params': {held}", *(f"{k!r}: {v}" for k, v in settings.items())]) + "}"
    )


KERNELS = ("foreach", "fused", "capturable", "differentiable")
"""Settings of an optimizer that say how it computes."""

UNSTEPPED = ("LBFGS", "SparseAdam")
"""Optimizers whose steps are not computed again."""

MAKING = frozenset(
    {"torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.empty", "torch.empty_like",
     "torch.asarray", "torch.frombuffer", "new_empty", "new_tensor", "torch.randperm"}
)  # fmt: skip
"""What brings in data: its results come from outside."""

COPYING = frozenset(
    {"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray", "new_tensor"}
)
"""What makes a tensor of numbers, which may be those of another tensor."""

ARRAYS = frozenset({"numpy", "__array__"})
"""What makes an array of NumPy's of a tensor."""

NUMBER = Spec("number", "item")
ARRAY = Spec("array", "numpy")
NUMBERS_BACK = Spec("read", "item")
ELEMENTS_BACK = Spec("read", "tolist")


def _differentiable(results: list[Any]) -> bool:
    return any(each is not None and each.needs_grad for each in results)


def values_in(operands: Any) -> Iterator[Value]:
    """The values in the operands of an event."""
    if isinstance(operands, Value):
        yield operands
    elif isinstance(operands, (list, tuple)):
        for each in operands:
            yield from values_in(each)
    elif isinstance(operands, dict):
        yield from values_in(list(operands.values()))
    elif isinstance(operands, slice):
        yield from values_in([operands.start, operands.stop, operands.step])


# --- the tables ---------------------------------------------------------------------------------


class Tables:
    """Puts a written program and its tables into the index of a recording."""

    def __init__(self, writer: Writer, settings: Settings) -> None:
        self.writer = writer
        self.settings = settings
        self.files: dict[str, int] = {}
        self.places: dict[tuple[int, int, str], int] = {}
        self.calls: dict[int, int] = {}
        self.call_rows: list[list[Any]] = []

    def index(self) -> dict[str, Any]:
        """The index, all but the rows of the arrays."""
        lines, checks, digests = [], [], []
        offset = 0
        for number, line in enumerate(self.writer.lines, 1):
            lines.append([self._place(line.place), self._call(line.call)])
            for text, kind, tensor in line.checks:
                values = digest(tensor) if self.settings.data else ()
                digests.append(values)
                dtype = str(tensor.dtype).removeprefix("torch.")
                checks.append([number, text, kind, list(tensor.shape), dtype, offset, len(values)])
                offset += len(values)
        if offset:
            self.writer.arrays["#checks"] = np.concatenate(digests)
        versions = {"python": sys.version.split()[0], "torch": str(torch.__version__),
                "numpy": str(np.__version__)}  # fmt: skip
        return {
            "made": versions,
            "argv": self.settings.argv if self.settings.data else [],
            "program": "".join(f"{line.text}\n" for line in self.writer.lines),
            "files": list(self.files),
            "places": [list(each) for each in self.places],
            "lines": lines,
            "calls": self.call_rows,
            "checks": checks,
            "opaque": self.writer.opaque,
            "unwritten": self.writer.unwritten,
            "drawn": self.writer.drawn,
            "numbers": self.writer.read_numbers,
            "output": self.writer.output,
            "rebound": self.writer.rebound(),
            "notes": self.writer.notes,
            "data": self.settings.data,
            "dtypes": self.writer.dtypes,
            "arrays": self.writer.left_out,
        }

    def _place(self, place: Place) -> int:
        """The number of a place, -1 for none."""
        if not place.frames:
            return -1
        code, at = place.frames[0]
        if "site-packages" in code.co_filename:
            code, at = place.frames[-1]
        file = self.files.setdefault(_relative(code.co_filename), len(self.files))
        key = (file, line_of(code, at), code.co_name)
        return self.places.setdefault(key, len(self.places))

    def _call(self, call: int) -> int:
        """The number of a call of a module, -1 for none."""
        if call < 0:
            return -1
        number = self.calls.get(call)
        if number is None:
            module, parent = self.writer.window.calls[call]
            above = self._call(parent)
            path = self.writer.modules.get(id(module), "")
            number = self.calls[call] = len(self.call_rows)
            self.call_rows.append([path, above])
        return number


def _relative(path: str) -> str:
    """A path from the current folder down, or the name alone where it stands elsewhere."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        relative = path
    return os.path.basename(path) if relative.startswith("..") else relative


def save(recorder: Recorder) -> bool:
    """Write the chosen window; False where there is none."""
    window = recorder.chosen()
    if window is None or not window.events:
        return False
    writer = Writer(window, recorder.settings, recorder.creations, recorder.hooks)
    writer.notes += recorder.notes
    writer.write()
    tables = Tables(writer, recorder.settings)
    write_recording(recorder.settings.output, tables.index(), writer.arrays)
    return True


# --- running a script -----------------------------------------------------------------------------


class Watcher(importlib.abc.MetaPathFinder):
    """Waits for the script to import torch, and begins to record behind that import."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self.begin = begin

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The spec of torch, whose loader begins the recording; None for all else."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return spec
        loader, begin = spec.loader, self.begin
        execute = loader.exec_module

        @hidden
        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            begin()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def unbegun() -> str:
    """What is said of a run in which torch was not imported."""
    why = "the script did not import torch"
    if importlib.util.find_spec("torch") is None:
        way = "gradcli record --python .venv/bin/python …"
        why = f"{sys.executable} has no PyTorch; name the Python that has it: {way}"
    return f"nothing was recorded: {why}"


class Session:
    """One run of a script with a recorder, which begins when torch is imported."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.recorder: Recorder | None = None
        self.passed_on = False

    def begin(self) -> None:
        """Record from now on."""
        import numpy
        import torch as imported

        use(imported, numpy)
        self.recorder = Recorder(self.settings)
        try:
            self.recorder.begin()
        except Exception as error:
            self.recorder.end()
            self.recorder._fail(error)

    def end(self) -> str:
        """Write the recording; what is to be said of it."""
        recorder = self.recorder
        if recorder is None:
            return "" if self.passed_on else unbegun()
        if recorder.process != os.getpid():
            return ""
        recorder.end()
        if recorder.failure:
            return f"nothing was recorded: the recorder failed: {recorder.failure}"
        if not save(recorder):
            return "" if self.passed_on else "nothing was recorded: " + self._missing()
        return f"wrote {self.settings.output}"

    def _missing(self) -> str:
        if self.settings.at == "first-nonfinite":
            return "every loss and all gradients were finite"
        if self.settings.at:
            return f"there was no {self.settings.at} {self.settings.number}"
        return "PyTorch ran nothing"


class Itself:
    """This file's functions by name, as a process that is started anew reads them from a pickle:
    this file is no module that it could import.
    """

    def __reduce__(self) -> Any:
        return runpy.run_path, (os.path.abspath(__file__), None, "gradcli_recorder")


class RankedClass:
    """`Ranked`, as a pickle says it."""

    def __reduce__(self) -> Any:
        return operator.getitem, (Itself(), "Ranked")

    def __call__(self, *words: Any) -> Ranked:
        return Ranked(*words)


class Ranked:
    """What a process of the program's runs, recorded from where it joins a group of several.

    Args:
        settings: the recording's settings, as `settings_of` takes them.
        target: what the process was to run.
    """

    def __init__(self, settings: dict[str, Any], target: Callable[..., Any]) -> None:
        self.settings = settings
        self.target = target

    def __reduce__(self) -> Any:
        return RankedClass(), (self.settings, self.target)

    @hidden
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        settings = settings_of(self.settings)
        session = session_of(settings)
        import torch.distributed as group

        former = group.init_process_group

        @hidden
        def init(*words: Any, **named: Any) -> Any:
            group.init_process_group = former
            result = former(*words, **named)
            if group.get_world_size() > 1:
                settings.rank = group.get_rank()
                session.begin()
            return result

        group.init_process_group = init
        try:
            return self.target(*args, **kwargs)
        finally:
            if settings.rank is not None:
                _say(session)


def _is_own(target: Any) -> bool:
    """Whether what a process is to run is the program's own, and no loader of data."""
    module = str(getattr(target, "__module__", ""))
    return not module.startswith(("torch.utils.", "multiprocessing", "concurrent."))


def _pass_on(session: Session) -> None:
    """Let the processes that the program starts record themselves where they form a group."""
    former = multiprocessing.process.BaseProcess.start

    def start(process: Any) -> None:
        target = getattr(process, "_target", None)
        if target is not None and _is_own(target):
            process._target = Ranked(settings_in(session.settings), target)
            session.passed_on = True
        former(process)

    setattr(multiprocessing.process.BaseProcess, "start", start)  # noqa: B010


def _launched(command: list[str], settings: Settings) -> list[str]:
    """`-m torch.distributed.run` with this recorder in each of the processes that it launches."""
    launcher = importlib.import_module("torch.distributed.run")
    parsed = launcher.parse_args(command[2:])
    if parsed.no_python or parsed.run_path:
        return command
    script = [parsed.training_script, *parsed.training_script_args]
    first = [word for word in command[: len(command) - len(script)] if word != "--module"]
    words = ["-m", *script] if parsed.module else script
    own = [sys.executable, "-u", os.path.abspath(__file__), json.dumps(settings_in(settings))]
    return [*first, "--no-python", *own, *words]


LAUNCHERS = (["torch.distributed.run"], ["torch.distributed.launch"])


def run(command: Sequence[str], settings: Settings, session: Any) -> int:
    """Run `SCRIPT ARGS…` or `-m MODULE ARGS…` as `python` does; its exit code.

    Args:
        session: what begins when torch is imported, and says at the end what became of it.
    """
    command = list(command)
    if command[:1] == ["-m"] and command[1:2] in LAUNCHERS:
        command = _launched(command, settings)
        session.passed_on = True
    else:
        sys.meta_path.insert(0, Watcher(session.begin))
        _pass_on(session)
    code, interrupted = 0, False
    failure: BaseException | None = None  # its frames hold what the script computed last
    try:
        _execute(command)
    except SystemExit as ending:
        code = _exit_code(ending.code)
        failure = ending
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        code = 1
        failure = error
        leave_all_own_frames(error, set())
        sys.excepthook(type(error), error, error.__traceback__)
    _say(session)
    del failure
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _say(session: Any) -> None:
    try:
        said = session.end()
    except Exception as error:
        if os.environ.get("GRADCLI_DEBUG"):
            traceback.print_exc()
        said = f"nothing was recorded: {type(error).__name__}: {error}"
    if said:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        print(f"gradcli record: {said}", file=sys.stderr)


def _exit_code(code: Any) -> int:
    """The exit code that `sys.exit(code)` ends a process with."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _execute(command: list[str]) -> None:
    """Run a script as the main module."""
    main = types.ModuleType("__main__")
    if command[0] == "-m":
        sys.path[0] = os.getcwd()
        name = command[1]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        if spec is None or spec.loader is None:
            print(f"{sys.executable}: No module named {name}", file=sys.stderr)
            raise SystemExit(1)
        code = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
        path = spec.origin or name
        main.__spec__ = spec
        main.__package__ = spec.parent
        main.__loader__ = spec.loader
        sys.argv = [path, *command[2:]]
    else:
        path = os.path.abspath(command[0])
        sys.path[0] = os.path.dirname(path)
        sys.argv = list(command)
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            print(f"{sys.executable}: can't open file {path!r}: [Errno"
                  f" {error.errno}] {error.strerror}", file=sys.stderr)  # fmt: skip
            raise SystemExit(2) from None
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
        code = compile(text, path, "exec")
    main.__file__ = path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    main.__annotations__ = {}
    main.__cached__ = None  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def settings_in(settings: Settings) -> dict[str, Any]:
    """Settings as data that another process reads."""
    known = settings.catalogue
    return {
        "path": settings.path,
        "at": settings.at,
        "number": settings.number,
        "data": settings.data,
        "watch": settings.watch,
        "argv": settings.argv,
        "known": None if known is None else sorted(known),
        "catalogue": None,
    }


def settings_of(values: dict[str, Any]) -> Settings:
    """The settings that data says."""
    settings = Settings(values["path"], values["at"], values["number"], values["data"])
    settings.argv = values.get("argv", [])
    settings.watch = values.get("watch", False)
    if values.get("known") is not None:
        settings.catalogue = frozenset(values["known"])
    if values["catalogue"] is not None:
        with open(values["catalogue"], encoding="utf-8") as file:  # a descriptor or a path
            settings.catalogue = frozenset(file.read().split())
    return settings


def main(words: list[str]) -> int:
    """Run what the words of a command line say: settings as JSON, and the script's words."""
    settings = settings_of(json.loads(words[0]))
    settings.argv = words[1:]
    return run(words[1:], settings, session_of(settings))


def session_of(settings: Settings) -> Any:
    """A session that records, or one that watches each step, as the files beside this one do it."""
    if not settings.watch:
        return Session(settings)
    itself = types.ModuleType("gradcli_recorder")  # by its name another may be found: the script
    itself.__dict__.update(globals())
    files = []
    for name in ("watcher", "step_rerun"):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
        spec = importlib.util.spec_from_file_location(f"gradcli_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        files.append(importlib.util.module_from_spec(spec))
        sys.modules[f"gradcli_{name}"] = files[-1]
        spec.loader.exec_module(files[-1])
    watcher, rerun = files
    return watcher.Session(settings, itself, rerun)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
