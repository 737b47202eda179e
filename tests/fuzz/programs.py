"""Programs: made from the language's own forms, calls of all that the catalogue holds, and the
repository's programs with pieces cut, doubled and exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from gradcli.language.objects.attributes import attribute_names
from gradcli.language.objects.classes.definition import OF_COLLECTIONS
from gradcli.language.objects.counters import Counter
from gradcli.library.files import StringIO
from gradcli.library.namespace import LIBRARY, MODULES, PREDEFINED
from gradcli.library.numpy.load import NUMPY
from gradcli.library.python.collections import DefaultDict, Deque
from gradcli.library.python.documents import JSONEncoder
from gradcli.library.python.numbers.random import Random as Random_
from gradcli.library.python.reports import Logger, WarningMessage
from gradcli.library.python.system.argparse import ArgumentParser
from gradcli.library.python.system.pathlib import Path as Path_
from gradcli.library.python.text import Match, Pattern
from gradcli.library.torch.amp import GradScaler
from gradcli.ops.binding import catalogue
from gradcli.ops.creation.storages import UntypedStorage
from tests.conformance import records

SETTING = (
    "a = 2\nb = [1, 2]\nd = {'a': 1}\nx = tensor([1., 2., 3.], requires_grad=True)\n"
    "m = arange(6.).reshape(2, 3)\nk = tensor([0, 2, 1])\ny = x * 2\n"
    "import numpy\np = np.array([1., 2., 3.])\nq = np.arange(6).reshape(2, 3)\nr = np.float64(2)\n"
)

LIBRARY_SETTING = (
    f"import {', '.join(sorted(name for name in LIBRARY if '.' not in name and name[0] != '_'))}\n"
    "import collections.abc, os.path\n"
    "def gen(n=3):\n    got = yield n\n    yield from range(3)\n    return got\n"
    "@dataclasses.dataclass(order=True)\nclass D:\n    a: int = 1\n    b: list = "
    "dataclasses.field(default_factory=list)\n"
    "class Colour(enum.Enum):\n    RED = 1\n    BLUE = enum.auto()\n"
    "class L(list):\n    pass\nclass M(dict):\n    def __missing__(self, k): return k\n"
    "P = collections.namedtuple('P', 'x y', defaults=[2])\n"
    "g = gen()\nq = collections.deque([1, 2], 3)\nc = collections.Counter('abca')\n"
    "class Meta(type):\n    def __new__(m, n, b, d, **k): return super().__new__(m, n, b, d)\n"
    "    def __call__(c, *a): return super().__call__()\n    def __iter__(c): return iter([1])\n"
    "class K(metaclass=Meta):\n    x = 1\n    def __init_subclass__(c, **k): pass\n"
    "class S(str): pass\nclass I(int): pass\nclass T(tuple): pass\n"
    "class V:\n    def __get__(s, i, o): return s\n    def __set__(s, i, v): pass\n"
    "    def __set_name__(s, o, n): s.n = n\n"
    "with warnings.catch_warnings(record=True) as caught: warnings.warn('a')\n"
    "class Enc(json.JSONEncoder):\n    def default(s, o): return [o]\n"
    "class Deco(contextlib.ContextDecorator):\n    def __enter__(s): return s\n"
    "    def __exit__(s, *e): return False\n"
    "def noted(n: int, m: 'K' = 2, *r: D) -> list[int]: return n\n"
    "eg = ExceptionGroup('m', [ValueError(1), ExceptionGroup('n', [OSError(2)])])\n"
    "scaler = torch.amp.GradScaler('cpu')\n"
    "w = collections.defaultdict(list)\ns = io.StringIO('ab')\nt = datetime.date(2024, 1, 31)\n"
)
"""What programs with the standard library begin with."""

LIBRARY_NAMES = ["gen()", "D()", "Colour", "Colour.RED", "L([1])", "M(a=1)", "P(1)", "g", "q", "c"]
LIBRARY_NAMES += ["w", "s", "t", "gen", "D", "sys.stdout", "re.compile('a+')", "b'ab'", "globals()"]
LIBRARY_NAMES += ["frozenset([1])", "iter(gen())", "random.Random(1)", "logging.getLogger('a')"]
LIBRARY_NAMES += [
    "pathlib.Path('a/b.c')",
    "pathlib.PurePath()",
    "Meta",
    "K",
    "K()",
    "S('ab')",
    "I(3)",
]
LIBRARY_NAMES += ["T((1, 2))", "V()", "V", "type", "object", "np.loadtxt(['1 2', '3 4'])", "caught"]
LIBRARY_NAMES += ["Enc", "Enc()", "Deco()", "noted", "noted.__annotations__", "eg", "scaler"]
LIBRARY_NAMES += ["D.__mro__", "K.__bases__", "torch.autocast('cpu')", "x.untyped_storage()"]
LIBRARY_NAMES += ["argparse.ArgumentParser()", "contextlib.nullcontext(1)", "Ellipsis", "vars(D())"]

_NAMES = [
    "a",
    "b",
    "d",
    "x",
    "m",
    "k",
    "y",
    "y",
    "p",
    "q",
    "r",
    "i",
    "f",
    "T",
    "torch",
    "F",
    "nn",
    "math",
    "np",
    "zz",
    "_",
]
_NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "2.",
    "0.5",
    "-0.0",
    "1e30",
    "1e-3",
    "1e308",
    "10**20",
    "2**63",
    "-2**63",
    "True",
    "None",
    "1j",
    "0x1f",
    "007",
    "1_0",
    "float('inf')",
    "float('nan')",
]
_TEXTS = [
    "''",
    "'a'",
    "'mean'",
    "'sum'",
    "'none'",
    '"{}"',
    "f'{a}'",
    "f'{x:>9.2f}'",
    "f'{a!r:{b}}'",
    "'%s'",
    "b'x'",
    "'ij,jk->ik'",
    "'...'",
    "'cpu'",
    "'cuda'",
    "'nearest'",
    "'constant'",
    "'ffn'",
    "'\\ud800'",
    "'\\0'",
]
_INFIX = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "in",
    "is",
    "and",
    "or",
    "&&",
    "||",
    "<>",
    ":=",
    ",",
    "if:else",
]
_SHAPES = [
    "()",
    "(0,)",
    "(1,)",
    "(3,)",
    "(2,3)",
    "(1,3,1)",
    "(0,4)",
    "(-1,)",
    "(2,-1)",
    "(10**6,10**6)",
    "(1,)*70",
]
_DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "bool",
    "complex64",
    "complex128",
]


def _names_by_module() -> list[str]:
    found = list(PREDEFINED)
    for path, module in MODULES.items():
        found += [f"{path}.{name}" for name in module.names]
    return sorted(found)


@cache
def functions() -> list[str]:
    """Everything that can be called by name."""
    builtins = "print len zip map filter sorted range str int float list dict set tuple max min sum"
    more = "abs round any all enumerate isinstance type repr iter next trace slice getattr format"
    return _names_by_module() + builtins.split() + more.split()


@cache
def methods() -> list[str]:
    """Everything that can be written behind a value and a point."""
    array = NUMPY["array"]([1.0])
    receivers: tuple[Any, ...] = ("", [], {}, set(), 1.5, 1j, (), array, array[0], array.data.dtype)
    texts = {name for receiver in receivers for name in attribute_names(receiver)}
    return sorted({*catalogue.methods, *catalogue.properties, *texts, "__class__", "retain_grad"})


@cache
def library_functions() -> list[str]:
    """Everything that the standard library has to be called, by name."""
    return sorted(
        f"{path}.{name}"
        for path in LIBRARY
        if path[0] != "_" and path != "numpy"
        for name in MODULES[path].names
        if name != "sleep"
    )


@cache
def library_attributes() -> list[str]:
    """The attributes and methods of its values."""
    kinds: tuple[Any, ...] = (
        Counter,
        DefaultDict,
        Deque,
        Random_,
        Pattern,
        Match,
        StringIO,
        Logger,
        GradScaler,
        JSONEncoder,
        UntypedStorage,
    )
    kinds += (ArgumentParser, Path_, WarningMessage)
    found = {name for kind in kinds for name in kind.language_attributes}
    names = "split subgroup derive exceptions message __mro__ __annotations__ add_note __notes__"
    names += " send throw close __next__ __dict__ __class__ __doc__ name value x y _replace _asdict"
    return sorted(
        {
            *found,
            *names.split(),
            *_HOOKS,
            *OF_COLLECTIONS,
            "strftime",
            "year",
            "most_common",
            "a",
            "b",
        }
    )


def library(random: Random) -> str:
    """A few uses of the standard library and of generators, with values that may fit."""

    def given() -> str:
        if random.random() < 0.5:
            return random.choice(LIBRARY_NAMES)
        return value(random) if random.random() < 0.7 else random.choice(_NAMES)

    def use() -> str:
        arguments = ", ".join(given() for _ in range(random.randrange(4)))
        pick = random.randrange(4)
        if pick == 0:
            return f"{random.choice(library_functions())}({arguments})"
        if pick == 1:
            return f"{given()}.{random.choice(library_attributes())}"
        if pick == 2:
            return f"{given()}.{random.choice(library_attributes())}({arguments})"
        return f"next(itertools.islice({given()}, {random.choice(_NUMBERS)}, None), {given()})"

    forms = [
        lambda: f"r = {use()}\nprint(r)\n",
        lambda: f"print({use()}, file={random.choice(['sys.stderr', 's', given()])})\n",
        lambda: f"for r in {use()}:\n    print(r, {given()})\n    break\n",
        lambda: f"r = [each for each, i in zip({use()}, range(4))]\n",
        lambda: f"with {use()} as r:\n    print(r)\n    raise ValueError({given()})\n",
        lambda: (
            f"def f(n):\n    r = yield {given()}\n    yield from {use()}\nprint(*f({given()}))\n"
        ),
        lambda: (
            f"def f():\n    try:\n        yield {use()}\n    finally:\n        print({use()})\n"
            "next(f())\n"
        ),
        lambda: f"@{random.choice(library_functions())}\ndef f(n=1): return {use()}\nprint(f())\n",
        lambda: f"@{use()}\nclass A({given()}):\n    a: int = {given()}\nprint(A(), A.a)\n",
        lambda: f"class A({random.choice(library_functions())}):\n    RED = {given()}\nprint(A)\n",
        lambda: (
            f"match {use()}:\n    case [a, *b]: print(a, b)\n    case D(a=1) | Colour.RED: print(1)"
            "\n"
            f"    case {{'a': a, **b}}: print(b)\n    case str() as n if {given()}: print(n)\n"
        ),
        lambda: (
            f"import {random.choice(['torchvision', 'model', 'os.x', 'a.b'])} as n\n"
            f"print(n.{given()})\n"
        ),
        lambda: (
            f"r = re.{random.choice(['sub', 'split', 'match'])}"
            f"(r'{_pattern(random)}', 'ab', 'aab')\n"
        ),
        lambda: f"setattr({given()}, 'a', {use()})\n",
        lambda: (
            f"try:\n    raise ExceptionGroup({given()}, [{given()}, eg, ValueError({given()})])\n"
            f"except* (ValueError, {given()}) as r:\n    print(r, r.split({given()}))\n"
            f"    raise {given()}\nexcept* OSError: print({use()})\n"
        ),
        lambda: (
            "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
            f"    r = x @ {given()}\n    print(r, {use()}, F.mse_loss(r, {given()}))\n"
        ),
        lambda: (
            f"def f(a: {given()}, *b: {use()}) -> {given()}: return a\n"
            "print(f.__annotations__, typing.get_type_hints(f))\n"
            f"functools.singledispatch(f).register(f)({given()})\n"
        ),
        lambda: _class(random, given, use),
        lambda: _class(random, given, use),
        lambda: (
            f"r = type({random.choice(['n', given(), repr('A')])}, ({given()},), {given()})\n"
            f"print(r, r({given()}))\n"
        ),
        lambda: (
            f"def f():\n    return {_yielding(random, given)}\ng = f()\nprint(next(g))\n"
            f"print(g.send({given()}), g.send({given()}), list(g))\n"
        ),
        lambda: (
            f"with warnings.catch_warnings(record={given()}) as r:\n"
            f"    warnings.simplefilter({random.choice(['error', 'always', 'ignore', 'once'])!r})\n"
            f"    {use()}\n    F.mse_loss(x, m[0, :1])\n    print(r and r[-1].message)\n"
        ),
    ]
    written = ""
    for _ in range(random.randrange(1, 6)):
        body = "".join(f"    {line}\n" for line in random.choice(forms)().splitlines())
        written += f"try:\n{body}except Exception as e:\n    print(type(e), e)\n"
    return written


_HOOKS = (
    *("__new__", "__init__", "__setattr__", "__delattr__", "__getattr__", "__init_subclass__"),
    *("__set_name__", "__get__", "__set__", "__delete__", "__call__", "__iter__", "__len__"),
    *("__class_getitem__", "__getitem__", "__eq__", "__hash__", "__repr__", "__bool__", "__next__"),
    *("__getattribute__", "__del__", "__slots__", "__dict__", "__class__", "__prepare__"),
)
"""What a class may, or may not, say of how it works."""


def _class(random: Random, given: Callable[[], str], use: Callable[[], str]) -> str:
    """A class with bases, keywords and hooks that may go together, and uses of it."""
    bases = [random.choice(["Meta", "K", "S", "I", "T", "V", "L", "M", "type", given()])]
    words = random.choice(["", ", metaclass=Meta", ", metaclass=abc.ABCMeta", f", a={given()}"])
    lines = [f"class A({', '.join(bases) if random.random() < 0.8 else ''}{words}):", "    v = V()"]
    lines[0] = lines[0].replace("(, ", "(")
    for hook in random.sample(_HOOKS, random.randrange(4)):
        body = random.choice(
            [use(), f"super().{hook}(*a, **k)", f"object.{hook}(*a, **k)", f"a[0].{hook}", given()]
        )
        lines.append(f"    def {hook}(*a, **k): return {body}")
    lines.append(random.choice([f"r = A({given()})", f"r = A('B', ({given()},), {given()})"]))
    uses = (f"r.a = {given()}", "del r.a", "print(r, r.v)", "r.__dict__ = {'a': 1}", "print(r.a)")
    lines += random.sample([*uses, f"A.v = {given()}", f"r.v = {given()}", "print(vars(r))"], 3)
    return "\n".join(lines) + "\n"


def _yielding(random: Random, given: Callable[[], str], depth: int = 0) -> str:
    """An expression with a `yield` somewhere in it."""
    if depth == 3 or random.random() < 0.2:
        return f"(yield {given()})"
    inner = _yielding(random, given, depth + 1)
    other = random.choice([given(), given(), _yielding(random, given, depth + 1)])
    forms = [
        f"({inner} + {other})", f"[{other}, {inner}]", f"print({other}, {inner})",
        f"({other} if {inner} else {given()})", f"({other} and {inner})", f"{{{other}: {inner}}}",
        f"[n for n in {inner}]", f"(n := {inner})", f"{given()}[{inner}:{other}]",
        f"f'{{{inner}}}'",
        f"({other} < {inner} < {given()})", f"{inner}.a({other})", f"(lambda n={inner}: n)",
    ]  # fmt: skip
    return random.choice(forms)


def _pattern(random: Random) -> str:
    pieces = ["a", "b", ".", "(", ")", "*", "+", "?", "|", "[ab]", "{3}", "{2,}", "(?:", "^", "$"]
    pieces += [r"\d", r"\w", r"\s", r"\1", "(?P<n>a)", "(?=", "[^a]", r"\b"]
    return "".join(random.choice(pieces) for _ in range(random.randrange(1, 9)))


def value(random: Random) -> str:
    """A value without names."""
    pick = random.randrange(11)
    if pick > 8:
        return _array(random)
    if pick < 2:
        return random.choice(_NUMBERS)
    if pick == 2:
        return random.choice(_TEXTS)
    if pick == 3:
        return random.choice(_SHAPES)
    if pick == 4:
        return f"torch.{random.choice(_DTYPES)}"
    if pick == 5:
        numbers = ", ".join(random.choice(_NUMBERS) for _ in range(random.randrange(4)))
        return f"[{numbers}]"
    shape = random.choice(_SHAPES[:6])
    if pick == 6:
        return f"torch.randn({shape}, requires_grad=True)"
    if pick == 7:
        return f"torch.ones({shape}, dtype=torch.{random.choice(_DTYPES)})"
    return f"torch.randint(0, 3, {shape})"


def _array(random: Random) -> str:
    """An array, or a number of NumPy's."""
    shape = random.choice(_SHAPES)
    dtype = random.choice([*_DTYPES, "object", "str_", "uint32", "float", "U3", "i4,f4", "M8[s]"])
    return random.choice(
        [
            f"np.ones({shape}, {dtype!r})",
            f"np.random.rand{shape}",
            f"np.random.RandomState(0).randint(-3, 9, {random.choice(_SHAPES[:6])})",
            f"np.array({[random.choice(['1', '2.5', 'a', 'True'])]})",
            f"np.{random.choice(['float64', 'int32', 'bool_', 'complex64', 'str_'])}(1)",
            f"np.array([{random.choice(_NUMBERS)}, {random.choice(_NUMBERS)}])",
            f"np.random.default_rng({random.choice(_NUMBERS)})",
        ]
    )


