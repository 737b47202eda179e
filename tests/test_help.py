"""`gradcli help`, `gradcli ops`, shell completion: every page, every example, every option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gradcli.cli import group
from gradcli.cli.commands.help import flag_page, flags
from gradcli.cli.group import gradcli
from gradcli.errors import CODES, WARNINGS
from gradcli.ops import lookup
from gradcli.ops.binding import catalogue, lazy
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import registry
from gradcli.ops.lookup import NAMESPACES, PublicName, names_in
from gradcli.repl.dot_commands.table import TABLE
from gradcli.running.arguments import words
from gradcli.session import Session
from gradcli.show.help import members
from gradcli.show.help import ops as op_pages
from gradcli.show.help.manual import sections
from gradcli.show.help.ops import (
    example_of,
    load,
    op_help,
    op_list,
    op_list_document,
    op_names,
    op_of_node,
    summary_of,
)
from gradcli.show.help.pages import listed, page, topics
from gradcli.show.style import Style
from tests.command_line import CommandLine
from tests.machine import PATIENCE
from tests.rows import each_row

# Base classes, which programs extend and do not call.
_WITHOUT_EXAMPLE = {"torch.optim.Optimizer", "torch.optim.lr_scheduler.LRScheduler"}
# Their pages say why: arrays of NumPy are outside the language, and a GPU is not everywhere.
_REFUSED = {"Tensor.numpy", "Tensor.cuda"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture(scope="module")
def every_op() -> list[PublicName]:
    return list(op_names())


@pytest.fixture
def known_names(every_op: list[PublicName], monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables are complete, so that the names of a function are looked for once."""
    bring_all()
    monkeypatch.setattr(lazy, "bring_all", lambda *_: None)
    look, known = lookup.same, {}

    def same(of: PublicName) -> list[tuple[str, str]]:
        if of.full_name not in known:
            known[of.full_name] = list(look(of))
        return known[of.full_name]

    for module in (lookup, op_pages):
        monkeypatch.setattr(module, "same", same)


# --- pages --------------------------------------------------------------------------------------


@each_row("name", [*topics(), *CODES, *WARNINGS])
def test_every_page_fits_into_80_columns(name: str) -> None:
    """But for indented code, which is never wrapped."""
    text = page(name, Style(False, 80))
    assert text is not None
    assert text.endswith("\n")
    long = [line for line in text.split("\n") if len(line) > 80 and not line.startswith("  ")]
    assert not long or name == "mistakes"


def test_every_op_has_a_page(every_op: list[PublicName], known_names: None) -> None:
    assert len(every_op) > 1000
    for public in every_op:
        if public.namespace == "Tensor" and public.name in catalogue.modules["torch"]:
            continue  # the function's page again
        text = op_help(public.full_name)
        assert text is not None, public.full_name
        assert text.startswith(f"{public.full_name}("), public.full_name
        assert all(len(line) <= 80 for line in text.split("\n")), public.full_name


def test_every_op_has_a_summary(every_op: list[PublicName]) -> None:
    missing = [public.full_name for public in every_op if not summary_of(public)]
    assert not missing


def test_every_op_has_an_example(every_op: list[PublicName]) -> None:
    missing = {public.full_name for public in every_op if not example_of(public)}
    assert missing == _WITHOUT_EXAMPLE


EXAMPLES = {example_of(found): found.full_name for found in op_names()}


@each_row(
    "program",
    [each for each, name in EXAMPLES.items() if each and name not in _REFUSED],
    lambda program: EXAMPLES[program],
)
def test_every_example_runs(program: str) -> None:
    for _ in Session().run(program, "example"):
        pass


PAGES = [
    ("exp", "torch.exp(input)", "gradient  grad * result"),
    ("torch.mul", "torch.mul(input, other)", "other: grad * input"),
    ("Tensor.add_", "Tensor.add_(other, alpha=1)", "result is written to the tensor"),
    ("F.relu", "F.relu(input, inplace=False)", "At 0 the gradient is 0"),
    ("torch.nn.functional.gelu", "F.gelu(input, *, approximate='none')", "GeluBackward0"),
    ("sum", "torch.sum(input, dim=None, keepdim=False, *, dtype=None)", "SumBackward1"),
    ("F.elu", "F.elu(input, alpha=1.0, inplace=False)", "EluBackward0"),
    ("nn.Linear", "nn.Linear(in_features, out_features, bias=True, dtype=None)", "Linear(in_"),
    ("linalg.inv", "torch.linalg.inv(A)", "LinalgInvExBackward0"),
    ("linalg.inv", "torch.linalg.inv(A)", "A: tensor of rank 2 or more, of square matrices"),
    ("torch.bmm", "torch.bmm(input, mat2)", "mat2: tensor of rank 3"),
    ("torch.cov", "torch.cov(input, *, correction=1, fweights=None, aweights=None)", "0, 1 or 2"),
    ("argmax", "torch.argmax(input, dim=None, keepdim=False)", "leaves the graph"),
    ("maximum", "torch.maximum(input, other)", "half of the gradient"),
]


