"""`np.poly1d`: a polynomial as a value, with its operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import type_error
from gradcli.language.objects.types import names
from gradcli.library.numpy.array import compute, unwrap, wrap, written
from gradcli.library.numpy.costs import held

_LONGEST_VARIABLE = 80


def host_of(value: Any) -> Any:
    """What NumPy's own polynomials see of a value."""
    return value.host if type(value) is Polynomial else unwrap(value)


def _wrapped(function: Callable[[], Any], elements: int, work: int = 0) -> Any:
    """What a function of NumPy gives, its polynomials the language's."""
    results: list[Any] = []
    # A polynomial is no array, so it passes by `wrap`.
    compute(lambda: results.append(function()), (), {}, elements, work)
    result = results[0]
    parts = [_value(each) for each in result] if isinstance(result, tuple) else _value(result)
    return tuple(parts) if isinstance(result, tuple) else parts


def _value(result: Any) -> Any:
    return Polynomial.of(result) if isinstance(result, np.poly1d) else wrap(result)


class Polynomial:
    """`np.poly1d([1, 0, 2])`: the polynomial with these coefficients, the highest power first."""

    __slots__ = ("host",)

    language_name: ClassVar[str] = "numpy.poly1d"
    language_str: ClassVar[bool] = True
    language_attributes = names("c coef coefficients coeffs deriv integ o order r roots variable")

    __array_ufunc__: ClassVar[None] = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if variable is not None and (
            type(variable) is not str or len(variable) > _LONGEST_VARIABLE
        ):
            raise type_error("the variable of a polynomial is a short string")
        numbers = host_of(c_or_r)
        terms = held(np.atleast_1d(numbers))
        self.host: Any = None

        def make() -> None:
            self.host = np.poly1d(numbers, bool(r), variable)

        compute(make, (), {}, terms, terms**2 if r else 0)

    @classmethod
    def of(cls, host: Any) -> Polynomial:
        """A polynomial that NumPy made."""
        polynomial = cls.__new__(cls)
        polynomial.host = host
        return polynomial

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        if name in ("r", "roots"):
            terms = self._terms()
            return compute(lambda: self.host.roots, (), {}, terms**2, terms**3 >> 3)
        return wrap(getattr(self.host, name))

    def __call__(self, val: Any) -> Any:
        value = host_of(val)
        size = held(np.atleast_1d(value))
        return _wrapped(lambda: self.host(value), size, size * self._terms())

    def deriv(self, m: int = 1) -> Any:
        """The m-th derivative."""
        return _wrapped(lambda: self.host.deriv(unwrap(m)), self._terms())

    def integ(self, m: int = 1, k: Any = 0) -> Any:
        """The m-th antiderivative, with the constants `k`."""
        times = operator.index(unwrap(m))
        return _wrapped(lambda: self.host.integ(times, unwrap(k)), self._terms() + max(times, 0))

    def _terms(self) -> int:
        return len(self.host) + 1

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, iter(self.host))

    def __getitem__(self, power: Any) -> Any:
        return compute(lambda: self.host[unwrap(power)], (), {}, 1)

    def __neg__(self) -> Any:
        return _wrapped(lambda: -self.host, self._terms())

    def __pow__(self, power: Any) -> Any:
        times = unwrap(power)
        terms = self._terms() * (max(times, 0) if isinstance(times, int) else 1)
        return _wrapped(lambda: self.host**times, terms, terms * self._terms())

    def __eq__(self, other: object) -> Any:
        return type(other) is Polynomial and wrap(self.host == other.host)

    def __ne__(self, other: object) -> Any:
        return type(other) is not Polynomial or wrap(self.host != other.host)

    def __repr__(self) -> str:
        return written(lambda coefficients: repr(np.poly1d(coefficients)), self.host.coeffs)

    def __str__(self) -> str:
        return written(lambda coefficients: self.host, self.host.coeffs)


def _operator(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """An operator of polynomials, with the polynomial on the right where it is swapped."""
    function = getattr(operator, name)

    def operate(self: Polynomial, other: Any) -> Any:
        if isinstance(other, str):
            return NotImplemented
        left, right = (host_of(other), self.host) if swapped else (self.host, host_of(other))
        terms = held(np.atleast_1d(right if left is self.host else left))
        return _wrapped(lambda: function(left, right), terms + self._terms(), terms * self._terms())

    return operate


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Polynomial, f"__{_name}__", _operator(_name))
    setattr(Polynomial, f"__r{_name}__", _operator(_name, swapped=True))
