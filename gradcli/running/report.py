"""The result of a program: found, differentiated and shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradcli.autograd.engine.backward import retain_grad
from gradcli.autograd.graph import Graph
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Warned
from gradcli.language.objects.repr import display
from gradcli.ops.binding.functions import torch
from gradcli.recorded.result import NONE, Gradient, Result, has_infinity, has_nan
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument, UsageError, evaluate, not_in_program
from gradcli.running.process.terminal import Terminal
from gradcli.show.graph import nodes
from gradcli.show.graph.tree import TreeSettings, tree
from gradcli.show.style import block, one_line

if TYPE_CHECKING:
    from gradcli.autograd.graph import GraphNode
    from gradcli.autograd.recording.recorder import Differentiated, Recorder
    from gradcli.autograd.recording.trace_recorder import Call
    from gradcli.recorded.annotated_graph import AnnotatedGraph
    from gradcli.session import Session
    from gradcli.show.style import Style

_LARGEST_TREE = 150
"""A tree of more lines is printed only when that is asked for, and one of more nodes not made."""

_MOST_NODES = 5_000


def result_of(
    session: Session, options: Options, inputs: list[tuple[str, Tensor]], value: Any
) -> Result | None:
    """Find the output of a program that has run, run backward from it, and collect the result.

    Args:
        inputs: the tensors that arguments were bound to.
        value: the value of the last statement, None unless it is an expression.

    Returns:
        The result, None for a program without a tensor.

    Raises:
        GradcliError: E401 where a seed is missing, E406 where it does not fit, E501 where it
            cannot be read, and what the backward pass raises.
        UsageError: there is no tensor of the name that was asked for.
    """
    named = find_output(session, options, value)
    return None if named is None else result_at(session, options, inputs, named)


def result_at(
    session: Session,
    options: Options,
    inputs: list[tuple[str, Tensor]],
    named: tuple[str | None, Tensor],
    *,
    again: bool = True,
) -> Result:
    """The result whose output is a tensor, given with its name; raises as `result_of`.

    Args:
        again: whether a seed that was asked for makes a pass where the program had one of its own.
    """
    name, output = named
    graph = session.graph(output)
    wanted = _wanted(session, options, inputs, graph)
    recorder = session.recorder
    assert recorder is not None
    seed = None
    first_event = 0
    root = graph.root
    if root is not None and options.seed is not None:
        seed = asked_seed(session, options.seed, output)
    if root is not None and ((again and seed is not None) or not _has_run(root, recorder)):
        if recorder.events is not None:
            first_event = len(recorder.events)
        recorder.revive(each.node for each in graph.nodes)
        with advising_seed(output, "--seed '{}'", name):
            session.backward(output, seed)
    called = name or "the output"
    with session.running():
        gradients = [Gradient(each, tensor, graph, called) for each, tensor in wanted]
        gradients.sort(key=_comes_later)
    events = () if recorder.events is None else recorder.events[first_event:]
    return Result(name, output, seed, gradients, graph, events)


def contents(result: Result | None, draws: bool) -> str:
    """What a file of a result holds, in a few words: nodes and modules of a picture, or arrays."""
    if result is None:
        return "what the program printed"
    if not draws:
        count = sum(each.tensor.grad is not None for each in result.gradients)
        return f"{result.name or 'the output'}, {_counted(count, 'gradient')}"
    leaves = (node.leaf for node in result.graph.nodes)
    names = [
        leaf.name or ""
        for leaf in leaves
        if leaf is not None and leaf.meta and leaf.meta.is_parameter
    ]
    modules = {name.rpartition(".")[0] for name in names if "." in name}
    nodes = _counted(len(result.graph.nodes), "node")
    return f"{nodes}, {_counted(len(modules), 'module')}" if modules else nodes


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _comes_later(gradient: Gradient) -> bool:
    """Whether a gradient is none of a parameter that got none."""
    meta = gradient.tensor.meta
    return gradient.kind != NONE or meta is None or not meta.is_parameter


def _has_run(root: GraphNode, recorder: Recorder) -> bool:
    """Whether the program ran backward itself, so that its gradients are there already."""
    if root.leaf is not None:
        return root.leaf.grad is not None
    return root.node in recorder.ran


def find_output(session: Session, options: Options, value: Any) -> tuple[str | None, Tensor] | None:
    """The output of a program: what `--of` names, the value of its last statement, or the tensor
    that was assigned last at the top level; where none there has a history, what it called
    `backward()` on last.
    """
    if options.of is not None:
        tensor = session.state.names().get(options.of)
        if type(tensor) is not Tensor:
            raise UsageError(f"--of: {_no_tensor(session, options.of)}")
        return options.of, tensor
    if options.recording is not None:
        name = options.recording.output
        tensor = session.values.get(name)
        if type(tensor) is Tensor:
            return name, tensor
    if type(value) is Tensor:
        return _name_of(session, value), value
    if not any(type(each) is Tensor and each.grad_fn for each in session.values.values()):
        ran = differentiated(session)
        if ran is not None:
            return ran
    return session.last_tensor()


def differentiated(session: Session) -> tuple[str | None, Tensor] | None:
    """The tensor that the program called `backward()` on last."""
    outputs = [each for each in session.recorder.outputs.values() if each.ended]
    if not outputs:
        return None
    tensor = outputs[-1].tensor
    return _name_of(session, tensor) or tensor.name, tensor


def computed_output(
    session: Session, options: Options, value: Any
) -> tuple[str | None, Tensor] | None:
    """What a program computes: its output, and not a leaf that it merely shows or assigned last.

    Where it went backward through that from another tensor, that one: the gradients are its.
    """
    shown = type(value) is Tensor and value.is_leaf
    named = find_output(session, options, None) if shown else None
    named = named or find_output(session, options, value)
    passes = named is not None and (not named[1].requires_grad or named[1].is_leaf)
    if passes and options.of is None:
        named = differentiated(session) or named
    if named is None:
        return None
    start = _start_through(session, named[1])
    return named if start is None else (_name_of(session, start) or start.name, start)


def _start_through(session: Session, output: Tensor) -> Tensor | None:
    """The tensor other than the output from which the program last went backward through it."""
    starts = [each.tensor for each in session.recorder.outputs.values() if each.ended]
    node = output.grad_fn
    if node is None or node not in session.recorder.ran or any(each is output for each in starts):
        return None
    with session.running():
        for start in reversed(starts):
            if session.graph(start).find(node) is not None:
                return start
    return None


def bare_leaf() -> GradcliError:
    """The error of an output that is a leaf which no argument gave."""
    return GradcliError(
        "E402",
        "the output is a leaf, and nothing is computed between it and an input",
        help="`--of NAME` chooses another output",
    )


def note_passes(terminal: Terminal, session: Session, options: Options, result: Result) -> None:
    """Tell of the tensors other than the output that `backward()` was called on, where the program
    has no name for them at the top level.
    """
    held = {id(each) for each in session.values.values()}
    outputs = [each for each in session.recorder.outputs.values() if each.ended]
    inside = [each for each in outputs if each.function and id(each.tensor) not in held]
    others = [each for each in inside if each.tensor is not result.output]
    if options.of is not None or not others:
        return
    is_one = any(each.tensor is result.output for each in outputs)
    told = [f"`{called(each)}` in {each.function}()" for each in (inside if is_one else others)]
    named = [each.tensor.name for each in others if each.tensor.name in session.state.names()]
    said = f"backward() was called on {', '.join(told[:-1])}{' and ' * (len(told) > 1)}{told[-1]}"
    if is_one:
        said += "; the answer is about the last one"
    terminal.note(said + (f": `--of {named[-1]}` chooses" if named else ""))


def called(output: Differentiated) -> str:
    """What a tensor is called that `backward()` was called on, by its name or else its text."""
    place = output.place
    if output.tensor.name or place is None:
        return output.tensor.name or "a tensor"
    return f"{one_line(place.text)}"


def _name_of(session: Session, tensor: Tensor) -> str | None:
    """The variable that holds a tensor, if one does."""
    for name, value in session.state.names().items():
        if value is tensor:
            return name
    return None


def _no_tensor(session: Session, name: str) -> str:
    names = session.state.names()
    if name in names:
        return f"`{name}` is no tensor"
    tensors = [each for each, value in names.items() if type(value) is Tensor]
    if "," in name:
        return f"one output is asked for, and {name} are several"
    return not_in_program(name, tensors)


def _wanted(
    session: Session, options: Options, inputs: list[tuple[str, Tensor]], graph: Graph
) -> list[tuple[str | None, Tensor]]:
    """The tensors whose gradients are shown: inputs, leaves, retained ones; or `--wrt`."""
    if options.wrt is not None:
        named = {**dict(parameters_of(session)), **dict(inputs)}
        names = [path for name in options.wrt for path in _paths(name, named)]
        for name in names:
            tensor = named.get(name, session.state.names().get(name))
            if type(tensor) is not Tensor:
                raise UsageError(f"--wrt: {_no_tensor(session, name)}")
            if tensor.requires_grad:
                retain_grad(tensor)
            named[name] = tensor
        return [(name, named[name]) for name in names]
    wanted: list[tuple[str | None, Tensor]] = [*inputs]
    seen = {tensor for _, tensor in inputs}
    for node in graph.nodes:
        if node.leaf is not None and node.leaf not in seen:
            wanted.append((node.variable, node.leaf))
            seen.add(node.leaf)
    for name, value in session.state.names().items():
        if type(value) is Tensor and value.retains_grad and value not in seen:
            wanted.append((name, value))
            seen.add(value)
    # A parameter that gets no gradient is what people look for.
    parameters = parameters_of(session)
    missing = [each for each in parameters if each[1] not in seen]
    order = {id(tensor): number for number, (_, tensor) in enumerate(parameters)}
    own = iter(sorted((e for e in wanted if id(e[1]) in order), key=lambda e: order[id(e[1])]))
    return [*missing, *(next(own) if id(each[1]) in order else each for each in wanted)]


def _paths(name: str, inputs: Iterable[str]) -> list[str]:
    """The paths of the tensors in an input that is a structure, else its name."""
    return [path for path in inputs if path.startswith(f"{name}[")] or [name]


def parameters_of(session: Session) -> list[tuple[str, Tensor]]:
    """Every parameter of the session's modules with its path."""
    if not session.state.modules:
        return []
    from gradcli.library.torch.nn.traversal import named_parameters  # lazy: start-up: torch.nn

    with session.running():
        return list(named_parameters())