@pytest.mark.parametrize(("name", "signature", "part"), PAGES)
def test_pages_of_ops(name: str, signature: str, part: str) -> None:
    text = op_help(name)
    assert text is not None
    assert text.split("\n")[0] == signature
    assert part in text


@pytest.mark.parametrize("name", ["nothing", "F.nothing", "torch", "nowhere.exp", "_prelu_kernel"])
def test_what_is_no_op_has_no_page(name: str) -> None:
    assert op_help(name) is None


# --- the command --------------------------------------------------------------------------------


def test_an_unknown_op_is_a_usage_error(run: CommandLine) -> None:
    finished = run("help", "sgmoid")
    assert finished.code == 2
    assert "did you mean `sigmoid`" in finished.err


def test_help_of_an_op_shows_what_its_example_gives(run: CommandLine) -> None:
    finished = run("help", "exp")
    assert finished.code == 0
    assert "tensor([1.6487, 2.7183, 7.3891])" in finished.out


def test_help_opens_with_examples(run: CommandLine) -> None:
    text = run("--help").out
    assert text.index("Examples:") < text.index("Usage") < text.index("Everyday:")
    assert all(len(line) <= 80 for line in text.split("\n"))


def test_every_option_is_documented() -> None:
    context = click.Context(gradcli)
    for name in gradcli.list_commands(context):
        command = gradcli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help is not None
        assert command.help.startswith(words.COMMANDS[name])
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.opts)


def test_help_lists_twelve_commands_and_every_option_once() -> None:
    context = click.Context(gradcli)
    listed = [name for name in words.COMMANDS if name not in words.UNLISTED]
    assert len(listed) == 12
    assert set(group.QUESTIONS) < set(listed)
    program = gradcli.get_command(context, words.PROGRAM)
    assert program is not None
    options = [
        each for each in (*program.params, *gradcli.params) if isinstance(each, click.Option)
    ]
    grouped = [flag for flags in group.OPTION_GROUPS.values() for flag in flags.split()]
    assert sorted(flag for each in options for flag in each.opts if flag in grouped) == sorted(
        grouped
    )
    assert len(grouped) == len(options)
    assert len(group.OPTION_GROUPS["Everyday"].split()) == 10


def test_commands_of_a_set_up_have_their_old_names_too(run: CommandLine) -> None:
    assert run("setup", "completion", "bash").out == run("completion", "bash").out
    shown = run("setup")
    assert shown.code == 0
    assert [name for name in words.SETUP if f"\n  {name} " not in shown.out] == []
    assert run("setup", "repl").code == 2


def test_version(run: CommandLine) -> None:
    assert run("--version").out.startswith("gradcli ")
    assert run("--version", "-v").out == run("info").out
    assert run("help", "ops", "*_loss").out == run("ops", "*_loss").out


SEARCHES = [
    ("chain rule", "gradcli explain 'PROGRAM'"),
    ("backprop", "gradcli explain 'PROGRAM'"),
    ("backprop", "gradcli help words"),
    ("tutorial", "gradcli help trace"),
    ("html", "gradcli 'PROGRAM' -o graph.svg"),
    ("svg", "gradcli 'PROGRAM' -o graph.svg"),
    ("slides", "gradcli 'PROGRAM' -o graph.svg"),
    ("jupyter", "gradcli help notebooks"),
    ("tqdm", "gradcli help library"),
    ("none", "gradcli why NAME 'PROGRAM'"),
    ("nan", "gradcli blame 'PROGRAM'"),
    ("latex", "gradcli derive 'PROGRAM'"),
    ("grad is None", "gradcli why NAME 'PROGRAM'"),
    ("gradient in ci", "gradcli 'PROGRAM' --json"),
    ("batchnorm", "gradcli help nn.BatchNorm1d"),
    ("crossentropy", "gradcli help cross_entropy"),
]


@pytest.mark.parametrize(("asked", "line"), SEARCHES)
def test_words_without_a_page_are_searched_for(run: CommandLine, asked: str, line: str) -> None:
    shown = run("help", *asked.split())
    assert shown.code == 0
    assert any(each.strip().startswith(line) for each in shown.out.split("\n")[:4])


