"""The language server: what `analysis` finds, and what the last run of a program came to."""

from __future__ import annotations

import os
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

import gradcli
from gradcli.doors.asking import answer_to
from gradcli.doors.editors import analysis
from gradcli.show.help.op_page import op_help

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

    def show_problems(self, uri: str, more: list[types.Diagnostic] | None = None) -> None:
        """Publish what is wrong with a document, and what a run found besides."""
        document = self.workspace.get_text_document(uri)
        found = [
            types.Diagnostic(
                _range(document, error.span.start, error.span.end),
                f"{error.message}\nhelp: {error.help}" if error.help else error.message,
                types.DiagnosticSeverity.Error,
                code=error.code,
                source="gradcli",
            )
            for error in analysis.problems(_name(uri), document.source)
            if error.span is not None
        ]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, [*found, *(more or [])])
        )

    async def run_document(self, uri: str) -> str:
        """Run a document, keep what its names hold, and give what it printed or the error."""
        document = self.workspace.get_text_document(uri)
        answer = await answer_to("values", document.source, {}, dict(self.limits))
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
        return str((await answer_to("explain", source, {}, dict(self.limits)))["text"])


def serve(limits: dict[str, Any]) -> None:
    """Serve on standard input and output until the editor goes."""
    server = Server(limits)
    _register(server)
    server.start_io()


def _register(server: Server) -> None:
    """Say which of the editor's requests are answered by whom."""

    def changed(given: Any) -> None:
        server.show_problems(given.text_document.uri)

    def closed(given: types.DidCloseTextDocumentParams) -> None:
        server.runs.pop(given.text_document.uri, None)

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
    server.feature(types.TEXT_DOCUMENT_HOVER)(lambda given: _hover(server, given))
    options = types.CompletionOptions(trigger_characters=["."])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(lambda given: _words(server, given))
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(lambda given: _definition(server, given))
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(lambda given: _lenses(given))
    server.command("gradcli.run")(run)
    server.command("gradcli.explain")(explain)


def _show(server: Server, text: str) -> None:
    server.window_log_message(types.LogMessageParams(types.MessageType.Info, text))


def _hover(server: Server, given: types.HoverParams) -> types.Hover | None:
    """The value and the gradient of a name in the last run, or the page of an op."""
    document = server.workspace.get_text_document(given.text_document.uri)
    name = analysis.name_at(document.source, document.offset_at_position(given.position))
    held = server.runs.get(given.text_document.uri, {}).get(name)
    if held is not None:
        text = f"{name}: {held['kind']}\n{held['value']}"
        if held["grad"] is not None:
            text += f"\n{name}.grad = {held['grad']}"
    else:
        text = (op_help(name) if name else None) or ""
    if not text:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, f"```\n{text}\n```"))


def _words(server: Server, given: types.CompletionParams) -> list[types.CompletionItem]:
    document = server.workspace.get_text_document(given.text_document.uri)
    offset = document.offset_at_position(given.position)
    start, found = analysis.completions(document.source, offset)
    place = _range(document, start, offset)
    return [
        types.CompletionItem(word, detail=what, text_edit=types.TextEdit(place, word))
        for word, what in found
    ]


def _definition(server: Server, given: types.DefinitionParams) -> types.Location | None:
    uri = given.text_document.uri
    document = server.workspace.get_text_document(uri)
    found = analysis.definition(document.source, document.offset_at_position(given.position))
    return None if found is None else types.Location(uri, _range(document, *found))


def _lenses(given: types.CodeLensParams) -> list[types.CodeLens]:
    top = types.Range(types.Position(0, 0), types.Position(0, 0))
    uri = given.text_document.uri
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
    message = data.get("message") or answer["text"]
    severity = types.DiagnosticSeverity.Error
    return [types.Diagnostic(place, message, severity, code=answer["error"], source="gradcli run")]


def _range(document: TextDocument, start: int, end: int) -> types.Range:
    """The range of two offsets, in the editor's units."""
    text = document.source

    def position(offset: int) -> types.Position:
        line = text.count("\n", 0, offset)
        column = offset - (text.rfind("\n", 0, offset) + 1)
        found: types.Position = document.position_to_client_units(types.Position(line, column))
        return found

    return types.Range(position(start), position(end))


def _name(uri: str) -> str:
    return os.path.basename(to_fs_path(uri) or uri)