def _arguments(random: Random, depth: int) -> str:
    found = [expression(random, depth) for _ in range(random.choice([0, 1, 1, 1, 2, 2, 3]))]
    if random.random() < 0.3:
        names = "dim=0 dim=-1 dim=9 dim=(0,1) keepdim=True dtype=torch.int64 dtype=float32 out=x"
        names += " axis=0 axis=-1 axis=(0,1) keepdims=True dtype=np.int8 dtype='O' out=p size=(2,)"
        names += " like=p where=p ddof=1"
        names += " p=0 p=2. size=3 n=2 reduction='sum' weight=x value=1 mode='x' generator=1 a=1"
        found.append(random.choice(names.split()))
    if random.random() < 0.03:
        found.append(random.choice(["*b", "**d", "*x", "x for x in b"]))
    return ", ".join(found)


def expression(random: Random, depth: int) -> str:
    """An expression of at most this depth."""
    if depth <= 0 or random.random() < 0.15:
        return random.choice(_NAMES) if random.random() < 0.6 else value(random)
    inner = depth - 1

    def sub() -> str:
        return expression(random, inner)

    pick = random.randrange(16)
    if pick < 3:
        infix = random.choice(_INFIX)
        if infix == "if:else":
            return f"({sub()} if {sub()} else {sub()})"
        return f"({sub()} {infix} {sub()})"
    if pick < 6:
        return f"{random.choice(functions())}({_arguments(random, inner)})"
    if pick < 9:
        return f"{sub()}.{random.choice(methods())}({_arguments(random, inner)})"
    if pick == 9:
        return f"{sub()}.{random.choice(methods())}"
    if pick == 10:
        index = random.choice([sub(), f"{sub()}:{sub()}", "None, ...", "::-1", f"{sub()}, 0", "-1"])
        return f"{sub()}[{index}]"
    if pick == 11:
        return random.choice(["-", "+", "~", "not ", "*"]) + sub()
    if pick == 12:
        return random.choice(["[{}, {}]", "({}, {})", "{{{}: {}}}", "{{{}, {}}}"]).format(
            sub(), sub()
        )
    if pick == 13:
        form = random.choice(["[{} for i in {}]", "({} for i in {})", "{{i: {} for i in {}}}"])
        return form.format(sub(), sub())
    if pick == 14:
        return f"(lambda x, *y, z=1, **t: {sub()})({_arguments(random, inner)})"
    return f"f'{{{sub()}!r:>{random.choice(['9', '{a}', '.3', ''])}}}'"


