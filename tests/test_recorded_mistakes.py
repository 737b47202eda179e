"""Mistakes in PyTorch programs: recorded, asked about, and cured as the answer says.

`tests/recordings/mistakes/` has the programs, each with a mistake that people ask about for years.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from gradcli.record import Record
from tests.command_line import CommandLine, process

FOLDER = Path(__file__).parent / "recordings" / "mistakes"


class Asked(Record):
    """A question about a program, with what its answer has to say."""

    words: list[str]
    says: list[str]


class Cured(Record):
    """A change of the program, and what holds behind it under PyTorch."""

    old: str
    new: str
    holds: str


class Mistake(Record):
    """A program with a mistake, questions about it, and its cures."""

    asked: list[Asked]
    cures: list[Cured]


MISTAKES = {
    "number": Mistake(
        [
            Asked(
                ["why", "w.grad"],
                [
                    "no operation that was recorded leads from w to loss",
                    "this makes a number, and what the script made of that is not recorded",
                    "number.py:10",
                ],
            )
        ],
        [
            Cured(
                "torch.tensor(total, requires_grad=True)",
                "(w * x).sum()",
                "assert w.grad.abs().sum() > 0",
            )
        ],
    ),
    "switched_off": Mistake(
        [
            Asked(
                ["why", "encoder.weight.grad"],
                ["under set_grad_enabled(False)", "switched_off.py:11", "move it out of what is"],
            ),
            Asked(["why", "body.weight.grad"], ["under inference_mode()", "switched_off.py:14"]),
            Asked(["run"], [" operations, equal to "]),
        ],
        [
            Cured(
                "torch.set_grad_enabled(False)",
                "pass",
                "assert encoder.weight.grad.abs().sum() > 0",
            ),
            Cured(
                "with torch.inference_mode():",
                "if True:",
                "assert body.weight.grad.abs().sum() > 0",
            ),
        ],
    ),
    "cleared_early": Mistake(
        [
            Asked(
                ["why", "net.weight"],
                [
                    "trains = False",
                    "each gradient that arrives is cleared before a step() can use it",
                    "cleared_early.py:13",
                ],
            )
        ],
        [
            Cured(
                "    loss.backward()\n    net.zero_grad()\n",
                "    net.zero_grad()\n    loss.backward()\n",
                "assert loss.item() < 1",
            )
        ],
    ),
    "carried_state": Mistake(
        [
            # The cell is called once, and no other module has its weights.
            Asked(
                ["why", "cell.weight_ih.grad"],
                [
                    "because the gradient flows from loss to cell.weight_ih loss MeanBackward0",
                    "TBackward0 cell: rnn_tanh_cell(random, h",
                ],
            ),
        ],
        [Cured("    opt.step()", "    opt.step()\n    h = h.detach()", "assert len(losses) == 3")],
    ),
    "numpy_copy": Mistake(
        [
            Asked(
                ["why", "w.grad"],
                [
                    "no operation that was recorded leads from w to loss",
                    "this makes an array of NumPy's, and what the script made of that is not",
                    "numpy_copy.py:9",
                ],
            )
        ],
        [
            Cured(
                "(torch.from_numpy(grown) * v)",
                "(torch.exp(w) * v)",
                "assert w.grad.abs().sum() > 0",
            )
        ],
    ),
    "rebound": Mistake(
        [
            Asked(
                ["why", "w.grad"],
                [
                    "`w` is no longer the leaf of that name, which has a gradient",
                    "from here on `w` is a new tensor, made by SubBackward0",
                    "rebound.py:12",
                ],
            )
        ],
        [
            Cured(
                "w = w - 0.1 * w.grad",
                "w.data -= 0.1 * w.grad",
                "assert w.grad is not None",
            )
        ],
    ),
    "no_gradient": Mistake(
        [
            Asked(["explain", "--flow"], ["7 of 9 parameters get no gradient"]),
            Asked(
                ["why", "net.embed.weight"],
                ["this runs under no_grad()", "no_gradient.py:20 in forward", "move it out of"],
            ),
            Asked(["why", "net.body.weight"], ["no_gradient.py:20 in forward", "no_grad()"]),
            Asked(
                ["why", "net.gate.weight"],
                ["a comparison gives booleans", "no_gradient.py:21 in forward", "sigmoid"],
            ),
            Asked(
                ["why", "net.spare.weight"],
                ["no forward() that ran has called it", "no_gradient.py:15 in __init__"],
            ),
            Asked(["why", "net.head.weight"], ["trains = True"]),
        ],
        [
            Cured(
                "with torch.no_grad():", "if True:", "assert net.embed.weight.grad.abs().sum() > 0"
            ),
            Cured(
                "(self.gate(h) > -0.5).float()",
                "torch.sigmoid(self.gate(h) + 0.5)",
                "assert net.gate.weight.grad.abs().sum() > 0",
            ),
        ],
    ),
    "nan_backward": Mistake(
        [
            Asked(
                ["blame"],
                ["in the backward pass of sqrt", "nan_backward.py:11", "at element [3]", "cure:"],
            )
        ],
        [
            Cured(
                "distance = torch.sqrt((net(x) - net(y)).pow(2).sum(-1))",
                "sum_1 = (net(x) - net(y)).pow(2).sum(-1)\n"
                "distance = torch.where(sum_1 == 0, 0,"
                " torch.sqrt(torch.where(sum_1 == 0, 1, sum_1)))",
                "assert net.weight.grad.isfinite().all()",
            )
        ],
    ),
    "masked_row": Mistake(
        [
            Asked(
                ["blame"],
                [
                    "in the forward pass of softmax",
                    "masked_row.py:11",
                    "in att, MultiheadAttention",
                    "at element [2, 0, 0]",
                    "a row that is masked whole has no softmax",
                    "mask & ~mask.all(-1, keepdim=True)",
                ],
            )
        ],
        [
            Cured(
                "out, weights = att(x, x, x, key_padding_mask=padding)",
                "opened = padding & ~padding.all(-1, keepdim=True)\n"
                "out, weights = att(x, x, x, key_padding_mask=opened)",
                "assert att.in_proj_weight.grad.isfinite().all()",
            )
        ],
    ),
    "vanishing": Mistake(
        [
            Asked(
                ["explain", "--flow"],
                ["gradients vanish: that of net.0.weight", "ReLU for Sigmoid"],
            )
        ],
        [Cured("nn.Sigmoid()", "nn.ReLU()", "assert net[0].weight.grad.norm() > 1e-6")],
    ),
    "frozen_checkpoint": Mistake(
        [
            Asked(
                ["why", "model.layers.0.weight"],
                [
                    "a checkpoint with re-entry records nothing",
                    "frozen_checkpoint.py:20 in forward",
                    "use_reentrant=False",
                ],
            )
        ],
        [
            Cured(
                "use_reentrant=True",
                "use_reentrant=False",
                "assert model.layers[0].weight.grad.abs().sum() > 0",
            )
        ],
    ),
    "copied_model": Mistake(
        [
            Asked(
                ["why", "model.0.weight"],
                [
                    "`optimizer` holds the parameters of another model",
                    "copied_model.py:10",
                    "make `optimizer` behind the line that makes `model`",
                ],
            )
        ],
        [
            Cured(
                "model = copy.deepcopy(model)",
                "model = copy.deepcopy(model)\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
                "assert loss.item() < 1",
            )
        ],
    ),
    "rebuilt_loss": Mistake(
        [
            Asked(
                ["why", "net.weight"],
                ["leaves the graph", "`.item()` makes a number", "rebuilt_loss.py:12"],
            )
        ],
        [
            Cured(
                "torch.tensor([a.item(), b.item()], requires_grad=True)",
                "torch.stack([a, b])",
                "assert net.weight.grad.abs().sum() > 0",
            )
        ],
    ),
    "in_place": Mistake(
        [
            Asked(
                ["why", "net.0.weight"],
                ["`h`, which AddmmBackward0 needs", "in_place.py:13", "write the update out of"],
            )
        ],
        [Cured("h += 1", "h = h + 1", "assert net[0].weight.grad.abs().sum() > 0")],
    ),
    "plain_list": Mistake(
        [
            Asked(
                ["why", "net.layers.0.weight"],
                ["`net.layers` hides it from `net`", "plain_list.py:1", "wrap it: `nn.ModuleList("],
            )
        ],
        [
            Cured(
                "[nn.Linear(8, 8) for _ in range(depth)]",
                "nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])",
                "assert len(opt.param_groups[0]['params']) == 8",
            )
        ],
    ),
    "item_beside": Mistake(
        [
            Asked(
                ["why", "value.weight"],
                [
                    "every way from value.weight to loss leaves the graph",
                    "`.item()` makes a number of Python's, which has no history",
                    "item_beside.py:18",
                    "help: compute on with the tensor itself",
                ],
            )
        ],
        [
            Cured(
                "adv.pow(2).mean().item()",
                "adv.pow(2).mean()",
                "assert value.weight.grad.abs().sum() > 0",
            )
        ],
    ),
    "not_cleared": Mistake(
        [
            Asked(
                ["why", "model.weight"],
                ["added to what earlier passes had left", "not_cleared.py:13", "`zero_grad()`"],
            ),
            Asked(["explain", "--flow"], ["2 parameters had a gradient before the pass"]),
        ],
        [
            Cured(
                "    loss.backward()",
                "    opt.zero_grad()\n    loss.backward()",
                "assert loss.item() < 5",
            )
        ],
    ),
    "unused": Mistake(
        [
            Asked(
                ["why", "model.encoder.lin2.weight"],
                ["no forward() that ran has called it", "unused.py:12 in __init__"],
            ),
            Asked(
                ["why", "model.encoder.scale"],
                ["made here, and read nowhere", "unused.py:13 in __init__"],
            ),
        ],
        [
            Cured(
                "return self.lin1(h)",
                "return self.lin2(h) * self.scale",
                "assert all(p.grad is not None for p in model.parameters())",
            )
        ],
    ),
    "replaced_head": Mistake(
        [
            Asked(
                ["why", "model.fc.weight"],
                [
                    "no optimizer holds it",
                    "replaced_head.py:20",
                    "`optimizer.add_param_group({'params': [model.fc.weight]})`",
                ],
            )
        ],
        [
            Cured(
                "for _ in range(3):",
                "optimizer.add_param_group({'params': [model.fc.weight]})\n"
                "before = model.fc.weight.detach().clone()\n"
                "for _ in range(3):",
                "assert not torch.equal(before, model.fc.weight)",
            )
        ],
    ),
    "growing_states": Mistake(
        [
            Asked(
                ["blame"],
                [
                    "overflow, in the forward pass of mm",
                    "growing_states.py:16 in forward",
                    "in rnn.cell, Cell",
                    "what is handed on grows 3.5-fold each time",
                    "`nn.init.orthogonal_`",
                ],
            )
        ],
        [
            Cured(
                "rnn = RNN()",
                "rnn = RNN()\nnn.init.orthogonal_(rnn.cell.W)",
                "assert rnn.cell.W.grad.isfinite().all()",
            )
        ],
    ),
    "log_of_softmax": Mistake(
        [
            Asked(
                ["blame"],
                [
                    "log of zero, in the forward pass of log",
                    "log_of_softmax.py:12",
                    "at element [1, 1]",
                    "log_1 = torch.log_softmax(linear_2, dim=1)",
                ],
            )
        ],
        [
            Cured(
                "-torch.log(p)",
                "-torch.log_softmax(net(x), dim=1)",
                "assert net[0].weight.grad.isfinite().all()",
            )
        ],
    ),
    "drawn": Mistake(
        [
            Asked(
                ["why", "encoder.weight.grad"],
                ["normal() draws here", "as of `sample()`", "`rsample()`", "drawn.py:23"],
            ),
            Asked(
                ["why", "prior.weight.grad"],
                ["`Rounded` gave this as a result that carries no gradient", "drawn.py:24"],
            ),
        ],
        [Cured(".sample()", ".rsample()", "assert encoder.weight.grad.abs().sum() > 0")],
    ),
    "steps_inside": Mistake(
        [
            Asked(["why", "net.0.weight"], ["trains = True", "a gradient arrived and was used"]),
            Asked(
                ["why", "net.0.weight.grad"],
                ["a gradient arrived, and was cleared afterwards", "steps_inside.py:20"],
            ),
        ],
        [Cured("    optimizers[p].zero_grad()", "    pass", "assert len(norms) == 4")],
    ),
    "left_out": Mistake(
        [
            Asked(
                ["why", "net.weight"],
                [
                    "trains = False",
                    "a GradScaler left out the step() of `opt`",
                    "left_out.py:16",
                ],
            ),
            Asked(["blame"], ["in the backward pass of sqrt", "left_out.py:14", "equal to 0e+00"]),
        ],
        [Cured("(net(x) * 0)", "(net(x) ** 2 + 1)", "assert not net.weight.equal(before)")],
    ),
    "at_rate_0": Mistake(
        [
            Asked(
                ["why", "net.weight"],
                [
                    "`opt` has lr=0 for it at the step()",
                    "began with lr=0.01, of which a schedule has made 0",
                ],
            )
        ],
        [Cured("step < 10", "step < 1", "assert not net.weight.equal(before)")],
    ),
    "never_on": Mistake(
        [
            Asked(
                ["why", "net.weight"],
                ["trains = False", "under set_grad_enabled(False)", "never_on.py:12"],
            )
        ],
        [
            Cured(
                "set_grad_enabled(False)", "set_grad_enabled(True)", "assert net.weight.grad.any()"
            )
        ],
    ),
    "half_overflow": Mistake(
        [
            Asked(
                ["blame"],
                [
                    "net.fc2.weight.grad are not finite: overflow",
                    "the result of mul is beyond 65504, the largest float16",
                    "half_overflow.py:17 in forward",
                    "in net, Net",
                    "cure: float32 has room for the results",
                ],
            )
        ],
        [
            Cured(
                ".half()",
                ".float()",
                "assert all(p.grad.isfinite().all() for p in net.parameters())",
            )
        ],
    ),
}


def recorded(python: str, name: str, folder: Path) -> str:
    path = str(folder / f"{name}.gradrun")
    made = process("record", "--python", python, "-o", path, str(FOLDER / f"{name}.py"))
    assert "wrote" in made.err
    return path


@pytest.mark.torch
@pytest.mark.parametrize("name", MISTAKES)
def test_the_answer_names_the_cause(
    gradcli: CommandLine, python: str, tmp_path: Path, name: str
) -> None:
    path = recorded(python, name, tmp_path)
    for each in MISTAKES[name].asked:
        shown = gradcli(*each.words, path)
        told = re.sub(r"\s+", " ", shown.out + shown.err)
        for part in each.says:
            assert part in told, (each.words, part, told)


_BOTH = """
import sys, traceback
for text in sys.argv[1:]:
    try:
        exec(text, {})
    except Exception:
        traceback.print_exc()
        print("held: False")
    else:
        print("held: True")
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "number"), [(n, i) for n in MISTAKES for i in range(len(MISTAKES[n].cures))]
)
def test_the_cure_works_under_pytorch(python: str, name: str, number: int) -> None:
    cure = MISTAKES[name].cures[number]
    text = (FOLDER / f"{name}.py").read_text()
    assert cure.old in text
    # Without the cure it does not hold, whether the program fails or not.
    programs = [f"{each}\n{cure.holds}\n" for each in (text, text.replace(cure.old, cure.new))]
    ran = subprocess.run(
        [python, "-c", _BOTH, *programs], capture_output=True, text=True, check=False
    )
    held = [line for line in ran.stdout.splitlines() if line.startswith("held: ")]
    assert held == ["held: False", "held: True"], ran.stderr


