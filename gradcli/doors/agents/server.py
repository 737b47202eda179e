"""The tools of `gradcli mcp`, and the process that answers each call."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

import gradcli
from gradcli.doors.asking import answer_to

_INSTRUCTIONS = """\
gradcli runs programs in the PyTorch dialect (tensor expressions, autograd, torch.nn) without torch,
and explains their gradients. A program is text such as `loss = ((x @ w - y) ** 2).mean()`; values
for its names are given as inputs, numbers and nested lists, which require grad. Ask `why` where a
gradient is None, `blame` where a number is NaN or infinite, `check` where a gradient made by hand
may be wrong, `derive` for formulas, `explain` for the chain rule with its numbers."""

Program = Annotated[str, Field(description="The program, in the PyTorch dialect.")]
Inputs = Annotated[
    dict[str, Any] | None,
    Field(description="Values for names: numbers, nested lists, or text such as 'randn(2, 3)'."),
]
Of = Annotated[
    str | None, Field(description="The output's name; by default the tensor assigned last.")
]
Wrt = Annotated[list[str] | None, Field(description="The inputs whose gradients are wanted.")]


def serve(limits: dict[str, Any]) -> None:
    """Serve until the client goes; `limits` are those of each call."""
    server = MCPServer(
        "gradcli", instructions=_INSTRUCTIONS, version=gradcli.__version__, log_level="ERROR"
    )
    tools = Tools(limits)
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in (tools.run, tools.explain, tools.derive, tools.why, tools.blame, tools.check):
        server.add_tool(tool, annotations=reads)
    server.run("stdio")


class Tools:
    """The tools, each a question that a process of its own answers.

    Args:
        limits: those of each call.
    """

    def __init__(self, limits: dict[str, Any]) -> None:
        self._limits = limits

    async def run(
        self, program: Program, inputs: Inputs = None, of: Of = None, wrt: Wrt = None
    ) -> CallToolResult:
        """Run a program, differentiate its output, and give value, gradients and graph."""
        return await self._ask("run", program, inputs, of=of, wrt=wrt)

    async def explain(
        self, program: Program, inputs: Inputs = None, of: Of = None
    ) -> CallToolResult:
        """Show the chain rule at work in a program, edge by edge, with every number."""
        return await self._ask("explain", program, inputs, of=of)

    async def derive(
        self,
        program: Program,
        inputs: Inputs = None,
        of: Of = None,
        target: Literal["gradcli", "latex", "numpy", "torch"] = "gradcli",
    ) -> CallToolResult:
        """Write the gradients of a program as formulas of its inputs, or as a file for NumPy."""
        return await self._ask("derive", program, inputs, of=of, target=target)

    async def why(
        self,
        question: Annotated[
            str, Field(description="x.grad, x.requires_grad, x.is_leaf or net.0.weight.trains.")
        ],
        program: Program,
        inputs: Inputs = None,
        of: Of = None,
    ) -> CallToolResult:
        """Prove why a tensor has a gradient, or find every place where it was cut off."""
        return await self._ask("why", program, inputs, question=question, of=of)

    async def blame(self, program: Program, inputs: Inputs = None, of: Of = None) -> CallToolResult:
        """Find the first NaN or infinity of a program, and a fix that has been run."""
        return await self._ask("blame", program, inputs, of=of)

    async def check(
        self,
        program: Program,
        inputs: Inputs = None,
        of: Of = None,
        equals: Annotated[
            dict[str, str] | None,
            Field(description="Gradients made by hand, as expressions, by input: {'x': '2 * x'}."),
        ] = None,
    ) -> CallToolResult:
        """Check gradients against central differences, or ones made by hand against them."""
        return await self._ask("check", program, inputs, of=of, equals=equals)

    async def _ask(self, name: str, program: str, inputs: Any, **settings: Any) -> CallToolResult:
        given = {key: value for key, value in settings.items() if value is not None}
        named = {**given, **self._limits}
        return _result(await answer_to(name, program, inputs or {}, named))


def _result(answer: dict[str, Any]) -> CallToolResult:
    content = [TextContent(type="text", text=answer["text"])]
    return CallToolResult(
        content=content, structured_content=answer.get("data"), is_error="error" in answer
    )
