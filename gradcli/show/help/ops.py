"""The page of one op: signature, formulas, node, conventions, and an example with what it gives;
the list of ops by family, `gradcli ops`, and that of what PyTorch has and gradcli has not, each
name with its reason, `gradcli help left-out`.

The formulas are the op's own rules, read with symbols; the example is run when it is shown. What is
left out is found by asking a session for each public name, so an op that is added leaves it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.hints.unsupported import RULES, pytorch_names, reason_unsupported
from gradcli.language.objects.repr import display
from gradcli.library.namespace import MODULES
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import ANY, Op, TensorSpec, parameters_of, registry
from gradcli.ops.lookup import (
    NAMESPACES,
    TENSOR,
    PublicName,
    doc_of,
    family_of,
    find,
    is_bound,
    names_in,
    own_entries,
    same,
)
from gradcli.recorded.symbols.reading import derivative_formulas, forward_formula
from gradcli.recorded.symbols.tree import OPERATORS, SIGNS, Call, Name, Symbol, substituted, text_of
from gradcli.session import Session
from gradcli.show.help.manual import rendered
from gradcli.show.style import PLAIN, Style

_HEAD = 10
"""The columns of a row's heading."""

_MOST_FORMS = 12


def op_of_node(name: str) -> str | None:
    """The name of the op that a node is made by, `mul` for `MulBackward0`; None for other names."""
    if not re.fullmatch(r"[A-Z]\w*Backward\d*", name):
        return None
    bring_all()
    entry = next((op for op in registry.values() if op.node_name == name), None)
    return None if entry is None else entry.name.partition(".")[0].strip("_")


def op_help(name: str, width: int = 80) -> str | None:
    """The page of a function, method or class; None for a name that is none.

    Args:
        name: `exp`, `torch.exp`, `F.relu`, `Tensor.add_`, `nn.Linear`, …
    """
    public = find(name, load)
    if public is None:
        return None
    lines = _wrapped(signature(public), width, "    ")
    lines += _wrapped(f"    {summary_of(public)}", width, "    ")
    rows = list(_rows(public))
    if rows:
        lines.append("")
        for head, text in rows:
            lines += _row(head, text, width)
    lines += _example(public, width)
    return "\n".join(lines) + "\n"


def node_rows(op: Op, width: int = 80) -> str:
    """What an op's node saves, and the gradients that it gives."""
    lines = [""]
    for head, text in _entry_rows(op):
        lines += _row(head, text, width)
    return "\n".join(lines) + "\n"


def load(place: str) -> Mapping[str, Any]:
    """The names of a module, loaded where they are not yet."""
    return MODULES[place].names


def op_names() -> Iterator[PublicName]:
    """Every op that has a page, once for each name."""
    for namespace in NAMESPACES:
        for name in names_in(namespace, load):
            public = find(f"{namespace}.{name}", load)
            if public is not None:
                yield public


# --- what the page says -------------------------------------------------------------------------


def signature(public: PublicName) -> str:
    """How the function is called."""
    parameters = _parameters(public)
    if public.namespace == TENSOR and parameters:
        del parameters[0]
        if parameters[:1] == ["/"]:
            del parameters[0]
    return f"{public.full_name}({', '.join(parameters)})"


def _parameters(public: PublicName) -> list[str]:
    if any(is_bound(op, public.function) for op in public.entries):  # not composed
        op = public.entries[0]
        defaults = op.forward.__defaults__ or ()
        required = len(op.parameters) - len(defaults)
        named = ["input", *op.parameters[1:]]
        return named[:required] + [
            f"{name}={value!r}" for name, value in zip(named[required:], defaults, strict=True)
        ]
    function = getattr(public.function, "construct", public.function)
    try:
        described = inspect.signature(function)
    except (TypeError, ValueError):
        return ["…"]
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in described.parameters.values()
        if each.name not in ("out", "device", "memory_format", "layout", "pin_memory")
    ]
    text = str(inspect.Signature(plain))[1:-1]
    own = inspect.signature(function, follow_wrapped=False).parameters
    added = ["inplace=False"] if "inplace" in own and "inplace" not in described.parameters else []
    return (_split(text) if text else []) + added


