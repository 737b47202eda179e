"""Compiles names: reading, binding and deleting them; constants; imports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source, Span
from gradcli.language.compiler.base import Compiler, Evaluate, Store, binds, compiles
from gradcli.language.compiler.recipes import OF_NAMES, given, recipe
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.exceptions import when_used
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import PARENT, Scope, Variables, comprehension_scope

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Predefined, Running


@compiles(tree.Constant)
def constant(c: Compiler, node: tree.Constant, scope: Scope) -> Evaluate:
    """A number, a string, True, False, None or `...`."""
    value = node.value
    return (lambda variables: value) if c.nodes is None else c.nodes.constant(0, value)


recipe(tree.Constant, "constant", given("value"))


@compiles(tree.Name)
def name(c: Compiler, node: tree.Name, scope: Scope) -> Evaluate:
    """A name that is read; E101 if it has no value. `making.c` makes the nodes of all but two."""
    distance = scope.distance(node.name)
    if distance is None:
        return _program_name(c, node.name, node.span)
    read = _own_name(node.name, distance, node.span)
    if distance == 0 and scope.is_class:  # it means the one outside until the body binds it
        assert scope.parent is not None
        text, outer = node.name, name(c, node, scope.parent)
        return lambda variables: read(variables) if text in variables else outer(variables[PARENT])
    return read


def is_direct(node: tree.Expression, scope: Scope) -> TypeGuard[tree.Name]:
    """Whether an expression is a name among the running code's own variables."""
    if type(node) is not tree.Name:
        return False
    distance = scope.distance(node.name)
    return distance == 0 or (distance is None and scope.is_program)


NOWHERE = "\0"
"""A name that nothing is bound to."""

OWN, AROUND, GLOBAL = range(3)
"""Where a name lives: among the running code's own variables, in the function around it, or in the
program.
"""


def direct(c: Compiler, node: tree.Expression, scope: Scope) -> tuple[int, str]:
    """Where a name lives that a closure may read by itself, without one more call, and the name;
    `NOWHERE` for any other expression, and where a compiler is to see each of them.
    """
    if type(node) is not tree.Name or type(c).expression is not Compiler.expression:
        return OWN, NOWHERE
    distance = scope.distance(node.name)
    if distance is None and node.name != "__file__":
        return (OWN if scope.is_program else GLOBAL), node.name
    return (distance, node.name) if distance in (OWN, AROUND) else (OWN, NOWHERE)


def _program_name(c: Compiler, name: str, span: Span) -> Evaluate:
    values, predefined = c.values, c.predefined
    if name == "__file__":
        # What the file of the program is called, which a program without a file does not have.
        def own_file(variables: Variables) -> str:
            if "argv" not in c.state.library:
                raise predefined.unknown_name("__file__", values, span)
            return span.source.name

        return own_file
    table = predefined.table_of(name)
    if table is None:

        def read(variables: Variables) -> Any:
            try:
                return values[name]
            except KeyError:
                raise predefined.unknown_name(name, values, span) from None

        return read

    # Looked up at each use: the catalogue replaces an op's function when it is first called.
    value_or = values.get
    missing = object()

    def read_predefined(variables: Variables) -> Any:
        value = value_or(name, missing)
        return table[name] if value is missing else value

    return read_predefined


def table_of(predefined: Predefined, name: str, values: Variables, span: Span) -> dict[str, Any]:
    """The table with what a name means that the program has not bound; E101 for none."""
    table = predefined.table_of(name)
    if table is None:
        raise predefined.unknown_name(name, values, span)
    return table


def unbound(name: str, is_free: bool, span: Span) -> NoReturn:
    """Raise E101 for a variable of a function, or of one around it, without a value."""
    raise GradcliError(
        "E101",
        f"`{name}` is a variable of the function and has no value yet",
        text=f"cannot access free variable '{name}' where it is not associated with a value in"
        " enclosing scope"
        if is_free
        else f"cannot access local variable '{name}' where it is not associated with a value",
        raises="NameError" if is_free else "UnboundLocalError",
        span=span,
    ) from None


