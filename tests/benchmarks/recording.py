"""What recording a step of PyTorch costs, and what questions cost that are asked of the recording.

The script says itself what its median step took, in processor time, plain and recorded. A question
may take 3 recorded steps and a second, and twice the memory of the recording.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.measure import alternate, measure

SCRIPT = """\
import sys, time, torch
from statistics import median
from torch import nn
import torch.nn.functional as F

kind, width, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)  # of several, those that wait count too
torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, 10)
        self.unused = nn.Linear(width, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        for each in self.layers:
            x = x + F.gelu(each(x))
        return self.last(self.norm(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.qkv(self.ln1(x)).split(c, dim=2)
        q, k, v = (each.view(b, t, 4, c // 4).transpose(1, 2) for each in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(256, width), nn.Embedding(16, width)
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.norm, self.unused = nn.LayerNorm(width), nn.Linear(width, 10)
        self.last = nn.Linear(width, 256, bias=False)

    def forward(self, x):
        x = self.token(x) + self.place(torch.arange(x.shape[1]))
        for each in self.blocks:
            x = each(x)
        return self.last(self.norm(x)).flatten(0, 1)


if kind == "mlp":
    net, x, y = MLP(), torch.randn(32, 64), torch.randint(0, 10, (32,))
else:
    net, x, y = GPT(), torch.randint(0, 256, (32, 16)), torch.randint(0, 256, (32 * 16,))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
times = []
for _ in range(rounds):
    start = time.process_time()
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    times.append(time.process_time() - start)
print("parameters", sum(each.numel() for each in net.parameters()))
print("loop", median(times[rounds // 4 :]))
"""

MODELS = {
    "mlp": {130: 400, 480: 100, 1600: 12},
    "gpt": {32: 150, 112: 40, 376: 8},
}
"""Widths for 0.1, 1 and 10 million parameters, and the rounds of each."""

QUESTIONS = {
    "run": ["run", "-q"],
    "why, none": ["why", "net.unused.weight"],
    "why, one": ["why", "net.norm.weight"],
    "blame": ["blame"],
    "flow": ["explain", "--flow"],
    "picture": ["explain", "--format", "svg"],
}

MOST = 3.0
"""What a recorded step may take in plain ones, and a question, less a second, in recorded ones."""

MOST_MEMORY = 2.0
"""The memory of a question in sizes of the recording."""

SMALL = 50_000_000
"""Bytes of a recording below which a question's memory is that of its start."""


def recording(folder: Path, command: list[str], python: str, quick: bool, times: int) -> bool:
    """Measure all models and print the table; whether everything is within its bounds."""
    script = folder / "step.py"
    script.write_text(SCRIPT, encoding="utf-8")
    print(f"{'':10}{'parameters':>12}{'plain, ms':>12}{'recorded':>10}{'file, MB':>10}")
    good = True
    for kind, widths in MODELS.items():
        for width, rounds in [*widths.items()][: 1 if quick else None]:
            words = [kind, str(width), str(4 if quick else rounds)]
            file = folder / f"{kind}{width}.gradrun"
            recorded = [*command, "record", "--python", python, "-o", str(file), str(script)]
            series = alternate({"plain": [python, str(script), *words],
                                "recorded": [*recorded, *words]}, times)  # fmt: skip
            plain = min(each.loop for each in series["plain"].runs)
            step = min(_loop(each.output) for each in series["recorded"].runs)
            count = int(series["plain"].runs[0].output.split()[1])
            size = file.stat().st_size
            bound = "" if step <= MOST * plain else f" over {MOST:g}"
            good = good and not bound
            print(
                f"{kind:10}{count:>12,}{plain * 1e3:>12.2f}{step / plain:>9.2f}×"
                f"{size / 1e6:>10.1f}{bound}",
                flush=True,
            )
            good = _questions(command, str(file), step, size) and good
    return good


def _loop(output: str) -> float:
    """What the script says that its step took, in what the recorder says too."""
    return float(output.rpartition("loop ")[2].split()[0])


def _questions(command: list[str], file: str, step: float, size: int) -> bool:
    """Ask a recording, and print what each question takes; whether all are within their bounds."""
    good = True
    for name, words in QUESTIONS.items():
        run = measure([*command, *words, file])
        said = [] if run.processor <= MOST * step + 1 else [f"over {MOST * step + 1:.2f} s"]
        share = run.peak / size
        if size >= SMALL and share > MOST_MEMORY:
            said.append(f"over {MOST_MEMORY:g} recordings")
        good = good and not said
        memory = f"{share:>10.2f} recordings" if size >= SMALL else ""
        print(
            f"    {name:<18}{run.processor:>8.2f} s{run.peak / 1e6:>10.0f} MB{memory}"
            f"  {', '.join(said)}".rstrip(),
            flush=True,
        )
    return good