def seed_of(session: Session, argument: Argument, output: Tensor) -> Tensor:
    """The gradient to start from: an expression whose numbers take the output's dtype."""
    value = evaluate(argument, session)
    if type(value) is Tensor:
        return value
    with session.running(argument.span):
        try:
            seed: Tensor = torch.tensor(value, dtype=output.dtype)
        except GradcliError as error:
            raise argument.wrong(error.message, error.help) from error
        if seed.array.ndim == 0 and output.array.size == 1:
            seed = Tensor(seed.array.reshape(output.array.shape))
        return seed


def asked_seed(session: Session, seed: Any, output: Tensor) -> Tensor:
    """The gradient to start from that the options name: a text, or an array of the host's, which
    takes the output's dtype.
    """
    if isinstance(seed, str):
        argument = Argument("seed", True, seed, 0)
        argument.source.name = "option --seed"
        return seed_of(session, argument, output)
    host = seed.astype(output.array.dtype)
    return Tensor(host.reshape(output.array.shape) if host.size == output.array.size == 1 else host)


@contextmanager
def advising_seed(output: Tensor, example: str, name: str | None = None) -> Iterator[None]:
    """Let an error of a missing seed show how to give one, `{}` in the example being its value, and
    offer the sum of an output with a name.
    """
    try:
        yield
    except GradcliError as error:
        if error.code in ("E401", "E406"):
            ones = f"ones({', '.join(map(str, output.array.shape))})"
            error.help = f"give the gradient to start from: {example.format(ones)}"
            if error.code == "E401" and name is not None:
                error.help += f"; or differentiate a number: {name}.sum()"
        raise


