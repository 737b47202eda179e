"""The commands that explain a run: `explain` and `derive`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.program.run import Run, explain_missing
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.explain.derive.program import Derivation
    from gradcli.explain.ledger.kinks import Tie
    from gradcli.explain.ledger.paths import Paths
    from gradcli.explain.ledger.saved import SavedValues
    from gradcli.explain.result import Result
    from gradcli.language.events import Explained
    from gradcli.language.tree import Statement


class Program:
    """The program that a command was given, in words or in a file.

    Args:
        text: the program, None if it is in a file.
        path: the file.
    """

    __slots__ = ("_text", "name")

    def __init__(self, text: str | None, path: str = "program") -> None:
        self._text = text
        self.name = path

    def text(self) -> str:
        """The program's text; raises E503 for a file that cannot be read."""
        if self._text is None:
            from gradcli.cli.commands.run import program_text

            self._text = program_text(self.name)
        return self._text


def explained(
    terminal: Terminal,
    command: str,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    show: Callable[[Run, Result], str],
    begin: Callable[[Run], None] | None = None,
    show_rest: Callable[[Run], str] | None = None,
) -> int:
    """Run a program, differentiate its output, and print what a command makes of the run.

    Args:
        terminal: where it goes.
        command: the command's name.
        program: the program.
        arguments: the values of its names.
        options: what the command line asks for.
        show: the text to print.
        begin: called before the program runs.
        show_rest: the text to print where there is no gradient; None where that is an error.

    Returns:
        The exit code.
    """
    run = Run(terminal, options, "all")
    run.muted = True
    statements: Sequence[Statement] = ()
    code = 0
    try:
        with run.limited():
            statements = run.session.parse(program.text(), program.name)
            if begin is not None:
                begin(run)
            value = run.execute(statements, arguments)
            result = run.result(value)
            if result is not None and result.graph.root is not None:
                with run.within_memory():
                    text = show(run, result)
            elif show_rest is not None:
                text = show_rest(run)
            else:
                raise _no_graph(result, statements)
            terminal.write(text)
    except GradcliError as error:
        explain_missing(error, statements, arguments, f"gradcli {command} …")
        terminal.error(error)
        code = error.exit_code
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else ())
    return code


def _no_graph(result: Result | None, statements: Sequence[Statement]) -> GradcliError:
    span = statements[-1].span if statements else None
    if result is None:
        return GradcliError("E402", "the program computes no tensor to explain", span=span)
    return GradcliError(
        "E402",
        f"{result.name or 'the output'} does not require grad, so there is no gradient to explain",
        span=span,
        help="give an input a value behind the program (`x=2`), or make it with requires_grad=True",
    )


class Widening:
    """What the ledger is widened by.

    Attributes:
        element: the element of large gradients that is worked out, None for the first.
        ties: whether elements on kinks and ties are listed.
        paths: the leaf whose paths are listed, or None.
        saved: whether what the nodes saved is listed.
    """

    __slots__ = ("element", "paths", "saved", "ties")

    def __init__(
        self,
        element: tuple[int, ...] | None = None,
        ties: bool = False,
        paths: str | None = None,
        saved: bool = False,
    ) -> None:
        self.element = element
        self.ties = ties
        self.paths = paths
        self.saved = saved


def explain(
    terminal: Terminal,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    widening: Widening,
) -> int:
    """`gradcli explain`: the ledger of the chain rule."""

    def text(run: Run, result: Result) -> str:
        if options.format in ("mermaid", "dot"):
            from gradcli.cli.program.report import picture_text

            return picture_text(run.session, options.format, result)
        leaf = _leaf(run, result, widening.paths)
        with run.session.running():
            if options.json:
                return _ledger_json(run, result, widening, leaf)
            return explanation(run, result, widening, leaf)

    return explained(terminal, "explain", program, arguments, options, text)


