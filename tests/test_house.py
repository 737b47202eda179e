"""The order of the house: imports, circles, folders, functions; each rule sees its breach."""

from __future__ import annotations

import ast
from time import process_time

import pytest

from tests.house import SHORTEST_MODULE, House, Module, breaches, built


def test_the_house_is_in_order() -> None:
    assert breaches(built()) == []


def test_the_rules_take_less_time_than_parsing() -> None:
    house = built()
    house.statements  # noqa: B018  (the first use of the trees brings them into the caches)
    began = process_time()
    breaches(House(house.modules))
    ended = process_time()
    for module in [*house.modules.values()][::10]:
        ast.parse(module.text)
    assert ended - began < 10 * (process_time() - ended)


_LONG = "def long():\n" + "    x = 1\n" * 61

PLANTED = {
    "imports that point up": {"gradcli.ops.one": "from gradcli.language.two import f\n"},
    "imports that point up: gradcli.packages: gradcli.cli.commands": {
        "gradcli.packages": "find = import_module(f'gradcli.cli.commands.{name}')\n".replace(
            "'", '"'
        )
    },
    "imports that point up: gradcli.show.plots.one: gradcli.show.help.two": {
        "gradcli.show.plots.one": "from gradcli.show.help.two import f\n",
        "gradcli.show.help.two": "def f(): ...\n" * 40,
    },
    "imports that point up: gradcli.library.torch.nn.one: gradcli.library.torch.func.two": {
        "gradcli.library.torch.nn.one": "def f():\n    import gradcli.library.torch.func.two"
        "  # lazy: family\n",
        "gradcli.library.torch.func.two": "",
    },
    "rooms without an order": {"gradcli.loops.one/": '"""."""', "gradcli.loops.two/": '"""."""'},
    "circles": {
        "gradcli.ops.one": "from gradcli.ops.two import f\n" * 40,
        "gradcli.ops.two": "if TYPE_CHECKING:\n    from gradcli.ops.one import Op\n" * 40,
    },
    "imports inside functions": {
        "gradcli.ops.one": "def f():\n    import gradcli.ops.two\n",
        "gradcli.ops.two": "",
    },
    "lazy imports that save nothing": {
        "gradcli.ops.one": "import gradcli.ops.three\n"
        "def f():\n    import gradcli.ops.two  # lazy: start-up\n",
        "gradcli.ops.two": "",
        "gradcli.ops.three": "import gradcli.ops.two\n" * 40,
    },
    "crowded folders": {f"gradcli.ops.m{number}": "" for number in range(16)},
    "long functions": {"gradcli.ops.one": _LONG},
    "short modules": {
        "gradcli.ops.one": "def f(): ...\n",
        "gradcli.ops.two": "def f():\n    from gradcli.ops.one import f  # lazy: family\n" * 40,
    },
    "look-ups by string: gradcli.library.one: catalogue.methods['exp']": {
        "gradcli.library.one": "exp = catalogue.methods['exp']\nmethods['new'] = exp\n"
    },
    "look-ups by string: gradcli.library.one: modules['torch'].get('exp')": {
        "gradcli.library.one": "exp = modules['torch'].get('exp')\ntorch = modules['torch'][name]\n"
    },
    "look-ups by string: gradcli.library.one: F['relu']": {
        "gradcli.library.one": "from gradcli.library.two import F\nrelu = F['relu']\n" * 40,
        "gradcli.library.two": 'F = modules["torch.nn.functional"]\n' * 40,
    },
    "look-ups by string: gradcli.library.one: table['exp']": {
        "gradcli.library.one": "from gradcli.ops.binding.catalogue import methods as table\n"
        "exp = table['exp']\n"
    },
    "look-ups by string: gradcli.library.one: dtypes.DTYPES['int8']": {
        "gradcli.library.one": "count = zeros(dtype=dtypes.DTYPES['int8'])\n"
    },
    "look-ups by string: gradcli.library.one: import_module(name)": {
        "gradcli.library.one": "module = import_module(name)\n"
    },
    "look-ups by string: gradcli.ops.one: Ref('shape.views', 'view')": {
        "gradcli.ops.one": "view = Ref('shape.views', 'view')\n"
    },
    "code in __init__": {"gradcli.ops.one/": '"""."""\nx = 1\n'},
}
"""Small houses with one breach each: the beginning of the line that tells of it, and the modules; a
name that ends in `/` is a folder's.
"""


@pytest.mark.parametrize("line", PLANTED)
def test_a_breach_is_told_of(line: str) -> None:
    padding = "" if line == "short modules" else "\n" * SHORTEST_MODULE
    modules = {
        name.rstrip("/"): Module(text + padding, ast.parse(text), name.endswith("/"))
        for name, text in PLANTED[line].items()
    }
    found = breaches(House(modules))
    assert len(found) == 1, found
    assert found[0].startswith(line)