# --- showing ------------------------------------------------------------------------------------


def show_output(terminal: Terminal, name: str | None, output: Any) -> None:
    """Print a value under its name."""
    terminal.write(output_text(terminal.style, name, output))


def output_text(style: Style, name: str | None, output: Any, remark: str = "") -> str:
    """A value under its name, with its line end."""
    lead = "" if name is None else f"{style.paint(name, 'variable')} = "
    plain = "" if name is None else f"{name} = "
    text = block(plain, display(output))
    return f"{lead}{text[len(plain) :]}{remark}\n"


def show(terminal: Terminal, session: Session, options: Options, result: Result) -> None:
    """Print a result: value, seed, gradients and trace."""
    with session.running():
        if options.format == "table":
            from gradcli.show.values import table  # lazy: start-up: few tables

            terminal.write(table(result, terminal.style, full=options.full))
            return
        show_output(terminal, result.name, result.output)
        if result.seed is not None:
            show_output(terminal, "seed", result.seed)
        if result.graph.root is None:
            terminal.note(
                f"{result.name or 'the output'} does not require grad, so there is no gradient"
            )
        elif result.gradients:
            terminal.write("\n")
            brief = options.trace == "steps" and _is_brief(result)
            for gradient in result.gradients:
                terminal.write(gradient_text(terminal.style, gradient, brief))
        _show_trace(terminal, session, options, result)


