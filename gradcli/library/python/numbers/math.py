"""The module `math` as the language has it."""

from __future__ import annotations

import math
from typing import Any

from gradcli.language.limits import check_integer
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.operators import multiply
from gradcli.language.objects.types import by_name


def factorial(n: int, /) -> int:
    """`math.factorial(n)`; raises E602 for a result beyond the limit."""
    if isinstance(n, int) and n > 1:
        check_integer(int(n * math.log2(n)))
    return math.factorial(n)


def comb(n: int, k: int, /) -> int:
    """`math.comb(n, k)`; raises E602 for a result beyond the limit."""
    if isinstance(n, int) and isinstance(k, int) and 0 < k < n:
        check_integer(min(k, n - k) * n.bit_length())
    return math.comb(n, k)


def perm(n: int, k: int | None = None, /) -> int:
    """`math.perm(n, k)`; raises E602 for a result beyond the limit."""
    if isinstance(n, int) and n > 1:
        check_integer((min(k, n) if isinstance(k, int) else n) * n.bit_length())
    return math.perm(n, k)


def lcm(*integers: int) -> int:
    """`math.lcm(…)`; raises E602 for a result beyond the limit."""
    check_integer(sum(n.bit_length() for n in integers if isinstance(n, int)))
    return math.lcm(*integers)


def fsum(values: Any, /) -> float:
    """`math.fsum(values)`."""
    return math.fsum(bounded(values))


def dist(p: Any, q: Any, /) -> float:
    """`math.dist(p, q)`."""
    return math.dist(tuple(bounded(p)), tuple(bounded(q)))


def prod(values: Any, /, *, start: Any = 1) -> Any:
    """`math.prod(values, start=…)`."""
    product = start
    for value in bounded(values):
        product = multiply(product, value)
    return product


MATH: dict[str, Any] = {
    **{name: each for name, each in vars(math).items() if name[0] != "_" and name != "sumprod"},
    **by_name(comb, dist, factorial, fsum, lcm, perm, prod),
}
"""What `math` holds."""