@pytest.mark.parametrize("asked", ["tqdm", "latex", "nan", "picture"])
def test_a_search_leaves_the_changes_out(run: CommandLine, asked: str) -> None:
    assert "gradcli help changes" not in run("help", asked).out


def test_what_stands_in_the_changes_alone_is_found_there(run: CommandLine) -> None:
    assert run("help", "promised").out.split("\n")[1] == "  gradcli help changes  Changes"


def test_each_find_of_a_search_is_a_line_that_fits() -> None:
    width, rows = 60, [("gradcli help why", "why a gradient is None, NaN or wrong: " * 3)]
    assert max(map(len, listed(rows, Style(False, width)).split("\n"))) == width


@pytest.mark.parametrize("word", sorted(words.MEANT))
def test_what_is_no_command_names_what_is_meant(run: CommandLine, word: str) -> None:
    shown = run(word)
    assert shown.code == 2
    assert words.MEANT[word] in shown.err


def test_every_module_of_a_command_is_in_the_table() -> None:
    package = Path(group.__file__).parents[1]
    files = [*package.glob("cli/commands/*.py"), *package.glob("*/*/command.py")]
    declared = [
        path.parent.name if path.stem == "command" else path.stem
        for path in files
        if "def command(" in path.read_text()
    ]
    named = {name.replace("-", "_") for name in words.COMMANDS} - {words.PROGRAM, *group.DOORS}
    assert sorted(declared) == sorted({*named, "one_shot", "editors", "agents", "torch"})


# --- the list -----------------------------------------------------------------------------------


def test_list_in_a_pipe_is_a_line_per_op() -> None:
    lines = op_list("*_loss").splitlines()
    assert all(len(line.split("\t")) == 3 for line in lines)
    names = [line.split("\t")[0] for line in lines]
    assert "F.mse_loss" in names
    assert len(names) == len(set(names))


def test_list_follows_no_order_of_imports() -> None:
    """Families are imported in one order where the index of names is built, in others later."""
    names = [line.split("\t")[0] for line in op_list("F.*").splitlines()]
    assert len(names) > 100
    assert names == sorted(names)


def test_list_on_a_terminal_is_in_columns() -> None:
    text = op_list("tanh", Style(False, 80))
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "\nelementwise: unary\n" in f"\n{text}"
    assert "torch.tanh " in text


PATTERNS = [
    ("softmax", "F.softmax", "torch.exp"),
    ("TanhBackward0", "torch.tanh", "torch.sigmoid"),
    ("arc*", "torch.arcsin", "torch.asin"),
]


@pytest.mark.parametrize(("pattern", "inside", "outside"), PATTERNS)
def test_patterns(pattern: str, inside: str, outside: str) -> None:
    names = [op["name"] for op in op_list_document(pattern)["ops"]]
    assert inside in names
    assert outside not in names


def test_list_as_json(run: CommandLine) -> None:
    finished = run("ops", "tanh", "--json")
    document = json.loads(finished.out)
    assert document["schema"] == "gradcli.ops/1"
    assert {"name": "torch.tanh", "family": "elementwise: unary", "nodes": ["TanhBackward0"],
            "summary": "The hyperbolic tangent.", "takes": {}} in document["ops"]  # fmt: skip
    (pooled,) = op_list_document("F.max_pool2d")["ops"]
    assert pooled["takes"] == {"input": {"least": 3, "most": 4}}


def test_a_pattern_without_ops_is_a_usage_error(run: CommandLine) -> None:
    finished = run("ops", "sgmoid")
    assert finished.code == 2
    assert "did you mean `sigmoid`" in finished.err


# --- completion ---------------------------------------------------------------------------------

COMPLETIONS = [
    ("gradcli he", "plain,help"),
    ("gradcli --tra", "plain,--trace"),
    ("gradcli run --see", "plain,--seed"),
    ("gradcli help exi", "plain,exit-codes"),
    ("gradcli help E30", "plain,E301"),
    ("gradcli help softpl", "plain,softplus"),
    ("gradcli help nn.Lin", "plain,nn.Linear"),
    ("gradcli ops logsumex", "plain,logsumexp"),
    ("gradcli run tra", "file,tra"),
    ("gradcli repl --color al", "plain,always"),
]


@pytest.mark.parametrize(("words", "wanted"), COMPLETIONS)
def test_completion(
    run: CommandLine, words: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_GRADCLI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert wanted in run().out.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: CommandLine, shell: str) -> None:
    finished = run("completion", shell)
    assert finished.code == 0
    assert f"_GRADCLI_COMPLETE={shell}_complete" in finished.out