def warn_of_nonfinite(
    terminal: Terminal, gradients: Sequence[Gradient], output: tuple[str, Any] | None = None
) -> None:
    """Warn of NaN in gradients, and in an output with its name, that are shown; and of infinite
    gradients. An infinite output may be meant, as a mask's -inf is.
    """
    arrays = [
        (f"{each.name or f'#{each.node}'}.grad", each.tensor.grad.array)
        for each in gradients
        if each.tensor.grad is not None
    ]
    shown = arrays if output is None else [output, *arrays]
    nan = [(name, array) for name, array in shown if has_nan(array)]
    infinite = [each for each in arrays if not has_nan(each[1]) and has_infinity(each[1])]
    said = [_said(nan, "NaN", "NaN")] if nan else []
    said += [_said(infinite, "infinite", "infinity")] if infinite else []
    if said:
        ask = "`gradcli blame` with the same words says where the first one comes from"
        help = "`.blame` says where the first one comes from" if output is None else ask
        terminal.warning(Warned("W016", "; ".join(said), None, help))


def _said(bad: Sequence[tuple[str, Any]], whole: str, part: str) -> str:
    """That results are all `whole`, or hold a `part`."""
    *others, last = [name for name, _ in bad]
    names = f"{', '.join(others)} and {last}" if others else last
    if all(array.size == 1 for _, array in bad):
        return f"{names} {'are' if others else 'is'} {whole}"
    return f"{names} {'hold' if others else 'holds'} {part}"


def _is_brief(result: Result) -> bool:
    """Whether the steps of a result are a line each."""
    from gradcli.show.graph.steps import is_brief  # lazy: start-up: few such graphs

    return is_brief(result.events)


def gradient_text(style: Style, gradient: Gradient, brief: bool = False) -> str:
    """The gradient of an input, and why there is none; `brief` for the norm of a large one."""
    remark = style.paint(f"  ({gradient.reason})", "quiet") if gradient.reason else ""
    name = f"{gradient.name or f'#{gradient.node}'}.grad"
    if brief and gradient.tensor.grad is not None:
        text = " ".join(nodes.gradient_text(gradient.tensor.grad.array).split())
        return f"{style.paint(name, 'variable')} = {text}{remark}\n"
    return output_text(style, name, gradient.tensor.grad, remark)


def _show_trace(terminal: Terminal, session: Session, options: Options, result: Result) -> None:
    graph = result.graph
    if options.trace == "none" or graph.root is None:
        return
    if options.trace is None and options.quiet:
        return
    text = ""
    if options.trace is not None or len(graph.nodes) <= _MOST_NODES:
        text = trace_text(terminal, session, options, options.trace or "tree", result)
    if options.trace is None and not 0 < len(text.splitlines()) <= _LARGEST_TREE:
        terminal.note(f"the graph has {len(graph.nodes):,} nodes: --trace prints it")
    else:
        terminal.write(f"\n{text}\n")


def trace_text(
    terminal: Terminal, session: Session, options: Options, style: str, result: Result
) -> str:
    """The trace of a result in one of the styles."""
    if style == "steps":
        from gradcli.show.graph.steps import steps  # lazy: start-up: few such graphs

        with session.running():
            return steps(result.graph, result.events, terminal.style, module_titles())
    if style == "next":
        from gradcli.show.graph.steps import next_functions  # lazy: start-up: few such graphs

        return next_functions(result.graph, result.name, terminal.style)
    unnamed = [gradient.node for gradient in result.gradients if gradient.name is None]
    named = frozenset(id for id in unnamed if id is not None)
    settings = TreeSettings(options.trace_depth, options.expand, named)
    if style == "values":
        from gradcli.show.graph.steps import values_tree  # lazy: start-up: few such graphs

        return values_tree(annotated_graph(session, result), terminal.style, settings)
    return tree(result.graph, terminal.style, settings)


def module_titles() -> dict[str, str]:
    """What the modules of the session at work are titled, by their paths."""
    from gradcli.show.pictures.picture import module_title  # lazy: start-up: few such graphs

    return {path: module_title(module) for path, module in Graph.module_paths().values()}


def annotated_graph(
    session: Session,
    result: Result,
    has_numbers: bool = True,
    titles: Mapping[str, str] = MappingProxyType({}),
    comparisons: Mapping[int, Call] = MappingProxyType({}),
) -> AnnotatedGraph:
    """The graph of a result with all numbers that the run recorded; the rest is as there."""
    from gradcli.recorded.annotated_graph import AnnotatedGraph  # lazy: start-up: few are shown

    calls = getattr(session.recorder, "call_of", None)
    named = [value for value in session.state.names().values() if type(value) is Tensor]
    return AnnotatedGraph(
        result.graph, result.events, calls, named, has_numbers, titles, comparisons
    )
