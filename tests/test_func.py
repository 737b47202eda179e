"""`torch.func`: levels, histories, structures and what is refused, as recorded from PyTorch."""

from __future__ import annotations

import pytest

from tests.recorded import printed, raised
from tests.rows import each_row

FUNC = """from torch.func import *
from torch.nn import Linear
from torch.utils.checkpoint import checkpoint

x = torch.tensor([0.5, -1.5, 2.0])
y = torch.tensor([1.0, 2.0, -0.5])
t = torch.tensor(0.5)
w = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
"""

PRINTED = {
    # The given tensor is another variable than the one that the function is called with.
    "grad(lambda a: (a * y).sum())(y)": "tensor([ 1.0000,  2.0000, -0.5000])",
    "grad(lambda a: (a * w).sum())(w)": "tensor([2., 3., 4.], grad_fn=<MulBackward0>)",
    "grad(lambda a: a.detach().sum() + 0 * a.sum())(x)": "tensor([0., 0., 0.])",
    "grad(lambda a: torch.tensor(2.0) + a.detach().sum())(x)": "tensor([0., 0., 0.])",
    # Histories lead to the outside alone.
    "grad(lambda a: (a**2).sum())(x).requires_grad": "False",
    "grad(lambda a: (a**2).sum())(w).requires_grad": "True",
    "grad(lambda a: (w * a**2).sum())(x).requires_grad": "True",
    "grad(grad(lambda a: w[0] * a**2))(t)": "tensor(4., grad_fn=<MulBackward0>)",
    "jacrev(lambda a: grad(lambda b: (a * b**2).sum())(x))(y).diagonal()": (
        "tensor([ 1., -3.,  4.])"
    ),
    "w.grad": "None",
    "vjp(lambda a: a * 2, w)[0].requires_grad": "True",
    "vjp(lambda a: a * 2, x)[0].requires_grad": "False",
    "jvp(lambda a: a * 2, (w,), (x,))[0]": "tensor([4., 6., 8.], grad_fn=<AliasBackward0>)",
    # Structures.
    "grad(lambda p: (p[0] * p[1]['b']).sum())((x, {'b': y}))": (
        "(tensor([ 1.0000,  2.0000, -0.5000]), {'b': tensor([ 0.5000, -1.5000,  2.0000])})"
    ),
    "grad(lambda a, b: (a * b).sum(), argnums=(1,))(x, y)": (
        "(tensor([ 0.5000, -1.5000,  2.0000]),)"
    ),
    "grad(lambda a, b: (a * b).sum(), argnums=-1)(x, y)": "tensor([ 0.5000, -1.5000,  2.0000])",
    "grad(lambda a, k: (a * k).sum())(x, k=2)": "tensor([2., 2., 2.])",
    "grad(lambda a: (a.sum(), [a[0]]), has_aux=True)(x)": (
        "(tensor([1., 1., 1.]), [tensor(0.5000)])"
    ),
    "vjp(lambda a: (a, [a.sum()]), x)[1]((y, [t]))": "(tensor([1.5000, 2.5000, 0.0000]),)",
    "jacrev(lambda a: a)(t)": "tensor(1.)",
    "jacfwd(lambda a: (a, a * 2))(t)": "(tensor(1.), tensor(2.))",
    "hessian(lambda a, b: a * b**2, argnums=(0, 1))(t, t)": (
        "((tensor(0.), tensor(1.)), (tensor(1.), tensor(1.)))"
    ),
    "vmap(lambda a, b: (a + b, [a]), in_dims=(0, None), out_dims=(0, [0]))(x, t)": (
        "(tensor([ 1.0000, -1.0000,  2.5000]), [tensor([ 0.5000, -1.5000,  2.0000])])"
    ),
    "vmap(grad(grad(torch.sin)))(x)": "tensor([-0.4794,  0.9975, -0.9093])",
}

