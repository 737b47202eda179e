"""`gradcli lsp`, driven through whole sessions by a client that is no editor."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT
from tests.machine import PATIENCE
from tests.rows import each_row

pytest.importorskip("pygls")

pytestmark = pytest.mark.filterwarnings("default")

URI = "file:///lessons/lesson.grad"

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
        self.uri = URI

    async def problems(self) -> list[tuple[Any, ...]]:
        """The diagnostics that come next: code, line, first and last column."""
        found = await asyncio.wait_for(self.told.get(), PATIENCE)
        places = [(each.code, each.range.start, each.range.end) for each in found]
        return [(code, a.line, a.character, b.character) for code, a, b in places]

    def opened(self, text: str) -> None:
        from lsprotocol import types

        item = types.TextDocumentItem(self.uri, "gradcli", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def typed(self, text: str) -> None:
        from lsprotocol import types

        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def asked(self, request: str, line: int, column: int) -> Any:
        from lsprotocol import types

        kinds = {
            "hover": types.HoverParams,
            "completion": types.CompletionParams,
            "definition": types.DefinitionParams,
        }
        document = types.TextDocumentIdentifier(self.uri)
        given = kinds[request](document, types.Position(line, column))
        return await getattr(self.client, f"text_document_{request}_async")(given)

    async def hovered(self, line: int, column: int) -> str:
        found = await self.asked("hover", line, column)
        return "" if found is None else found.contents.value

    async def lens(self, title: str) -> str:
        """What the command behind a lens gives."""
        from lsprotocol import types

        document = types.CodeLensParams(types.TextDocumentIdentifier(self.uri))
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


def test_a_run_is_one_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text("[1.0, 2.0]")
    (tmp_path / "helper.py").write_text("def twice(x):\n    return x * 2\n")

    async def talk(editor: Editor) -> None:
        editor.uri = (tmp_path / "lesson.grad").as_uri()
        editor.opened(
            "from helper import twice\nx = load('values.json')\nprint(twice(x[1]).item())\n"
        )
        assert await editor.problems() == []
        assert await editor.lens("run") == "4.0\n"
        await editor.problems()
        editor.typed("x = ones(2)\nx @ ones(3)\n")
        await editor.problems()
        assert "--> lesson.grad:2:1" in await editor.lens("run")
        assert await editor.problems() == [("E301", 1, 0, 11)]

    conversation(talk)


NET = """\
class Net(nn.Module):
    \"\"\"A layer and its power.\"\"\"

    def __init__(self, size, power=2):
        super().__init__()
        self.layer = nn.Linear(size, 1)
        self.power = power

    def forward(self, x):
        \"\"\"Its loss.\"\"\"
        x = self.layer(x)
        return (x ** self.power).sum()