def _leaf(run: Run, result: Result, name: str | None) -> Tensor | None:
    """The leaf of a name; raises a usage error where it holds none."""
    from gradcli.autograd.tensor import Tensor

    if name is None:
        return None
    for node in result.graph.nodes:
        if node.leaf is not None and node.variable == name:
            return node.leaf
    value = run.session.values.get(name)
    if type(value) is not Tensor or not value.is_leaf:
        raise click.UsageError(f"--paths: `{name}` is no leaf of the program")
    return value


def explanation(run: Run, result: Result, widening: Widening, leaf: Tensor | None = None) -> str:
    """The ledger of a result as text, and what it is widened by."""
    from gradcli.cli.program.report import output_text
    from gradcli.explain.ledger.ledger import ledger
    from gradcli.explain.names import Operands
    from gradcli.render.answers import ledger_extras as rendering
    from gradcli.render.answers.ledger import ledger_text

    style = run.terminal.style
    head = output_text(style, result.name, result.output)
    if result.seed is not None:
        head += output_text(style, "seed", result.seed)
    rows = ledger(result.graph, result.events)
    parts = [f"{head}\n{ledger_text(rows, style, widening.element)}"]
    operands = Operands(result.graph)
    ties, paths, saved = _widened(run, result, widening, leaf)
    if ties is not None:
        parts.append(rendering.ties_text(ties, operands))
    if paths is not None:
        parts.append(rendering.paths_text(paths, widening.paths or "", operands))
    if saved is not None:
        parts.append(rendering.saved_text(saved, operands))
    return "\n\n".join(parts) + "\n"


def _ledger_json(run: Run, result: Result, widening: Widening, leaf: Tensor | None) -> str:
    from gradcli.explain.ledger.ledger import ledger
    from gradcli.render.answers import ledger_extras as rendering
    from gradcli.render.answers.ledger_json import ledger_document
    from gradcli.render.result_json import text

    found = ledger_document(result, ledger(result.graph, result.events), widening.element)
    ties, paths, saved = _widened(run, result, widening, leaf)
    if ties is not None:
        found["ties"] = rendering.ties_document(ties)
    if paths is not None:
        found["paths"] = rendering.paths_document(paths)
    if saved is not None:
        found["saved"] = rendering.saved_document(saved)
    return text(found)


def _widened(
    run: Run, result: Result, widening: Widening, leaf: Tensor | None
) -> tuple[list[Tie] | None, Paths | None, SavedValues | None]:
    """The ties, the paths and the saved values, where they are asked for."""
    from gradcli.autograd.tensor import Tensor

    ties = paths = saved = None
    if widening.ties:
        from gradcli.explain.ledger.kinks import ties as ties_of

        recorder = run.session.recorder
        assert recorder is not None
        ties = ties_of(result.graph, result.events, recorder.made)
    if leaf is not None:
        from gradcli.explain.ledger.paths import paths_to

        paths = paths_to(result.graph, result.events, leaf)
    if widening.saved:
        from gradcli.explain.ledger.saved import saved_values

        names = {n: each for n, each in run.session.values.items() if type(each) is Tensor}
        saved = saved_values(result.graph, result.events, names)
    return ties, paths, saved


def trace(
    terminal: Terminal, program: Program, arguments: Sequence[Argument], options: Options
) -> int:
    """`gradcli explain --ir`: the trace of the run and of its backward pass."""

    def text(run: Run) -> str:
        from gradcli.autograd.recording.trace_recorder import TraceRecorder

        recorder = run.session.recorder
        assert isinstance(recorder, TraceRecorder)
        found = recorder.named()
        if options.json:
            from gradcli.render.result_json import text as json_text
            from gradcli.render.trace_json import trace_document

            return json_text(trace_document(found))
        from gradcli.trace.printer import text_of

        return f"{text_of(found)}\n"

    return explained(
        terminal, "explain", program, arguments, options, lambda run, _: text(run), None, text
    )


TARGETS = ("gradcli", "latex", "numpy", "torch")
"""What `derive` writes."""


