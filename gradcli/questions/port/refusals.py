"""What in a program gradcli would refuse, found by reading it: nothing of it runs.

Modules and names are looked up where the program reaches them, in the tables that a run looks them
up in; what a statement's compilation refuses is refused here by compiling it.
"""

from __future__ import annotations

import builtins
import os
from typing import Any

from gradcli.arrays.files.gate import is_folder_beside, program_beside
from gradcli.errors import GradcliError, Source, Span
from gradcli.language.objects.attributes import Module, PerSession, get_attribute, set_attribute
from gradcli.language.parser.parser import read_statements
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, bound_by
from gradcli.library import namespace
from gradcli.session import Session


def refusals(source: Source) -> list[GradcliError]:
    """The errors of all that would be refused, in the order of the text; each has a span."""
    statements, errors = read_statements(source)
    reader = _Reader(source, statements)
    reader.read()
    return sorted([*errors, *reader.found], key=lambda error: error.span.start if error.span else 0)


class _Reader:
    """Reads the statements of a program."""

    def __init__(self, source: Source, statements: list[tree.Statement]) -> None:
        self.statements = [node for node in statements if not isinstance(node, tree.Command)]
        self.folder = os.path.dirname(source.name)
        self.nodes = list(tree.nodes_of(self.statements))
        self.found: list[GradcliError] = []
        self.used = {node.name for node in self.nodes if isinstance(node, tree.Name)}
        # Inside a `try` that handles errors a module that is not there may be what is expected.
        self.tried = {
            id(inner)
            for node in self.nodes
            if isinstance(node, tree.Try) and node.handlers
            for inner in tree.nodes_of(node.body)
        }
        imports = (tree.Import, tree.FromImport)
        self.assigned = {
            name for node in self.nodes if not isinstance(node, imports) for name in bound_by(node)
        }
        self.assigned |= {node.name for node in self.nodes if isinstance(node, tree.Parameter)}
        self.imported: dict[str, Any] = {}
        self.given: set[tuple[Module, str]] = set()

    def read(self) -> None:
        """Fill `found`."""
        compiler = Session().interpreter.compiler
        for statement in self.statements:
            try:
                compiler.statement(statement, Scope())
            except GradcliError as error:
                self._refused(error, statement.span)
        for node in self.nodes:
            if isinstance(node, tree.Import):
                for dotted, alias in node.names:
                    root = dotted.partition(".")[0]
                    self._import(alias or root, dotted if alias else root, dotted, None, node)
            elif isinstance(node, tree.FromImport):
                for name, alias in node.names:
                    self._import(alias or name, node.module, node.module, name, node)
        for node in self.nodes:
            if isinstance(node, tree.Assign):
                for target in node.targets:
                    self._given(target)
        for node in self.nodes:
            if isinstance(node, tree.Name):
                self._name(node)
            elif isinstance(node, tree.Attribute):
                self._attribute(node)
            elif isinstance(node, tree.Async):
                try:
                    compiler.statement(node, Scope())({})
                except GradcliError as error:
                    self._refused(error, node.span)

    def _refused(self, error: GradcliError, span: Span) -> None:
        if error.span is None:
            error.span = span
        self.found.append(error)

    def _import(
        self, bound: str, module: str, dotted: str, name: str | None, node: tree.Statement
    ) -> None:
        """Know what an import binds, or refuse it where the program uses it."""
        self.imported[bound] = None
        if dotted.startswith(".") or self._is_beside(dotted):
            return
        try:
            namespace.module(dotted)
            imported: Any = namespace.module(module)
            if name is not None and name != "*":
                imported = namespace.imported(imported, name)
        except GradcliError as error:
            is_used = bound in self.used or name == "*"
            if is_used and id(node) not in self.tried:
                self._refused(error, node.span)
        else:
            self.imported[bound] = None if name == "*" else imported

    def _is_beside(self, dotted: str) -> bool:
        """Whether a run imports a file of the program's own, which it does before the language's
        modules.
        """
        root = dotted.partition(".")[0]
        if root in namespace.BEFORE_FILES:
            return False
        try:
            known_here = root in namespace.MODULES
            for name in (root, dotted):
                if program_beside(self.folder, name, of_python=known_here):
                    return True
            return not known_here and is_folder_beside(self.folder, dotted)
        except GradcliError:
            return False

    def _value(self, node: tree.Expression) -> Any:
        """The module that an expression stands for; None for any other value."""
        if isinstance(node, tree.Attribute):
            outer = self._value(node.value)
            try:
                return None if outer is None else _as_module(get_attribute(outer, node.name))
            except GradcliError:
                return None
        if not isinstance(node, tree.Name) or node.name in self.assigned:
            return None
        return _as_module(self.imported.get(node.name, namespace.PREDEFINED.get(node.name)))

    def _given(self, target: tree.Expression) -> None:
        """Know a name that the program gives to a module, or refuse it."""
        if not isinstance(target, tree.Attribute):
            return
        home = self._value(target.value)
        if home is None or type(home.names.get(target.name)) is PerSession:
            return
        if home.may_assign(target.name):
            self.given.add((home, target.name))
            return
        try:
            set_attribute(home, target.name, None)
        except GradcliError as error:
            self._refused(error, target.span)

    def _name(self, node: tree.Name) -> None:
        """Refuse a name of Python's that the language does not have."""
        name = node.name
        if name in self.assigned or name in self.imported or namespace.table_of(name) is not None:
            return
        if name in namespace.UNSUPPORTED or hasattr(builtins, name):
            self._refused(namespace.unknown_name(name, {}, node.span), node.span)

    def _attribute(self, node: tree.Attribute) -> None:
        """Refuse a name that a module of the language does not have."""
        outer = self._value(node.value)
        if outer is None or (outer, node.name) in self.given:
            return
        try:
            get_attribute(outer, node.name)
        except GradcliError as error:
            self._refused(error, node.span)


def _as_module(value: Any) -> Any:
    return value if type(value) is Module else None