def _own_name(name: str, distance: int, span: Span) -> Evaluate:
    if distance == 0:

        def read(variables: Variables) -> Any:
            try:
                return variables[name]
            except KeyError:
                unbound(name, False, span)

        return read
    if distance == 1:

        def read_outer(variables: Variables) -> Any:
            try:
                return variables[PARENT][name]
            except KeyError:
                unbound(name, True, span)

        return read_outer

    def read_far(variables: Variables) -> Any:
        for _ in range(distance):
            variables = variables[PARENT]
        try:
            return variables[name]
        except KeyError:
            unbound(name, True, span)

    return read_far


def name_store(c: Compiler, name: str, scope: Scope, assigned: bool = False) -> Store:
    """Binds a name that is none of the tree; see `_bind_name`."""
    target = tree.Name(_NO_SPAN, name)
    if c.nodes is not None:
        return c.nodes.make_target(c, target, scope, assigned)
    return _bind_name(c, target, scope, assigned)


_NO_SPAN = Span(Source("", ""), 0, 0)


@binds(tree.Name)
def _bind_name(c: Compiler, target: tree.Name, scope: Scope, assigned: bool) -> Store:
    """Binds a name; a tensor learns its first one. `making.c` makes the nodes.

    An assignment at top level (`assigned`, other than a loop's or an import's binding) is what an
    override replaces, and what the session knows as the last one.
    """
    distance, name = scope.distance(target.name), target.name
    if distance is not None:
        return _own_store(name, distance)
    values, interpreter = c.values, c.interpreter
    if assigned and scope.is_program and values is interpreter.values:
        return lambda variables, value: bind_top(interpreter, name, variables, value)
    return lambda variables, value: bind_program(None, name, values, value)


def _own_store(name: str, distance: int) -> Store:
    if distance == 0:
        return lambda variables, value: bind_own(None, name, variables, value)

    def store_outer(variables: Variables, value: Any) -> None:
        for _ in range(distance):
            variables = variables[PARENT]
        bind_own(None, name, variables, value)

    return store_outer


def bind_own(keeper: None, name: str, variables: Variables, value: Any) -> None:
    """Bind a variable of a function."""
    if type(value) is Tensor:
        value.set_name(name)
    variables[name] = value


def bind_top(keeper: Running, name: str, variables: Variables, value: Any) -> None:
    """Bind a name of the program at top level."""
    overrides = keeper.overrides
    if overrides and name in overrides:
        value = overrides.pop(name)(value)
    if type(value) is Tensor:
        if variables.get(name) is not value:  # as `p -= …` leaves a parameter that a loop goes over
            value.set_name(name)
        keeper.last_assigned = name
    variables[name] = value


def bind_program(keeper: None, name: str, variables: Variables, value: Any) -> None:
    """Bind a name of the program elsewhere."""
    # A loop goes over many parameters by one name: each is known by its path.
    if type(value) is Tensor and not (value.meta is not None and value.meta.is_parameter):
        value.set_name(name)
    variables[name] = value


def name_delete(c: Compiler, node: tree.Name, scope: Scope) -> Run:
    """`del name`; E101 if it has no value."""
    name, span = node.name, node.span
    holder = _holder(c, name, scope)
    distance = scope.distance(name)
    if scope.is_class and distance == 0:
        distance = None  # as the class's body says it, in Python too

    def delete(variables: Variables) -> None:
        try:
            del holder(variables)[name]
        except KeyError:
            if distance is not None:
                unbound(name, distance > 0, span)
            raise GradcliError(
                "E101",
                f"`{name}` has no value to delete",
                text=f"name '{name}' is not defined",
                span=span,
            ) from None

    return delete


def name_unbind(c: Compiler, name: str, scope: Scope) -> Run:
    """What takes the value of a name away, if it has one: the end of `except … as name`."""
    if c.nodes is not None:
        distance = scope.distance(name)
        return c.nodes.unnamed(distance or 0, name, c.values if distance is None else None)
    holder = _holder(c, name, scope)
    return lambda variables: holder(variables).pop(name, None) and None