def _statement(random: Random, depth: int) -> str:
    def sub() -> str:
        return expression(random, 3)

    def body() -> str:
        lines = "".join(_statement(random, depth - 1) for _ in range(random.randrange(1, 3)))
        return "".join(f"    {line}\n" for line in lines.splitlines())

    simple = [
        lambda: f"{sub()}\n",
        lambda: f"print({sub()})\n",
        lambda: f"{random.choice(_NAMES)} {random.choice(['=', '+=', '*=', '@='])} {sub()}\n",
        lambda: f"{random.choice(['x', 'm', 'b', 'd'])}[{sub()}] = {sub()}\n",
        lambda: f"y, *b = {sub()}\n",
        lambda: f"({sub()}).sum().backward()\n",
        lambda: f"torch.autograd.grad({sub()}, {sub()})\n",
        lambda: f"x.{random.choice(['grad', 'data', 'requires_grad'])} = {sub()}\n",
        lambda: f"trace({sub()})\n",
        lambda: f"x.register_hook(lambda g: {sub()})\n",
        lambda: f"assert {sub()}, {sub()}\n",
        lambda: random.choice(
            ["break\n", "return 1\n", "del a\n", "raise\n", "global a\n", "import os\n", "pass\n"]
        ),
    ]
    if depth <= 0 or random.random() < 0.7:
        return random.choice(simple)()
    nested = [
        lambda: f"if {sub()}:\n{body()}else:\n    pass\n",
        lambda: f"for i in {sub()}:\n{body()}",
        lambda: f"while {sub()}:\n{body()}    break\n",
        lambda: f"def f(x, y={sub()}):\n{body()}    return {sub()}\nf({sub()})\n",
        lambda: f"with torch.no_grad():\n{body()}",
        lambda: f"try:\n{body()}except Exception as e:\n    print(e)\nfinally:\n    a = 3\n",
        lambda: f"class A(nn.Module):\n{body()}",
    ]
    return random.choice(nested)()


