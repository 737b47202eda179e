"""The Pygments lexer and the TextMate grammar give each character the class that it has here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pygments.token import Token

from gradcli.doors.editors.pygments_lexer import GradcliLexer
from gradcli.doors.editors.textmate import grammar
from gradcli.repl.highlighting import pieces
from tests.command_line import ROOT
from tests.machine import PATIENCE

TEXTS = {
    "every kind": (
        "import torch  # a comment, 'quoted' and 1.5\n"
        "@decorated\n"
        "def f(x: float = 0x_ff, *, y=1_0.5e-3j):\n"
        "    return x ** 2 if not y else None\n"
        "a = rb'\\'#' + u\"\\\"\" + f'{a:>{w}} {{}} {b[\"k\"]!r:.2f} {(lambda: 1)()}'\n"
        's = \'\'\'one\n# two """ 3\n\'\'\' + r"""f""" + F"""{x +\n 1} \\N{DASH}"""\n'
        "b = x @ y // 2 << 1 != 3 and 0b1 is 0o7 or 1. in (.5, 1e5)\n"
        ".why x.grad\nexp?\nπ = λ(1)\nwhile True: break\n"
    ),
    **{path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.grad")},
}


def classes(text: str) -> list[str]:
    """The class of each character, as the language's own lexer has it."""
    return [style.removeprefix("class:") for style, piece in pieces(text) for _ in piece]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_pygments_has_the_same_classes(text: str) -> None:
    expected = {
        "keyword": Token.Keyword, "number": Token.Literal.Number, "string": Token.Literal.String,
        "comment": Token.Comment.Single, "command": Token.Name.Builtin,
        "call": Token.Name.Function, "": Token.Text, "wrong": Token.Error,
    }  # fmt: skip
    found = list(GradcliLexer().get_tokens_unprocessed(text))
    assert "".join(piece for _, _, piece in found) == text
    assert [place for place, _, _ in found] == [
        sum(len(piece) for _, _, piece in found[:number]) for number in range(len(found))
    ]
    assert [kind for _, kind, piece in found for _ in piece] == [
        expected[each] for each in classes(text)
    ]


def test_pygments_colours_a_file_that_is_wrong() -> None:
    found = list(GradcliLexer().get_tokens("x = 'open\n$\n"))
    assert "".join(piece for _, piece in found) == "x = 'open\n$\n"
    assert Token.Error in [kind for kind, _ in found]


READER = """
const fs = require('fs'), textmate = require('vscode-textmate'), onig = require('vscode-oniguruma');
const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm')).buffer;
(async () => {
  await onig.loadWASM(wasm);
  const [grammar, text] = JSON.parse(fs.readFileSync(0).toString());
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: patterns => new onig.OnigScanner(patterns),
      createOnigString: text => new onig.OnigString(text)}),
    loadGrammar: async () => textmate.parseRawGrammar(JSON.stringify(grammar), 'grammar.json')});
  const read = await registry.loadGrammar('source.gradcli');
  let state = textmate.INITIAL, found = [];
  for (const line of text.split('\\n')) {
    const result = read.tokenizeLine(line, state);
    state = result.ruleStack;
    found.push(result.tokens.map(each => [each.startIndex, each.endIndex, each.scopes]));
  }
  console.log(JSON.stringify(found));
})();
"""

SCOPES = {
    "comment": "comment", "constant.character": "string", "string": "string",
    "constant.language": "keyword", "constant.numeric": "number", "entity.name.function": "call",
    "entity.name.command": "command", "keyword.operator.logical": "keyword",
    "keyword.control": "keyword", "storage.type.gradcli": "keyword",
}  # fmt: skip


def _class(scopes: list[str]) -> str:
    """The class that a scope of TextMate's stands for."""
    for start, kind in SCOPES.items():
        if scopes[-1].startswith(start):
            return kind
    return ""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_textmate_has_the_same_classes(text: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    modules = os.environ.get("NODE_PATH", "")
    if node is None or not Path(modules, "vscode-textmate").is_dir():
        pytest.skip("needs node, and vscode-textmate in NODE_PATH")
    (tmp_path / "read.js").write_text(READER)
    ended = subprocess.run(
        [node, str(tmp_path / "read.js")],
        input=json.dumps([grammar(), text]),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    wanted = classes(text)
    place = 0
    for line, tokens in zip(text.split("\n"), json.loads(ended.stdout), strict=True):
        for start, end, scopes in tokens:
            for at in range(start, min(end, len(line))):
                if line[at].isspace():
                    continue  # which token has the blanks between two does not show
                inside = any(scope.startswith("string.interpolated") for scope in scopes)
                # A field's braces, format and conversion belong to the string for one of them.
                if inside and wanted[place + at] in ("string", "") and not _class(scopes):
                    continue
                assert (line[at:], _class(scopes)) == (line[at:], wanted[place + at])
        place += len(line) + 1


def test_the_grammar_is_printed() -> None:
    command = [sys.executable, "-m", "gradcli.doors.editors.textmate"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert json.loads(shown) == grammar()
