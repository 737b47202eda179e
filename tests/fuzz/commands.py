"""Command lines of every command, with programs and files that are fuzzed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random

from tests.fuzz import files, programs

_OF_QUESTIONS = (
    "--json", "--seed=1", "--seed=[1.,2.]", "--of=e", "--of=zz", "--wrt=x", "--wrt=a,x",
    "--dtype=float64", "--dtype=float16", "-q", "--color=always", "--error-format=json",
    "--error-format=short", "--precision=2", "--full", "--strict", "--no-compiled-loops",
    "--manual-seed=3", "-oout.json", "-oout.txt", "--sandbox",
)  # fmt: skip

QUESTIONS: dict[str, tuple[str, ...]] = {
    "blame": ("--all",),
    "check": ("--order=2", "--elements=2", "--equals=2*x", "--equals=x=a", "--against=out.npz"),
    "derive": ("--shape", "--to=latex", "--to=numpy", "--to=jax", "--jacobian", "--hessian"),
    "explain": (
        "--element=0", "--ties", "--paths=x", "--saved", "--flow", "--derivatives=jacobian",
        "--derivatives=hessian", "--layout=numerator", "--ir", "--format=markdown",
        "--format=latex", "--format=svg", "--format=html", "--format=mermaid", "--expand",
    ),
    "plot": ("--at=1", "--at=x", "--ylim=-5:5", "--ylim=1:0", "-oout.svg"),
    "why": (),
}  # fmt: skip
"""The questions, each with the options that no other has."""

_BINDINGS = (
    "a=2",
    "x=[1.,2.]",
    "x=3",
    "x=-2:2",
    "x=0:0",
    "x=n,3",
    "x=[1,",
    "a=@f.npy",
    "e=1",
    "x=",
)

_ASKED = (
    "x.grad",
    "a.grad",
    "e",
    "w.grad",
    "nothing",
    "x[0].grad",
    "net.weight.grad",
    "1",
    "x.grad ",
)

OF_FILES: dict[str, tuple[str, ...]] = {
    "check-doc": ("--json", "--update", "--strict", "-q"),
    "info": (),
    "port": ("--json",),
    "run": ("--json", "--explain-loops", "--keep-going", "--trace=steps", "-oout.npz", "a=1"),
}
"""The commands that take files alone, with their options."""

_WORDS: dict[str, tuple[str, ...]] = {
    "help": ("softmax", "E301", "nn.Linear", "why", "gradients are", "\ud800", "", "'", "[", "*"),
    "ops": ("--json", "matmul", "nothing", "--of=x"),
    "setup": ("completion", "kernel", "nothing", "bash", "--help"),
    "completion": ("bash", "zsh", "fish", "nothing"),
}
"""The commands that take words, with some of them."""

COMMANDS = (*QUESTIONS, *OF_FILES, *_WORDS)

LIMITED = {*QUESTIONS, "check-doc", "run"}
"""Those that run programs, within limits."""


def line(random: Random) -> tuple[str, list[str], dict[str, bytes]]:
    """A command, its words without limits, and the files that they name, by name."""
    command = random.choice(COMMANDS)
    if command in _WORDS:
        return command, random.choices(_WORDS[command], k=random.randrange(4)), {}
    if command in OF_FILES:
        name, content = _file(random)
        options = random.sample(
            OF_FILES[command], random.randrange(min(3, len(OF_FILES[command]) + 1))
        )
        return command, [name, *options], {name: content}
    own = QUESTIONS[command]
    options = random.sample((*own, *own, *_OF_QUESTIONS), random.randrange(4))
    words = [random.choice(_ASKED)] if command == "why" else []
    found: dict[str, bytes] = {}
    if random.random() < 0.4:
        name, content = _file(random)
        found[name] = content
        words.append(name)
    else:
        whole = random.random() < 0.6
        make = _chain if whole else random.choice([_one_line, programs.calls, programs.mutated])
        given = ("a=2", "x=-2:2" if command == "plot" else random.choice(_VALUES))
        more = random.sample(_BINDINGS, random.randrange(2 if whole else 3))
        words += ["-e", make(random), *(given if whole else ()), *more]
    return command, [*words, *options], found


def _chain(random: Random) -> str:
    """A program that mostly runs: steps from `x` and `a` to a tensor `e`, some of them repeated."""
    lines = ["e = x * a"]
    for _ in range(random.randrange(1, 6)):
        step = random.choice(_STEPS)
        form = random.random()
        if form < 0.15:
            step = f"for i in range({random.choice((0, 2, 90))}):\n    {step}"
        elif form < 0.25:
            step = f"if e.sum() > 0:\n    {step}"
        lines.append(step)
    return "\n".join([*lines, random.choice(_ENDS)])


_STEPS = (
    "e = e.tanh()", "e = (e ** 2 + 1).sqrt()", "e = e.exp() * 1e-3", "e = torch.relu(e)",
    "e = e / e.norm()", "e = e.log()", "e = torch.where(e > 0, e.sqrt(), 0)", "e = e - x",
    "e = e.abs()", "e = e.detach() * x", "e = e.cumsum(0)", "e = torch.stack([e, x * 1.0])",
    "e = e.softmax(-1)", "e = e.reshape(-1)", "e = e.clone(); e[0] = 3", "e = e.double()",
    "w = torch.ones(2, requires_grad=True)", "with torch.no_grad(): e = e * 2", "e = e.sort()[0]",
    "net = torch.nn.Linear(2, 2); e = net(e.float())", "e = e.max(0)[0]", "e = e * 0",
    "e = torch.fft.fft(e).abs()", "e = e.sum(-1, keepdim=True)", "e = e / 0", "e = e.int()",
    "e = torch.nn.functional.dropout(e)", "e = e @ e", "e += 1", "x = x * 1", "e.retain_grad()",
    "e = sum(v * v for v in e)", "e = e.item() * x", "e = torch.vmap(torch.sin)(e)",
    "e = torch.func.grad(lambda t: (t ** 3).sum())(e)", "e.sum().backward(retain_graph=True)",
)  # fmt: skip

_ENDS = ("e.sum().backward()", "e = e.sum()", "e = e.mean()", "print(e)", "e", "e = e ** 2")

_VALUES = (
    "x=[1.,2.]",
    "x=[0.,-1.]",
    "x=[[1.,2.],[3.,4.]]",
    "x=3.",
    "x=[]",
    "x=[nan,1]",
    "x=[1e30,2]",
)


def _one_line(random: Random) -> str:
    return f"e = {programs.expression(random, 3)}"


def _file(random: Random) -> tuple[str, bytes]:
    """A program in one of the forms that commands read, damaged now and then."""
    form = random.choice(("p.py", "p.grad", "p.ipynb", "p.md", "p.gradrun", "f.npy"))
    if form == "f.npy":
        return files.mutated(random)
    if form == "p.gradrun":
        return form, files.damaged(random, random.choice(_recordings()))
    make = random.choice([programs.program, programs.mutated, programs.calls])
    text = programs.SETTING + make(random)
    if form == "p.ipynb":
        cells = [{"cell_type": "code", "source": part} for part in text.split("\n\n")]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})
    elif form == "p.md":
        text = f"Text\n\n```python\n{text}\n```\n"
    content = text.encode("utf-8", "surrogatepass")
    return form, files.damaged(random, content) if random.random() < 0.3 else content


@cache
def _recordings() -> list[bytes]:
    """Recordings of PyTorch's runs that the tests have."""
    folder = Path(__file__).parents[1] / "recordings"
    return [path.read_bytes() for path in sorted(folder.glob("*.gradrun"))]