def program(random: Random) -> str:
    """A few statements."""
    return "".join(_statement(random, 2) for _ in range(random.randrange(1, 5)))


def calls(random: Random) -> str:
    """One call of something in the catalogue, with values that may fit, and what follows of it."""
    several = [value(random) for _ in range(random.randrange(4))]
    several += random.sample(["x", "m", "k", "y", "a"], random.randrange(3))
    random.shuffle(several)
    if random.random() < 0.3:
        several.append(f"dim={random.choice(_NUMBERS)}")
    arguments = ", ".join(several)
    if random.random() < 0.5:
        call = f"{random.choice(functions())}({arguments})"
    else:
        call = f"{random.choice(['x', 'm', 'k', 'y', value(random)])}"
        call += f".{random.choice(methods())}({arguments})"
    after = random.choice(["print(r)", "r.sum().backward()", "trace(r)", "r = r + r", "r[0] = 1"])
    return f"r = {call}\n{after}\n"


@cache
def distribution_names() -> dict[str, list[str]]:
    """What can be read from each distribution and transform."""
    names = MODULES["torch.distributions"].names
    return {
        name: sorted(
            {*getattr(names[name], "language_attributes", ()), "sample", "log_prob", "mean"}
        )
        for name in names
        if name[0].isupper()
    }


