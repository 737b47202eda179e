"""The language server: what `analysis` finds, and what the last run of a program came to.

Messages of an editor that are none are answered, and not passed on.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

import gradcli
from gradcli.doors.asking import answer_to
from gradcli.doors.editors import analysis

# --- messages as they come ----------------------------------------------------------------------


LARGEST_MESSAGE = 64_000_000
"""Bytes of the longest message that is read."""

_LENGTH = re.compile(rb"content-length:\s*(\S+)\s*", re.IGNORECASE)

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602


class Frames:
    """A stream in the place of standard input, with whole messages alone.

    Args:
        stream: the editor's bytes.
        answers: where it hears of what is no message.
    """

    def __init__(self, stream: BinaryIO, answers: BinaryIO) -> None:
        self._stream = stream
        self._answers = answers
        self._headers: list[bytes] = []
        self._body = b""
        self._id: Any = None

    def readline(self) -> bytes:
        """The next line of a message's head; b"" at the end."""
        if not self._headers:
            self._next()
        return self._headers.pop(0)

    def read(self, _count: int) -> bytes:
        """The body of the message whose head was read."""
        return self._body

    def refuse(self, reason: str) -> None:
        """Answer the message that was read last, if it is a request, that it cannot be served."""
        if self._id is not None:
            self._answer(_INVALID_PARAMS, reason)

    def _next(self) -> None:
        """Read up to the end of the next whole message."""
        while True:
            length = self._head()
            if length is None:
                self._headers = [b""]
                return
            body = self._stream.read(length)
            if len(body) < length:
                self._headers = [b""]
                return
            self._id = None
            if self._is_message(body):
                self._headers = [f"Content-Length: {length}\r\n".encode(), b"\r\n"]
                self._body = body
                return

    def _head(self) -> int | None:
        """The length of the next message, None at the end; lines that are no head are passed by."""
        length: int | None = None
        while line := self._stream.readline(LARGEST_MESSAGE):
            match = _LENGTH.fullmatch(line)
            if match is not None:
                length = self._length(match[1])
            elif not line.strip() and length is not None:
                return length
        return None

    def _length(self, word: bytes) -> int | None:
        if word.isdigit() and len(word) < 20 and 0 < int(word) <= LARGEST_MESSAGE:
            return int(word)
        self._id = None
        shown = word[:40].decode("ascii", "replace")
        self._answer(
            _INVALID_REQUEST,
            f"Content-Length {shown}: a message has 1 to {LARGEST_MESSAGE:,} bytes",
        )
        return None

    def _is_message(self, body: bytes) -> bool:
        """Whether a body is a JSON object; it is answered if it is not."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._answer(_PARSE_ERROR, f"the message is no JSON: {error}")
            return False
        if not isinstance(message, dict):
            self._answer(_INVALID_REQUEST, "a message is a JSON object")
            return False
        self._id = message.get("id") if "method" in message else None
        return True

    def _answer(self, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        body = json.dumps({"jsonrpc": "2.0", "id": self._id, "error": error}).encode()
        self._answers.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._answers.flush()


# --- the server ---------------------------------------------------------------------------------


_LENSES = {"gradcli.run": "run", "gradcli.explain": "explain"}


class Server(LanguageServer):  # type: ignore[misc]
    """Serves one editor.

    Args:
        limits: those of each run.

    Attributes:
        runs: what the names of each document held when it ran last.
    """

    def __init__(self, limits: dict[str, Any]) -> None:
        super().__init__("gradcli", gradcli.__version__)
        self.limits = limits
        self.runs: dict[str, dict[str, Any]] = {}
        self.fixes: dict[str, list[tuple[types.Diagnostic, types.TextEdit]]] = {}
        # pygls closes what it writes to, and the command has its own to end with.
        self.out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        self.frames = Frames(sys.stdin.buffer, self.out)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Answer a message whose parts are not those of its request."""
        if not isinstance(error, JsonRpcMethodNotFound):  # which is answered
            self.frames.refuse(str(error).partition("\n")[0])

    def show_problems(self, uri: str, more: list[types.Diagnostic] | None = None) -> None:
        """Publish what is wrong with a document, and what a run found besides."""
        document = self.workspace.get_text_document(uri)
        problems = [
            types.Diagnostic(
                _range(document, error.span.start, error.span.end),
                _message(error.message, error.help),
                types.DiagnosticSeverity.Error,
                code=error.code,
                source="gradcli",
            )
            for error in analysis.problems(_path(uri), document.source)
            if error.span is not None
        ]
        problems += more or []
        self.fixes[uri] = [(each, fix) for each in problems if (fix := _fix(document, each))]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, problems))

    async def run_document(self, uri: str) -> str:
        """Run a document, keep what its names hold, and give what it printed or the error."""
        document = self.workspace.get_text_document(uri)
        limits = dict(self.limits)
        answer = await answer_to("values", document.source, {}, limits, file=_path(uri))
        self.runs.pop(uri, None)
        more = []
        if "error" in answer:
            more = _reported(document, answer)
        else:
            self.runs[uri] = answer["data"]["names"]
        self.show_problems(uri, more)
        return str(answer["text"])

    async def explain_document(self, uri: str) -> str:
        """The ledger of a document's backward pass, or the error."""
        source = self.workspace.get_text_document(uri).source
        answer = await answer_to("explain", source, {}, dict(self.limits), file=_path(uri))
        return str(answer["text"])


