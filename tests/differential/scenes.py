"""Longer pieces of random programs: classes, modules, optimisers, functional transforms."""

from __future__ import annotations

from tests.differential.expressions import filled_dimensions
from tests.differential.writing import Row

CUSTOM_FUNCTIONS = [
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * t * $number

    @staticmethod
    def backward(ctx, g):
        t, = ctx.saved_tensors
        print('backward', g)
        return 2 * t * g * $number

$name = $class.apply($x)
print($name, $name.grad_fn.next_functions)
print(torch.autograd.grad($name.sum(), $x))"""),
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, other, scale):
        ctx.scale = scale
        ctx.save_for_backward(t, other)
        return t * other * scale

    @staticmethod
    def backward(ctx, g):
        t, other = ctx.saved_tensors
        print(ctx.needs_input_grad)
        return g * other * ctx.scale, g * t * ctx.scale, None

$name = $class.apply($x, $like, $number)
print($name)
$name.sum().backward(retain_graph=True)
print(type($name.grad_fn).__name__)"""),
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(t):
        return t.exp(), t.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, g, h):
        y, = ctx.saved_tensors
        return g * y + h

$name, $name1 = $class.apply($x)
print($name, $name1)
$name2, = torch.autograd.grad(($name * 2).sum() + $name1, $x, create_graph=True)
print($name2)
print(torch.autograd.grad($name2.sum(), $x))"""),
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        t.mul_(2)
        ctx.mark_dirty(t)
        return t

    @staticmethod
    def backward(ctx, g):
        return 2 * g

$name = $x.clone()
$name1 = $class.apply($name)
print($name1 is $name, $name, $name._version)
print(torch.autograd.grad($name.sum(), $x))"""),
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        signs = t.sign()
        ctx.mark_non_differentiable(signs)
        return t.abs(), signs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, h):
        print(h)
        return g

$name, $name1 = $class.apply($x)
print($name, $name1, $name1.requires_grad)
print(torch.autograd.grad($name.sum(), $x))"""),
    Row("""\
