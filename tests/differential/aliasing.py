"""Random programs over views, writes in place, hooks, grad modes, custom functions and transforms.

Every statement may fail: the program prints the class of its error and goes on, so that one program
compares many decisions. At its end it prints every tensor with its graph.
"""

from __future__ import annotations

from random import Random

HEAD = """\
import torch

def graph(n, depth=0):
    if n is None or depth > 3:
        return '.'
    return n.name().split('::')[-1] + str([graph(m, depth + 1) for m, _ in n.next_functions])

def shown(t):
    try:
        print(t.detach(), t.requires_grad, t.is_leaf, t._version, t.retains_grad)
    except RuntimeError as e:
        print('no', type(e).__name__)
    try:
        print(graph(t.grad_fn))
    except RuntimeError as e:
        print('no graph', type(e).__name__)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return g * 2

class Shown(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(x.shape)
    @staticmethod
    def backward(ctx, g):
        return g * 3

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 5

class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return x * y, y[:1] * 1
    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        print('pair', g is None, h is None)
        return (None, None) if g is None else (g * y, g * x)

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x ** 2
    @staticmethod
    def jvp(ctx, t):
        x, = ctx.saved_tensors
        return t * 3 * x ** 2

"""

LEAVES = [
    "torch.tensor([1., 2., 3., 4.], requires_grad=True)",
    "torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)",
    "torch.tensor([0.5, -1., 2., 1.5])",
    "torch.tensor([1. + 1j, 2. - 1j], requires_grad=True)",
]

VALUES = """
$x * 2;$x * $y;$x.clone();$x.exp();$x[:];$x[1:];$x[0];$x.view(-1);$x.t();$x.detach();$x.data;
$x.reshape(2, -1);$x.unsqueeze(0);$x.expand(2, *$x.shape);$x.chunk(2)[0];$x.unbind(0)[1];
$x.split(1)[0];$x.diagonal();$x.narrow(0, 0, 1);$x.squeeze();$x.conj();$x.real;$x.sum();
$x.mean(0);torch.view_as_real($x);torch.view_as_complex($x.reshape(-1, 2));
$x.as_strided((2,), (1,));$x ** 2;Shown.apply($x);Same.apply($x);Double.apply($x);
Double.apply($x.clone());Double.apply($x.clone()[:]);Pair.apply($x, $y)[0];Pair.apply($x, $y)[1];
Cube.apply($x);$x.requires_grad_();$x.contiguous();
torch.autograd.grad(($x * $x).sum(), $y, create_graph=True, allow_unused=True)[0];
$x.unfold(0, 2, 1);
torch.autograd.grad($x.sum(), [$y], retain_graph=True, materialize_grads=True)[0];
$x.select(0, -1);torch.func.grad(lambda t: (t * $y).sum())($x);
torch.func.vjp(lambda t: t * $y, $x)[0];torch.func.vjp(lambda t: t * t, $x)[1]($y)[0].detach();
torch.func.jvp(lambda t: t * $y, ($x,), ($y,))[1].detach();
torch.func.jvp(Cube.apply, ($x,), ($x,))[1].detach();
torch.func.jacrev(lambda t: t * $y)($x).sum().detach();
torch.func.hessian(lambda t: (t ** 3).sum())($x).sum().detach();
torch.func.jacfwd(lambda t: t.exp())($x).sum().detach();
torch.func.grad(lambda t: torch.func.grad(lambda s: (s ** 3).sum())(t).sum())($x).detach();
torch.func.grad(lambda t: (t * t.detach()).sum())($x).detach();
torch.func.grad(lambda t: Cube.apply(t).sum())($x).detach()
"""

WRITES = """
$x.add_(1);$x.mul_(2);$x.mul_($y);$x.copy_($y);$x.zero_();$x.exp_();$x[0] = 5.;$x[:1] = $y[:1];
$x += $y;$x.t_();$x.transpose_(0, -1);$x.unsqueeze_(0);$x.squeeze_();$x.detach_();
$x.requires_grad_(False);$x.data.add_(1);$x.fill_(3);$x.retain_grad();
$x.register_hook(lambda g: print('h', g));$x.grad = None;$x.register_hook(lambda g: g * 2);
$x.sum().backward();$x.sum().backward(retain_graph=True);($x * $y).sum().backward();
$x.abs().sum().backward(create_graph=True);print($x.grad);print($x._base is $y);
torch.autograd.backward($x.abs().sum(), inputs=[$y]);$x.requires_grad = True;$x.sub_($x);
$x.pow_(2);print($x.grad_fn is None, $x.requires_grad);$x.sin_();$x.sqrt_();$x.clamp_(0, 2);
$x.masked_fill_($x > 1, 0);$x.index_fill_(0, torch.tensor([0]), 1.);$x.t()[0] = 7.;
$x.view(-1).mul_(2);$x.detach().mul_(2);
$x.register_post_accumulate_grad_hook(lambda t: print('acc', t.grad));$x.data = $y.data
"""


def _rows(text: str) -> list[str]:
    return [row for row in text.replace("\n", "").split(";") if row]


VALUE_ROWS, WRITE_ROWS = _rows(VALUES), _rows(WRITES)

BLOCKS = ["torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()"]


def program(seed: int, number: int) -> str:
    """The text of a program."""
    random = Random(f"aliasing {seed}:{number}")
    names = ["a", "b"]
    lines = [HEAD, *(f"{name} = {random.choice(LEAVES)}" for name in names)]
    for step in range(random.randint(3, 9)):
        text = random.choice(WRITE_ROWS if random.random() < 0.5 else VALUE_ROWS)
        is_value = text in VALUE_ROWS
        for mark in ("$x", "$y"):
            recent = names[-2:] if random.random() < 0.6 else names
            text = text.replace(mark, random.choice(recent))
        if is_value:
            text = f"t{step} = {text}"
        depth = "    "
        lines.append("try:")
        if random.random() < 0.2:
            lines.append(f"    with {random.choice(BLOCKS)}:")
            depth = "        "
        lines += [f"{depth}{text}", "except Exception as e:", "    print(type(e).__name__)"]
        if is_value:
            lines += [f"    t{step} = {names[-1]}"]
            names.append(f"t{step}")
    for name in names:
        lines.append(f"shown({name})")
    lines += [
        f"for t in ({', '.join(names)}):",
        "    try:",
        "        t.abs().sum().backward(retain_graph=True)",
        "    except RuntimeError as e:",
        "        print(type(e).__name__)",
        "    if t.is_leaf or t.retains_grad:",
        "        print(t.grad)",
    ]
    return "\n".join(lines) + "\n"