def derive(
    terminal: Terminal,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    *,
    target: str,
) -> int:
    """`gradcli derive`: the gradients as formulas."""

    def written(found: Derivation, result: Result) -> str:
        if options.json:
            from gradcli.render.answers.derivation_json import derivation_document
            from gradcli.render.result_json import text as json_text

            return json_text(derivation_document(found, result.name))
        if target == "latex":
            from gradcli.render.formulas.latex import latex

            return f"{latex(found, result.name or 'L')}\n"
        from gradcli.render.answers import derivation

        if target == "numpy":
            return derivation.numpy_text(found, program.text())
        if target == "torch":
            return derivation.torch_text(found, program.text())
        return f"{derivation.program_text(found)}\n"

    def text(run: Run, result: Result) -> str:
        with run.session.running():
            return written(_derived(run, result), result)

    return explained(terminal, "derive", program, arguments, options, text, _record_values)


def _record_values(run: Run) -> None:
    """Let a run be recorded with the elements of all its values."""
    from gradcli.autograd.recording.trace_recorder import TraceRecorder

    state = run.session.interpreter.state
    state.recorder = TraceRecorder(keeps=True, arrays=True)
    # A deferred array has no value to note down yet.
    state.defer_from = 1 << 62


def _derived(run: Run, result: Result) -> Derivation:
    from gradcli.autograd.recording.trace_recorder import TraceRecorder
    from gradcli.explain.derive.derive import derive as derived

    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    return derived(result, recorder, run_program)


def explained_tensor(run: Run, event: Explained) -> str:
    """What `explain(e)` and `derive(e)` show in a program or a session.

    The ledger is that of a rehearsal: the backward pass that `e.backward()` would run now. Formulas
    need every step of the program, so what ran so far is run again.
    """
    from gradcli.explain.result import Result
    from gradcli.render.answers.derivation import program_text

    tensor = event.tensor
    if not event.derived:
        events = run.session.rehearse(tensor)
        result = Result(tensor.name, tensor, None, (), run.session.graph(tensor), events)
        return explanation(run, result, Widening())
    name = next((n for n, value in run.session.values.items() if value is tensor), None)
    if name is None:
        raise GradcliError(
            "E413",
            "derive() needs a tensor that a name of the program holds",
            help="give it a name on a line of its own first: `y = …`",
        )
    options = Options(of=name, dtype=run.options.dtype, limits=run.options.limits)
    again = Run(run.terminal, options, "all")
    again.muted = True
    _record_values(again)
    given = [] if run.bindings is None else list(run.bindings.bindings.values())
    statements = again.session.parse(run.transcript.program(), "program")
    with again.limited():
        value = again.execute(statements, [binding.argument for binding in given])
        found = again.result(value)
        assert found is not None  # a name holds the tensor
        with again.session.running():
            return f"{program_text(_derived(again, found))}\n"


def run_program(text: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The arrays that the names of a program hold after it ran in a session of its own.

    Args:
        text: the program.
        inputs: the arrays of the names that it starts from.
    """
    from gradcli.autograd.tensor import Tensor
    from gradcli.session import Session

    session = Session()
    for name, array in inputs.items():
        session.bind(name, Tensor(array))
    for _ in session.run(text, "formulas"):
        pass
    return {name: each.array for name, each in session.values.items() if type(each) is Tensor}


def with_shapes(arguments: Sequence[Argument]) -> list[Argument]:
    """Arguments whose values are shapes, `x=3,4`, as random tensors of these; the others as they
    are.
    """
    found = []
    for argument in arguments:
        sizes = argument.text.strip("() ").removesuffix(",")
        words = [each.strip() for each in sizes.split(",")] if sizes else []
        if not argument.file and all(each.isdecimal() for each in words):
            kind = ":const" if argument.constant else ""
            word = f"{argument.name}{kind}=randn({', '.join(words) or '()'})"
            argument = Argument(argument.name, argument.constant, word, word.index("=") + 1)
        found.append(argument)
    return found


def read_element(text: str | None) -> tuple[int, ...] | None:
    """The index that `--element 0,1` names."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.replace("[", "").replace("]", "").split(","))
    except ValueError:
        raise click.UsageError(f"--element takes an index such as 0,1, not {text!r}") from None