def test_completion_of_files_behind_a_name(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with open("data.npy", "wb"):
        pass
    from gradcli.running.arguments.click_options import values

    asked = click.Context(gradcli), click.Argument(["words"]), "x=@da"
    assert [item.value for item in values(*asked)] == ["x=@data.npy"]


def test_bash_completes(run: CommandLine) -> None:
    """The script in a real bash, if there is one."""
    from shutil import which

    if which("bash") is None:
        pytest.skip("no bash")
    script = run("completion", "bash").out
    command = f"{sys.executable} -m gradcli"
    program = (
        f"gradcli() {{ {command}; }}\n{script}\n"
        "COMP_WORDS=(gradcli hel)\nCOMP_CWORD=1\n_gradcli_completion gradcli\n"
        'echo "${COMPREPLY[@]}"\n'
    ).replace("$1)", f"{command})")
    finished = subprocess.run(
        ["bash", "--norc", "-c", program],
        capture_output=True,
        text=True,
        env=os.environ.copy(),
        timeout=PATIENCE,
        check=False,
    )
    assert finished.stdout.split() == ["help"]


# --- every word ---------------------------------------------------------------------------------

# fmt: off
LOOKED_UP = (
    "hooks", "json", "zero_grad", "views", "broadcasting", "vjp", "double-backward", "version",
    "leaf", "seed", "MulBackward0", "AccumulateGrad", "requires_grad", "is_leaf",
    "next_functions", "lr", "keepdim", "retain_graph", "item()", ".data", "_version",
    "double_backward", "linalg", "freeze", "OOM", "functorch", "init", "exploding", "tape", "ctx",
    "scheduler", "CopySlices", "buffer", "retain_grad", "net.parameters", "opt.step", "x.shape",
    "torch.func.jacrev", ".why", "vars",
)
# fmt: on


@pytest.mark.parametrize("word", [*LOOKED_UP, "double backward"])
def test_words_that_people_look_up(word: str, run: CommandLine) -> None:
    shown = run("help", *word.split())
    assert (shown.code, shown.err) == (0, "")
    assert len(shown.out.split()) >= 5


def test_a_word_with_two_meanings_shows_both(run: CommandLine) -> None:
    shown = run("help", "zero_grad").out
    assert shown.startswith("zero_grad\n")
    assert "\nnn.Module.zero_grad(" in shown
    assert "\noptim.Optimizer.zero_grad(" in shown
    shown = run("help", "state_dict").out
    assert shown.startswith("nn.Module.state_dict(")
    assert "lr_scheduler.LRScheduler.state_dict()" in shown
    shown = run("help", "type").out
    assert "Tensor.type(" in shown
    assert "nn.Module.type(" in shown


def test_every_word_of_the_language_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes, methods, attributes, members, and the names of torch's modules."""
    bring_all()
    found = [op.node_name for op in registry.values() if "Backward" in op.node_name]
    found += [*catalogue.methods, *catalogue.properties, *members.member_names()]
    for place in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.func"):
        found += load(place)
    found += load("torch.distributions")
    wanted = {word for word in found if not word.startswith("_")}
    assert len(wanted) > 1500
    # An op's page is tested above.
    ops = {name for namespace in NAMESPACES for name in names_in(namespace, load)}
    nodes = {word for word in wanted if op_of_node(word) in ops}
    monkeypatch.setattr(members, "node_rows", lambda op, width: "")
    rest = wanted - ops - nodes - {*topics(), *sections()}
    assert {word for word in rest if not members.member_pages(word)} == set()


def test_every_flag_has_a_page(run: CommandLine) -> None:
    strict = run("help", "--strict").out
    assert "Exit with 1 where there were warnings." in strict
    assert "gradcli run" in strict
    with click.Context(gradcli):
        assert len(flags()) >= 50
        assert [flag for flag in flags() if flag_page(flag) is None] == []
    wrong = run("help", "--strit")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean `--strict`?" in wrong.err


@pytest.mark.parametrize("name", TABLE)
def test_every_dot_command_has_a_page(name: str, run: CommandLine) -> None:
    assert TABLE[name].summary in run("help", name).out


@pytest.mark.parametrize(
    ("name", "has_steps"),
    [("torch.cdist", True), ("F.ctc_loss", True), ("F.group_norm", True), ("torch.exp", False)],
)
def test_a_gradient_of_several_steps_is_left_to_derive(
    run: CommandLine, name: str, has_steps: bool
) -> None:
    assert ("`gradcli derive` writes the gradient out" in run("help", name).out) is has_steps