def transforms(random: Random) -> str:
    """A function of the catalogue over a batch or under a transform, or a distribution in use."""

    def given(count: int) -> str:
        fitting = ["x", "m", "k", "0.5", "torch.rand(2, 3)", "torch.eye(3)", "ones(3)"]
        each = [random.choice(fitting) if random.random() < 0.7 else value(random) for _ in "123"]
        return ", ".join(each[: random.randrange(1, count)])

    def body() -> str:
        module = random.choice(
            ["torch", "torch", "F", "torch.linalg", "torch.special", "torch.fft"]
        )
        names = MODULES["torch.nn.functional" if module == "F" else module].names
        more = random.sample(["t", "x", "m", "1", "0", "(0, 1)"], random.randrange(3))
        more += random.sample(["dim=0", "dim=-1", "keepdim=True"], random.choice([0, 0, 1]))
        if random.random() < 0.5:
            return f"{module}.{random.choice(list(names))}({', '.join(['i', *more])})"
        return f"i.{random.choice(list(catalogue.methods))}({', '.join(more)})"

    def distribution() -> str:
        name = random.choice(list(distribution_names()))
        names = distribution_names()[name]
        made = f"D.{name}({given(3)})"
        use = random.choice(["", "()", "(torch.rand(3))", "((2,))", f"({given(3)})"])
        return f"{made}.{random.choice(names)}{use}"

    of = random.choice(["i", "t"])
    forms: list[Callable[[], str]] = [
        lambda: f"torch.vmap(lambda i, t=1: {body()})({given(3)})",
        lambda: f"torch.vmap(lambda i, t: {body()}, in_dims=({random.choice('01')}, None))(m, x)",
        lambda: f"torch.vmap(torch.func.grad(lambda i, t: ({body()}).sum()))(m, m)",
        lambda: f"torch.vmap(torch.vmap(lambda i, t={of!r}: {body()}))(m)",
        lambda: (
            f"torch.func.{random.choice(['jacrev', 'jacfwd', 'hessian'])}"
            f"(lambda i, t=2: {body()})({given(2)})"
        ),
        lambda: f"torch.func.vjp(lambda i, t=x: {body()}, {given(2)})",
        lambda: f"torch.func.jvp(lambda i, t=x: {body()}, (x,), ({given(2)},))",
        distribution,
        distribution,
        lambda: f"D.kl_divergence(D.Normal({given(3)}), D.Normal({given(3)}))",
    ]
    after = random.choice(["print(r)", "r.sum().backward()", "trace(r)", "r = r + r"])
    return f"D = torch.distributions\nr = {random.choice(forms)()}\n{after}\n"


# --- programs that exist --------------------------------------------------------------------------


@cache
def corpus() -> list[str]:
    """The repository's programs."""
    root = Path(__file__).parents[2]
    paths = [*root.glob("examples/*.grad"), *root.glob("tests/programs/*/*.grad")]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(paths)]
    return texts + [record["program"] for record in records("programs")]


def mutated(random: Random) -> str:
    """A program of the repository, changed in a few places."""
    pieces = re.findall(r"\w+|\s+|\S", random.choice(corpus()))
    for _ in range(random.randrange(1, 5)):
        at, other = random.randrange(len(pieces)), random.randrange(len(pieces))
        change = random.randrange(7)
        if change == 0:
            pieces[at] = ""
        elif change == 1:
            pieces[at] *= random.choice([2, 2, 3, 1000])
        elif change == 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif change == 3:
            pieces[at] = expression(random, 2)
        elif change == 4:
            pieces[at] = random.choice(_NUMBERS)
        elif change == 5:
            pieces[at] = chr(random.choice([0, 9, 10, 13, 27, 34, 39, 92, 0x300, 0x200B, 0xFEFF]))
        else:
            pieces = pieces[: at + 1]
    return "".join(pieces)
