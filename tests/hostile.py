"""Texts that could break out of a page or a picture, and programs that carry them there."""

from __future__ import annotations

from pathlib import Path

STRINGS = {
    "script": "</script><script>hit=1</script>",
    "handler": '"><img src=x onerror=hit=1><svg/onload=hit=1>',
    "comment": "<!-- --> <!--<script>",
    "cdata": "]]></text></svg>",
    "style": "</style><style>*{display:none}",
    "entities": "&lt;&amp;&#x3c;script&#x3e;hit=1",
    "quotes": "\"'`${hit=1}`'\" \\\\u003cscript\\\\u003e",
    "template": "{title}{0}{data}%s{{7*7}}",
    "address": "javascript:hit=1 url(//example/x)",
    "right to left": "\u202egradient\u202c \u2066x\u2069 \u200f\u05d0",
    "zero": "a\\x00b\\x1b[31m\\x07",
    "surrogate": "\\ud800\\udfff\\udc00",
    "no characters": "\ufffe\uffff\ufdd0",
    "wide": "東京" * 20 + "👩‍👩‍👧",
    "combining": "a" + "\u0301" * 200,
    "long": "w" * 10_000,
}
"""What a string of a program, a comment and the name of a module may hold."""

NAMES = [
    "__proto__", "constructor", "prototype", "toString", "valueOf", "hasOwnProperty", "this",
    "function", "var", "let", "new", "delete", "typeof", "undefined", "NaN_", "Infinity",
    "arguments", "window", "document", "page", "steps", "alert", "then", "length", "東京",
    "ªº", "ñ", "_", "n" * 10_000,
]  # fmt: skip
"""Names that mean something to JavaScript, and long and foreign ones."""


def of_string(text: str) -> str:
    """A program with a text in its source."""
    quoted = text.replace('"', '\\"').replace("\\\\", "\\") if '"' in text else text
    return f'y = x * len("""{quoted} """) + x  # {text.splitlines()[0]}'


def of_name(name: str) -> str:
    """A program in which everything has one name: inputs, results, modules, parameters, nodes."""
    return f"""
import torch

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.m = torch.nn.ModuleDict({{{name!r}: torch.nn.Linear(2, 2)}})
        self.p = torch.nn.ParameterDict({{{name!r}: torch.ones(2)}})

    def forward(self, x):
        for layer in self.m.values():
            x = layer(x)
        for weight in self.p.values():
            x = x * weight
        return x

net = Net()
f = {name}.apply
{name} = torch.tensor([1., 2.], requires_grad=True)
{name} = f(net({name})).sum()
"""


def of_key(text: str) -> str:
    """A program with a text as the name of a module and of a parameter; what the text spells out,
    as a zero byte, is in the name itself.
    """
    key = repr(text).replace("\\\\x", "\\x").replace("\\\\u", "\\u")
    return f"""
import torch
net = torch.nn.Module()
net.m = torch.nn.ModuleDict({{{key}: torch.nn.Linear(2, 2)}})
net.p = torch.nn.ParameterDict({{{key}: torch.ones(2)}})
y = sum(m(p).sum() for m in net.m.values() for p in net.p.values())
"""


def programs(folder: Path) -> dict[str, list[str]]:
    """The words of `gradcli` that draw each of these programs, those of files in a folder."""
    found = {f"string: {name}": [of_string(text), "x=2"] for name, text in STRINGS.items()}
    for number, name in enumerate(NAMES):
        file = folder / f"{number}.grad"
        file.write_text(of_name(name), "utf-8")
        found[f"name: {name[:20]}"] = ["run", str(file)]
    for number, (name, text) in enumerate(STRINGS.items()):
        file = folder / f"key{number}.grad"
        file.write_text(of_key(text), "utf-8")
        found[f"key: {name}"] = ["run", str(file)]
    for number, text in enumerate(
        ("<img src=x onerror=alert(1)>.grad", "]]>&'\".grad", "\u202edarg.grad")
    ):
        file = folder / text.replace("/", "")
        file.write_text("x = tensor(2., requires_grad=True)\ny = x * x\n", "utf-8")
        found[f"file: {number}"] = ["run", str(file)]
    return found