ERRORS = {
    "grad(lambda a: a)(x)": "RuntimeError",
    "grad(lambda a: 3)(x)": "RuntimeError",
    "grad(lambda a: a.sum())(torch.tensor([1, 2]))": "RuntimeError",
    "grad(lambda a: a.sum(), argnums=3)(x)": "RuntimeError",
    "grad(lambda a: a.sum(), argnums=(0, 0))(x)": "RuntimeError",
    "grad(lambda a: a.sum(), has_aux=True)(x)": "RuntimeError",
    "grad(lambda a: (a.sum(), 'aux'), has_aux=True)(x)": "RuntimeError",
    "vjp(lambda a: 3, x)": "RuntimeError",
    "vjp(lambda a: (a, a), x)[1](x)": "RuntimeError",
    "vjp(lambda a: a, x)[1](x, x)": "TypeError",
    "jvp(lambda a: a, x, x)": "RuntimeError",
    "jvp(lambda a: a, (x,), (t,))": "RuntimeError",
    "vmap(lambda a: a, in_dims=2)(x)": "ValueError",
    "vmap(lambda a: a, in_dims=None)(x)": "ValueError",
    "vmap(lambda a, b: a, in_dims=(0,))(x, x)": "ValueError",
    "vmap(lambda a, b: a + b)(x, x[:2])": "ValueError",
    "vmap(lambda a: 'a')(x)": "ValueError",
    "vmap(lambda a: a, in_dims=[0])(x)": "ValueError",
    "vmap(lambda a: a, out_dims='a')(x)": "ValueError",
    "vmap(lambda a: a, out_dims=None)(x)": "ValueError",
    "vmap(lambda a: a, chunk_size=0)(x)": "ValueError",
    "vmap(lambda a: a, chunk_size='a')(x)": "TypeError",
    # What asks for the values of one example.
    "vmap(lambda a: a.item())(x)": "RuntimeError",
    "vmap(lambda a: float(a * 2))(x)": "RuntimeError",
    "vmap(lambda a: a if a > 0 else -a)(x)": "RuntimeError",
    "vmap(lambda a: [1, 2, 3][a])(x.long())": "RuntimeError",
    "vmap(lambda a: max(a, a + 1))(x)": "RuntimeError",
    "vmap(lambda a: a.tolist())(x)": "RuntimeError",
    "vmap(lambda a: a.view(1).unique())(x)": "RuntimeError",
    "vmap(lambda a: a.view(1)[a.view(1) > -9])(x)": "RuntimeError",
    "vmap(lambda a: torch.equal(a, a))(x)": "RuntimeError",
    "vmap(lambda a: torch.zeros(1).add_(a))(x)": "RuntimeError",
    "vmap(vmap(lambda a: a.item()))(x.view(1, 3))": "RuntimeError",
    # What has no forward mode.
    "jvp(lambda a: torch.special.zeta(2.0, a), (y,), (x,))": "NotImplementedError",
    "jacfwd(lambda a: a // 2)(x)": "NotImplementedError",
    "vmap(lambda a: a, randomness='some')(x)": "RuntimeError",
    "vmap(lambda a: a * torch.rand(1))(x)": "RuntimeError",
    "functional_call(Linear(3, 1), {'bias': t}, x, strict=True)": "RuntimeError",
}


@pytest.mark.parametrize("expression", PRINTED)
def test_printed(expression: str) -> None:
    assert printed(f"{FUNC}print({expression})") == PRINTED[expression]


@each_row("expression", ERRORS)
def test_errors(expression: str) -> None:
    assert raised(FUNC + expression) == ERRORS[expression]


def test_results_lead_back_to_what_requires_grad() -> None:
    program = f"""{FUNC}
grad(lambda a: (a**3).sum())(w).sum().backward()
print(w.grad)
"""
    assert printed(program) == "tensor([12., 18., 24.])"


def test_vmap_refuses_to_draw_before_it_has_drawn() -> None:
    program = f"""{FUNC}
def draw(a):
    return a * torch.rand(())
def outer(a):
    return vmap(draw, randomness='different')(a)
torch.manual_seed(0)
for function in (draw, outer):
    try:
        vmap(function)(torch.ones(2, 3))
    except RuntimeError:
        print(torch.rand(1))
vmap(lambda a: torch.manual_seed(0) and a)(x)
print(torch.rand(1))
"""
    assert printed(program).split("\n") == [
        "tensor([0.4963])",
        "tensor([0.7682])",
        "tensor([0.4963])",
    ]


def test_functional_call_leaves_the_module_as_it_was() -> None:
    program = f"""{FUNC}
net = Linear(3, 1)
before = net.weight
functional_call(net, {{"weight": torch.ones(1, 3)}}, x)
try:
    functional_call(net, {{"weight": torch.ones(1, 7)}}, x)
except RuntimeError:
    pass
print(net.weight is before)
"""
    assert printed(program) == "True"


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_gives_the_same_gradients(use_reentrant: bool) -> None:
    program = f"""{FUNC}
net = Linear(3, 2)
f = lambda a: (net(a).tanh() ** 2).sum() * a.prod()
f(w).backward()
plain = [w.grad.clone()] + [p.grad.clone() for p in net.parameters()]
w.grad = None
net.zero_grad()
inner = lambda a: checkpoint(f, a, use_reentrant={use_reentrant})
checkpoint(inner, w, use_reentrant=False).backward()
again = [w.grad] + [p.grad for p in net.parameters()]
print([torch.equal(a, b) for a, b in zip(plain, again)])
"""
    assert printed(program) == "[True, True, True]"
