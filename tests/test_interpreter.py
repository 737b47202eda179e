"""The language: what a program of pure Python prints under Python, it prints here."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

from gradcli.errors import GradcliError, Source
from gradcli.language.events import Printed, Traced
from gradcli.session import Session


def run(program: str) -> tuple[str, GradcliError | None]:
    """What a program prints, and the error that ends it."""
    shown: list[Any] = []
    session = Session(shown.append)
    error = None
    try:
        for _ in session.run(program, "test"):
            pass
    except GradcliError as raised:
        error = raised
    return "".join(event.text for event in shown if isinstance(event, Printed)), error


def printed(program: str) -> str:
    """What a program prints that must not fail."""
    text, error = run(program)
    assert error is None, f"{error.code} {error.message}"
    return text


def printed_by_python(program: str) -> str:
    """What the same program prints under this Python."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(program, "test", "exec"), {"__name__": "test"})
    return shown.getvalue()


PURE_PYTHON = {
    "print": """
print(1, 2.5, 'a', sep='-', end='!\\n')
print()
print('a', 'b', sep='')
print('x', end=None)
print('y', flush=True)
""",
    "repr": """
print([1, 'a', (1,), (), {1: 2}, {3}, None, True, 1e100, 2j, ..., -0.0, 'it\\'s'], set(), {})
print((1, [2, (3,)]), range(3), range(1, 9, 2), slice(1, 2), {'a': [1]}.items(), {1: 2}.keys())
a = [1]
a.append(a)
d = {}
d['d'] = d
t = (a,)
print(a, d, t)
print(1e16, 1e-5, 1e15, 123456789.123, 0.1 + 0.2, 1 / 3, float('nan'), -float('inf'))
""",
    "numbers": """
print(7 // 2, -7 // 2, 7 % -3, 2 ** 10, 2 ** -1, 7 / 2, 1 << 5, 256 >> 3, 5 & 3, 5 | 3, 5 ^ 3)
print(~5, -2 ** 2, 2 ** 3 ** 2, +True, -(-3), not 0, 10 - 3 - 2, 100 / 10 / 2, 2 * 3 % 4)
print(1_000, 0xff, 0b11, 0o17, 1e-5, 1., .5, 3j * 3j, True + True, 5 // 2.0, -5 % 3.0)
print(1.5 .is_integer(), (10).bit_length(), (1 + 2j).real, (2.5).as_integer_ratio(), (3).imag)
""",
    "sequences": """
x = [1, 2, 3]
x += [4]
x += 'ab'
x *= 2
x[0] = 10
x[1:3] = [7, 8, 9]
del x[1]
print(x, x[-1], x[1:3], x[::-1], len(x), x + [0], [0] * 3, 3 * (1, 2), 'ab' + 'c')
print('abc'[1], 'abc'[::-1], (1, 2, 3)[1:], range(10)[2:8:3], range(5)[-1])
del x[:2]
print(x)
""",
    "methods": """
print('Ab c'.upper(), 'a,b'.split(','), ','.join(['a', 'b']), ' a '.strip(), 'abc'.find('c'))
print('x'.center(5, '*'), 'x'.ljust(3) + '|', '7'.zfill(3), 'aXa'.replace('a', 'b', 1), 'a\\tb'.expandtabs(4))
print('abc'.startswith(('a', 'b')), 'a b'.title(), 'aa'.count('a'), 'k=v'.partition('='))
l = [3, 1, 2]
l.sort(key=lambda v: -v)
l.append(9); l.insert(0, 8); l.extend(range(2)); l.remove(1)
print(l, l.pop(), l.index(9), l.count(3), l.copy(), (1, 2, 1).count(1))
l.reverse(); print(l); l.clear(); print(l)
d = {'a': 1}
d.update({'z': 1}, q=2)
d.setdefault('s', [])
print(d.get('x'), d.get('x', 1), d.pop('a'), d.popitem(), list(d.values()), 'z' in d, d.items())
s = {1, 2}
s.add(3); s.discard(9); s.update([4], (5,))
print(s, s | {6}, s & {1}, s - {1}, s ^ {1, 9}, s.union([7]), {1} <= s, s.isdisjoint({8}))
print(list(map(str.upper, 'ab')), str.join('-', ['x', 'y']), list(map(int, '12')))
""",
    "names and unpacking": """
a, (b, *c), d = 1, (2, 3, 4), 5
print(a, b, c, d)
a, b = b, a
x = y = [0]
x.append(1)
*head, last = 'xyz'
[p, q] = range(2)
(r,) = [9]
print(a, b, y, x is y, x == [0, 1], x is not y, head, last, p, q, r)
for i, (j, k) in enumerate([(1, 2), (3, 4)]): print(i, j, k)
x: int = 3
del x, y
n = 5; n -= 2; n **= 2; n //= 2; n <<= 3; n |= 1; n %= 20; n &= 14; n ^= 5; n >>= 1
print(n, (m := 4), m)
""",
    "control flow": """
total = 0
for i in range(10):
    if i == 3: continue
    elif i == 8: break
    total += i
else:
    print('never')
print(total)
while total > 0:
    total -= 7
    if total == 100: break
else:
    print('done', total)
for _ in []: pass
else: print('empty')
print('big' if total > 5 else 'small', [] or 'x', 0 and 1, 1 and 2, not [], None or 0)
for c in 'ab':
    for d in (1, 2):
        if d == 2: break
        print(c, d)
""",
    "comparisons": """
print(1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 != 2, 'a' < 'b', [1, 2] < [1, 3], (1,) == (1,), {1: 2} == {1: 2})
print(None is None, 1 in [1], 'a' in 'abc', 2 not in (1,), 3 in range(5), 2.0 in range(5), 2.5 in range(5))
def f(x):
    print('f', x)
    return x
print(f(1) < f(0) < f(2))
print(f(0) or f(3), f(0) and f(3))
print('a' in {'a': 1}, 1 in {1, 2}, 4 in (x * x for x in range(3)), 1 in {1: 2}.values())
""",
    "functions": """
def f(a, b=2, *args, c, d=4, **kw):
    return a, b, args, c, d, kw
print(f(1, c=3), f(1, 2, 3, 4, c=5, e=6), f(*[1, 2], **{'c': 3}), f(b=1, a=0, c=2))
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print([fib(i) for i in range(12)])
def nothing(): pass
def early(x):
    for i in range(9):
        if i == x: return i
print(nothing(), early(3), early(99), fib.__name__, (lambda: 0).__name__)
def default(x, seen=[]):
    seen.append(x)
    return seen
default(1)
print(default(2), (lambda a, b=2, *c: a + b + len(c))(1, 2, 3))
def key(*, k): return k
print(key(k=1))
def three(a, b, c): return a - b - c
print(three(9, 3, 1), three(c=1, b=2, a=3))
""",
    "closures": """
def counter():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return step
s = counter()
s(); s()
print(s())
x = 10
def g():
    global x, fresh
    x += 1
    fresh = 'new'
    y = x
    return y
print(g(), x, fresh)
def late():
    return [f() for f in [lambda: i for i in range(3)]]
print(late())
def bound(): return [f() for f in [lambda i=i: i for i in range(3)]]
print(bound())
def outer():
    def inner():
        def innermost(): return a + b
        b = 2
        return innermost()
    a = 1
    return inner()
print(outer())
def compose(*fs):
    def run(x):
        for f in reversed(fs): x = f(x)
        return x
    return run
print(compose(lambda x: x + 1, lambda x: x * 2)(5))
""",
    "decorators": """
def twice(f):
    def run(*args, **kwargs):
        return f(f(*args, **kwargs))
    return run
def named(n):
    print('named', n)
    def deco(f):
        print('deco', n)
        return f
    return deco
@named(1)
@named(2)
@twice
def inc(x): return x + 1
print(inc(1))
""",
    "comprehensions": """
m = [[i * j for j in range(3)] for i in range(3)]
print(m, {i: i * i for i in range(3)}, {i % 2 for i in range(5)}, [x for row in m for x in row if x])
print([(x, y) for x in range(3) if x for y in range(x) if y or x], [y := 1, y ** 2])
x = 'kept'
print([x for x in range(2)], x, [i for i in range(9) if i % 2 if i > 3])
g = (print('drawn', v) or v for v in range(3))
print(next(g), sum(g), list(g))
print({k: [v for v in range(k)] for k in range(3)}, [w for w in [last := v for v in 'ab']], last)
def f(n):
    return [n + a + b for a in range(2) for b in range(n)]
print(f(2))
print(*[(a, b) for a, b in zip('ab', [1, 2])], sep=';')
""",
    "iterators": """
it = iter([1, 2, 3, 4])
for v in it:
    if v == 2: break
print(next(it), list(it), next(it, 'end'))
print(list(zip(it := iter(range(4)), it)), list(zip('ab', [1], strict=False)))
print(list(map(lambda x, y: x + y, [1, 2], [3, 4])), list(filter(None, [0, 1])), list(filter(lambda v: v > 1, [1, 2])))
print(list(enumerate('ab', 1)), list(reversed([1, 2])), list(reversed('ab')), list(reversed(range(3))))
n = [3]
def countdown():
    n[0] -= 1
    return n[0]
print(list(iter(countdown, 0)), [*range(3), *'ab'], {**{'a': 1}, 'b': 2}, (*(), 1), {*'a'})
""",
    "builtins": """
print(max([3, 1, 2]), min('b', 'a'), max('aa', 'b', key=len), min([], default=0), sorted([3, 1, 2], reverse=True))
print(sorted(['bb', 'a', 'cc'], key=len), sorted({'b': 1, 'a': 2}), sum([[1], [2]], []), sum(x * 0.1 for x in range(10)))
print(any([0, 1]), all([]), abs(-3), round(2.5), round(2.567, 2), round(1234, -2), divmod(7, 2), pow(2, 3), pow(2, 3, 5))
print(list('ab'), tuple([1]), set([1]), dict(a=1), dict([(1, 2)], b=3), str(1.0), int('12'), int('ff', 16), int(2.9))
print(float('1.5'), complex(1, 2), bool([]), bool('a'), repr('a'), ascii('é'), format(3.14159, '.2f'), chr(97), ord('a'))
print(hex(255), bin(5), oct(8), callable(len), callable(3), len({1: 2}), hasattr([], 'append'), getattr([], 'foo', 'none'))
print(getattr('a', 'upper')(), isinstance(1, int), isinstance(True, (str, (float, int))), isinstance([], list))
print(type(1), type('a').__name__, type(None), type([]) is list, type(1.5) == float, type(len), type(lambda: 0), type(type(1)))
print(type(ValueError()), type({}.keys()), int, float, ValueError, type(...), len.__name__)
""",
    "formatting": """
w = 8
print(f'{1.23456:.2f} {42:>6} {"a"!r:5}| {3=} {w = } {[1,2]} {10**3:,} {0.5:%} {255:#x} {True} {None} {1:{w}d}')
print(f'{w!s:>{w}}', f'{{}}', f'{"x":*^{w - 1}}', f'{1e10:g}', f'{-5:+d} {5:+d} {5: d}', f'{3.0}', f'{w:=+5}', f"{'a' 'b'}")
print('%5.1f|%-5s|%05d|%x|%r|%s|%%|%c|%e|%i' % (3.14159, 'ab', 42, 255, 'q', [1], 'z', 1234.5, 3.9))
print('%(a)s %(b).2f' % {'a': 1, 'b': 2}, '%s' % 5, '%s' % (1,), '%s' % [1, 2], '%*d|%-*d|' % (5, 1, 3, 2))
print('{} {}'.format(1, 'b'), '{1} {0} {1.real} {name!r:>5} {0:>{w}}'.format(1, 2, name='n', w=4))
print('{0[1]} {0[k]}'.format({1: 'a', 'k': 'b'}), '{:.3}'.format('abcdef'), '{{}}'.format(), '{!s}'.format(None))
print(str([1.0, 'a']), repr((1,)), f'{(1, 2)}', f'{"nested " + f"{1 + 1}"}')
""",
    "exceptions": """
try:
    1 / 0
except ZeroDivisionError as e:
    print('caught', type(e).__name__, isinstance(e, ArithmeticError), isinstance(e, ValueError))
else:
    print('else')
finally:
    print('finally')
def order():
    try:
        return 'try'
    finally:
        print('cleanup')
print(order())
def override():
    try:
        raise ValueError
    finally:
        return 'swallowed'
print(override())
def loop():
    for i in range(3):
        try:
            if i == 1: break
            continue
        finally:
            print(i)
    try:
        raise ValueError('a', 1)
    except (TypeError, ValueError) as e:
        return repr(e), str(e), e.args
print(loop())
try:
    try:
        raise KeyError('k')
    except KeyError as e:
        print(e, repr(e), e.args)
        raise
except LookupError as e:
    print('again', e)
try:
    e
except NameError:
    print('unbound')
try:
    try:
        int('x')
    except ValueError as e:
        raise RuntimeError('outer') from e
except RuntimeError as e:
    print(e)
for error in (Exception('x'), ValueError(), KeyError('a'), IndexError(1), AssertionError('no')):
    try:
        raise error
    except Exception as e:
        print(repr(e), [str(e)], e.args, e is error)
try:
    assert 1 == 2, ('m', 1)
except AssertionError as e:
    print(e.args)
try:
    raise NotImplementedError
except RuntimeError as e:
    print(type(e))
""",
    "exception classes": """
def probe(f, *args):
    try:
        f(*args)
    except Exception as e:
        print(type(e).__name__, end=' ')
    else:
        print('ok', end=' ')
x = []
probe(lambda: x[0]); probe(lambda: {}['x']); probe(lambda: int('x')); probe(lambda: None.foo)
probe(lambda: 'a' + 1); probe(lambda v: v); probe(lambda: len(5)); probe(lambda: (1)[0])
probe(lambda: [].index(3)); probe(lambda: next(iter([]))); probe(lambda: undefined); probe(lambda: 'abc'[7])
probe(lambda: 2.0 ** 9999); probe(lambda: 1 % 0); probe(lambda: 1 << -1); probe(lambda: {[]}); probe(lambda: -'a')
probe(lambda: [1] < 2); probe(lambda: max([])); probe(lambda: f'{1:y}'); probe(lambda: '%d' % 'a'); probe(lambda: '{}'.format())
probe(lambda: '{a}'.format()); probe(lambda: '%s %s' % 1); probe(lambda: print(*5)); probe(lambda: (lambda: 0)(1))
probe(lambda: (lambda a: 0)(b=1)); probe(lambda: ord('ab')); probe(lambda: chr(-1)); probe(lambda: [] @ []); probe(lambda: set().pop())
probe(lambda: [].pop()); probe(lambda: {}.popitem()); probe(lambda: [1].remove(2)); probe(lambda: ','.join([1])); probe(lambda: dict([1]))
probe(lambda: list(zip([1], [], strict=True))); probe(lambda: sum(['a'])); probe(lambda: isinstance(1, 2)); probe(lambda: 5())
probe(lambda: float('x')); probe(lambda: sorted([1, 'a'])); probe(lambda: [1][[]]); probe(lambda: {1: 2}[[]]); probe(lambda: range(1.5))
def unbound():
    print(later)
    later = 1
def changed():
    d = {1: 1}
    for k in d: d[k + 1] = 1
def unpack():
    a, b = [1]
def unpack_more():
    a, b = [1, 2, 3]
def unpack_starred():
    a, b, *c = [1]
def set_tuple():
    (1, 2)[0] = 3
probe(unbound); probe(changed); probe(unpack); probe(unpack_more); probe(unpack_starred); probe(set_tuple)
def bare():
    raise
def not_an_exception():
    raise 5
probe(bare); probe(not_an_exception); probe(lambda: (_ for _ in ()).foo); probe(lambda: math.sqrt(-1))
print()
""",
    "math": """
import math
from math import pi, sqrt as s
import math as m
print(math.sqrt(2), pi, s(4), math.floor(2.5), math.factorial(10), math.inf, math.isclose(0.1 + 0.2, 0.3), math.gcd(12, 18))
print(m.comb(5, 2), m.perm(5), m.prod([2, 3.5]), m.fsum([0.1] * 10), m.dist((0, 0), (3, 4)), m.hypot(3, 4), m.lcm(4, 6))
print(m.log(8, 2), m.exp(1), m.tau, m.copysign(1, -0.0), m.isnan(m.nan), m.trunc(-2.5), m.degrees(m.pi))
""",
    "text": """
print('''a
b''', r'\\n', 'a' 'b', "it's", '\\u00e9\\x41', 'tab\\there', '\\'', "\\\\")
print('é'.upper(), len('日本'), 'ß'.casefold(), 'a-b_c'.split('-'), 'one\\ntwo'.splitlines())
""",
}