def _split(text: str) -> list[str]:
    """Parameters at their commas, those inside brackets aside."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def summary_of(public: PublicName) -> str:
    """One sentence on what the function does; on its in-place form too."""
    summary = doc_of(public).summary
    return f"{summary} The result is written to the tensor." if public.inplace else summary


def _rows(public: PublicName) -> Iterator[tuple[str, str]]:
    forms = _forms(public)
    if forms:
        yield "forms", forms
    for number, (argument, spec) in enumerate(takes_of(public).items()):
        yield "" if number else "takes", f"{argument}: {spec.words()}"
    own = own_entries(public)
    for op in own:
        yield from _entry_rows(op)
    if public.entries and not own:
        nodes = ", ".join(dict.fromkeys(op.node_name for op in public.entries if op.node_name))
        if nodes:
            several = len(public.entries) > 1
            yield "nodes", f"those of other ops: {nodes}{', …' if several else ''}"
    if any(map(_has_steps, public.entries)):
        yield "steps", "`gradcli derive` writes the gradient out, step by step"
    for conventions in (doc_of(public).conventions, *(op.doc.conventions for op in own)):
        if conventions:
            yield "note", conventions
            break


def takes_of(public: PublicName) -> dict[str, TensorSpec]:
    """What is declared of the operands that a function takes, by their names in its signature."""
    takes = getattr(public.function, "takes", None)
    if takes is None:
        takes = next((op.takes for op in own_entries(public)), {})
    return {_operand(name): spec for name, spec in takes.items()}


def _has_steps(op: Op) -> bool:
    """Whether an entry, or one that its gradient is computed with, says what it is composed of."""
    formulas = [each for each in derivative_formulas(op).values() if each is not None]
    called = [part.function for each in formulas for part in each.walk() if isinstance(part, Call)]
    used = [op, *(registry[name] for name in called if name in registry)]
    return any(each.decomposition is not None for each in used)


def _entry_rows(op: Op) -> Iterator[tuple[str, str]]:
    forward = forward_formula(op) if op.pointwise else None
    if forward is not None:
        yield "forward", _text(forward)
    if not op.node_name or op.node_name == "NotImplemented":
        yield (
            "gradient",
            "none: the result leaves the graph" if not op.node_name else ("none is implemented"),
        )
        return
    saved = _saved(op)
    yield "node", f"{op.node_name}, saves {', '.join(map(_operand, saved)) or 'no tensor'}"
    formulas = derivative_formulas(op)
    heads = {name: f"{_operand(name)}: " if len(formulas) > 1 else "" for name in formulas}
    texts = {
        name: "none" if formula is None else _text(formula) for name, formula in formulas.items()
    }
    if len(set(texts.values())) == 1 and " rule of " in next(iter(texts.values())):
        yield "gradient", f"{', '.join(map(_operand, formulas))}: {next(iter(texts.values()))}"
        return
    for number, (name, text) in enumerate(texts.items()):
        yield "gradient" if number == 0 else "", heads[name] + text


def _text(formula: Symbol) -> str:
    """A formula with the operand `self` called as in the signature."""
    return text_of(substituted(formula, {"self": Name("input")}))


def _operand(name: str) -> str:
    return "input" if name == "self" else name


def _saved(op: Op) -> list[str]:
    """The tensors that a node keeps for its derivatives."""
    rules = [*op.rules.values(), *([op.joint] if op.joint else [])]
    asked = [name for rule in rules for name in parameters_of(rule)]
    return [name for name in (*op.tensors, *op.lists, *op.outputs) if name in asked]


def _forms(public: PublicName) -> str:
    """The other names of the function, aliases and the in-place form among them."""
    name = public.name.removesuffix("_") if public.inplace else public.name
    others = [(TENSOR, f"{name}_")] if f"{name}_" in catalogue.methods else []
    forms = [
        f"{NAMESPACES[namespace]}.{each}"
        for namespace, each in dict.fromkeys([*same(public), *others])
        if (namespace, each) != (public.namespace, public.name)
    ]
    if not public.inplace:
        forms += [f"x {OPERATORS[name]} y"] if name in OPERATORS else []
        forms += [f"{SIGNS[name]}x"] if name in SIGNS else []
    return ", ".join(forms[:_MOST_FORMS])


def _example(public: PublicName, width: int) -> list[str]:
    """The example and what it gives."""
    program = example_of(public)
    if not program:
        return []
    lines = [""]
    for number, line in enumerate(program.split("\n")):
        lines += _row("example" if number == 0 else "", line, width)
    shown = result_of(program)
    if shown is not None:
        lines += [
            " " * _HEAD + piece
            for line in shown.split("\n")
            for piece in (textwrap.wrap(line, width - _HEAD, drop_whitespace=False) or [""])
        ]
    return lines


def example_of(public: PublicName) -> str:
    """A program that calls the function or makes an instance, "" where there is none."""
    program = doc_of(public).example or _layer_example(public)
    called, _, rest = program.partition("(")
    if public.namespace != TENSOR:
        return f"{public.full_name}({rest}" if re.fullmatch(r"\w+(\.\w+)+", called) else program
    if not called.startswith("torch."):
        return re.sub(r"\)\.\w+\(", f").{public.name}(", program, count=1)
    for name in (public.name.removesuffix("_"), public.name):
        if name in catalogue.modules["torch"]:
            return f"torch.{name}({rest}"
    first, *others = _arguments(program)
    return f"{first}.{public.name}({', '.join(others)})"


def _arguments(program: str) -> list[str]:
    """The arguments of a call as they are written."""
    call = ast.parse(program, mode="eval").body
    assert isinstance(call, ast.Call)
    return [ast.get_source_segment(program, each) or "" for each in (*call.args, *call.keywords)]


def _layer_example(public: PublicName) -> str:
    """The example of a layer from its function's: settings to it, inputs to its call."""
    settings = getattr(public.value, "settings", None)
    function = find(f"F.{public.value.function}", load) if settings is not None else None
    if settings is None or function is None:
        return ""
    names = [each.partition("=")[0] for each in _parameters(function) if each != "*"]
    inputs: list[str] = []
    settings_of_example: list[str] = []
    for number, text in enumerate(_arguments(doc_of(function).example)):
        if re.match(r"\w+=", text):
            settings_of_example.append(text)
        elif names[number] in settings:
            in_order = list(settings).index(names[number]) == len(settings_of_example)
            settings_of_example.append(text if in_order else f"{names[number]}={text}")
        elif not settings_of_example:
            inputs.append(text)
    return f"{public.full_name}({', '.join(settings_of_example)})({', '.join(inputs)})"


