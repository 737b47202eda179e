"""`gradcli why`: why a tensor has a gradient, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gradcli.errors import GradcliError, Source, type_error
from gradcli.language.hints.spelling import closest
from gradcli.language.rounds import NotRecorded, check_recorded, record_rounds
from gradcli.questions.answer import NumbersNeeded, answer_from_graph, answer_from_run
from gradcli.record import Record
from gradcli.running.arguments.click_options import with_answer_file, with_json, with_program
from gradcli.running.arguments.words import UsageError, not_in_program
from gradcli.running.run import Run
from gradcli.running.source import Asked, asked_of

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.language.long_loops import Rounds
    from gradcli.language.provenance import Provenance
    from gradcli.language.tree.syntax import Statement
    from gradcli.questions.why.detachments import Why
    from gradcli.questions.why.trial import Ran
    from gradcli.recorded.recorded_run import Recorded


@click.command("why")
@click.argument("question", metavar="NAME.ATTRIBUTE")
@with_answer_file(".txt", ".json")
@with_json
@with_program
def command(question: str, words: Sequence[str], file: str | None, **settings: Any) -> int:
    """Prove why a tensor has a gradient, or has none.

    The question comes first: x.grad, x.requires_grad, x.is_leaf, or net.0.weight.trains; of a part
    of a gradient x.grad[:,0]. The answer is the path that carries the gradient, or every place
    where it was cut.
    """
    wanted = read_question(question)
    asked = asked_of("why", words, file, settings)
    return asked.terminal.checked(why(asked, wanted))


class Question(Record):
    """A question of `why`.

    Attributes:
        name: a variable or the path of a parameter.
        attribute: one of its attributes, "" for the one that its kind suggests.
        part: the subscript of a part of its gradient: `[:, 0]`.
    """

    name: str
    attribute: str
    part: str = ""


_PART = re.compile(r"(.+\.grad) *(\[.+\])")

_PATH = re.compile(r"""[A-Za-z_]\w*(?:\.\w+|\[\w+\]|\['[^']*'\]|\["[^"]*"\])*""")


def read_question(text: str) -> Question:
    """A question such as `x.grad`, `x.grad[0]`, `net.0.weight.grad` or, for `.trains`,
    `net.0.weight`; raises a usage error for another text.
    """
    of_part = _PART.fullmatch(text)
    if of_part is not None:
        whole = read_question(of_part[1])
        return Question(whole.name, whole.attribute, of_part[2])
    from gradcli.questions.why.find import ATTRIBUTES  # lazy: command: its body

    name, dot, attribute = text.rpartition(".")
    if text.endswith("]") and _PATH.fullmatch(text):
        return Question(text, "")  # a dot may be part of a key
    if dot and attribute not in ATTRIBUTES and _PATH.fullmatch(text):
        near = closest(attribute, ATTRIBUTES)
        if near is None:
            name, attribute = text, "trains"
    known = ", ".join(f"{name or 'x'}.{each}" for each in ATTRIBUTES)
    if text.isidentifier():
        return Question(text, "")
    if not dot or not _PATH.fullmatch(name):
        raise UsageError(f"`{text}` is no question: it is one of {known}")
    if attribute not in ATTRIBUTES:
        near = closest(attribute, ATTRIBUTES)
        hint = f"; did you mean `{name}.{near}`?" if near else ""
        raise UsageError(f"`why` answers {known}, not `{text}`{hint}")
    return Question(name, attribute)


def why(
    asked: Asked,
    question: Question,
) -> int:
    """Answer a question about a program: why a tensor has a gradient, or none; the exit code."""

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        recorded = _recorded(asked, run, statements, value)
        gradient = None
        if run.replay is not None and run.replay.shapes is not None:
            gradient = _numbers_beside_graph(asked, run, _answer(run, question, recorded))
        write_why(asked, run, question, recorded, gradient)
        return 0

    def after_error(run: Run, statements: Sequence[Statement], error: GradcliError) -> None:
        # That there is no gradient is often what the program failed of.
        if re.split(r"\W", question.name)[0] in run.session.values:
            check_recorded(run.session.interpreter)
            recorded = run.recorded(statements, None, False)
            recorded.error = error
            write_why(asked, run, question, recorded)

    code = answer_from_graph(asked, "values", answer)
    if code is not None:
        return code
    return answer_from_run(asked, "values", answer, _prepared, after_error, of_last_rounds=True)


def _prepared(run: Run) -> None:
    """Let a run note which leaves iterations use that are not recorded."""
    from gradcli.questions.why.find import Uses  # lazy: command: its body

    provenance = run.session.interpreter.provenance
    assert provenance is not None
    provenance.listener = Uses(run.session.recorder)


def _numbers_beside_graph(asked: Asked, run: Run, answer: Why) -> Tensor | None:
    """The gradient whose numbers an answer shows that a graph alone gave; None for none.

    Raises `NumbersNeeded` where numbers may make another answer of it: of a gradient, unless the
    recording says that it is not 0.
    """
    recording = asked.options.recording
    if answer.kind == "carried" and recording is not None and recording.has_data:
        name, _, attribute = answer.question.rpartition(".")
        if not recording.has_gradient(name) or (attribute == "grad" and recording.is_small):
            raise NumbersNeeded
        if attribute == "grad":
            return _gradient(asked, name)
    run.tell_replay()
    return None


def _gradient(asked: Asked, name: str) -> Tensor:
    """The gradient of a parameter of a recording, from a run that keeps nothing else."""
    from gradcli.running.report import parameters_of  # lazy: command: its body

    asked.options.graph_alone = False
    try:
        run = Run(asked.terminal, asked.options, "graph")
        run.muted = True
        if run.replay is not None:
            run.replay.let_go()
            run.replay.leave_out_steps()
        run.execute(run.session.parse(asked.program.text(), asked.program.name), ())
        run.tell_replay()
        tensor = {**run.session.values, **dict(parameters_of(run.session))}.get(name)
        if tensor is None or tensor.grad is None:
            raise NumbersNeeded
        gradient: Tensor = tensor.grad
        return gradient
    finally:
        asked.options.graph_alone = True


def _recorded(asked: Asked, run: Run, statements: Sequence[Statement], value: Any) -> Recorded:
    options = asked.options
    differentiates = asked.program.name == "program" or options.of or options.seed is not None
    return run.recorded(statements, value, bool(differentiates))


def write_why(
    asked: Asked, run: Run, question: Question, recorded: Recorded, gradient: Tensor | None = None
) -> None:
    """Write the answer to a question, with the remedies that help.

    Args:
        gradient: the numbers of the answer, where the run has none.
    """
    from gradcli.questions.why.tell import why_document, why_text  # lazy: command: its body
    from gradcli.questions.why.trial import keep_what_helps  # lazy: command: its body
    from gradcli.show.answer import Answer  # lazy: command: its body

    answer = _answer(run, question, recorded)
    if answer.value is True and run.replay is not None and question.attribute == "trains":
        answer.reason += "; what the script writes to it behind this step is not in the recording"
    if gradient is not None:
        answer.value = gradient
    elif (_is_small(answer.value) or answer.kind == "zero") and run.work <= _LONGEST:
        # What contributed to it is seen where the nodes keep what they saved.
        kept = _again(asked, question, asked.program.text(), "kept")
        answer = answer if kept is None or kept.failed else kept.answer
    again = partial(_again, asked, question) if run.work <= _LONGEST else None
    keep_what_helps(answer, (recorded.output_name, recorded.output), again)
    with run.session.running():
        shown = Answer(partial(why_text, answer), partial(why_document, answer))
        run.terminal.answer(shown, run.options.format)


# fmt: off
_WHENEVER = frozenset((
    "buffer", "cleared", "constant", "cut", "dtype", "exhausted", "failed", "frozen", "hidden",
    "left out", "no optimizer", "no parameter", "no rate", "non-leaf", "old model", "parametrized",
    "rebound", "replaced", "returned", "undefined", "uninitialized",
))
# fmt: on
"""Kinds of answers that give no gradient, and a reason that no iteration can make another one."""


def _is_settled(answer: Why, tensor: Any, provenance: Provenance) -> bool:
    """Whether an answer stays what it is where more iterations of a loop are recorded."""
    if answer.kind == "unused":
        return id(tensor) not in provenance.listener.leaves
    if answer.value is None or answer.value is False:
        return answer.kind in _WHENEVER
    return answer.kind != "set"


_LONGEST = 1.0
"""Seconds of processor time that a program takes at most if it is run with each remedy."""


def _is_small(value: Any) -> bool:
    """Whether a value is a gradient that may be zero, up to rounding."""
    from gradcli.questions.why.zeros import is_small  # lazy: command: its body

    return hasattr(value, "array") and is_small(value.array)


def _again(asked: Asked, question: Question, text: str, record: str = "values") -> Ran | None:
    """The answer about another text; None where there is none."""
    wanted: frozenset[Rounds] | None = frozenset()
    while True:
        try:
            return _ran(asked, question, text, record, wanted)
        except NotRecorded as needed:
            wanted = needed.wanted


def _ran(
    asked: Asked, question: Question, text: str, record: str, wanted: frozenset[Rounds] | None
) -> Ran | None:
    """The same, with the iterations of long loops that are wanted."""
    from gradcli.questions.why.trial import Ran  # lazy: command: its body

    run = Run(asked.terminal, asked.options, record)
    run.muted = True
    failed = False
    if question.attribute == "is_leaf":
        question = Question(question.name, "requires_grad")
    try:
        with run.limited():
            statements = run.session.parse(text, asked.program.name)
            _prepared(run)
            record_rounds(run.session.interpreter, wanted)
            try:
                try:
                    value = run.execute(statements, asked.arguments)
                finally:
                    check_recorded(run.session.interpreter)
                recorded = _recorded(asked, run, statements, value)
            except GradcliError:
                recorded, failed = run.recorded(statements, None, False), True
            answer = _answer(run, question, recorded)
    except (GradcliError, UsageError):
        return None
    return Ran(answer, (recorded.output_name, recorded.output), failed)


def _answer(run: Run, question: Question, recorded: Recorded) -> Why:
    """The answer to a question; raises a usage error, or E202, where it is asked of no tensor."""
    from gradcli.autograd.tensor import Tensor  # lazy: command: its body
    from gradcli.language.objects.types import type_name  # lazy: command: its body
    from gradcli.library.torch.optim.optimizer import Optimizer  # lazy: command: its body
    from gradcli.questions.why.detachments import LeftOut  # lazy: command: its body
    from gradcli.questions.why.find import of_part  # lazy: command: its body
    from gradcli.questions.why.find import why as explain  # lazy: command: its body
    from gradcli.running.report import parameters_of  # lazy: command: its body

    parameters = dict(parameters_of(run.session))
    named = {**parameters, **recorded.values}
    name, attribute = question.name, question.attribute
    tensor = named.get(recorded.rebound.get(name, name))
    if tensor is None and not name.isidentifier():
        wanted = _dotted(name)
        name = next((each for each in named if _dotted(each) == wanted), name)
        tensor = named.get(name)
    if tensor is None and not name.isidentifier():
        tensor, is_path = _looked_up(run, name)
        paths = () if is_path else parameters.items()
        name = next((path for path, each in paths if each is tensor), name)
    if tensor is None:
        raise UsageError(not_in_program(name, [n for n, v in named.items() if type(v) is Tensor]))
    if type(tensor) is not Tensor:
        inside = [each for each in parameters if each.startswith(f"{name}.")][:3]
        raise type_error(
            f"`{name}` is no tensor but a value of type {type_name(tensor)}",
            help=f"ask of its parameters: {', '.join(inside)}, …"
            if inside
            else "gradients and graphs belong to tensors",
        )
    if not attribute:
        optimized = any(isinstance(each, Optimizer) for each in recorded.values.values())
        attribute = "trains" if optimized and tensor.is_leaf else "grad"
    with run.session.running():
        answer = explain(recorded, name, tensor, attribute)
        if question.part:
            pick = run.session.evaluate(Source("question", f"lambda grad: grad{question.part}"))
            answer = of_part(recorded, tensor, answer, question.part, pick)
    answer.stepped = any(isinstance(each, Optimizer) for each in recorded.values.values())
    if recorded.provenance.unheard and not _is_settled(answer, tensor, recorded.provenance):
        raise NotRecorded
    if type(answer.value) is Tensor and not run.has_numbers:
        shape = ", ".join(map(str, answer.value.array.shape))
        answer.value = LeftOut(f"a tensor of shape ({shape}), whose numbers were left out")
    return answer


def _dotted(path: str) -> str:
    """A path with its subscripts as PyTorch's `named_parameters()` writes them."""
    return re.sub(r"""\[['"]?(\w+)['"]?\]""", r".\1", path)


def _looked_up(run: Run, name: str) -> tuple[Any, bool]:
    """The value of a path, and whether it is one by attributes alone, or leads through a compiled
    module to what it compiles, or by the program's own subscripts; None where it has none.
    """
    from gradcli.running.lookup import UNKNOWN, value_of  # lazy: command: its body

    first, *rest = name.split(".")
    for parts in ([first, *rest], [first, "_orig_mod", *rest]):
        with run.session.running():
            value = value_of(run.session, parts)
        if value is not UNKNOWN:
            return value, parts[1:] == rest
    try:
        return run.session.evaluate(Source("question", name)), False
    except GradcliError:
        return None, False