@pytest.mark.parametrize("name", PURE_PYTHON)
def test_prints_what_python_prints(name: str) -> None:
    program = PURE_PYTHON[name]
    assert printed(program) == printed_by_python(program)


TENSORS = {
    "names are ops": ("print(exp(tensor(0.)), torch.exp(tensor(0.)), tensor(0.).exp())", "tensor(1.) tensor(1.) tensor(1.)\n"),
    "containers show tensors": (
        "x = tensor([1., 2.], requires_grad=True)\nprint((x, x * 2), [x.sum()], {'a': x.detach()})",
        "(tensor([1., 2.], requires_grad=True), tensor([2., 4.], grad_fn=<MulBackward0>))"
        " [tensor(3., grad_fn=<SumBackward0>)] {'a': tensor([1., 2.])}\n",
    ),
    "formats": (
        "x = tensor([1., 2.], requires_grad=True)\nprint(f'{x.sum()}', f'{tensor(1.5):.3f}', f'{x}', '%.2f' % tensor(2.), '{:.1f}'.format(tensor(3.)))",
        "3.0 1.500 tensor([1., 2.], requires_grad=True) 2.00 3.0\n",
    ),
    "iteration": (
        "for i, row in enumerate(tensor([[1., 2.], [3., 4.]])): print(i, row)\na, b = tensor([5., 6.])\nprint(a, b, [v.item() for v in tensor([1., 2.])])",
        "0 tensor([1., 2.])\n1 tensor([3., 4.])\ntensor(5.) tensor(6.) [1.0, 2.0]\n",
    ),
    "classes": (
        "x = tensor(1.)\nprint(type(x), type(x) is torch.Tensor, isinstance(x, torch.Tensor), isinstance(x.shape, tuple), type(x.dtype), x.dtype is torch.float32, type(x.shape))",
        "<class 'torch.Tensor'> True True True <class 'torch.dtype'> True <class 'torch.Size'>\n",
    ),
    "no_grad": (
        "x = tensor(1., requires_grad=True)\nwith torch.no_grad():\n    y = x * 2\n@torch.no_grad()\ndef f(v): return v * 3\nprint(y.requires_grad, f(x).requires_grad, (x * 2).requires_grad)",
        "False False True\n",
    ),
    "no_grad ends with an error": (
        "x = tensor(1., requires_grad=True)\ntry:\n    with torch.no_grad():\n        raise ValueError\nexcept ValueError: pass\ndef f():\n    with torch.no_grad():\n        return 1\nf()\nfor _ in [1]:\n    with torch.no_grad(): break\nprint((x * 2).requires_grad)",
        "True\n",
    ),
    "in place": (
        "x = tensor([1., 2.])\ny = x\ny += 1\nx[0] = 5\nx[1] *= 2\nprint(x, x is y)\nx.requires_grad = True\nx.sum().backward()\nx.grad += 1\nprint(x.grad)\nx.grad = None\nprint(x.grad)",
        "tensor([5., 6.]) True\ntensor([2., 2.])\nNone\n",
    ),
    "sums": ("print(sum([tensor(1.), tensor(2.)]), max(tensor([1., 3.])), 2. in tensor([1., 2.]), sum(tensor([1, 2])))", "tensor(3.) tensor(3.) True tensor(3)\n"),
    "imports": (
        "import torch.nn.functional as G\nfrom torch import exp as e2, nn\nfrom torch.nn import functional\nimport torch as t\nimport torch.nn\nprint(e2(t.zeros(1)), functional is G, nn.functional is G, F is G, torch is t)",
        "tensor([1.]) True True True True\n",
    ),
    "errors are caught": (
        "try: ones(2) + ones(3)\nexcept RuntimeError as e: print(type(e).__name__, isinstance(e, Exception))\ntry: ones(2)[5]\nexcept IndexError: print('index')\ntry: bool(ones(2))\nexcept RuntimeError: print('truth')",
        "RuntimeError True\nindex\ntruth\n",
    ),
    "functions show no address": (
        "def f(): pass\nprint(f, print, [f], x := (v for v in []), 'a'.upper)\nprint(f)",
        "<function f at 0x1> <built-in function print> [<function f at 0x1>] <generator object at 0x2> <built-in method upper of str object at 0x3>\n<function f at 0x1>\n",
    ),
    "graph": (
        "x = tensor(2., requires_grad=True)\nn = (x * 3).grad_fn.next_functions[0][0]\nprint(n.variable is x, n.name())\ntry: (x + 1).grad_fn.variable\nexcept AttributeError as e: print(e)",
        "True torch::autograd::AccumulateGrad\n'AddBackward0' object has no attribute 'variable'\n",
    ),
    "numbers meet tensors": ("print(math.sqrt(tensor(4.)), [1, 2, 3][tensor(1)], float(tensor(2)), 1 + tensor(1), 2 ** tensor(3.), round(tensor(2.5)), abs(tensor(-1)))", "2.0 2 2.0 tensor(2) tensor(8.) tensor(2.) tensor(1)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", TENSORS)
def test_programs_with_tensors(name: str) -> None:
    program, expected = TENSORS[name]
    assert printed(program) == expected


ERRORS = [
    ("x = 1\ny = x + z", "E101", "NameError", 2, "z"),
    ("def f():\n    return q\n\nf()", "E101", "NameError", 2, "q"),
    ("def f():\n    print(v)\n    v = 1\nf()", "E101", "UnboundLocalError", 2, "v"),
    ("x = 'a'\n(1 + 2\n + x)", "E202", "TypeError", 2, "1 + 2\n + x"),
    ("import os", "E103", "ModuleNotFoundError", 1, "import os"),
    ("from torch import nothing", "E103", "ImportError", 1, "from torch import nothing"),
    ("x = [1]\nprint(x[0],\n      x[3])", "E302", "IndexError", 3, "x[3]"),
    ("d = {}\nd['k'] += 1", "E207", "KeyError", 2, "d['k']"),
    ("a = 1\na.b.c", "E102", "AttributeError", 2, "a.b"),
    ("a = 1\na.b = 2", "E102", "AttributeError", 2, "a.b"),
    ("f = lambda x: x\n\nf()", "E201", "TypeError", 3, "f()"),
    ("for i in range(3):\n    1 / (2 - i)", "E206", "ZeroDivisionError", 2, "1 / (2 - i)"),
    ("a, b = (1,\n 2, 3)", "E303", "ValueError", 1, "a, b"),
    ("assert 1 == 1\nassert (1 ==\n 2), 'no'", "E701", "AssertionError", 2, "1 ==\n 2"),
    ("def f():\n    raise ValueError('x')\nf()", "E702", "ValueError", 2, "raise ValueError('x')"),
    ("def f(): return f()\nf()", "E601", "RecursionError", 1, "f()"),
    ("x = 5\nfor i in x: pass", "E202", "TypeError", 2, "x"),
    ("while ones(2): pass", "E203", "RuntimeError", 1, "ones(2)"),
    ("x = 3\nif x and ones(2): pass", "E203", "RuntimeError", 2, "x and ones(2)"),
    ("for a, b in zip([1], [], strict=True): pass", "E204", "ValueError", 1, "zip([1], [], strict=True)"),
    ("[1 / x for x in [1, 0]]", "E206", "ZeroDivisionError", 1, "1 / x"),
    ("sorted([2, 1], key=lambda v: v.w)", "E102", "AttributeError", 1, "v.w"),
    ("with 5: pass", "E202", "TypeError", 1, "5"),
    ("del nothing", "E101", "NameError", 1, "nothing"),
    ("try:\n    1 / 0\nexcept ValueError:\n    pass", "E206", "ZeroDivisionError", 2, "1 / 0"),
    ("try:\n    1 / 0\nfinally:\n    x = [1][0]", "E206", "ZeroDivisionError", 2, "1 / 0"),
    ("ones(2) + 1 + ones(3)\n", "E301", "RuntimeError", 1, "ones(2) + 1 + ones(3)"),
    ("raise KeyboardInterrupt", "E702", "KeyboardInterrupt", 1, "raise KeyboardInterrupt"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "code", "raises", "line", "text"), ERRORS)
def test_errors_have_code_class_and_place(
    program: str, code: str, raises: str, line: int, text: str
) -> None:
    _, error = run(program)
    assert error is not None
    assert (error.code, error.raises) == (code, raises)
    assert error.span is not None
    assert (error.span.line, error.span.text) == (line, text)


def test_an_error_inside_functions_lists_the_calls() -> None:
    _, error = run("def f(x): return 1 / x\ndef g(x):\n    return f(x)\ng(0)")
    assert error is not None
    assert [(name, place.line) for name, place in error.stack if place] == [("g", 4), ("f", 3)]


HELPS = [
    ("sigmid(tensor(1.))", "did you mean `sigmoid`?"),
    ("true", "did you mean `True`?"),
    ("length = 3\nlenght", "did you mean `length`?"),
    ("tensor(1.).sigmod()", "did you mean `sigmoid`?"),
    ("tensor(1., requires_gard=True)", "did you mean `requires_grad`?"),
    ("ones(2).sum(axes=0)", "did you mean `dim`?"),
    ("def f(width): pass\nf(witdh=1)", "did you mean `width`?"),
    ("open('x')", "files come in as `NAME=@FILE`"),
    ("'a' + 1", "turn the number into text first: `str(x)`, or use an f-string"),
    ("2.5 ^ 2", "a power is written `**`"),
    ("sum(ones(2, 2), dim=0)", "this is Python's sum(); the op on tensors is torch.sum()"),
    ("max(ones(2, 2))", "this is Python's max(); the op on tensors is torch.max()"),
    ("from math import squrt", "did you mean `sqrt`?"),
]


@pytest.mark.parametrize(("program", "help"), HELPS)
def test_helps(program: str, help: str) -> None:
    _, error = run(program)
    assert error is not None
    assert error.help == help


def test_a_wrong_call_shows_the_signature() -> None:
    _, error = run("def f(a, b=1, *rest, c, **more): pass\nf()")
    assert error is not None
    assert error.notes == ("it is f(a, b=…, *rest, c, **more)",)


def test_tensors_learn_their_first_name() -> None:
    session = Session()
    list(session.run("x = tensor(1., requires_grad=True)\ny = x\nz = w = y * 2\nq, r = z, z * 2", "t"))
    names = {name: session.values[name].name for name in "xyzwqr"}
    assert names == {"x": "x", "y": "x", "z": "z", "w": "z", "q": "z", "r": "r"}


def test_the_tensor_assigned_last_is_known() -> None:
    session = Session()
    list(session.run("a = tensor(1.)\nb = a * 2\nn = 3\ndef f():\n    inner = a * 3\nf()", "t"))
    assert session.interpreter.last_assigned == "b"
    list(session.run("b += 1\na += 1", "t"))
    assert session.interpreter.last_assigned == "a"


def test_an_override_replaces_the_first_assignment_alone() -> None:
    shown: list[Any] = []
    session = Session(shown.append)
    session.override("steps", lambda value: value * 10)
    list(session.run("steps = 3\nprint(steps)\nsteps = 4\nprint(steps)", "t"))
    assert [event.text for event in shown] == ["30\n", "4\n"]


def test_an_expression_statement_has_a_value() -> None:
    session = Session()
    assert [result.value for result in session.run("1 + 1\nx = 3\nx * 2", "t")] == [2, None, 6]
    assert session.interpreter.evaluate(Source("v", "[x, 1]")) == [3, 1]


def test_values_outlive_an_error() -> None:
    session = Session()
    list(session.run("x = 1", "t"))
    with pytest.raises(GradcliError):
        list(session.run("y = 2\n1 / 0", "t"))
    assert session.values["x"] == 1
    assert session.values["y"] == 2
    assert session.state.stack == []
    assert session.state.place is None


def test_trace_emits_the_tensor() -> None:
    shown: list[Any] = []
    list(Session(shown.append).run("x = tensor(1.)\ntrace(x, style='next')", "t"))
    (event,) = shown
    assert isinstance(event, Traced)
    assert event.style == "next"


def test_every_node_knows_its_place() -> None:
    session = Session()
    list(session.run("a = tensor(1., requires_grad=True)\ne = (a + 2) * a * (a\n - 1)", "t"))
    node = session.values["e"].grad_fn
    assert node.place.text == "(a + 2) * a * (a\n - 1)"
    first = node.next_functions[0][0]
    assert first.place.text == "(a + 2) * a"
    assert first.next_functions[0][0].place.text == "a + 2"


def test_a_chain_of_terms_needs_no_recursion() -> None:
    program = "a = tensor(1., requires_grad=True)\ne = " + " + ".join(["a"] * 10_000)
    assert printed(program + "\ne.backward()\nprint(a.grad)") == "tensor(10000.)\n"


def test_recursion_reaches_as_deep_as_python() -> None:
    program = "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(900))"
    assert printed(program) == "900\n"


def test_a_keyboard_interrupt_is_no_exception() -> None:
    _, error = run("try:\n    raise KeyboardInterrupt\nexcept Exception:\n    pass")
    assert error is not None
    assert error.raises == "KeyboardInterrupt"