def result_of(program: str) -> str | None:
    """What the last expression of a program gives; None where it gives nothing or fails."""
    session = Session()
    try:
        value = None
        for result in session.run(program, "example"):
            value = result.value
        with session.running():
            return None if value is None else display(value)
    except GradcliError:
        return None


# --- layout -------------------------------------------------------------------------------------


def _row(head: str, text: str, width: int) -> list[str]:
    return _wrapped(f"{head:<{_HEAD}}{text}", width, " " * _HEAD)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """A text on lines; words that are longer than a line are cut."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
    )


# --- lists of ops ---------------------------------------------------------------------------------


_FAMILIES = {
    "torch.nn.functional": "functions of networks",
    "Tensor": "methods only",
    "torch.linalg": "linear algebra",
    "torch.special": "special functions",
    "torch.fft": "Fourier transforms",
    "torch.nn": "layers",
    "torch.nn.init": "initialisation",
    "torch.nn.utils": "networks' parameters",
    "torch.optim": "optimizers",
    "torch.optim.lr_scheduler": "learning rates",
    "torch.autograd": "autograd",
}

SCHEMA = "gradcli.ops/1"


def op_list(pattern: str | None = None, style: Style = PLAIN) -> str:
    """The ops that match a pattern, by family, in columns: name, node, summary.

    Args:
        pattern: a glob (`*_loss`), or a part of a name or a node's name; all ops when None.
        style: on a terminal families have headings and summaries are cut to its width; elsewhere
            each line is an op, whole, its fields separated by tabs.
    """
    families = matching(pattern)
    if style.width is None:
        every = [op for ops in families.values() for op in ops]
        return "".join(f"{op.full_name}\t{_node(op)}\t{summary_of(op)}\n" for op in every)
    lines: list[str] = []
    for family, ops in families.items():
        names = max(len(op.full_name) for op in ops) + 2
        nodes = min(max(len(_node(op)) for op in ops), 24) + 2
        lines += ["", style.paint(family, "strong")]
        for op in ops:
            head = f"  {op.full_name.ljust(names)}{_node(op).ljust(nodes - 1)} "
            lines.append(style.shortened(head + summary_of(op), 0).rstrip())
    return "\n".join(lines[1:]) + "\n" if lines else ""


def op_list_document(pattern: str | None = None) -> dict[str, Any]:
    """The same as data, for JSON."""
    return {
        "schema": SCHEMA,
        "ops": [
            {
                "name": op.full_name,
                "family": family,
                "nodes": [entry.node_name for entry in op.entries if entry.node_name],
                "summary": summary_of(op),
                "takes": {
                    argument: {"least": spec.least, "most": None if spec.most == ANY else spec.most}
                    for argument, spec in takes_of(op).items()
                },
            }
            for family, ops in matching(pattern).items()
            for op in ops
        ],
    }


def matching(pattern: str | None) -> dict[str, list[PublicName]]:
    """The ops that match a pattern by family, each function once; those of a family by name, so
    that the list does not follow the order in which families happen to be imported.
    """
    families: dict[str, list[PublicName]] = {}
    functions: set[str] = set()
    for public in op_names():
        if public.namespace == "Tensor" and public.name.removesuffix("_") in functions:
            continue
        if public.namespace in ("torch", "torch.nn.functional"):
            functions.add(public.name)
        if pattern is None or _matches(pattern, public):
            families.setdefault(_family(public), []).append(public)
    # Those of torch come first, by name.
    order = list(NAMESPACES)
    in_order = sorted(families.items(), key=lambda i: (order.index(i[1][0].namespace), i[0]))
    return {family: sorted(ops, key=lambda op: op.name) for family, ops in in_order}


def _matches(pattern: str, public: PublicName) -> bool:
    names = (public.name, public.full_name, *(entry.node_name for entry in public.entries))
    if any(sign in pattern for sign in "*?["):
        return any(fnmatchcase(name, pattern) for name in names)
    return any(pattern.lower() in name.lower() for name in names)


def _family(public: PublicName) -> str:
    """Where the catalogue has an op of torch, as "linalg: solve", else what the place holds."""
    if public.namespace != "torch":
        return _FAMILIES[public.namespace]
    named = [op for op in public.entries if op.name == public.name.removesuffix("_")]
    if named or (public.entries and is_bound(public.entries[0], public.function)):
        module = (named or public.entries)[0].forward.__module__
    else:
        module = getattr(getattr(public.function, "construct", public.function), "__module__", "")
    room, _, file = module.removeprefix("gradcli.").rpartition(".")
    if room.startswith("ops."):
        room = family_of(module)
    room = room.removeprefix("library.torch").removeprefix(".")
    return f"{room}: {file}".removeprefix(": ").replace("_", " ")


def _node(public: PublicName) -> str:
    nodes = list(dict.fromkeys(op.node_name for op in public.entries if op.node_name))
    nodes = [node for node in nodes if node != "NotImplemented"]
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]}, …" if nodes else "-"


_START = """import torch
Tensor = torch.ones(2, requires_grad=True)
Module = torch.nn.Module()
Optimizer = torch.optim.SGD([Tensor], lr=0.1)
"""


def started() -> Session:
    """A session that knows an object of each class whose names are listed."""
    session = Session()
    for _ in session.run(_START, "start"):
        pass
    return session


def left_out(session: Session, home: str) -> Iterator[tuple[str, GradcliError]]:
    """The names of a module or class that a program cannot read, each with its error."""
    for name in sorted(pytorch_names()[home]):
        try:
            for _ in session.run(f"{home}.{name}\n", "name"):
                pass
        except GradcliError as error:
            if error.code not in ("E203", "E301"):  # this tensor has none, as in PyTorch
                yield name, error


def left_out_page(style: Style = PLAIN) -> str:
    """The names by reason."""
    session, names_by_reason = started(), dict.fromkeys((reason for reason, _ in RULES), "")
    known = count = 0
    for home in sorted(pytorch_names()):
        if reason_unsupported(*home.rpartition(".")[::2]) and not _is_there(session, home):
            continue  # its name stands for all in it
        known += len(pytorch_names()[home])
        for name, _ in left_out(session, home):
            reason = reason_unsupported(home, name) or ""
            names_by_reason[reason] = f"{names_by_reason.get(reason, '')} {home}.{name}"
            count += 1
    parts = [
        "# What of PyTorch is left out\n",
        f"gradcli has {known - count:,} of the {known:,} public names that PyTorch 2.13 has in the"
        " modules that are there. The others, by reason; a module's name stands for all in it. A"
        " program that uses one ends in `E205`, and `gradcli port FILE` finds it without running"
        " the program.\n",
    ]
    for reason, names in names_by_reason.items():
        if names:
            listed = textwrap.fill(names.strip(), (style.width or 80) - 2, break_on_hyphens=False)
            parts.append(f"{reason[0].upper()}{reason[1:]}:\n\n```text\n{listed}\n```\n")
    return rendered("\n".join(parts), style)


def _is_there(session: Session, home: str) -> bool:
    try:
        for _ in session.run(f"{home}\n", "name"):
            pass
    except GradcliError:
        return False
    return True
