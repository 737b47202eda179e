"""What an entry may raise: entries that say that no value makes them raise are run on values that
might.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS, NEVER, RAISES, READS
from gradcli.ops.definition.op import Op, op, pointwise, registry
from gradcli.ops.lookup import effects_of
from gradcli.show.help.ops import example_of, op_names
from tests.entry_calls import VARIANTS, Call, hear_program, hear_rows, hostile, in_dtype

bring_all()

_MOST = 3
"""The calls of one entry that are run again."""

_PROGRAMS = """
import torch.nn.functional as F
x = torch.tensor([[0.5, -2.], [1., 3.]], requires_grad=True)
for y in (
    F.rrelu(x, training=True),
    F.rrelu(x + 1, training=True, inplace=True),
    nn.LSTM(2, 2)(x)[0],
    nn.GroupNorm(1, 2)(x),
    torch.distributions.Gamma(x.exp(), x.exp()).rsample(),
    torch.distributions.Dirichlet(x.exp()).rsample(),
):
    torch.autograd.grad(y.sum(), x, create_graph=True)
nn.utils.rnn.pack_padded_sequence(x[..., None], [2, 1], batch_first=True)
"""
"""What no row and no example calls."""

_UNHEARD = {"_to_copy.device", "native_group_norm_backward"}
"""The entries that need a GPU, or that only rules call, on arrays."""

_DTYPES = (np.int64, np.uint8, np.bool_, np.float16, np.complex128)


def test_every_entry_says_what_it_may_raise() -> None:
    for key, entry in registry.items():
        assert entry.raises in RAISES, key
        assert CHECKS not in entry.effects, f"{key}: `raises` says it"
        # What reads a result of another shape than that of the recording may raise.
        assert READS not in entry.effects or entry.raises == BY_VALUES, key


def test_effects_tell_of_checks() -> None:
    tensor = registry["gather"]
    assert CHECKS in effects_of(tensor.apply)
    assert CHECKS not in effects_of(registry["exp"].apply)


@pytest.fixture(scope="module")
def calls() -> dict[Op, list[Call]]:
    """Calls of the entries, from the rows, the examples and what neither calls."""
    found: dict[Op, list[Call]] = {}
    hear_rows(found, _MOST)
    for each in op_names():
        hear_program(found, example_of(each), _MOST)
    hear_program(found, _PROGRAMS, _MOST)
    return found


def _with_dtypes(calls: list[Call]) -> Iterator[Call]:
    """Calls; those of a pointwise entry also on other dtypes."""
    yield from calls
    for call in calls[:1]:
        if call.op.pointwise:
            for dtype in _DTYPES:
                yield call.with_arrays(lambda array, at, dtype=dtype: in_dtype(array, dtype))


def _slip(call: Call) -> str:
    """What an entry that raises by kinds does on hostile values and must not do; "" for nothing."""
    usual = call.outcome()
    if isinstance(usual, Exception):
        return ""
    for variant in range(VARIANTS):
        found = call.with_arrays(lambda array, at, v=variant: hostile(array, v, at)).outcome()
        if isinstance(found, Exception):
            return f"raises {type(found).__name__}: {found}"
        if found != usual:
            return f"gives {found}, and not {usual}"
    return ""


def test_no_value_makes_them_raise(calls: dict[Op, list[Call]]) -> None:
    wrong = {}
    for key, entry in registry.items():
        if entry.raises != BY_VALUES:
            made = calls.get(entry, [])
            slips = [_slip(call) for call in _with_dtypes(made)]
            assert made or key in _UNHEARD, f"{key}: nothing calls it"
            if any(slips):
                wrong[key] = next(filter(None, slips))
    assert wrong == {}


def test_nothing_makes_them_raise(calls: dict[Op, list[Call]]) -> None:
    for key, entry in registry.items():
        if entry.raises == NEVER:
            for call in calls[entry]:
                for dtype in _DTYPES:
                    found = call.with_arrays(
                        lambda array, at, dtype=dtype: in_dtype(array, dtype)
                    ).outcome()
                    assert not isinstance(found, Exception), (key, dtype, found)


def test_wrong_declarations_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})

    def quotient(self: Any, other: Any) -> Any:
        if not np.all(other):
            raise ZeroDivisionError
        return self / other

    def nonzero(self: Any) -> Any:
        return self[self != 0]

    one = np.ones(3)
    divided = pointwise("divided", quotient)
    assert "raises ZeroDivisionError" in _slip(
        Call(divided, {"self": one, "other": one}, frozenset())
    )
    picked = op("picked", nonzero, constant=("self",), raises=BY_KINDS)
    assert "gives" in _slip(Call(picked, {"self": one}, frozenset()))
    assert op("unsaid", nonzero).raises == BY_VALUES
