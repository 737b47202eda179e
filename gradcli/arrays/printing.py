"""The text of a tensor, character for character as PyTorch prints it.

All elements have one width and one notation, chosen from the elements that are shown; a tensor
above the threshold is reduced to its corners first, so the text of a large one costs no more than
that of a small one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays.backend import device_of, module_of, to_host
from gradcli.arrays.dtypes import DType, boolean, default_dtype, int64, of_array
from gradcli.arrays.layout.meta import META
from gradcli.arrays.layout.sizes import Device
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.state import PrintOptions, active

_PREFIX = "tensor("

_MOST_DIGITS = 1074
"""The largest precision: no float64 has more digits behind its point."""


def format_tensor(array: Any, suffixes: Sequence[str] = ()) -> str:
    """The text of an array as a tensor: `tensor([1., 2.], requires_grad=True)`.

    Args:
        array: an array or NumPy scalar of any shape, on any device.
        suffixes: what follows the elements, such as `requires_grad=True`; device, size and dtype
            are put before them where PyTorch does.
    """
    options = active.state.print_options
    device = device_of(array)
    if device is META:
        text = _PREFIX + "..."
    else:
        text = _PREFIX + (_body(array, options) if array.size else "[]")
    # PyTorch counts the first separator twice, so a suffix takes a new line two characters early.
    line = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in (*_own_suffixes(array, device, options), *suffixes):
        if line + len(suffix) + 2 > options.linewidth:
            parts.append(",\n" + " " * len(_PREFIX) + suffix)
            line = len(_PREFIX) + len(suffix)
        else:
            parts.append(", " + suffix)
            line += len(suffix) + 2
    return "".join(parts) + ")"


def format_elements(array: Any) -> str:
    """The elements of an array in their brackets, without `tensor(` and dtype, each further line
    aligned below the first.
    """
    text = _body(array, active.state.print_options) if array.size else "[]"
    return text.replace("\n" + " " * len(_PREFIX), "\n")


def _own_suffixes(array: Any, device: Device, options: PrintOptions) -> list[str]:
    """The suffixes that follow from an array itself: device, size and dtype."""
    suffixes = []
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    empty = array.size == 0
    if device is META or (empty and array.ndim != 1) or (not empty and not options.edgeitems):
        suffixes.append(f"size={tuple(array.shape)}")
    dtype = of_array(array)
    default = default_dtype()
    # No element tells an empty tensor's dtype, so even int64 is written then.
    if dtype is not default and (
        empty or device is META or not _goes_without_saying(dtype, default)
    ):
        suffixes.append(f"dtype={dtype}")
    return suffixes


def _goes_without_saying(dtype: DType, default: DType) -> bool:
    if dtype.is_complex:
        return (dtype.itemsize == 16) == (default.itemsize == 8)
    return dtype is int64 or dtype is boolean


# --- layout -------------------------------------------------------------------------------------


def _body(array: Any, options: PrintOptions) -> str:
    """The elements in their brackets, of an array that has some."""
    edge = options.edgeitems
    shape = array.shape
    summarised = array.size > options.threshold
    cut = [summarised and size > 2 * edge for size in shape]
    if True in cut:
        if not edge:
            return "[...]"
        array = _corners(array, edge, cut)
        shape = array.shape
    texts, width = _element_texts(to_host(array), options)
    # From the innermost dimension outwards, each iteration joins the texts of one dimension.
    for depth in reversed(range(len(shape))):
        margin = " " * (len(_PREFIX) + depth + 1)
        dots = "..."
        if depth == len(shape) - 1:
            dots = " ..."
            per_line = max(1, (options.linewidth - len(margin) + 1) // (width + 2))
        else:
            per_line = 1
            margin = "\n" * (len(shape) - depth - 2) + margin
        joined = []
        for start in range(0, len(texts), shape[depth]):
            items = texts[start : start + shape[depth]]
            if cut[depth]:
                items.insert(edge, dots)
            lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
            joined.append("[" + (",\n" + margin).join(lines) + "]")
        texts = joined
    return texts[0]


def _corners(array: Any, edge: int, cut: list[bool]) -> Any:
    """The elements at both ends of every dimension that is cut; nothing else is copied."""
    xp = module_of(array)
    kept = []
    for size, shortened in zip(array.shape, cut, strict=True):
        ends = [*range(edge), *range(size - edge, size)] if shortened else [*range(size)]
        kept.append(xp.asarray(ends))
    return array[xp.ix_(*kept)]


# --- elements -----------------------------------------------------------------------------------


def _element_texts(array: Any, options: PrintOptions) -> tuple[list[str], int]:
    """The text of each element, in row order, and the width that they are padded to."""
    values = array.ravel().tolist()
    category = of_array(array).category
    if category == "float":
        return _padded(*_float_texts(values, options))
    if category == "complex":
        return _complex_texts(values, options)
    texts = list(map(str, values))
    return _padded(texts, max(map(len, texts)))


def _padded(texts: list[str], width: int) -> tuple[list[str], int]:
    return [text.rjust(width) for text in texts], width


def _complex_texts(values: list[complex], options: PrintOptions) -> tuple[list[str], int]:
    """Real and imaginary parts each have a notation of their own; only real parts are padded."""
    real, real_width = _padded(*_float_texts([value.real for value in values], options))
    imaginary, imaginary_width = _float_texts([value.imag for value in values], options)
    texts = [
        f"{re}{im}j" if im[0] == "-" else f"{re}+{im}j"
        for re, im in zip(real, imaginary, strict=True)
    ]
    return texts, real_width + imaginary_width + 1


def _float_texts(values: list[float], options: PrintOptions) -> tuple[list[str], int]:
    """The texts of floats in their common notation, and the width of the widest.

    Zeros, infinities and NaN take no part in choosing either.
    """
    telling = [value for value in values if value and math.isfinite(value)]
    if not telling:
        return [_whole(value) for value in values], 1
    write: Callable[[float], str]
    if _is_scientific(telling, options):
        write = f"{{:.{options.precision}e}}".format
    elif all(map(float.is_integer, telling)):
        write = _whole
    else:
        write = f"{{:.{options.precision}f}}".format
    texts = list(map(write, values))
    measured = texts if len(telling) == len(values) else map(write, telling)
    return texts, max(map(len, measured))


def _is_scientific(values: list[float], options: PrintOptions) -> bool:
    """Whether nonzero finite values are written with exponents."""
    if options.sci_mode is not None:
        return options.sci_mode
    magnitudes = list(map(abs, values))
    smallest, largest = min(magnitudes), max(magnitudes)
    return largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4


def _whole(value: float) -> str:
    """`2.`, `-0.`, `nan`: an integer that shows that it is a float."""
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


# --- options ------------------------------------------------------------------------------------

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are written from now on; what is not given stays as it is.

    Args:
        precision: digits behind the point.
        threshold: the number of elements above which only the corners are shown.
        edgeitems: how many elements are shown at each end of a dimension that is cut.
        linewidth: characters in a line.
        profile: `"default"`, `"short"` or `"full"`, applied before the other arguments.
        sci_mode: write exponents always or never; None, also when not given, leaves it to the
            elements.

    Raises:
        GradcliError: E202 for an argument that is no number, E204 for a negative precision or
            edgeitems, and E602 for a precision beyond all digits that a float has.

    Example: torch.set_printoptions(precision=2)
    """
    options = active.state.print_options
    options_of_call = {
        name: value
        for name, value in (
            ("precision", precision),
            ("threshold", threshold),
            ("edgeitems", edgeitems),
            ("linewidth", linewidth),
        )
        if value is not None
    }
    for name, value in options_of_call.items():
        _check_option(name, value)
    # PyTorch ignores a profile that it does not know.
    for name, value in {**_PROFILES.get(profile or "", {}), **options_of_call}.items():
        setattr(options, name, value)
    options.sci_mode = None if sci_mode is None else bool(sci_mode)


def _check_option(name: str, value: Any) -> None:
    if type(value) is not int and not (name == "threshold" and type(value) is float):
        raise type_error(f"set_printoptions(): {name} must be a number, not {value!r}")
    if name in ("precision", "edgeitems") and value < 0:
        raise value_error(f"set_printoptions(): {name} must not be negative")
    if name == "precision" and value > _MOST_DIGITS:
        raise GradcliError("E602", f"set_printoptions(): {name} is at most {_MOST_DIGITS}")
