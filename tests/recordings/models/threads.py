"""Trains two branches in threads of a pool, with batches that another thread makes."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Branch(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x).square()


class Loader(threading.Thread):
    def run(self):
        generator = torch.Generator().manual_seed(0)
        for _ in range(5):
            batches.put(torch.randn(8, 6, generator=generator).clamp(-2, 2))


torch.manual_seed(0)
branches = nn.ModuleList(Branch(width) for width in (4, 5, 7))
scorer = Branch(2)
optimizer = torch.optim.Adam(branches.parameters())
batches = queue.Queue()
Loader().start()


def scored(x):
    with torch.no_grad():
        return [scorer(x).mean().item() for _ in range(20)]


with ThreadPoolExecutor(4) as pool:
    for _ in range(5):
        x = batches.get()
        score = pool.submit(scored, x)
        outs = [pool.submit(branch, x) for branch in branches]
        loss = sum(out.result().mean() for out in outs)
        optimizer.zero_grad()
        loss.backward()
        score.result()
        optimizer.step()
print(loss.item())
