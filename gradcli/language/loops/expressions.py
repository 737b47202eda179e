"""Expressions that do nothing but compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradcli.language import tree
from gradcli.language.tree.base import Expression, Statement

# fmt: off
PURE = frozenset(
    {
        "abs", "absolute", "acos", "acosh", "adaptive_avg_pool2d", "add", "addcdiv", "addcmul",
        "addmm", "addmv", "amax", "amin", "asin", "asinh", "atan", "atan2", "atanh", "avg_pool2d",
        "baddbmm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bmm", "cat", "celu",
        "clamp", "clip", "clone", "conv1d", "conv2d", "conv_transpose2d", "cos", "cosh",
        "cosine_similarity", "cross_entropy", "cumsum", "detach", "diagonal", "dim", "div",
        "divide", "dot", "double", "einsum", "elu", "erf", "erfc", "exp", "exp2", "expand",
        "expand_as", "expm1", "flatten", "flip", "float", "gather", "gelu", "group_norm",
        "hardsigmoid", "hardswish", "hardtanh", "huber_loss", "hypot", "index_select", "isfinite",
        "isinf", "isnan", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "lerp", "linear", "log",
        "log10", "log1p", "log2", "log_sigmoid", "log_softmax", "logaddexp", "logit", "logsigmoid",
        "logsumexp", "matmul", "max", "max_pool2d", "maximum", "mean", "min", "minimum", "mish",
        "mm", "movedim", "mse_loss", "mul", "multiply", "mv", "narrow", "neg", "negative",
        "nll_loss", "norm", "numel", "outer", "permute", "poisson_nll_loss", "pow", "prelu", "prod",
        "reciprocal", "relu", "relu6", "repeat", "reshape", "roll", "rsqrt", "select", "selu",
        "sigmoid", "sign", "silu", "sin", "sinc", "sinh", "size", "smooth_l1_loss", "softmax",
        "softmin", "softplus", "softshrink", "softsign", "sqrt", "square", "squeeze", "stack",
        "std", "sub", "subtract", "sum", "swapaxes", "t", "tan", "tanh", "tanhshrink", "trace",
        "transpose", "tril", "triu", "true_divide", "unsqueeze", "var", "vdot", "view", "where",
        "xlogy",
    }
)
# fmt: on
"""Functions and methods that do nothing but compute a tensor, in a way that depends on shapes,
dtypes and settings alone.
"""

ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**", "@"})
COMPARISONS = frozenset({"<", "<=", "==", "!=", ">", ">="})
CREATING = frozenset(
    """
    arange empty_like eye full linspace multinomial normal ones ones_like rand rand_like randint
    randn randn_like randperm tensor zeros zeros_like
    """.split()  # noqa: SIM905
)
"""Functions that make the data of a round, perhaps at random."""

_ATTRIBUTES = frozenset({"T", "data", "grad", "mT", "ndim", "shape"})
_MODULES = frozenset({"nn", "functional", "special", "linalg"})


class Allowed(NamedTuple):
    """What an expression may use.

    Attributes:
        knows: whether a name may be read.
        functions: the functions and methods of PyTorch that may be called.
        receiver: the name of what all attributes may be read of, and all methods called: `self`.
    """

    knows: Callable[[str], bool]
    functions: frozenset[str] = PURE
    receiver: str = ""


def is_pure(node: Expression, allowed: Allowed) -> bool:
    """Whether an expression only computes, with some functions of PyTorch and methods, and with
    functions of the program that are called by a name.
    """
    if isinstance(node, tree.Name):
        return allowed.knows(node.name)
    if isinstance(node, tree.Constant):
        return True
    if isinstance(node, tree.Attribute):
        if is_of(node, allowed.receiver):
            return True
        return node.name in _ATTRIBUTES and is_pure(node.value, allowed)
    if isinstance(node, tree.Binary):
        if any(symbol not in ARITHMETIC for symbol, _ in node.rest):
            return False
    elif isinstance(node, tree.Comparison):
        if len(node.rest) > 1 or node.rest[0][0] not in COMPARISONS:
            return False
    elif isinstance(node, tree.Unary):
        if node.operator == "not":
            return False
    elif isinstance(node, tree.Call):
        return _is_pure_call(node, allowed)
    elif not isinstance(node, (tree.List, tree.Slice, tree.Subscript, tree.Tuple)):
        return False
    return all(is_pure(part, allowed) for part in parts(node))


def _is_pure_call(node: tree.Call, allowed: Allowed) -> bool:
    """`torch.tanh(x)`, `F.relu(x)`, `x.sum()`, or that of a function by its name."""
    for argument in node.arguments:
        if argument.kind or not is_pure(argument.value, allowed):
            return False
    function = node.function
    if isinstance(function, tree.Name):
        return allowed.knows(function.name)
    if is_of(function, allowed.receiver):
        return True
    if not isinstance(function, tree.Attribute) or function.name not in allowed.functions:
        return False
    return is_pure(owner_of(function), allowed)


def is_of(node: Expression, receiver: str) -> bool:
    """Whether an expression is an attribute of the receiver, or one of that: `self.net.scale`."""
    if not receiver or not isinstance(node, tree.Attribute):
        return False
    if isinstance(node.value, tree.Name):
        return node.value.name == receiver
    return is_of(node.value, receiver)


def owner_of(function: tree.Attribute) -> Expression:
    """What the function is a method of, or the name of the module that it is found in."""
    owner = function.value
    while isinstance(owner, tree.Attribute) and owner.name in _MODULES:
        owner = owner.value
    return owner


def is_pure_body(body: Sequence[Statement], receiver: str = "") -> bool:
    """Whether a function's body names what it computes, and returns some of that."""
    allowed = Allowed(lambda name: name != receiver, receiver=receiver)
    return all(_is_pure_statement(node, allowed) for node in body)


def _is_pure_statement(node: Statement, allowed: Allowed) -> bool:
    if isinstance(node, tree.ExpressionStatement):
        return isinstance(node.value, tree.Constant)  # what the function is for
    if isinstance(node, tree.Assign):
        if len(node.targets) != 1 or not isinstance(node.targets[0], tree.Name):
            return False
        if node.targets[0].name == allowed.receiver:
            return False
    elif not isinstance(node, tree.Return):
        return False
    return node.value is None or is_pure(node.value, allowed)


def reads_gradient(node: Expression) -> bool:
    """Whether an expression reads the `.grad` of something."""
    return any(type(n) is tree.Attribute and n.name == "grad" for n in tree.nodes_of(node))


def names_in(node: Expression) -> set[str]:
    """The names that an expression reads."""
    return {n.name for n in tree.nodes_of(node) if type(n) is tree.Name}


def parts(node: Expression) -> list[Expression]:
    """The expressions directly inside one."""
    if isinstance(node, (tree.Binary, tree.Comparison)):
        return [node.first, *[operand for _, operand in node.rest]]
    if isinstance(node, tree.Unary):
        return [node.operand]
    if isinstance(node, tree.Logical):
        return list(node.operands)
    if isinstance(node, (tree.Tuple, tree.List)):
        return list(node.elements)
    if isinstance(node, tree.Call):
        function = node.function
        owner = owner_of(function) if isinstance(function, tree.Attribute) else function
        return [owner, *[argument.value for argument in node.arguments]]
    if isinstance(node, tree.Attribute):
        return [node.value]
    if isinstance(node, tree.Subscript):
        return [node.value, node.index]
    if isinstance(node, tree.Slice):
        return [each for each in (node.lower, node.upper, node.step) if each is not None]
    return []
