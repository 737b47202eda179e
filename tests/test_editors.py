"""`gradcli lsp`, driven through whole sessions by a client that is no editor."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.command_line import ROOT
from tests.machine import PATIENCE

pytest.importorskip("pygls")

pytestmark = pytest.mark.filterwarnings("default")

URI = "file:///tmp/lesson.grad"

TEXT = """\
def twice(value):
    return value * 2
π = "𝒳"; x = tensor([1., 2.], requires_grad=True)
loss = (twice(x) ** 2).sum()
loss.backward()
print("done")
"""


class Editor:
    """A client: what the server told it, and requests by position."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.told: asyncio.Queue[list[Any]] = asyncio.Queue()
        self.version = 0

    async def problems(self) -> list[tuple[Any, ...]]:
        """The diagnostics that come next: code, line, first and last column."""
        found = await asyncio.wait_for(self.told.get(), PATIENCE)
        places = [(each.code, each.range.start, each.range.end) for each in found]
        return [(code, a.line, a.character, b.character) for code, a, b in places]

    def opened(self, text: str) -> None:
        from lsprotocol import types

        item = types.TextDocumentItem(URI, "gradcli", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def typed(self, text: str) -> None:
        from lsprotocol import types

        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, URI)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def asked(self, request: str, line: int, column: int) -> Any:
        from lsprotocol import types

        kinds = {
            "hover": types.HoverParams,
            "completion": types.CompletionParams,
            "definition": types.DefinitionParams,
        }
        document = types.TextDocumentIdentifier(URI)
        given = kinds[request](document, types.Position(line, column))
        return await getattr(self.client, f"text_document_{request}_async")(given)

    async def hovered(self, line: int, column: int) -> str:
        found = await self.asked("hover", line, column)
        return "" if found is None else found.contents.value

    async def lens(self, title: str) -> str:
        """What the command behind a lens gives."""
        from lsprotocol import types

        document = types.CodeLensParams(types.TextDocumentIdentifier(URI))
        lenses = await self.client.text_document_code_lens_async(document)
        (command,) = [each.command for each in lenses if each.command.title == title]
        given = types.ExecuteCommandParams(command.command, command.arguments)
        return str(await self.client.workspace_execute_command_async(given))


def conversation(talk: Callable[[Editor], Awaitable[None]], *words: str) -> None:
    """Talk to a server of its own, from `initialize` to `exit`."""
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    async def talked() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client)

        def hear(given: types.PublishDiagnosticsParams) -> None:
            editor.told.put_nowait(given.diagnostics)

        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(hear)
        client.feature(types.WINDOW_LOG_MESSAGE)(lambda given: None)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "gradcli", "lsp", *words]
        await client.start_io(*command, env=environment)
        ability = types.ClientCapabilities()
        await client.initialize_async(types.InitializeParams(ability))
        client.initialized(types.InitializedParams())
        await asyncio.wait_for(talk(editor), PATIENCE)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(talked())


def test_diagnostics_as_one_types() -> None:
    async def talk(editor: Editor) -> None:
        editor.opened(TEXT)
        assert await editor.problems() == []
        editor.typed('a = "𝒳𝒳"; b = (1 +\n')
        # Columns count as the protocol has them: a letter of two units is two.
        assert [each[:3] for each in await editor.problems()] == [("E003", 0, 16)]
        editor.typed("import subprocess\nsubprocess.run('ls')\ny = x @\n")
        found = await editor.problems()
        assert {each[:2] for each in found} == {("E103", 0), ("E001", 2)}
        editor.typed(TEXT)
        assert await editor.problems() == []

    conversation(talk)


def test_run_then_hover_over_values_and_gradients() -> None:
    async def talk(editor: Editor) -> None:
        editor.opened(TEXT)
        await editor.problems()
        assert await editor.hovered(3, 1) == ""  # it has not run
        assert await editor.lens("run") == "done\n"
        assert await editor.problems() == []
        assert "loss: float32[] SumBackward0\ntensor(20." in await editor.hovered(3, 1)
        x = await editor.hovered(3, 14)
        assert "float32[2]" in x
        assert "x.grad = [ 8. 16.]" in x
        assert "sum(" in await editor.hovered(3, 25) or await editor.hovered(0, 5)
        assert "x.grad = [ 8., 16.]" in await editor.lens("explain")

    conversation(talk)


def test_a_run_that_fails_is_a_diagnostic_until_the_text_changes() -> None:
    async def talk(editor: Editor) -> None:
        editor.opened("x = ones(2)\ny = x @ ones(3)\n")
        assert await editor.problems() == []
        assert (await editor.lens("run")).startswith("error[E301]")
        assert await editor.problems() == [("E301", 1, 4, 15)]
        editor.typed("while True:\n    pass\n")
        assert await editor.problems() == []
        assert "E607" in await editor.lens("run")
        assert [each[0] for each in await editor.problems()] == ["E607"]
        editor.typed("load('x.npy')\n")
        await editor.problems()
        assert "E606" in await editor.lens("run")

    conversation(talk, "--timeout", "1", "--sandbox")


def test_completion_and_definition() -> None:
    async def talk(editor: Editor) -> None:
        editor.opened(TEXT)
        await editor.problems()
        words = {each.label for each in await editor.asked("completion", 3, 10)}
        assert "twice" in words  # behind `tw`
        editor.typed(TEXT + "loss.back")
        await editor.problems()
        found = await editor.asked("completion", 6, 9)
        (backward,) = [each for each in found if each.label == "backward"]
        assert (backward.text_edit.range.start.character, backward.text_edit.new_text) == (
            5,
            "backward",
        )
        place = (await editor.asked("definition", 3, 9)).range.start  # `twice`
        assert (place.line, place.character) == (0, 4)
        place = (await editor.asked("definition", 3, 14)).range.start  # `x`, behind wide letters
        assert (place.line, place.character) == (2, 10)
        place = (await editor.asked("definition", 1, 13)).range.start  # a parameter
        assert (place.line, place.character) == (0, 10)
        assert await editor.asked("definition", 5, 1) is None  # `print`

    conversation(talk)