_COUNTED = """
import torch, sys
from torch.autograd.graph import saved_tensors_hooks
kept = {}
def pack(tensor):
    storage = tensor.untyped_storage()
    kept[storage.data_ptr()] = storage.nbytes()
    return tensor
names = {}
text = open(sys.argv[1]).read().replace("loss.backward()", "pass")
with saved_tensors_hooks(pack, lambda each: each):
    exec(text, names)
own = [p for p in names["net"].parameters()] + [names["x"]]
held = {each.untyped_storage().data_ptr() for each in own}
print(sum(size for place, size in kept.items() if place not in held))
"""


@pytest.mark.torch
def test_memory_kept_for_backward_is_what_pytorch_keeps(
    gradcli: CommandLine, python: str, tmp_path: Path
) -> None:
    path = recorded(python, "memory", tmp_path)
    ran = subprocess.run(
        [python, "-c", _COUNTED, str(FOLDER / "memory.py")], capture_output=True, check=True
    )
    document = json.loads(gradcli("explain", "--saved", "--json", path).out)
    assert document["saved"]["peak_bytes"] == int(ran.stdout)
    sizes = {row["module"]: row["bytes"] for row in document["saved"]["by_module"]}
    assert sum(sizes.values()) == int(ran.stdout)
    assert sizes["net.0.down"] == sizes["net.1.down"] == 16 * 20 * 128 * 4


@pytest.mark.torch
def test_a_big_model_can_be_read(gradcli: CommandLine, python: str, tmp_path: Path) -> None:
    path = recorded(python, "many_blocks", tmp_path)
    picture = str(tmp_path / "graph.svg")
    shown = gradcli("run", "-o", picture, path)
    assert shown.code == 0, shown.err
    text = Path(picture).read_text()
    width, height = map(int, re.findall(r'<svg [^>]*width="(\d+)" height="(\d+)"', text)[0])
    assert (width, height) <= (2000, 1300)
    assert ">Block × 12<" in text
    page = str(tmp_path / "graph.html")
    assert gradcli("run", "-o", page, path).code == 0
    assert "gpt.blocks.11" in Path(page).read_text()
