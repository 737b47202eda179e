"""The Pygments lexer: the language's own tokens in the classes that Pygments has."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.token import Token

from gradcli.repl.highlighting import pieces

_CLASSES = {
    "": Token.Text,
    "class:keyword": Token.Keyword,
    "class:number": Token.Literal.Number,
    "class:string": Token.Literal.String,
    "class:comment": Token.Comment.Single,
    "class:command": Token.Name.Builtin,
    "class:call": Token.Name.Function,
    "class:wrong": Token.Error,
}


class GradcliLexer(Lexer):  # type: ignore[misc]
    """Programs of gradcli, and what is typed in its sessions."""

    name = "gradcli"
    aliases = ("gradcli", "grad")
    filenames = ("*.grad",)
    mimetypes = ("text/x-gradcli",)
    url = ""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """The pieces of a text with their places and classes."""
        place = 0
        for style, piece in pieces(text):
            yield place, _CLASSES[style], piece
            place += len(piece)
