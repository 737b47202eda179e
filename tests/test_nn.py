"""Modules: what they print, draw, hold and refuse. The texts and numbers are PyTorch's."""

from __future__ import annotations

import pytest

from tests.rows import each_row
from tests.running import invoke, run


def test_nested_representation() -> None:
    outcome = run(
        "import torch\n"
        "from torch import nn\n"
        "print(nn.ModuleDict({'a': nn.ModuleList([nn.Tanh(), nn.Tanh(), nn.ReLU()]),"
        " 'b': nn.ParameterList([torch.ones(2), torch.zeros(3, 1)])}))\n"
    )
    assert outcome.stdout == (
        "ModuleDict(\n"
        "  (a): ModuleList(\n"
        "    (0-1): 2 x Tanh()\n"
        "    (2): ReLU()\n"
        "  )\n"
        "  (b): ParameterList(\n"
        "      (0): Parameter containing: [torch.float32 of size 2]\n"
        "      (1): Parameter containing: [torch.float32 of size 3x1]\n"
        "  )\n"
        ")\n"
    )


ERRORS = [
    line.split(" -> ")
    for line in """
nn.Dropout(2) -> ValueError
nn.Linear(-1, 2) -> RuntimeError
nn.Linear(2) -> TypeError
nn.ReLU(3, 4) -> TypeError
nn.ReLU(foo=3) -> TypeError
nn.ReLU()(3) -> TypeError
nn.MSELoss()(torch.ones(2)) -> TypeError
nn.MSELoss(reduction='x')(torch.ones(1), torch.ones(1)) -> ValueError
nn.CrossEntropyLoss(weight=[1]) -> TypeError
nn.Conv2d(3, 4, 3, groups=2) -> ValueError
nn.Conv2d(4, 4, 3, padding_mode='x') -> ValueError
nn.Conv2d(4, 4, 3, padding='same', stride=2) -> ValueError
nn.BatchNorm2d(3)(torch.ones(2, 3)) -> ValueError
nn.GroupNorm(3, 4) -> ValueError
nn.Embedding(3, 2, padding_idx=4) -> AssertionError
nn.Unflatten(1, 3) -> TypeError
nn.LSTM(2, 3, dropout=2) -> ValueError
nn.LSTM(2, 3)(torch.ones(2, 3, 4)) -> RuntimeError
nn.RNN(2, 3)(torch.ones(2)) -> ValueError
nn.Sequential(3) -> TypeError
nn.Sequential(nn.ReLU()).append(3) -> TypeError
nn.Sequential(nn.ReLU())[4] -> IndexError
nn.ModuleDict({'a': nn.ReLU()})['b'] -> KeyError
nn.ModuleList([nn.ReLU()])(1) -> NotImplementedError
nn.Module().foo -> AttributeError
nn.Module().train(3) -> ValueError
nn.Module().to(torch.int32) -> TypeError
nn.Linear(1, 1).register_parameter('a.b', None) -> KeyError
nn.Linear(1, 1).register_parameter('p', torch.ones(1)) -> TypeError
nn.Linear(1, 1).register_buffer('weight', torch.ones(1)) -> KeyError
nn.Linear(1, 1).add_module('m', 3) -> TypeError
nn.Linear(1, 1).load_state_dict({}) -> RuntimeError
nn.Linear(1, 1).load_state_dict({'weight': torch.ones(2, 2), 'bias': torch.ones(1)}) -> RuntimeError
nn.Linear(1, 1).get_parameter('scale') -> AttributeError
nn.Embedding.from_pretrained(torch.ones(3)) -> AssertionError
nn.Embedding.from_pretrained([1.0]) -> AttributeError
nn.Linear(1, 1).load_state_dict({'bias': torch.ones(2)}, False, assign=True) -> RuntimeError
del nn.Sequential(nn.ReLU())[2] -> IndexError
setattr(nn.Linear(1, 1), 'weight', nn.Buffer(torch.ones(1))) -> TypeError
nn.init.kaiming_uniform_(torch.ones(3)) -> ValueError
nn.init.calculate_gain('x') -> ValueError
nn.init.eye_(torch.ones(3)) -> ValueError
""".strip().splitlines()
]


@each_row(("expression", "raised"), ERRORS)
def test_error(expression: str, raised: str) -> None:
    outcome = run(f"import torch\nfrom torch import nn\n{expression}\n")
    assert outcome.error is not None
    assert outcome.error.raises == raised
    assert outcome.error.code != "E901"


