"""Command lines and dot-commands."""

from __future__ import annotations

from random import Random

from tests.fuzz import programs

RESULT_OPTIONS = [
    "--json", "--seed=1", "--seed=[1.,2.]", "--seed=x", "--of=e", "--of=zz", "--wrt=x", "--wrt=a,x",
    "--trace=steps", "--trace=next", "--trace=tree", "--no-trace", "--dtype=float64",
    "--dtype=float16", "-q", "--color=always", "-oout.npz", "-oout.json", "-oout.npy", "-oout.csv",
    "-oout.safetensors", "--format=jsonl", "--format=table", "--precision=2", "--full",
    "--error-format=json", "--error-format=short", "--sandbox",
]  # fmt: skip

_WORDS = [
    "run", "help", "info", "ops", "repl", "completion", "-", "--", "-e", "-o", "--help", "-h",
    "--version", "e = a * 2", "a=2", "a=", "=2", "a:const=3", "a=@nowhere.npy", "a=@-", "a=@csv:-",
    "x=[1.,2.]", "x=[1,", "--timeout=0", "--timeout=-1", "--timeout=1e9", "--max-memory=1",
    "--max-memory=x", "--max-elements=0", "--max-steps=10", "--inputs=none.jsonl", "--jobs=2",
    "--jobs=-1", "--keep-going", "nowhere.grad", ".", "/", "", " ", "E301", "traces", "language",
    "matmul", "\ud800", "\x1b[31m", "é=1", "bash",
    *RESULT_OPTIONS,
]  # fmt: skip

_COMMANDS = [
    ".help",
    ".vars",
    ".grads",
    ".trace",
    ".backward",
    ".read",
    ".save",
    ".reset",
    ".timer",
    ".mode",
    ".quit",
    ".nothing",
    ".",
    ".help(x)",
]


def command_line(random: Random) -> list[str]:
    """Words that may stand on a command line, in any order."""
    found = []
    for _ in range(random.randrange(6)):
        pick = random.random()
        if pick < 0.8:
            found.append(random.choice(_WORDS))
        elif pick < 0.9:
            found.append(programs.expression(random, 2))
        else:
            letters = [chr(random.choice([random.randrange(1, 128), 0xE9])) for _ in range(8)]
            found.append("".join(letters[: random.randrange(8)]))
    return found


def dot_commands(random: Random) -> str:
    """A script with lines for the session between its statements."""
    lines = [programs.SETTING]
    for _ in range(random.randrange(1, 6)):
        if random.random() < 0.3:
            lines.append(programs.program(random))
            continue
        target = random.choice(
            ["", "x", "y", "steps", "tree", "zz", "file.grad", "json", "on", "1", "'a", "x y z"]
        )
        form = random.random()
        if form < 0.8:
            lines.append(f"{random.choice(_COMMANDS)} {target}\n")
        else:
            lines.append(f"{random.choice(programs.functions())}?\n")
    return "".join(lines)
