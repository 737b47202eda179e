"""What a program cannot do: reach the host, or make it work without end.

Every attack ends with a coded error, and nothing but the language's own values can be reached from
the names that a program starts with.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source
from gradcli.language.interpreter import Interpreter
from gradcli.language.objects.attributes import (
    OPERATOR_METHODS,
    Method,
    Module,
    attribute_names,
    get_attribute,
)
from gradcli.language.objects.borders import SCALARS
from gradcli.language.objects.classes.definition import OF_COLLECTIONS, OF_OBJECT
from gradcli.language.objects.types import LanguageType, names
from gradcli.library import namespace
from gradcli.library.namespace import MODULES, PREDEFINED
from gradcli.limits import Limits
from gradcli.state import active
from tests.cases import many
from tests.rows import each_row
from tests.running import OutOfTime, run, time_limit

# --- the host is out of reach ---------------------------------------------------------------------

ATTACKS = [
    ("__import__('os')", "E101"),
    ("open('x', 'w')", "E205"),
    ("open(1)", "E202"),
    ("open(__file__)", "E101"),
    ("open('/dev/null').buffer", "E102"),
    ("open('/dev/null', 'rb').raw", "E102"),
    ("from fractions import Fraction\nFraction(1)._numerator", "E102"),
    ("from fractions import Fraction\n'{0._numerator}'.format(Fraction(1))", "E102"),
    ("from decimal import getcontext\ngetcontext().host", "E102"),
    ("exec('1')", "E101"),
    ("eval('1')", "E101"),
    ("compile('1', 'x', 'eval')", "E101"),
    ("globals()['__builtins__']", "E207"),
    ("vars(1)", "E202"),
    ("vars(nn.Linear(1, 1))['_hooks']", "E207"),
    ("dir.__self__", "E102"),
    ("input()", "E101"),
    ("__builtins__", "E101"),
    ("__file__", "E101"),
    ("super()", "E204"),
    ("super(int, 1).__class__", "E202"),
    ("object().__class__.__mro__", "E102"),
    ("object().__class__.__subclasses__()", "E102"),
    ("object.__subclasses__()", "E102"),
    ("object().__dict__['__class__']", "E207"),
    ("object().__init__.__globals__", "E102"),
    ("class A: pass\nA.host", "E102"),
    ("class A: pass\nA.__mro__[-1].__subclasses__", "E102"),
    ("class A: pass\nA.__bases__[0].__mro__", "E102"),
    ("class A: pass\nA().__dict__['number']", "E207"),
    ("class A: pass\nA().values", "E102"),
    ("class A: pass\nA().language_class", "E102"),
    ("class A: pass\nA().__class__ = A", "E102"),
    (
        "class A:\n  def __getattribute__(self, n): return object.__getattribute__(self, 'host')"
        "\nA().x",
        "E102",
    ),
    (
        "class A:\n  def __getattribute__(self, n): return object.__getattribute__(self, n)"
        "\nA().__subclasses__",
        "E102",
    ),
    ("class A:\n  def __del__(self): pass", "E205"),
    ("class A:\n  def __new__(cls): return cls.host\nA()", "E102"),
    ("class A:\n  def __new__(cls): return super().__new__(int)\nA()", "E202"),
    ("class A:\n  def __reduce__(self): pass", "E205"),
    ("object.__new__(int)", "E202"),
    ("object.__new__(type(1))", "E202"),
    ("object.__setattr__(ones(2), 'array', 1)", "E202"),
    ("object.__setattr__(1, '__class__', 1)", "E202"),
    ("class A: pass\nobject.__setattr__(A(), '__class__', 1)", "E102"),
    ("class A: pass\nobject.__getattribute__(A(), 'values')", "E102"),
    ("type.__new__(int, 'A', (), {})", "E202"),
    ("type.__subclasses__(int)", "E102"),
    ("type('A', (int, object), {'__reduce__': print})", "E205"),
    ("type('A', (), {1: 2})", "E202"),
    ("type('A', (), 3)", "E202"),
    ("type('A', (type(print),), {})", "E205"),
    ("class M(type): pass\nclass A(metaclass=M): pass\nA.host", "E102"),
    ("class M(type): pass\nclass A(metaclass=M): pass\nA.names", "E102"),
    ("class M(type): pass\nclass A(metaclass=M): pass\nA.hosts", "E102"),
    ("class M(type): pass\nM.language_new", "E102"),
    (
        "class M(type):\n  def __new__(m, n, b, d): return d['__classcell__'].fill\n"
        "class A(metaclass=M): pass",
        "E102",
    ),
    (
        "class M(type):\n  def __call__(c): return super().host\nclass A(metaclass=M): pass\nA()",
        "E102",
    ),
    ("class D:\n  def __get__(self, o, t): return t.host\nclass A: x = D()\nA().x", "E102"),
    ("class A(str): pass\n'{0.__class__}'.format(A('x'))", "E102"),
    ("class A(str): pass\nA('{0.__class__}').format(1)", "E102"),
    ("class A(int): pass\nA(10) ** A(10) ** 10", "E602"),
    ("class A(tuple): pass\nA(range(10**9))", "E602"),
    ("class A:\n  __class__ = int", "E205"),
    ("class A:\n  def f(self): pass\nA().f.__func__.__globals__", "E102"),
    ("class A:\n  def f(self): pass\nA().f.function", "E102"),
    ("class A:\n  def f(self): return super().language_getattr\nA().f()", "E102"),
    ("class A:\n  def __getattr__(self, n): return n\nA().__globals__", "E102"),
    ("class A:\n  x = property(print)\nA.x.fget", "E102"),
    ("class A(Exception): pass\nA().__traceback__.tb_frame", "E102"),
    ("class A(Exception): pass\nA().with_traceback(None).__traceback__.tb_frame", "E102"),
    ("class A(Exception): pass\nA().span", "E102"),
    ("class A(Exception): pass\nA().values", "E102"),
    ("class A(bytes): pass", "E205"),
    ("class A(torch.Tensor): pass", "E205"),
    ("class A(print): pass", "E202"),
    ("class A(torch.autograd.Function): pass\nA.node_class", "E102"),
    ("class A(torch.autograd.Function): pass\nA.apply.__func__", "E102"),
    (
        "class A(torch.autograd.Function):\n  def forward(ctx, x): return ctx.function\n"
        "A.apply(ones(1, requires_grad=True))",
        "E102",
    ),
    ("class A(nn.Module): pass\nA()._hooks", "E102"),
    ("class A(nn.Module): pass\nA().register", "E102"),
    ("import subprocess\nsubprocess.run('ls')", "E103"),
    ("from subprocess import *", "E103"),
    ("import torch.os\ntorch.os", "E103"),
    ("from torch import __builtins__ as b\nb[0]", "E103"),
    ("().__class__.__mro__", "E102"),
    ("().__class__.__base__.__subclasses__()", "E102"),
    ("type(1).mro()", "E102"),
    ("type(1).__subclasses__()", "E102"),
    ("type(type)(1).__mro__", "E102"),
    ("type('X', ())", "E201"),
    ("str.__dict__", "E102"),
    ("(lambda: 0).__globals__", "E102"),
    ("(lambda: 0).__code__", "E102"),
    ("(lambda: 0).body", "E102"),
    ("(lambda: 0).invoke([], {})", "E102"),
    ("print.__self__", "E102"),
    ("len.__module__", "E102"),
    ("exp.__globals__", "E102"),
    ("torch.tensor.__globals__", "E102"),
    ("'a'.upper.__self__", "E102"),
    ("'a'.upper.receiver", "E102"),
    ("torch.os", "E102"),
    ("torch.__dict__", "E102"),
    ("torch.names", "E102"),
    ("math.__loader__", "E102"),
    ("tensor(1.).array", "E102"),
    ("tensor(1.).storage_", "E102"),
    ("tensor(1.).__array__()", "E102"),
    ("tensor(1., requires_grad=True).exp().grad_fn.run", "E102"),
    ("torch.float32.numpy_dtype", "E102"),
    ("torch.no_grad.__init__", "E102"),
    ("(x for x in [1]).gi_frame", "E102"),
    ("iter([]).source", "E102"),
    ("getattr(1, '__class__').__bases__", "E102"),
    ("setattr(1, '__class__', 2)", "E102"),
    ("setattr(print, '__name__', 'x')", "E102"),
    ("(lambda: 0).__code__ = 1", "E102"),
    ("exp.__name__ = 'x'", "E102"),
    ("torch.exp = 3", "E102"),
    ("str.upper = 3", "E102"),
    ("'{0.__class__}'.format(1)", "E102"),
    ("'{a.__init__}'.format(a=print)", "E102"),
    ("'{0[0].__class__}'.format([1])", "E102"),
    ("'{0:{1.__class__}}'.format(1, 2)", "E102"),
    ("'{0[__class__]}'.format(1)", "E202"),
    ("'a'.format_map({})", "E102"),
    ("'a'.encode().__reduce__", "E102"),
    ("'%(__class__)s' % {}", "E207"),
    ("f'{(1).__class__.__mro__}'", "E102"),
    ("try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame", "E102"),
    ("try: 1 / 0\nexcept Exception as e: e.span", "E102"),
    ("try: ones(2) + ones(3)\nexcept Exception as e: e.__context__.__traceback__", "E102"),
    ("with open('x') as f: pass", "E502"),
    ("with (lambda: 0): pass", "E202"),
    ("def g(): yield\ng().gi_frame", "E102"),
    ("def g(): yield\ng().source", "E102"),
    ("def g(): yield\ng().send.__self__", "E102"),
    ("import abc\nclass A(abc.ABC): pass\nA().__new__", "E102"),
    ("import argparse\nargparse.ArgumentParser().target", "E102"),
    ("import argparse\nargparse.ArgumentParser().add_argument('x', action=print)", "E205"),
    ("import argparse\nargparse.FileType('w')", "E205"),
    ("import collections\ncollections.deque([1]).__reduce__", "E102"),
    ("import collections\ncollections.namedtuple('A', '__class__')", "E204"),
    ("import contextlib\ncontextlib.sys", "E102"),
    ("import copy\ncopy.copyreg", "E102"),
    ("import dataclasses\ndataclasses.sys", "E102"),
    ("import datetime\ndatetime.datetime.now().__reduce__", "E102"),
    ("import enum\nclass A(enum.Enum): X = 1\nA.X.language_value", "E102"),
    ("import enum\nclass A(enum.Enum): X = 1\nA.members", "E102"),
    ("import functools\nfunctools.lru_cache(print).function", "E102"),
    ("import functools\nfunctools.partial(print).func.__globals__", "E102"),
    ("import io\nio.open('x')", "E205"),
    ("import io\nio.StringIO().buffer", "E102"),
    ("import itertools\nitertools.chain.from_iterable.__self__", "E102"),
    ("import json\njson.codecs", "E102"),
    ("import json\njson.dumps(1, cls=int)", "E102"),
    ("import logging\nlogging.FileHandler('x')", "E205"),
    ("import logging\nlogging.basicConfig(filename='x')", "E205"),
    ("import logging\nlogging.warning('%(__class__)s', {'a': 1})", "E207"),
    ("import pathlib\npathlib.Path('x').write_text('y')", "E205"),
    ("import pathlib\npathlib.Path('.').iterdir()", "E205"),
    ("import pathlib\npathlib.Path('x').path", "E102"),
    ("import pathlib\npathlib.os", "E102"),
    ("import operator\noperator.attrgetter('__class__.__mro__')(1)", "E102"),
    ("import operator\noperator.methodcaller('__subclasses__')(int)", "E102"),
    ("import os\nos.system('ls')", "E205"),
    ("import os\nos.environ['PATH']", "E207"),
    ("import os\nos.scandir('.')", "E205"),
    ("import glob\nglob.os", "E102"),
    ("import tempfile\ntempfile.TemporaryDirectory()._host", "E102"),
    ("import csv\ncsv.writer(print)", "E202"),
    ("import hashlib\nhashlib.md5().host", "E102"),
    ("import random\nrandom.Random().generator", "E102"),
    ("import random\nrandom.SystemRandom", "E205"),
    ("import re\nre.compile('a').compiled", "E102"),
    ("import string\nstring.Formatter().format('{0.__class__}', 1)", "E205"),
    ("import sys\nsys.modules", "E205"),
    ("import sys\nsys.stdout.event", "E102"),
    ("import sys\nsys.stdout.buffer", "E102"),
    ("import timeit\ntimeit.timeit('1')", "E205"),
    ("import types\ntypes.FunctionType(1, 2)", "E202"),
    ("import types\ntypes.CodeType", "E205"),
    ("import typing\ntyping.get_type_hints(print).__globals__", "E102"),
    ("import warnings\nwarnings.sys", "E102"),
]


@each_row(("program", "code"), ATTACKS)
def test_attacks_end_with_a_coded_error(program: str, code: str) -> None:
    error = run(program).error
    assert error is not None
    assert error.code == code


def _start() -> Iterator[Any]:
    """The values that a program begins with, and one of each kind that it can make."""
    yield from PREDEFINED.values()
    for module in MODULES.values():
        yield from module.names.values()
    made = """
        1; 1.5; True; 2j; 'a'; None; ...; [1]; (1,); {1: 2}; {1}; range(3); slice(1)
        (lambda: 0); iter([1]); zip([1]); (v for v in [1]); 'a'.upper; exp; tensor(1.).exp
        type(1); type(tensor(1.)); ValueError; ValueError('x'); {}.keys(); {}.items()
        tensor([1., 2.]).shape; torch.float32; tensor(1.).device; torch.no_grad(); torch
        tensor([1., 2.]).max(0); (tensor(1., requires_grad=True) * 2).grad_fn
        (tensor(1., requires_grad=True) * 2).grad_fn.next_functions[0][0]; torch.nn.functional
        np.ones(2); np.ones(2).sum; np.float64(1); np.int64(1); np.str_('a'); np.ones(2).dtype
        np.random.default_rng(0); np.random.RandomState(0); np.random.default_rng(0).random
        np.finfo(np.float32); np.ones(2).flags; np.linalg.eig(np.eye(2)); np.add.reduce
        np.errstate(all='ignore'); np.printoptions(); np.vectorize(exp); np.ndindex(2)
    """
    interpreter = Interpreter(active.state, lambda event: None, namespace)
    for text in made.replace("\n", ";").split(";"):
        if text.strip():
            yield interpreter.evaluate(Source("value", text.strip()))


DATA = (bool, int, float, complex, str, type(None), type(...), list, dict, set, range, slice)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))

DUNDERS = {
    *OF_COLLECTIONS,
    *OF_OBJECT,
    *OPERATOR_METHODS,
    *names("__call__ __contains__ __delitem__ __enter__ __exit__ __getitem__ __hash__ __index__"),
    *names("__iter__ __len__ __repr__ __setitem__ __str__"),
    *names("__ceil__ __floor__ __getstate__ __round__ __setstate__ __trunc__"),
    "__annotations__",
    "__base__",
    "__bases__",
    "__cause__",
    "__class__",
    "__context__",
    "__dataclass_fields__",
    "__defaults__",
    "__dict__",
    "__doc__",
    "__func__",
    "__init__",
    "__kwdefaults__",
    "__match_args__",
    "__members__",
    "__mro__",
    "__new__",
    "__module__",
    "__name__",
    "__next__",
    "__notes__",
    "__qualname__",
    "__self__",
    "__suppress_context__",
    "__traceback__",
}  # `nn.Module.__init__(self)` is how classes begin


def _is_of_the_language(value: Any) -> bool:
    """Whether a value is data, or an object whose attributes the language guards."""
    if isinstance(
        value, (*DATA, *VIEWS, tuple, Tensor, LanguageType, Method, Module, GradcliError)
    ):
        return True
    if type(value) in SCALARS:
        return True
    if isinstance(value, types.ModuleType):
        return False
    home = getattr(value, "__module__", None)
    generated = isinstance(value, types.FunctionType) and home is None
    return generated or str(home).startswith("gradcli.") or home in ("math", "time", "unicodedata")


def test_nothing_of_the_host_can_be_reached() -> None:
    """Every name that the host knows of a value is tried, and those the language knows."""
    pending = deque((value, 0) for value in _start())
    seen: set[tuple[Any, str]] = set()
    reached = 0
    while pending:
        value, depth = pending.popleft()
        assert _is_of_the_language(value), value
        # Modules and types have names each of their own.
        owner = (value,) if isinstance(value, (Module, LanguageType)) else type(value)
        for name in sorted({*dir(value), *dir(type(value)), *attribute_names(value)}):
            if (owner, name) in seen:
                continue
            seen.add((owner, name))
            try:
                found = get_attribute(value, name)
            except GradcliError:
                continue
            assert not name.startswith("__") or name in DUNDERS, (value, name)
            reached += 1
            if depth < 3:
                pending.append((found, depth + 1))
    assert reached > 300


# --- work without end -----------------------------------------------------------------------------

UNBOUNDED = [
    ("10**10**10", "E602"),
    ("ones(3)[range(10**30)]", "E602"),
    ("1 << 10**9", "E602"),
    ("pow(2, 10**9)", "E602"),
    ("x = 3\nfor i in range(99): x = x * x", "E602"),
    ("pow(3, 2**1000000, 2**1000000)", "E602"),
    ("'a' * 10**9", "E602"),
    ("np.zeros((10**5, 10**6))", "E602"),
    ("np.ones((10**5, 1)) * np.ones((1, 10**5))", "E602"),
    ("np.outer(np.ones(10**5), np.ones(10**5))", "E602"),
    ("np.ones(3).repeat(10**12)", "E602"),
    ("np.arange(0, 1, 1e-12)", "E602"),
    ("np.pad(np.ones(3), 10**12)", "E602"),
    ("np.diag([1], 10**6)", "E602"),
    ("np.mgrid[0:10**6, 0:10**6]", "E602"),
    ("np.bincount([10**12])", "E602"),
    ("np.einsum('i,j,k->', np.ones(10**4), np.ones(10**4), np.ones(10**4))", "E605"),
    ("np.random.rand(10**10)", "E602"),
    ("np.random.permutation(10**12)", "E602"),
    ("np.random.choice(10**12, 3, replace=False)", "E602"),
    ("np.random.gamma(np.nan)", "E204"),
    ("np.random.set_state(('MT19937', np.zeros(624, int), 10**9))", "E204"),
    ("np.ones((1, 10**5))[np.zeros(10**4, int)]", "E602"),
    ("np.array([[0] * 10**5] * 10**5)", "E602"),
    ("x = [1]\nx.append(x)\nnp.array(x)", "E601"),
    ("x = [1]\nfor i in range(60): x = [x, x]\nnp.array(x)", "E602"),
    ("np.array([10**400])", "E204"),
    ("np.zeros(3, 'O')", "E205"),
    ("np.zeros(3, 'i4,f4')", "E205"),
    ("np.zeros(3, 'U999999999')", "E202"),
    ("np.cross(np.ones((10**5, 1, 3)), np.ones((1, 10**5, 3)))", "E602"),
    ("np.clip(np.ones((10**5, 1)), np.ones(10**5), 2)", "E602"),
    ("np.array([{}])", "E202"),
    ("np.sum([1], dtype='O')", "E205"),
    ("np.set_printoptions(formatter={'all': print})", "E201"),
    ("[0] * np.int64(10**10)", "E602"),
    ("np.int64(10**10) * 'abc'", "E602"),
    ("np.fft.fft([1], 10**12)", "E602"),
    ("[0] * 10**10", "E602"),
    ("10**10 * (1,)", "E602"),
    ("x = 'a'\nfor i in range(99): x += x", "E602"),
    ("x = [1]\nfor i in range(99): x += x", "E602"),
    ("x = [1]\nx *= 10**10", "E602"),
    ("list(range(10**12))", "E602"),
    ("sum(range(10**12))", "E602"),
    ("max(range(10**12))", "E602"),
    ("sorted(range(10**12))", "E602"),
    ("tuple(range(10**30))", "E602"),
    ("[*range(10**12)]", "E602"),
    ("print(*range(10**12))", "E602"),
    ("a, *b = range(10**12)", "E602"),
    ("[1].extend(range(10**12))", "E602"),
    ("x = []\nx[:] = range(10**12)", "E602"),
    ("set().union(range(10**12))", "E602"),
    ("','.join(['a' * 10**7] * 20)", "E602"),
    ("'a'.replace('', 'b' * 10**8)", "E602"),
    ("'a'.ljust(10**10)", "E602"),
    ("'\\t'.expandtabs(10**10)", "E602"),
    ("f'{1:1000000000}'", "E602"),
    ("f'{1.0:.{10**9}f}'", "E602"),
    ("format(1, '01000000000')", "E602"),
    ("'%1000000000d' % 1", "E602"),
    ("'%*d' % (10**9, 1)", "E602"),
    ("'{:{}}'.format(1, 10**9)", "E602"),
    ("math.factorial(10**9)", "E602"),
    ("math.comb(10**9, 10**8)", "E602"),
    ("math.perm(10**9)", "E602"),
    ("math.lcm(*range(1, 10**6))", "E602"),
    ("math.prod([2**100000] * 20)", "E602"),
    ("str(10**100000)", "E204"),
    ("x = []\nfor i in range(10**5): x = [x]\nprint(x)", "E601"),
    ("x, y = [], []\nfor i in range(10**5): x, y = [x], [y]\nx == y", "E601"),
    ("x = ()\nfor i in range(10**5): x = (x,)\n{x}", "E601"),
    ("x, y = [1], [1]\nfor i in range(99): x, y = [x, x], [y, y]\nx == y", "E602"),
    ("x = (1,)\nfor i in range(99): x = (x, x)\n{x: 1}", "E602"),
    ("a, b = [], []\na.append(b)\nb.append(a)\na == b", "E601"),
    ("def f(x): return f(x)\nf(1)", "E601"),
    ("f = lambda x: list(map(f, [x]))\nf(1)", "E601"),
    ("def f():\n  yield from f()\nnext(f())", "E601"),
    ("def f():\n  while True: yield 1\nsum(f())", "E605"),
    ("def f():\n  while True: pass\n  yield\nnext(f())", "E605"),
    ("from itertools import *\nlist(count())", "E605"),
    ("from itertools import *\nnext(islice(repeat(1), 10**12, None))", "E605"),
    ("from itertools import *\nnext(islice(cycle([1]), 10**12, None))", "E605"),
    ("from itertools import *\nnext(dropwhile(bool, repeat(1)))", "E605"),
    ("from itertools import *\nnext(filterfalse(None, repeat(1)))", "E605"),
    ("from itertools import *\nnext(compress(repeat(1), repeat(0)))", "E605"),
    ("from itertools import *\nproduct([1], repeat=10**12)", "E602"),
    ("from itertools import *\nlist(product(range(100), repeat=9))", "E605"),
    ("from itertools import *\nsum(1 for _ in permutations(range(30)))", "E605"),
    ("from itertools import *\ntee([1], 10**12)", "E602"),
    ("from itertools import *\nnext(islice(groupby(repeat(1)), 1, None))", "E605"),
    ("from collections import *\nCounter(a=10**12).elements()", "E602"),
    ("from collections import *\ndeque([1]) * 10**12", "E602"),
    ("from collections import *\ndeque(range(10**12))", "E602"),
    (
        "from collections import *\nx, y = [1], [1]\nfor i in range(99): x, y = deque([x, x]),"
        " deque([y, y])\nx == y",
        "E602",
    ),
    ("from random import *\ngetrandbits(10**12)", "E602"),
    ("from random import *\nchoices([1], k=10**12)", "E602"),
    ("from random import *\nsample(range(10**15), 10**12)", "E602"),
    ("from re import *\nmatch('(a+)+$', 'a' * 40 + 'b')", "E602"),
    ("from re import *\nmatch('(a|a)*$', 'a' * 40 + 'b')", "E602"),
    ("from re import *\nmatch('(a|ab|b)*c', 'ab' * 40)", "E602"),
    ("from re import *\nmatch('.*.*.*x', 'a' * 10**5)", "E602"),
    ("from re import *\nmatch('(.{1,30}){1,30}x', 'a' * 40)", "E602"),
    ("from json import *\ndumps([1], indent=10**9)", "E602"),
    ("from json import *\nx = []\nx.append(x)\ndumps(x)", "E601"),
    ("from json import *\nloads('[' * 10**5)", "E601"),
    ("import io\nio.StringIO().seek(10**12)", "E602"),
    ("import textwrap\ntextwrap.indent('a', 'b' * 10**8)", "E602"),
    ("class A(list): pass\nA(range(10**12))", "E602"),
    ("class A(list): pass\nA([1]) * 10**12", "E602"),
    ("dict.fromkeys(range(10**12))", "E602"),
    ("bytes(10**12)", "E602"),
    ("b'a' * 10**12", "E602"),
    ("f = lambda x: sorted([x], key=f)\nf(1)", "E601"),
    ("f = lambda x: max([x], key=f)\nf(1)", "E601"),
    ("f = lambda x: sum(f(y) for y in [x])\nf(1)", "E601"),
    ("f = lambda x: [z for y in [x] for z in f(y)]\nf(1)", "E601"),
    ("g = (x for x in [1])\nfor i in range(10**5): g = (x for x in g)\nnext(g)", "E601"),
    ("g = [1]\nfor i in range(10**5): g = map(print, g)\nnext(g)", "E601"),
    (
        "def wrap(h): return (x for _ in [0] for x in h)\n"
        "g = [1]\nfor i in range(2000): g = wrap(g)\nnext(g)",
        "E601",
    ),
    (
        "def f(x):\n    z = map(f, [x])\n    for i in range(8): z = zip(z)\n"
        "    return list(z)\nf(1)",
        "E601",
    ),
    ("g = (next(g) for x in [1])\nnext(g)", "E204"),
    ("from decimal import Decimal\nDecimal('1e999999999')", "E602"),
    ("from decimal import Decimal\nint(Decimal('1e999999'))", "E602"),
    ("from decimal import Decimal\nf'{Decimal(1):.999999999f}'", "E602"),
    ("import decimal\ndecimal.getcontext().prec = 10**9", "E602"),
    ("import decimal as d\nd.getcontext().prec = 10**4\nd.Decimal(3).ln()", "E605"),
    ("from fractions import Fraction\nFraction(10) ** 10**9", "E602"),
    ("from fractions import Fraction\nFraction('1e999999999')", "E602"),
    ("from fractions import Fraction\nround(Fraction(1, 3), 10**9)", "E602"),
    ("from fractions import Fraction\nf = Fraction(3, 7)\nfor i in range(99): f = f * f", "E602"),
    ("1" + " + 1" * 5000 + " + 'a'", "E202"),
]


@each_row(("program", "code"), UNBOUNDED, ids=lambda row: row[0][:60], every=2)
def test_endless_work_is_refused(program: str, code: str) -> None:
    # The default of 10,000,000 steps takes fifty times as long.
    limits = Limits(steps=200_000) if code == "E605" else Limits()
    with time_limit(20):
        error = run(program, limits=limits).error
    assert error is not None
    assert error.code == code


@pytest.mark.parametrize(
    "program",
    [
        "list(iter(int, 1))",
        "any(iter(int, 1))",
        "1 in iter(int, 1)",
        "tuple(x for x in iter(int, 1))",
        "','.join(str(x) for x in iter(int, 1))",
        "dict(zip(iter(int, 1), iter(int, 1)))",
        "min(map(abs, iter(int, 1)))",
        "a, *b = iter(int, 1)",
        "print(*iter(int, 1))",
        "x = []\nx += iter(int, 1)",
    ],
)
def test_endless_iterators_are_not_drawn_to_their_end(
    program: str,
) -> None:
    error = run(program, limits=Limits(elements=10_000)).error
    assert error is not None
    assert error.code == "E602"


def test_large_ranges_that_are_not_drawn_from_are_free() -> None:
    program = "r = range(10**12)\nprint(len(r), r[5], 3.5 in r, r.count('a'))\nfor i in r: break"
    assert run(program).stdout == "1000000000000 5 False 0\n"


# --- whatever is written --------------------------------------------------------------------------


def _words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


_atoms = _words(
    "0 1 -1 2.5 True None 'a' '{}' '%s' x y s t d f g len print str int list torch math F range"
    " ValueError tensor(1.) ones(2) 1j ... zip map sorted type iter next sum max"
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    operator = _words("+ - * / // % ** @ == < in is and or & | << >>")
    name = _words("append format join sort items shape grad_fn sum exp __class__ real get pop args")
    return st.one_of(
        st.tuples(inner, operator, inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        pair.map(lambda p: f"{p[0]}({p[1]})"),
        inner.map(lambda value: f"{value}()"),
        pair.map(lambda p: f"{p[0]}[{p[1]}]"),
        pair.map(lambda p: f"[{p[0]}, *{p[1]}]"),
        pair.map(lambda p: f"{{{p[0]}: {p[1]}}}"),
        pair.map(lambda p: f"({p[0]} for x in {p[1]})"),
        pair.map(lambda p: f"[{p[0]} for x, *y in {p[1]} if {p[0]}]"),
        pair.map(lambda p: f"(lambda x, *y, z=1, **t: {p[0]})({p[1]}, z=2)"),
        pair.map(lambda p: f"f'{{{p[0]}!r:>{{{p[1]}}}}}'"),
        st.tuples(inner, name).map(".".join),
        st.tuples(inner, name, inner).map(lambda p: f"{p[0]}.{p[1]}({p[2]})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
    )


_values = st.recursive(_atoms, _grow, max_leaves=8)

_forms = st.sampled_from(
    [
        "print({0})\n",
        "x = {0}\ny = {1}\n",
        "x, *y = {0}\n",
        "x += {0}\n",
        "d[{0}] = {1}\n",
        "s[{0}] += {1}\n",
        "t.grad = {0}\n",
        "del d[{0}]\n",
        "for x in {0}:\n    print({1})\n    break\n",
        "if {0}:\n    y = {1}\nelse:\n    pass\n",
        "try:\n    {0}\nexcept {1}:\n    pass\n",
        "try:\n    {0}\nexcept Exception as e:\n    print(e, repr(e), e.args)\n"
        "finally:\n    y = 1\n",
        "def f(x, y={0}):\n    return {1}\nf(1)\n",
        "with {0} as y:\n    {1}\n",
        "assert {0}, {1}\n",
        "raise {0} from {1}\n",
        "trace({0}, {1})\n",
    ]
)

_programs = st.lists(
    st.tuples(_forms, _values, _values).map(
        lambda p: p[0].replace("{0}", p[1]).replace("{1}", p[2])
    ),
    min_size=1,
    max_size=4,
).map("".join)

SETTING = (
    "x = 2\ny = [1, 2]\ns = [3, 'b']\nd = {'a': 1}\ng = lambda v: v\n"
    "t = tensor([1., 2.], requires_grad=True)\n"
)


@many(_programs, sample=60, all=300)
def test_only_errors_of_the_language_leave_a_program(program: str) -> None:
    try:
        with time_limit(5):
            error = run(SETTING + program, limits=Limits(steps=200_000)).error
    except OutOfTime:
        return  # an endless loop is no escape
    assert error is None or error.code != "E901", error.message