class $class(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        return None

$name = $class.apply($x)
($name * $x).sum().backward(retain_graph=True)
print($x.grad)"""),
]

MODULES = [
    Row("""\
torch.manual_seed($seed)
$name = nn.Linear($elements, $count)
$name1 = $name($x.reshape(-1))
print($name, $name1)
$name1.sum().backward(retain_graph=True)
print($name.weight.grad, $name.bias.grad)""", fits=filled_dimensions),
    Row("""\
class $class(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.full((size,), 0.5))
        self.register_buffer('shift', torch.arange(size) * 1.0)

    def forward(self, t):
        return ($map(t)) * self.scale + self.shift

$name = $class($elements)
print([n for n, p in $name.named_parameters()], $name($x.reshape(-1)))
$name($x.reshape(-1)).sum().backward(retain_graph=True)
print($name.scale.grad)
print($name.state_dict())""", fits=filled_dimensions),
    Row("""\
torch.manual_seed($seed)
$name = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
$name1 = torch.tensor([[0.5, -1.0], [0.25, 2.0]])
$name2 = torch.optim.SGD($name.parameters(), lr=0.1, momentum=0.5)
for i in range($count):
    $name2.zero_grad()
    loss = ($name($name1) ** 2).mean()
    loss.backward()
    $name2.step()
    print(loss.item() > 0, f'{loss.item():.3f}')
print(sum(p.numel() for p in $name.parameters()), $name)"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))
$name.eval()
print($name(torch.tensor([1.0, -1.0, 0.5])))
$name.train()
print($name(torch.tensor([1.0, -1.0, 0.5])).shape, $name.training)"""),
    Row("""\
$name = nn.$loss()
$name1 = $name($x, $like)
print($name, $name1)
print(torch.autograd.grad($name1, $x))""", fits=filled_dimensions),
    Row("""\
torch.manual_seed($seed)
$name = nn.Embedding(5, 2)
$name1 = $name(torch.tensor([1, 3, 1]))
print($name1)
$name1.sum().backward()
print($name.weight.grad)"""),
    Row("""\
$name = nn.ParameterList([nn.Parameter($like.detach().clone()) for i in range(2)])
(sum(p for p in $name) * $x).sum().backward(retain_graph=True)
print([p.grad for p in $name])"""),
]  # fmt: skip

OPTIMISERS = [
    Row("""\
$name = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
$name1 = torch.optim.$optimiser
for i in range($count):
    $name1.zero_grad()
    loss = (($name - torch.tensor([0.5, 0.5, 0.5])) ** 2).sum()
    loss.backward()
    $name1.step()
    print(loss, $name)"""),
    Row(
        """\
$name = nn.Parameter($like.detach().clone())
$name1 = torch.optim.$optimiser
(($name * 2 - $x.detach()) ** 2).sum().backward()
$name1.step()
print($name, $name.grad, $name._version)
$name1.zero_grad(set_to_none=$flag)
print($name.grad)""",
        kinds="f",
    ),
    Row("""\
$name = [torch.tensor(1.5, requires_grad=True), torch.tensor([2.0, -1.0], requires_grad=True)]
$name1 = torch.optim.SGD([{'params': $name[:1]}, {'params': $name[1:], 'lr': 0.5}], lr=0.1)
$name2 = torch.optim.lr_scheduler.StepLR($name1, step_size=1, gamma=0.5)
for i in range($count):
    $name1.zero_grad()
    ($name[0] * $name[1]).pow(2).sum().backward()
    print(nn.utils.clip_grad_norm_($name, 1.0))
    $name1.step()
    $name2.step()
    print($name, $name2.get_last_lr())"""),
    Row(
        """\
$name = torch.tensor([0.5, -0.25], requires_grad=True)
for i in range($count):
    loss = ($map(t)).sum()
    loss.backward()
    with torch.no_grad():
        $name -= 0.1 * $name.grad
    $name.grad.zero_()
    print(loss.item(), $name)""".replace("($map(t))", "($name * $name.sin())")
    ),
]

FUNCTIONALS = [
    Row("print(torch.autograd.functional.jacobian(lambda t: $map(t), $x.detach()))", rank=(0, 1)),
    Row("print(torch.autograd.functional.hessian(lambda t: ($map(t)).sum(), $x.detach()))",
        rank=(0, 1)),
    Row("print(torch.autograd.functional.vjp(lambda t: $map(t), $x.detach(), $like.detach()))"),
    Row("print(torch.autograd.functional.jvp(lambda t: $map(t), $x.detach(), $like.detach()))"),
    Row("print(torch.autograd.functional.hvp(lambda t: ($map(t)).sum(), $x.detach(),"
        " $like.detach()))"),
    Row("print(torch.func.grad(lambda t: ($map(t)).sum())($x.detach()))"),
    Row("print(torch.func.grad_and_value(lambda t: ($map(t)).mean())($x.detach()))"),
    Row("print(torch.func.jacrev(lambda t: $map(t))($x.detach()))", rank=(0, 1)),
    # Not of 0-dim tensors: beside a float PyTorch then gives the tangent in float64.
    Row("print(torch.func.jacfwd(lambda t: $map(t))($x.detach()))", rank=(1, 1)),
    Row("print(torch.func.hessian(lambda t: ($map(t)).sum())($x.detach()))", rank=(0, 1)),
    Row("print(torch.func.vmap(lambda t: $map(t))($x.detach()))", rank=(1, 3),
        fits=filled_dimensions),
    Row("$name, $name1 = torch.func.vjp(lambda t: $map(t), $x.detach())\n"
        "print($name, $name1(torch.ones_like($name)))"),
    Row("print(torch.func.jvp(lambda t: $map(t), ($x.detach(),), ($like.detach(),)))", rank=(1, 3)),
    Row("from torch.utils.checkpoint import checkpoint\n"
        "$name = checkpoint(lambda t: $map(t), $x, use_reentrant=False)\n"
        "print($name)\n$name.sum().backward(retain_graph=True)"),
    Row("print(torch.autograd.gradcheck(lambda t: $map(t), $x.detach().double().requires_grad_()))",
        fits=filled_dimensions),
]  # fmt: skip

RANDOM_NUMBERS = [
    Row("torch.manual_seed($seed)\nprint(torch.rand($count), torch.randn(2, $count))"),
    Row("torch.manual_seed($seed)\nprint(torch.randint(0, 100, ($count, 3)), torch.randperm(6))"),
    Row("torch.manual_seed($seed)\nprint(torch.randn(17), torch.rand(3, dtype=torch.float64))"),
    Row("torch.manual_seed($seed)\nprint(F.dropout(torch.ones(8), 0.3), torch.bernoulli("
        "torch.full((6,), 0.4)))"),
    Row("$name = torch.Generator().manual_seed($seed)\nprint(torch.rand(3, generator=$name), "
        "torch.rand(2, generator=$name))"),
    Row("torch.manual_seed($seed)\n$name = torch.randn($x.shape)\nprint($name * $x)"),
    Row("torch.manual_seed($seed)\nprint(torch.multinomial(torch.tensor([0.1, 0.3, 0.6]), 5, "
        "replacement=True), torch.normal(1.0, 2.0, (3,)))"),
    Row("torch.manual_seed($seed)\n$name = torch.empty(2, 3)\nprint(nn.init.xavier_uniform_($name),"
        " $name.uniform_(-1, 1), $name.normal_())"),
]  # fmt: skip

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "custom functions": (3, [row._replace(needs="graph") for row in CUSTOM_FUNCTIONS]),
    "modules": (3, MODULES),
    "optimisers": (3, OPTIMISERS),
    "functionals": (3, FUNCTIONALS),
    "random numbers": (2, RANDOM_NUMBERS),
}
"""Each family of longer pieces, and how often it is drawn beside the others."""
