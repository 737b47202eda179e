"""The tools of `gradcli mcp`, and the process that answers each call."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Coroutine
from functools import wraps
from threading import Thread
from typing import Annotated, Any, BinaryIO, Literal

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

import gradcli
from gradcli.doors.asking import answer_to
from gradcli.doors.bounded import cut, slices_of
from gradcli.limits import STEPS

_INSTRUCTIONS = """\
gradcli runs programs in the PyTorch dialect (tensor expressions, autograd, torch.nn) without torch,
and explains their gradients. A program is text such as `loss = ((x @ w - y) ** 2).mean()`; values
for its names are given as inputs, numbers and nested lists, which require grad. Ask `why` where a
gradient is None, `blame` where a number is NaN or infinite, `check` where a gradient made by hand
may be wrong, `derive` for formulas, `explain` for the chain rule with its numbers. Answers are
bounded: a large array is its shape, extremes and norm, and the slice that `elements` names."""

_RECORDED = """
The program `NAME.gradrun` is the recording of that name, of a run under PyTorch: there are {}."""

MOST_ASKED = 4_000_000
"""The bytes of the longest message that is read."""

_TOO_LONG = "\0"
"""The program in the place of a message that is too long."""

_ENDS = 4_096
"""In so many bytes, the first or the last, a message has its number."""

_ID = rb'"id"\s*:\s*(?P<id>"(?:[^"\\]|\\.)*"|-?\d+)\s*'
_OTHER = rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|-?\d+)\s*'
_FIRST_ID = re.compile(rb"\s*\{\s*(?:%b,\s*)*%b[,}]" % (_OTHER, _ID))
_LAST_ID = re.compile(rb",\s*%b(?:,\s*%b)*\}\s*\Z" % (_ID, _OTHER))

_MOST_NAMED = 20

_RECORDING = ".gradrun"

Program = Annotated[str, Field(description="The program, in the PyTorch dialect.")]
Inputs = Annotated[
    dict[str, Any] | None,
    Field(description="Values for names: numbers, nested lists, or text such as 'randn(2, 3)'."),
]
Wrt = Annotated[list[str] | None, Field(description="The inputs whose gradients are wanted.")]

_SETTINGS: dict[str, Any] = {
    "of": Annotated[
        str | None, Field(description="The output's name; by default the tensor assigned last.")
    ],
    "seed": Annotated[
        Any,
        Field(
            description="The gradient to start from, of the output's shape: numbers, nested lists,"
            " or text such as 'ones(2)'. An output of several elements needs one."
        ),
    ],
    "dtype": Annotated[
        Literal["float16", "bfloat16", "float32", "float64"] | None,
        Field(description="The dtype of new floating tensors; float32 by default."),
    ],
    "timeout": Annotated[
        float | None, Field(description="Seconds that the call may take, at most the server's.")
    ],
    "max_steps": Annotated[
        int | None,
        Field(description="Rounds of loops and calls of functions, at most the server's."),
    ],
    "elements": Annotated[
        str | None,
        Field(description="The slice that is shown of arrays too large to be shown: '0:3, 5'."),
    ],
}
"""The arguments that every tool has."""

Tool = Callable[..., Coroutine[Any, Any, CallToolResult]]


def serve(limits: dict[str, Any], recordings: str | None) -> None:
    """Serve until the client goes.

    Args:
        limits: those of each call.
        recordings: the folder whose recordings may be asked about.
    """
    tools = Tools(limits, recordings)
    server = MCPServer(
        "gradcli",
        instructions=_INSTRUCTIONS + tools.recorded(),
        version=gradcli.__version__,
        log_level="ERROR",
    )
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in (tools.run, tools.explain, tools.derive, tools.why, tools.blame, tools.check):
        server.add_tool(_with_settings(tool), annotations=reads)
    _mend_input()
    server.run("stdio")


def _mend_input() -> None:
    """Put what the SDK can read in the place of standard input: it drops a message with a half of a
    surrogate pair, and the client would wait for its answer; and it holds 25 times the bytes of a
    message, however long that is.
    """
    lines = os.fdopen(os.dup(0), "rb")
    read_end, write_end = os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)

    def copy() -> None:
        about: Any = None
        with lines, os.fdopen(write_end, "wb") as mended:
            while line := lines.readline(MOST_ASKED + 1):
                if len(line) > MOST_ASKED:
                    line = refusal(line, _end_of_line(lines), about)
                about = about or _about_client(line)
                mended.write(without_halves(line))
                mended.flush()

    Thread(target=copy, daemon=True).start()


def _end_of_line(lines: BinaryIO) -> bytes:
    """The last bytes of a line that is too long, whose rest nobody holds."""
    end = b""
    while part := lines.readline(1 << 16):
        end = (end + part)[-_ENDS:]
        if part.endswith(b"\n"):
            break
    return end


def _about_client(line: bytes) -> Any:
    """What a message of the protocol without sessions says of the client, as all of them have to;
    None for another message.
    """
    if len(line) > _ENDS:
        return None
    try:
        return json.loads(line)["params"]["_meta"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def refusal(start: bytes, end: bytes, about: Any = None) -> bytes:
    """A call in the place of a message that is too long, which is answered with the refusal;
    nothing where the message has no number that can be read in its first or last bytes.

    Args:
        about: what an earlier message said of the client.
    """
    match = _FIRST_ID.match(start[:_ENDS]) or _LAST_ID.search(end)
    if match is None:
        return b""
    call: dict[str, Any] = {"name": "run", "arguments": {"program": _TOO_LONG}}
    if about is not None:
        call["_meta"] = about
    message = {"jsonrpc": "2.0", "id": json.loads(match["id"]), "method": "tools/call"}
    return json.dumps({**message, "params": call}).encode() + b"\n"


def without_halves(line: bytes) -> bytes:
    """A message with U+FFFD for each half of a surrogate pair; as it is where it is no JSON."""
    if b"\\u" not in line:
        return line
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.encode() + b"\n"


def _with_settings(tool: Tool) -> Tool:
    """A tool whose signature, which the SDK reads, has the settings by their names."""
    own = inspect.signature(tool, eval_str=True)
    named = inspect.Parameter.KEYWORD_ONLY
    settings = [
        inspect.Parameter(name, named, default=None, annotation=each)
        for name, each in _SETTINGS.items()
    ]

    @wraps(tool)
    async def wrapped(**values: Any) -> CallToolResult:
        return await tool(**values)

    parameters = [each for each in own.parameters.values() if each.name != "settings"]
    wrapped.__signature__ = own.replace(parameters=[*parameters, *settings])  # type: ignore[attr-defined]
    return wrapped


class Tools:
    """The tools, each a question that a process of its own answers.

    Args:
        limits: those of each call.
        recordings: the folder of the recordings that may be asked about, None for none.
    """

    def __init__(self, limits: dict[str, Any], recordings: str | None) -> None:
        self._limits = limits
        self._folder = None if recordings is None else os.path.realpath(recordings)

    def recorded(self) -> str:
        """What the instructions say of the recordings that there are."""
        if self._folder is None:
            return ""
        names = sorted(each for each in os.listdir(self._folder) if each.endswith(_RECORDING))
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        return _RECORDED.format((", ".join(names[:_MOST_NAMED]) or "none") + more)

    async def run(
        self, program: Program, inputs: Inputs = None, wrt: Wrt = None, **settings: Any
    ) -> CallToolResult:
        """Run a program, differentiate its output, and give value, gradients and graph."""
        return await self._ask("run", program, inputs, {**settings, "wrt": wrt})

    async def explain(
        self, program: Program, inputs: Inputs = None, **settings: Any
    ) -> CallToolResult:
        """Show the chain rule at work in a program, edge by edge, with every number."""
        return await self._ask("explain", program, inputs, settings)

    async def derive(
        self,
        program: Program,
        inputs: Inputs = None,
        target: Literal["gradcli", "latex", "numpy", "torch"] = "gradcli",
        **settings: Any,
    ) -> CallToolResult:
        """Write the gradients of a program as formulas of its inputs, or as a file for NumPy."""
        return await self._ask("derive", program, inputs, {**settings, "target": target})

    async def why(
        self,
        question: Annotated[
            str, Field(description="x.grad, x.requires_grad, x.is_leaf or net.0.weight.trains.")
        ],
        program: Program,
        inputs: Inputs = None,
        **settings: Any,
    ) -> CallToolResult:
        """Prove why a tensor has a gradient, or find every place where it was cut off."""
        return await self._ask("why", program, inputs, {**settings, "question": question})

    async def blame(
        self, program: Program, inputs: Inputs = None, **settings: Any
    ) -> CallToolResult:
        """Find the first NaN or infinity of a program, and a fix that has been run."""
        return await self._ask("blame", program, inputs, settings)

    async def check(
        self,
        program: Program,
        inputs: Inputs = None,
        equals: Annotated[
            dict[str, str] | None,
            Field(description="Gradients made by hand, as expressions, by input: {'x': '2 * x'}."),
        ] = None,
        **settings: Any,
    ) -> CallToolResult:
        """Check gradients against central differences, or ones made by hand against them."""
        return await self._ask("check", program, inputs, {**settings, "equals": equals})

    async def _ask(
        self, name: str, program: str, inputs: Any, settings: dict[str, Any]
    ) -> CallToolResult:
        if program == _TOO_LONG:
            text = f"the question has more than {MOST_ASKED:,} bytes, the limit"
            return _result({"text": text, "error": "E608"})
        chosen = {key: value for key, value in settings.items() if value is not None}
        elements = chosen.pop("elements", None)
        try:
            within = {"elements": elements, "recording": self._recording(program)}
            if elements is not None:
                slices_of(elements)
            named = {**self._limits, **self._checked(chosen)}
        except ValueError as error:
            return _result({"text": cut(str(error), 1_000), "error": "ValueError"})
        return _result(await answer_to(name, program, inputs or {}, named, within))

    def _checked(self, values: dict[str, Any]) -> dict[str, Any]:
        """The settings of a call; raises ValueError where one is beyond the server's limit."""
        for name, otherwise in (("timeout", None), ("max_steps", STEPS)):
            most = self._limits.get(name, otherwise)
            if name in values and not 0 < values[name] <= most:
                raise ValueError(f"{name} is at most {most:,.12g} here, and above 0")
        return values

    def _recording(self, program: str) -> str | None:
        """The path of the recording that a program names, None for other programs; raises
        ValueError for one that is not in the folder, links followed.
        """
        if not program.endswith(_RECORDING) or "\n" in program:
            return None
        if self._folder is None:
            raise ValueError(
                "there are no recordings here: the server is started with a folder of them,"
                " `gradcli mcp --recordings DIR`"
            )
        path = os.path.realpath(os.path.join(self._folder, program))
        if os.path.commonpath([path, self._folder]) != self._folder or not os.path.isfile(path):
            raise ValueError(f"there is no recording `{program}`")
        return path


def _result(answer: dict[str, Any]) -> CallToolResult:
    content = [TextContent(type="text", text=answer["text"])]
    return CallToolResult(
        content=content, structured_content=answer.get("data"), is_error="error" in answer
    )