x = ones(3)
net = Net(3, power=3)
loss = net.forward(x) + sum(x for x in x)
"""


def test_names_have_scopes() -> None:
    from lsprotocol import types
    from pygls.exceptions import JsonRpcException

    async def talk(editor: Editor) -> None:
        editor.opened(NET)
        await editor.problems()

        async def place(line: int, column: int) -> tuple[int, int] | None:
            found = await editor.asked("definition", line, column)
            return found and (found.range.start.line, found.range.start.character)

        async def renamed(line: int, column: int, name: str) -> list[tuple[int, int]]:
            document = types.TextDocumentIdentifier(editor.uri)
            given = types.RenameParams(document, types.Position(line, column), name)
            found = await editor.client.text_document_rename_async(given)
            starts = [each.range.start for each in found.changes[editor.uri]]
            return [(each.line, each.character) for each in starts]

        assert await place(15, 20) == (13, 0)  # the program's `x`, not forward()'s
        assert await place(10, 23) == (8, 22)  # forward()'s parameter
        assert await place(15, 13) == (8, 8)  # a method
        assert await place(11, 27) == (6, 13)  # an attribute
        assert await renamed(13, 0, "given") == [(13, 0), (15, 19), (15, 39)]
        assert await renamed(11, 16, "z") == [(8, 22), (10, 8), (10, 23), (11, 16)]
        assert await renamed(15, 28, "each") == [(15, 28), (15, 34)]
        assert await renamed(14, 13, "exponent") == [(3, 29), (6, 21), (14, 13)]
        for line, column, name, part in (
            (13, 0, "net", "is a name of the program already"),
            (13, 0, "for", "is no name"),
            (13, 4, "a", "gives no value"),
        ):
            with pytest.raises(JsonRpcException, match=part):
                await renamed(line, column, name)
        assert await editor.hovered(15, 13) == "```\ndef forward(self, x)\n\nIts loss.\n```"
        assert "class Net(nn.Module)\n\nA layer" in await editor.hovered(14, 7)
        assert "sum(" in await editor.hovered(11, 34)  # a tensor's method
        editor.typed(NET + "net.")
        await editor.problems()
        labels = [each.label for each in await editor.asked("completion", 16, 4)]
        assert labels[:4] == ["layer", "power", "__init__", "forward"]
        assert "parameters" in labels
        assert "matmul" not in labels
        editor.typed(NET.replace("        x = self.layer(x)", "        self."))
        await editor.problems()
        labels = [each.label for each in await editor.asked("completion", 10, 13)]
        assert labels[0] == "layer"

    conversation(talk)


FIXES = [
    ("y = torch.sigmod(ones(1))\n", 0, ("E102", "sigmoid", 10, 16)),
    ("x = F.rleu(ones(1))\n", 0, ("E102", "relu", 6, 10)),
    ("loss = ones(1)\nprint(lss)\n", 1, ("E101", "loss", 6, 9)),
    ("y = a && b\n", 0, ("E001", "and", 6, 8)),
    ("x++\n", 0, ("E001", "x += 1", 0, 3)),
    ("def f(x)\n    return x\n", 0, ("E001", "def f(x):", 0, 8)),
    ("y = 3x\n", 0, ("E001", "3 * x", 4, 6)),
]


def test_problems_have_fixes() -> None:
    from lsprotocol import types

    async def talk(editor: Editor) -> None:
        editor.opened("")
        await editor.problems()
        for text, line, (code, word, first, last) in FIXES:
            editor.typed(text)
            found = await editor.problems()
            if not found:
                await editor.lens("run")
                found = await editor.problems()
            assert found[0][:2] == (code, line)
            whole = types.Range(types.Position(line, 0), types.Position(line, 99))
            document = types.TextDocumentIdentifier(editor.uri)
            given = types.CodeActionParams(document, whole, types.CodeActionContext([]))
            (action,) = await editor.client.text_document_code_action_async(given)
            (edit,) = action.edit.changes[editor.uri]
            place = edit.range.start.character, edit.range.end.character
            assert (action.title, edit.new_text, place) == (f"write `{word}`", word, (first, last))
        editor.typed("exec('1')\n")
        assert (await editor.problems())[0][0] == "E101"
        assert not await editor.client.text_document_code_action_async(given)

    conversation(talk)


# --- messages -----------------------------------------------------------------------------------


def _message(body: str | bytes) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


BEGIN = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
)
END = '{"jsonrpc": "2.0", "id": 9, "method": "shutdown"}'

NO_MESSAGES: list[tuple[bytes, int, str]] = [
    (b"Content-Length: 99999999999\r\n\r\n", -32600, "Content-Length 99999999999"),
    (b"Content-Length: -1\r\n\r\n", -32600, "Content-Length -1"),
    (b"Content-Length: many\r\n\r\n", -32600, "Content-Length many"),
    (b"Content-Length: %s\r\n\r\n" % (b"9" * 5000), -32600, "Content-Length 9999"),
    (_message("{no json"), -32700, "the message is no JSON"),
    (_message(b"\xff\xfe{"), -32700, "the message is no JSON"),
    (_message("[" * 200_000), -32700, "the message is no JSON"),
    (_message("[1]"), -32600, "a message is a JSON object"),
    (_message('{"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": {"x": 1}}'),
     -32602, ""),
    (_message('{"jsonrpc": "2.0", "id": 6, "method": "no/such", "params": {}}'), -32601, ""),
]  # fmt: skip


@each_row(("sent", "code", "part"), NO_MESSAGES, lambda row: repr(row[0][:30]), size=4, every=3)
def test_what_is_no_message_is_answered(sent: bytes, code: int, part: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "gradcli", "lsp"],
        input=_message(BEGIN)
        + sent
        + _message(END)
        + _message('{"jsonrpc": "2.0", "method": "exit"}'),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
    )
    answers = [
        json.loads(b"{" + each.partition(b"{")[2])
        for each in re.split(rb"Content-Length: \d+\r\n", ended.stdout)[1:]
    ]
    errors = [each["error"] for each in answers if "error" in each]
    assert [each["code"] for each in errors] == [code], ended.stdout
    assert part in errors[0]["message"]
    assert {1, 9} <= {each.get("id") for each in answers if "result" in each}
    assert (ended.returncode, ended.stderr) == (0, b"")
