"""Longer pieces of random programs with the layers of `torch.nn`, their hooks and their states."""

from __future__ import annotations

from tests.differential.writing import Row

_INPUT = "torch.linspace(-1, 1, 24).reshape(2, 3, 4)"


def _layer(layer: str, given: str = _INPUT) -> Row:
    """A layer, what it makes of an input, and its gradients."""
    return Row(
        f"torch.manual_seed($seed)\n$name = nn.{layer}\n$name1 = {given}\n"
        "$name1.requires_grad_()\n$name2 = $name($name1)\n"
        "print($name, $name2, $name2.grad_fn.name())\n"
        "($name2 * $name2).sum().backward()\nprint($name1.grad)\n"
        "print({key: p.grad for key, p in $name.named_parameters()})"
    )


LAYERS = [
    _layer("Conv1d(3, 2, 2)"),
    _layer("Conv1d(3, 3, 3, padding=1, groups=3, bias=False)"),
    _layer("Conv2d(1, 2, 2, stride=2)", "torch.arange(16.0).reshape(1, 1, 4, 4) / 8"),
    _layer("ConvTranspose1d(3, 2, 2)"),
    _layer("LayerNorm(4)"),
    _layer("LayerNorm((3, 4), elementwise_affine=False)"),
    _layer("BatchNorm1d(3)"),
    _layer("GroupNorm(3, 3)"),
    _layer("InstanceNorm1d(3)"),
    _layer("RMSNorm(4)"),
    _layer("MaxPool1d(2)"),
    _layer("AvgPool1d(2, stride=1)"),
    _layer("AdaptiveAvgPool1d(2)"),
    _layer("Softmax(dim=1)"),
    _layer("LogSoftmax(-1)"),
    _layer("PReLU()"),
    _layer("GLU()"),
    _layer("GELU()"),
    _layer("Softplus(beta=2)"),
    _layer("Flatten()"),
    _layer("Unflatten(2, (2, 2))"),
    _layer("Linear(4, 2, bias=False)"),
    _layer("Sequential(nn.Linear(4, 3), nn.SiLU(), nn.LayerNorm(3), nn.Linear(3, 1))"),
    _layer("ConstantPad1d(1, 0.5)"),
    _layer("Upsample(scale_factor=2)"),
    _layer("Identity()"),
    _layer("ReLU(inplace=False)"),
    Row("""\
torch.manual_seed($seed)
$name = nn.LSTM(2, 3, batch_first=True)
$name1, ($name2, $name3) = $name(torch.linspace(-1, 1, 8).reshape(1, 4, 2))
print($name1, $name2.shape, $name3)
$name1.sum().backward()
print($name.weight_hh_l0.grad)"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.GRU(2, 2)
$name1, $name2 = $name(torch.linspace(-1, 1, 8).reshape(4, 1, 2))
print($name1, $name2)
$name1[-1].sum().backward()
print($name.bias_ih_l0.grad)"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.RNNCell(2, 3)
$name1 = torch.zeros(1, 3)
for i in range($count):
    $name1 = $name(torch.full((1, 2), float(i)), $name1)
print($name1, $name1.grad_fn.name())
$name1.sum().backward()
print($name.weight_ih.grad)"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.MultiheadAttention(4, 2, batch_first=True)
$name1 = torch.linspace(-1, 1, 12).reshape(1, 3, 4).requires_grad_()
$name2, $name3 = $name($name1, $name1, $name1)
print($name2, $name3)
$name2.sum().backward()
print($name1.grad.shape)"""),
]

STATES = [
    Row("""\
torch.manual_seed($seed)
$name = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
$name1 = $name[0].register_forward_hook(lambda m, args, out: print('forward', out))
$name2 = $name.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
$name3 = $name[0].register_full_backward_hook(lambda m, gi, go: print('backward', gi, go))
$name(torch.tensor([[1.0, $number]], requires_grad=True)).sum().backward()
for handle in ($name1, $name2, $name3):
    handle.remove()
print($name(torch.ones(1, 2)))"""),
    Row("""\
class $class(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for i in range(k)])
        self.gains = nn.ParameterDict({'a': nn.Parameter(torch.ones(2) * $number)})
        self.register_buffer('calls', torch.tensor(0))

    def forward(self, t):
        self.calls += 1
        for layer in self.layers:
            t = torch.tanh(layer(t)) * self.gains['a']
        return t

    def extra_repr(self):
        return f'calls={self.calls.item()}'

torch.manual_seed($seed)
$name = $class(2)
print($name(torch.ones(1, 2)), $name)
print([key for key, _ in $name.named_parameters()], list($name.state_dict()))
$name1 = $class(2)
print($name1.load_state_dict($name.state_dict()), torch.equal($name1.gains['a'], $name.gains['a']))
print(len(list($name.modules())), [type(m).__name__ for m in $name.children()])"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.Linear(2, 2)
$name.weight.requires_grad_(False)
$name.bias.data.fill_($number)
$name1 = torch.optim.SGD([p for p in $name.parameters() if p.requires_grad], lr=0.5)
for i in range($count):
    $name1.zero_grad()
    ($name(torch.ones(3, 2)) ** 2).mean().backward()
    print(nn.utils.clip_grad_norm_($name.parameters(), 1.0), $name.weight.grad)
    $name1.step()
print($name.bias, $name1.param_groups[0]['lr'])
$name.apply(lambda m: nn.init.constant_(m.weight, 0.5))
print($name.weight, $name.double().weight.dtype)"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.Linear(2, 1)
$name1 = {key: p.detach() for key, p in $name.named_parameters()}
def $name2(parameters, sample):
    return torch.func.functional_call($name, parameters, (sample,)).pow(2).sum()
$name3 = torch.tensor([[1.0, 2.0], [0.5, $number]])
print(torch.func.grad($name2)($name1, $name3))
print(torch.func.vmap(torch.func.grad($name2), in_dims=(None, 0))($name1, $name3)['weight'])"""),
    Row("""\
torch.manual_seed($seed)
$name = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
$name1 = torch.optim.Adam($name.parameters(), lr=0.1, weight_decay=0.01)
$name2 = torch.optim.lr_scheduler.ExponentialLR($name1, gamma=0.9)
$name3 = torch.linspace(-1, 1, 12).reshape(6, 2)
for i in range($count):
    $name1.zero_grad(set_to_none=$flag)
    loss = F.smooth_l1_loss($name($name3).squeeze(1), $name3[:, 0])
    loss.backward()
    $name1.step()
    $name2.step()
    print(f'{loss.item():.3f}', $name2.get_last_lr())
$name.eval()
print($name($name3[:2]), $name[1].num_batches_tracked)"""),
]

FAMILIES: dict[str, tuple[int, list[Row]]] = {"layers": (3, LAYERS), "states": (2, STATES)}
"""Each family of these pieces, and how often it is drawn beside the other longer ones."""