ASSIGNMENTS = {
    "a parameter to a plain value": ("m.weight = 3", "TypeError"),
    "a parameter to a tensor": ("m.weight = torch.ones(1, 1)", "TypeError"),
    "a parameter to a parameter": ("m.weight = nn.Parameter(torch.ones(1, 1))", None),
    "a parameter to a module": ("m.bias = nn.ReLU()", "TypeError"),
    "a parameter to none": ("m.bias = None", None),
    "a submodule to a number": ("m.inner = nn.ReLU()\nm.inner = 3", "TypeError"),
    "a buffer to a tensor": ("m.register_buffer('b', None)\nm.b = torch.ones(1)", None),
    "a buffer to a number": ("m.register_buffer('b', None)\nm.b = 3", "TypeError"),
    "a setting": ("m.in_features = 7", None),
    "a new value": ("m.note = 'x'", None),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignment(name: str) -> None:
    statement, raised = ASSIGNMENTS[name]
    outcome = run(f"import torch\nfrom torch import nn\nm = nn.Linear(1, 1)\n{statement}\n")
    assert (outcome.error and outcome.error.raises) == raised


# Of a class with `a = 1` and a property `b`: what two statements make of an instance.
CLASS = """import torch
from torch import nn


class M(nn.Module):
    a = 1
    act = nn.ReLU()

    @property
    def b(self):
        return 2


m = M()
"""
OVER_CLASSES = [
    ("m.a = nn.ReLU()", "m.a, m", "1 M(\n  (a): ReLU()\n)\n"),
    ("m.b = nn.ReLU()", "m.b, list(m._modules)", "2 ['b']\n"),
    ("m.a = 3", "m.a", "3\n"),
    ("m.a = torch.ones(2)", "m.a, list(m.buffers())", "tensor([1., 1.]) []\n"),
    ("pass", "m.act(torch.tensor([-1.5, 0.5]))", "tensor([0.0000, 0.5000])\n"),
]


@pytest.mark.parametrize(("statement", "shown", "expected"), OVER_CLASSES)
def test_attributes_of_a_class(statement: str, shown: str, expected: str) -> None:
    assert run(f"{CLASS}{statement}\nprint({shown})\n").stdout == expected


def test_module_reaches_no_host_attribute() -> None:
    for name in ("__mro__", "_values", "_hooks", "register", "each_tensor", "__dict__"):
        outcome = run(f"from torch import nn\nnn.ReLU().{name}\n")
        assert outcome.error is not None, name
        assert outcome.error.code == "E102"
    assert run("from torch import nn\nprint(nn.ReLU().__class__)\n").stdout == (
        "<class 'torch.nn.modules.activation.ReLU'>\n"
    )


def test_walks_give_each_member_once() -> None:
    outcome = run(
        "from torch import nn\n"
        "shared = nn.Linear(1, 1)\n"
        "m = nn.Sequential(shared, nn.Sequential(shared, nn.ReLU()))\n"
        "print([n for n, p in m.named_parameters()], len(list(m.modules())))\n"
        "print(list(m.state_dict()))\n"
        "print(next(m.parameters()) is shared.weight, len(m[1:]))\n"
    )
    assert outcome.stdout == (
        "['0.weight', '0.bias'] 4\n['0.weight', '0.bias', '1.0.weight', '1.0.bias']\nTrue 1\n"
    )


# The first parameter of each layer after torch.manual_seed(0): its first numbers.
FIRST_NUMBERS = {
    "nn.Linear(3, 4)": [-0.004322517663240433, 0.3097158372402191, -0.4751853346824646],
    "nn.Conv2d(2, 3, 3)": [-0.0017646604683250189, 0.12644097208976746, -0.19399359822273254],
    "nn.Bilinear(2, 3, 4)": [-0.005293981172144413, 0.37932288646698, -0.5819807648658752],
    "nn.Embedding(4, 3)": [1.5409960746765137, -0.293428897857666, -2.1787893772125244],
    "nn.LSTM(3, 2)": [-0.005293981172144413, 0.37932288646698, -0.5819807648658752],
}


@pytest.mark.parametrize("expression", FIRST_NUMBERS)
def test_first_numbers(expression: str) -> None:
    outcome = run(
        f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\nm = {expression}\n"
        "p = next(m.parameters()).flatten()[:3].tolist()\n"
    )
    assert outcome.error is None
    got = outcome.session.interpreter.values["p"]
    assert got == FIRST_NUMBERS[expression]


def test_running_statistics() -> None:
    outcome = run(
        "import torch\n"
        "from torch import nn\n"
        "m = nn.BatchNorm1d(2, momentum=None)\n"
        "m(torch.tensor([[1., 2.], [3., 6.]]))\n"
        "m(torch.tensor([[5., 0.], [5., 2.]]))\n"
        "print(m.running_mean, m.running_var, m.num_batches_tracked)\n"
        "y = m.eval()(torch.tensor([[0., 0.]]))\n"
        "print(m.running_mean)\n"
        "m.reset_running_stats()\n"
        "print(m.running_mean, m.num_batches_tracked)\n"
    )
    assert outcome.stdout == (
        "tensor([3.5000, 2.5000]) tensor([1., 5.]) tensor(2)\n"
        "tensor([3.5000, 2.5000])\n"
        "tensor([0., 0.]) tensor(0)\n"
    )


def test_inputs_are_checked_by_every_layer() -> None:
    """A wrong value is the program's mistake, never a bug of ours."""
    for layer in ("nn.Linear(1, 1)", "nn.Conv1d(1, 1, 1)", "nn.Tanh()", "nn.Dropout()"):
        for value in ("3", "'text'", "None", "[1.]"):
            outcome = run(f"from torch import nn\n{layer}({value})\n")
            assert outcome.error is not None
            assert outcome.error.code != "E901", (layer, value)
            assert outcome.error.raises == "TypeError", (layer, value)


def test_parameters_are_named_after_the_variable_of_their_module() -> None:
    text = (
        "net = nn.Sequential(nn.Linear(2, 1), nn.Tanh())\n"
        "copy = net[0]\n"
        "trace(net(torch.ones(1, 2)).sum())\n"
    )
    shown = invoke("run", "-", stdin=text.encode()).stdout
    assert "net.0.weight" in shown
    assert "copy" not in shown