def serve(limits: dict[str, Any]) -> None:
    """Serve on standard input and output until the editor goes."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # the editor is told
    server = Server(limits)
    _register(server)
    server.start_io(server.frames, server.out)


def _register(server: Server) -> None:
    """Say which of the editor's requests are answered by whom."""

    def changed(params: Any) -> None:
        server.show_problems(params.text_document.uri)

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.runs.pop(params.text_document.uri, None)
        server.fixes.pop(params.text_document.uri, None)

    async def run(uri: str) -> str:
        text = await server.run_document(uri)
        _show(server, text)
        return text

    async def explain(uri: str) -> str:
        text = await server.explain_document(uri)
        _show(server, text)
        return text

    for event in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE):
        server.feature(event)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(types.TEXT_DOCUMENT_HOVER)(lambda params: _hover(server, params))
    options = types.CompletionOptions(trigger_characters=["."])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(lambda params: _words(server, params))
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(lambda params: _definition(server, params))
    server.feature(types.TEXT_DOCUMENT_RENAME)(lambda params: _rename(server, params))
    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(lambda params: _actions(server, params))
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(lambda params: _lenses(params))
    server.command("gradcli.run")(run)
    server.command("gradcli.explain")(explain)


def _show(server: Server, text: str) -> None:
    server.window_log_message(types.LogMessageParams(types.MessageType.Info, text))


def _hover(server: Server, params: types.HoverParams) -> types.Hover | None:
    """The value and the gradient of a name in the last run, what a function of the program says of
    itself, or the page of an op.
    """
    document = server.workspace.get_text_document(params.text_document.uri)
    offset = document.offset_at_position(params.position)
    name = analysis.name_at(document.source, offset)
    held = server.runs.get(params.text_document.uri, {}).get(name)
    if held is not None:
        text = f"{name}: {held['kind']}\n{held['value']}"
        if held["grad"] is not None:
            text += f"\n{name}.grad = {held['grad']}"
    else:
        text = analysis.documentation(document.source, offset)
    if not text:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, f"```\n{text}\n```"))


def _words(server: Server, params: types.CompletionParams) -> list[types.CompletionItem]:
    document = server.workspace.get_text_document(params.text_document.uri)
    offset = document.offset_at_position(params.position)
    start, words = analysis.completions(document.source, offset)
    place = _range(document, start, offset)
    return [
        types.CompletionItem(
            word, detail=what, sort_text=f"{number:05}", text_edit=types.TextEdit(place, word)
        )
        for number, (word, what) in enumerate(words)
    ]


def _definition(server: Server, params: types.DefinitionParams) -> types.Location | None:
    uri = params.text_document.uri
    document = server.workspace.get_text_document(uri)
    spans = analysis.definition(document.source, document.offset_at_position(params.position))
    return None if spans is None else types.Location(uri, _range(document, *spans))


def _rename(server: Server, params: types.RenameParams) -> types.WorkspaceEdit:
    """Give a variable another name, where its scope has it; raises what the editor shows."""
    uri = params.text_document.uri
    document = server.workspace.get_text_document(uri)
    offset = document.offset_at_position(params.position)
    try:
        places = analysis.renamed(document.source, offset, params.new_name)
    except analysis.Unnamed as error:
        raise JsonRpcInvalidParams(str(error)) from None
    edits = [types.TextEdit(_range(document, *place), params.new_name) for place in places]
    return types.WorkspaceEdit({uri: edits})


def _actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The changes that the helps of the problems in a range propose."""
    uri = params.text_document.uri
    return [
        types.CodeAction(
            f"write `{fix.new_text.strip()}`",
            types.CodeActionKind.QuickFix,
            [problem],
            is_preferred=True,
            edit=types.WorkspaceEdit({uri: [fix]}),
        )
        for problem, fix in server.fixes.get(uri, [])
        if problem.range.start <= params.range.end and params.range.start <= problem.range.end
    ]


def _fix(document: TextDocument, problem: types.Diagnostic) -> types.TextEdit | None:
    ends = problem.range.start, problem.range.end
    start, end = (document.offset_at_position(each) for each in ends)
    fix = analysis.fix_of(document.source, start, end, problem.message)
    return None if fix is None else types.TextEdit(_range(document, *fix[:2]), fix[2])


def _message(message: str, help: str | None) -> str:
    return f"{message}\nhelp: {help}" if help else message


def _lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
    top = types.Range(types.Position(0, 0), types.Position(0, 0))
    uri = params.text_document.uri
    return [types.CodeLens(top, types.Command(t, c, arguments=[uri])) for c, t in _LENSES.items()]


def _reported(document: TextDocument, answer: dict[str, Any]) -> list[types.Diagnostic]:
    """The error that ended a run, at its place; found by reading already if it is of the text."""
    data = answer.get("data") or {}
    if str(answer["error"]).startswith("E0"):
        return []
    spans = data.get("spans") or [{"line": 1, "column": 1, "end_line": 1, "end_column": 1}]
    first = spans[0]
    ends = [(first["line"], first["column"]), (first["end_line"], first["end_column"])]
    start, end = (types.Position(line - 1, column - 1) for line, column in ends)
    place = types.Range(
        document.position_to_client_units(start), document.position_to_client_units(end)
    )
    message = _message(data.get("message") or answer["text"], data.get("help"))
    severity = types.DiagnosticSeverity.Error
    return [types.Diagnostic(place, message, severity, code=answer["error"], source="gradcli run")]


def _range(document: TextDocument, start: int, end: int) -> types.Range:
    """The range of two offsets, in the editor's units."""
    text = document.source

    def position(offset: int) -> types.Position:
        line = text.count("\n", 0, offset)
        column = offset - (text.rfind("\n", 0, offset) + 1)
        converted: types.Position = document.position_to_client_units(types.Position(line, column))
        return converted

    return types.Range(position(start), position(end))


def _path(uri: str) -> str:
    return to_fs_path(uri) or uri
