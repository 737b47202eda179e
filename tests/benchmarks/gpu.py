"""`python -m tests.benchmarks.gpu`: chains of pointwise ops on a GPU, beside its copy bandwidth and
beside eager torch on the same GPU.

A chain, forward and backward, has to read its inputs and to write their gradients; how fast it
does that is shown as a share of the speed at which the GPU copies memory. Both sides run the same
text many times, and are waited for at the end. The real programs follow, at sizes for a GPU, as
`python -m tests.benchmarks` measures them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from gradcli.arrays import backend
from gradcli.arrays.gpu import runtime
from gradcli.errors import GradcliError
from gradcli.limits import Limits
from gradcli.session import Session
from tests.benchmarks.__main__ import Bench, gradcli, has_torch
from tests.benchmarks.work import GPU_TIME, ON_GPU, Work

START = """\
import torch
torch.manual_seed(0)
x = torch.randn({size}, device='cuda', requires_grad=True)
w = torch.rand({size}, device='cuda', requires_grad=True)
b = torch.rand({size}, device='cuda', requires_grad=True)
"""

LOOP = """\
for i in range({times}):
    y = {chain}
    y.backward()
    x.grad = None
    w.grad = None
    b.grad = None
torch.cuda.synchronize()
"""

CHAINS = {
    "tanh": "(torch.tanh(x * w + b) ** 2).sum()",
    "gelu by hand": "(0.5 * x * (1 + torch.tanh(0.797885 * (w + 0.044715 * w ** 3))) * b).sum()",
    "gaussian": "(torch.exp(-0.5 * ((x - w) / (b + 1)) ** 2)).sum()",
}
"""Programs of three inputs; each reads them and writes their gradients."""

SIZES = (1 << 22, 1 << 26, 1 << 28)

MOVED = 6
"""Arrays that a chain has to read or write."""

ITEM = 4
"""Bytes of an element."""

TORCH = """\
import sys, time
start, warm, loop = sys.argv[1:]
import torch
if not torch.cuda.is_available():
    raise SystemExit("this torch finds no GPU")
names = {}
exec(start, names)
exec(warm, names)
began = time.perf_counter()
exec(loop, names)
print(time.perf_counter() - began)
"""


def copy_bandwidth(size: int) -> float:
    """Bytes a second that the GPU reads and writes as it copies an array of so many float32."""
    cupy = runtime.cupy()
    source, target = cupy.ones(size, "float32"), cupy.empty(size, "float32")
    times = []
    for _ in range(12):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        cupy.copyto(target, source)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1000)
    return 2 * size * ITEM / statistics.median(times[2:])


def of_gradcli(chain: str, size: int, times: int) -> float:
    """Seconds that gradcli takes for the chain once."""
    session = Session(limits=Limits(elements=1 << 31))

    def run(text: str) -> None:
        for _ in session.run(text, "benchmark"):
            pass

    run(START.format(size=size))
    run(LOOP.format(times=3, chain=chain))
    began = perf_counter()
    run(LOOP.format(times=times, chain=chain))
    return (perf_counter() - began) / times


def of_torch(python: str, chain: str, size: int, times: int) -> float | None:
    """Seconds that torch takes for the chain once; None without torch, or without a GPU for it."""
    texts = [
        START.format(size=size),
        LOOP.format(times=3, chain=chain),
        LOOP.format(times=times, chain=chain),
    ]
    done = subprocess.run([python, "-c", TORCH, *texts], capture_output=True, text=True)
    return float(done.stdout) / times if done.returncode == 0 else None


def _median(measure: Callable[[], Any], times: int) -> Any:
    found = [measure() for _ in range(times)]
    return None if None in found else statistics.median(found)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu")
    parser.add_argument("--torch", metavar="PYTHON", default=sys.executable, help="with torch")
    parser.add_argument("--times", type=int, default=5, help="runs of each (5)")
    arguments = parser.parse_args()
    try:
        backend.located("benchmark", "cuda")
    except GradcliError as error:
        print(f"nothing to measure: {error.message}")
        return 0
    print(f"{'chain':<14}{'elements':>12}{'gradcli':>11}{'of copy':>9}{'torch':>11}{'times':>8}")
    for size in SIZES:
        bandwidth = copy_bandwidth(size)
        print(f"{'copy':<14}{size:>12,}{bandwidth / 1e9:>8.0f} GB/s")
        rounds = max(10, (1 << 30) // size)
        for name, chain in CHAINS.items():
            ours = _median(lambda: of_gradcli(chain, size, rounds), arguments.times)  # noqa: B023
            share = MOVED * size * ITEM / ours / bandwidth
            torch = _median(
                lambda: of_torch(arguments.torch, chain, size, rounds),  # noqa: B023
                arguments.times,
            )
            beside = "  no torch with a GPU"
            if torch is not None:
                beside = f"{torch * 1e3:>8.2f} ms{torch / ours:>7.1f}×"
            print(f"{name:<14}{size:>12,}{ours * 1e3:>8.2f} ms{share:>9.0%}{beside}")
    torch = arguments.torch if has_torch(arguments.torch) else None
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), gradcli(None), torch, False, arguments.times, on_gpu=True)
        bench.cold_start()
        for name in ON_GPU:
            bench.run(Work(name, GPU_TIME, on_gpu=True))
        return bench.close()


if __name__ == "__main__":
    sys.exit(main())
