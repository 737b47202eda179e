"""The inputs: what stands on the command line, in the files and on standard input."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz import commands, files, programs, words

TIMEOUT = 4
"""Seconds that a program may run."""

PROGRAM_LIMITS = (f"--timeout={TIMEOUT}", "--max-memory=800MB", "--max-elements=3000000")
"""Limits under which an input is answered long before it counts as hanging."""


class Input:
    """One run of gradcli.

    Attributes:
        kind: how it was made.
        words: the words of the command line.
        stdin: what standard input holds.
        files: the contents of files by name.
    """

    __slots__ = ("files", "kind", "stdin", "words")

    def __init__(
        self,
        kind: str,
        words: list[str],
        stdin: bytes = b"",
        files: dict[str, bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.words = words
        self.stdin = stdin
        self.files = files or {}

    def __str__(self) -> str:
        parts = [f"{self.kind}: gradcli {' '.join(map(repr, self.words))}"]
        if self.stdin:
            parts.append(f"standard input:\n{self.stdin.decode('utf-8', 'backslashreplace')}")
        parts += [f"file {name}: {content!r}" for name, content in self.files.items()]
        return "\n".join(parts)


def _script(kind: str, text: str) -> Input:
    return Input(kind, ["run", "-", *PROGRAM_LIMITS], text.encode("utf-8", "surrogatepass"))


def _grammar(random: Random) -> Input:
    return _script("grammar", programs.SETTING + programs.program(random))


def _calls(random: Random) -> Input:
    return _script("calls", programs.SETTING + programs.calls(random))


def _library(random: Random) -> Input:
    text = programs.SETTING + programs.LIBRARY_SETTING + programs.library(random)
    return _script("standard library", text)


def _transforms(random: Random) -> Input:
    return _script("transforms", programs.SETTING + programs.transforms(random))


def _one_shot(random: Random) -> Input:
    options = random.sample(words.RESULT_OPTIONS, random.randrange(3))
    given = [f"a={programs.expression(random, 2)}", f"x={programs.value(random)}"]
    text = f"e = {programs.expression(random, 3)}"
    return Input("one-shot", ["-e", text, *given, *options, *PROGRAM_LIMITS])


def _mutated(random: Random) -> Input:
    return _script("mutated program", programs.mutated(random))


def _bytes(random: Random) -> Input:
    stdin = random.randbytes(random.randrange(1, 200))
    return Input("random bytes", ["run", "-", *PROGRAM_LIMITS], stdin)


def _data(random: Random) -> Input:
    name, content = files.mutated(random)
    argument = random.choice([f"x=@{name}", f"x=@{name}", f"x=@{name}:a", f"x=@{name}:0,1"])
    program = random.choice(["y = (x * x).sum()", "print(x)", f"d = load('{name}')\nprint(d)"])
    return Input("mutated data", ["-e", program, argument, *PROGRAM_LIMITS], b"", {name: content})


def _cases(random: Random) -> Input:
    name, content = files.mutated_cases(random)
    line = ["-e", "y = (x * a).sum()", "a=2", f"--inputs=@{name}", *PROGRAM_LIMITS]
    if random.random() < 0.5:
        line[-len(PROGRAM_LIMITS) - 1] = f"--inputs={name}"
    return Input("mutated records", line, b"", {name: content})


def _words(random: Random) -> Input:
    return Input("words", words.command_line(random), programs.program(random).encode())


def _dot_commands(random: Random) -> Input:
    return _script("dot-commands", words.dot_commands(random))


def _commands(random: Random) -> Input:
    command, line, found = commands.line(random)
    limits = PROGRAM_LIMITS if command in commands.LIMITED else ()
    return Input(command, [command, *line, *limits], programs.program(random).encode(), found)


KINDS: tuple[tuple[int, Callable[[Random], Input]], ...] = (
    (20, _grammar),
    (20, _calls),
    (10, _library),
    (15, _transforms),
    (10, _one_shot),
    (15, _mutated),
    (5, _bytes),
    (8, _data),
    (3, _cases),
    (5, _words),
    (4, _dot_commands),
    (60, _commands),
)
"""Each kind of input and how often it comes."""


def input_of(seed: int, number: int) -> Input:
    """The input of a seed with a number."""
    random = Random(f"{seed}:{number}")
    weights, makers = zip(*KINDS, strict=True)
    (maker,) = random.choices(makers, weights)
    return maker(random)
