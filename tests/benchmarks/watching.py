"""What `gradcli record --watch` costs: `python -m tests.benchmarks.watching PYTHON`, with a Python
that has PyTorch.

A step of training, batch 32 with AdamW, plain and watched in turns in one process: medians of the
processor time of one thread, which other programs disturb least. Or, under PyTorch:
`PYTHON tests/benchmarks/watching.py FOLDER` with the folder of the watcher.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

ROUNDS = 4
BOUNDS = ((1_000_000, 1.3), (0, 2.0))
"""The ratio that is allowed from so many parameters on."""


def measure(folder: Path) -> None:
    """Print a line for each model, under a Python that has PyTorch."""
    torch: Any = importlib.import_module("torch")
    numpy = importlib.import_module("numpy")
    torch.set_num_threads(1)
    recorder, watcher, rerun = (
        _loaded(folder, name) for name in ("recorder", "watcher", "step_rerun")
    )
    recorder.use(torch, numpy)
    rerun.use(torch, recorder)
    watcher.use(torch, numpy, recorder, rerun)
    for name, model in _models(torch):
        count = sum(each.numel() for each in model.parameters())
        step = _step(torch, model)
        repeats = 100 if count < 500_000 else 20 if count < 5_000_000 else 5
        plain, watched = _times(
            step, repeats, partial(watcher.Watcher, recorder.Settings("x.gradrun"))
        )
        ratio = median(watched) / median(plain)
        bound = next(most for least, most in BOUNDS if count >= least)
        print(
            f"{name:<12} {count:>10,} parameters  plain {1e3 * median(plain):8.3f} ms"
            f"  watched {1e3 * median(watched):8.3f} ms  ratio {ratio:.2f} of {bound}",
            flush=True,
        )


def _loaded(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"gradcli_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _models(torch: Any) -> list[tuple[str, Any]]:
    nn = torch.nn

    def mlp(width: int) -> Any:
        sizes = (128, width, width, width)
        layers = [
            each
            for before, behind in pairwise(sizes)
            for each in (nn.Linear(before, behind), nn.ReLU())
        ]
        return nn.Sequential(*layers, nn.Linear(width, 10))

    def transformer(width: int, layers: int) -> Any:
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        return nn.Sequential(
            nn.Unflatten(1, (8, 16)),
            nn.Linear(16, width),
            nn.TransformerEncoder(layer, layers),
            nn.Flatten(),
            nn.Linear(8 * width, 10),
        )

    return [
        ("MLP", mlp(180)),
        ("transformer", transformer(48, 3)),
        ("MLP", mlp(680)),
        ("transformer", transformer(128, 5)),
        ("MLP", mlp(2200)),
    ]


def _step(torch: Any, model: Any) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(32, 128), torch.randint(0, 10, (32,))

    def step() -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def _times(
    step: Callable[[], None], repeats: int, watcher: Callable[[], Any]
) -> tuple[list[float], list[float]]:
    """The seconds of plain and of watched steps."""
    plain: list[float] = []
    watched: list[float] = []
    for _ in range(ROUNDS):
        plain += _timed(step, repeats)
        hears = watcher()
        hears.optimizers.append(lambda: None)  # one that was made before it began
        hears.begin()
        watched += _timed(step, repeats)
        hears.end()
        assert not hears.failure, hears.failure
    return plain, watched


def _timed(step: Callable[[], None], repeats: int) -> list[float]:
    for _ in range(3):
        step()
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        step()
        seconds.append(time.thread_time() - start)
    return seconds


if __name__ == "__main__":
    if __package__:
        from gradcli.doors.torch.command import RECORDER

        command = [sys.argv[1], __file__, str(RECORDER.parent)]
        raise SystemExit(subprocess.run(command, check=False).returncode)
    measure(Path(sys.argv[1]))