OF_NAMES += (tree.Name, tree.Call, unbound, table_of, bind_own, bind_program, bind_top)
OF_NAMES.append(lambda scope, comprehension: comprehension_scope(scope, comprehension.clauses))


def _holder(c: Compiler, name: str, scope: Scope) -> Callable[[Variables], Variables]:
    """What finds the variables that hold a name."""
    distance = scope.distance(name)
    values = c.values
    if distance is None:
        return lambda variables: values

    def find(variables: Variables) -> Variables:
        for _ in range(distance):
            variables = variables[PARENT]
        return variables

    return find


@compiles(tree.Import)
def import_statement(c: Compiler, node: tree.Import, scope: Scope) -> Run:
    """`import module as alias`; a module that the language does not have is refused when it is
    used, inside a `try` at once (E103).
    """
    state, span = c.state, node.span
    find = _finder(c, span)
    # `import a.b` binds `a`, `import a.b as c` binds `a.b`.
    bindings = [
        (
            dotted if alias else _root(dotted),
            partial(_module if alias else _package, c, dotted),
            name_store(c, alias or _root(dotted), scope),
        )
        for dotted, alias in node.names
    ]

    def run(variables: Variables) -> None:
        for module, load, store in bindings:
            state.place = span
            store(variables, find(module, load))

    return run


def _package(c: Compiler, name: str) -> Module:
    """The module that `import a.b` binds, `a`, with `b` in it; raises E103."""
    inner = _module(c, name)
    return inner if _root(name) == name else _module(c, _root(name))


def _module(c: Compiler, name: str) -> Module:
    """The file of a module beside the script, or else the module of the language; raises E103."""
    level = len(name) - len(name.lstrip("."))
    if level:
        package = c.package.split(".") if c.package else []
        if level - 1 > len(package):
            raise GradcliError(
                "E103", f"`{name}` is outside the script's folder", raises="ImportError"
            )
        around = package[: len(package) + 1 - level]
        name = ".".join([*around, *([name[level:]] if name[level:] else [])])
    root = name.partition(".")[0]
    if root not in c.predefined.BEFORE_FILES and c.state.limits.files:
        beside = c.interpreter.module_beside(name)
        if beside is not None:
            return beside
        if c.interpreter.module_beside(root) is not None:
            text = f"No module named '{name}'"
            raise GradcliError("E103", f"there is no `{name}` beside the script", text=text)
    try:
        return c.predefined.module(name)
    except GradcliError:
        if root not in c.predefined.INSTEAD and not c.state.limits.files:
            c.interpreter.module_beside(name)  # says that files are out of bounds
        raise


def _imported(c: Compiler, module: str, name: str) -> Any:
    """What `from module import name` binds: a name of a module, or a module in it."""
    if not module.strip("."):
        return _module(c, f"{module}{name}")
    home = _module(c, module)
    if home.is_file and name not in home.names:
        inner = c.interpreter.module_beside(f"{home.name}.{name}")
        if inner is not None:
            return inner
    return c.predefined.imported(home, name)


def _root(dotted: str) -> str:
    return dotted.partition(".")[0]


def _finder(c: Compiler, span: Span) -> Callable[[str, Callable[[], Any]], Any]:
    """What finds the value that an import binds under a name."""
    if c.in_try:  # `except ImportError` is to see what is not there
        return lambda name, find: find()
    return lambda name, find: when_used(name, find, span)


@compiles(tree.FromImport)
def from_import(c: Compiler, node: tree.FromImport, scope: Scope) -> Run:
    """`from module import name as alias`; what there is not is refused as by `import`."""
    state, span, module = c.state, node.span, node.module
    if node.names[0][0] == "*":
        values = c.values

        def import_all(variables: Variables) -> None:
            state.place = span
            source = _module(c, module)
            values.update((name, source.get(name)) for name in source.public_names())

        return import_all
    find = _finder(c, span)
    bindings = [(name, name_store(c, alias or name, scope)) for name, alias in node.names]

    def run(variables: Variables) -> None:
        for name, store in bindings:
            state.place = span
            source = find(f"{module}.{name}", partial(_imported, c, module, name))
            store(variables, source)

    return run
