"""The training loops that people write are compiled, or break where it is known."""

from __future__ import annotations

import pytest

from tests.loops.kinds import KINDS
from tests.loops.measure import outcome_of

BREAKS = {
    "w = (w - lr * w.grad).detach().requires_grad_()": "range(400)",
    "nn.LSTM": "loss.backward()",
    "gradient accumulation": "for step in range(400):",
    "LBFGS with a closure": "optimizer.step(closure)",
    "a custom autograd.Function": "ctx.save_for_backward(x)",
}
"""The kinds that are interpreted, and the source text where recording ends."""


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    compiled = outcome_of(KINDS[name], compiled=True)
    interpreted = outcome_of(KINDS[name], compiled=False)
    assert compiled.stdout == interpreted.stdout
    loops = compiled.session.interpreter.hot_loops
    if name not in BREAKS:
        assert sum(loop.compiled_count for loop in loops) > 200
        return
    assert not any(loop.compiled_count for loop in loops)
    broken = loops[0].broken
    assert broken is not None
    assert broken.span is not None
    assert broken.span.text.startswith(BREAKS[name])
    assert broken.reason
