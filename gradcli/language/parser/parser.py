"""Parses a text: runs the grammar's tables over the lexer's tokens and builds the syntax tree.

The unit of parsing is one top-level statement: an error ends the reading of its statement only, so
all the errors of a text are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any

from gradcli.errors import GradcliError, Source, Span, SyntaxErrors
from gradcli.language.parser.actions import expressions, statements
from gradcli.language.parser.actions.statements import (
    DEPTH_LIMIT,
    PLACED,
    check_depth,
    check_placement,
)
from gradcli.language.parser.lexer import COMPOUNDS, STRINGS, Lexer, Scan
from gradcli.language.parser.tables import BUILD, PASS, Tables, load
from gradcli.language.tree import syntax
from gradcli.language.tree.syntax import Expression, Statement

# No tree that the interpreter accepts needs a stack of this height.
STACK_LIMIT = 4000

# Characters of a text from which on the core is worth what it takes to hand it the tables: so many
# statements load it in any case.
LONG = 4000

# Takes values from the top of the parser's stack: what a builder is called with, or the value of a
# rule that has no builder.
Pick = Callable[[list[Any]], Any]

# By the kind of the next token: the state below a nonterminal to the state above it.
Follow = dict[str, dict[int, int]]


class Rejected(Exception):
    """No rule accepts the token at `at`; a token of one of the kinds `expected` would fit."""

    def __init__(self, at: int, expected: set[str]) -> None:
        super().__init__(at)
        self.at = at
        self.expected = expected


class Parser:
    """The grammar's automaton, ready to run.

    Attributes:
        scan: what cuts most tokens in C, None until a text was long or where there is no core.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.scan: Scan | None = None
        self._in_core: Callable[[Source, Lexer, int], tuple[Any, int, list[int] | None]] | None = (
            None
        )
        # The states that follow a nonterminal once the rules that merely pass its value on are
        # taken: the ladder of precedences would else cost a dozen steps for every name. Filled as
        # they are met.
        follows: list[Follow] = [{} for _ in tables.gotos]
        self.steps: list[tuple[int, Callable[..., Any] | None, Pick, Follow]] = [
            (
                length,
                find_builder(name) if mode == BUILD else None,
                picker(mode, places),
                follows[origin],
            )
            for origin, length, mode, name, places in tables.rules
        ]

    def use_core(self) -> None:
        """Read in C from now on, where there is a core."""
        if self._in_core is not None:
            return
        from gradcli.arrays.native.dispatch import core  # lazy: start-up

        module = core()
        if module is None:
            return
        nodes, follow = module.nodes, self.follow
        rules = [
            (length, mode, places, builder, *fields_of(builder, len(places)))
            for (_, length, mode, _, places), (_, builder, _, _) in zip(
                self.tables.rules, self.steps, strict=True
            )
        ]
        automaton = nodes.automaton(self.tables.rows, rules, Span)

        def run(source: Source, tokens: Lexer, state: int) -> tuple[Any, int, list[int] | None]:
            lists = tokens.kinds, tokens.texts, tokens.starts, tokens.ends
            read: tuple[Any, int, list[int] | None]
            read = nodes.parse(automaton, follow, source, *lists, state)
            return read

        self._in_core = run
        self.scan = nodes.scan

    def run(self, source: Source, tokens: Lexer, start: str) -> tuple[Any, int]:
        """The value of the tokens of one statement, and how high the stack grew.

        Raises `Rejected` at the first token that does not fit, E005 where the stack grows too high
        and whatever the builders raise.
        """
        if self._in_core is not None:
            value, height, states = self._in_core(source, tokens, self.tables.starts[start])
            if states is None:
                return value, height
            if height > STACK_LIMIT:
                raise too_deep(source, tokens, value)
            raise Rejected(value, self.expected(states))
        rows = self.tables.rows
        steps = self.steps
        texts = tokens.texts
        starts = tokens.starts
        ends = tokens.ends
        state = self.tables.starts[start]
        # Three stacks side by side. An absent part takes its value from the bottom.
        states = [state]
        values: list[Any] = [None]
        begins = [0]
        height = 0
        for at, kind in enumerate(tokens.kinds):
            action = rows[state].get(kind)
            while action is not None and action < 0:
                length, builder, pick, follow = steps[action]
                if builder is None:
                    value = pick(values)
                else:
                    value = builder(Span(source, begins[-length], ends[at - 1]), *pick(values))
                if length == 1:
                    values[-1] = value
                else:
                    values[-length:] = (value,)
                    del begins[1 - length :]
                    del states[1 - length :]
                below = states[-2]
                try:
                    state = follow[kind][below]
                except KeyError:
                    state = self.follow(action, kind, below)
                states[-1] = state
                action = rows[state].get(kind)
            if action is None:
                raise Rejected(at, self.expected(states))
            state = action
            states.append(state)
            values.append(texts[at])
            begins.append(starts[at])
            if len(states) > height:
                height = len(states)
                if height > STACK_LIMIT:
                    raise too_deep(source, tokens, at)
        return values[1], height

    def follow(self, action: int, kind: str, below: int) -> int:
        """The state after a rule, once the rules that pass its value on have been taken."""
        rows, rules, gotos = self.tables.rows, self.tables.rules, self.tables.gotos
        state = gotos[rules[action][0]][below]
        while (further := rows[state].get(kind, 0)) < 0:
            origin, length, mode, _, _ = rules[further]
            if mode != PASS or length > 1:
                break
            state = gotos[origin][below]
        self.steps[action][3].setdefault(kind, {})[below] = state
        return state

    def expected(self, states: list[int]) -> set[str]:
        """The kinds of token that would fit next.

        A state's row promises too much: it is shared by all the places that the state can be
        reached from, so the rules are followed down the stack to where the token is taken.
        """
        rows = self.tables.rows
        fitting: set[str] = set()
        for kind, first in rows[states[-1]].items():
            # The stack as it would be: `height` of the states, and those that would grow on them.
            height = len(states)
            grown: list[int] = []
            action: int | None = first
            while action is not None and action < 0:
                length, _, _, follow = self.steps[action]
                kept = max(len(grown) - length, 0)
                height -= length - (len(grown) - kept)
                del grown[kept:]
                below = grown[-1] if grown else states[height - 1]
                state = follow.get(kind, {}).get(below) or self.follow(action, kind, below)
                grown.append(state)
                action = rows[state].get(kind)
            if action is not None:
                fitting.add(kind)
        return fitting

    def statement(self, source: Source, tokens: Lexer) -> list[Statement]:
        """The statements on the tokens of one top-level statement: several where `;` joins them."""
        statements: list[Statement]
        statements, height = self.run(source, tokens, "start")
        check_nesting(statements, tokens, height)
        if not PLACED.isdisjoint(tokens.kinds):
            check_placement(statements)
        return statements

    def expression(self, source: Source, tokens: Lexer) -> Expression:
        """The expression on the tokens of a whole text."""
        tree: Expression
        tree, height = self.run(source, tokens, "value")
        check_nesting([tree], tokens, height)
        return tree


def find_builder(name: str) -> Callable[..., Any]:
    """What builds the tree of a rule: the function of its name, its row in `NODES`, or the class
    of the node.
    """
    for room in (expressions, statements, expressions):
        builder: Callable[..., Any] | None = getattr(room, name, None)
        if builder is not None:
            return builder
    row = expressions.NODES.get(name) or statements.NODES.get(name)
    return row or getattr(syntax, name.title().replace("_", ""))


def fields_of(
    builder: Callable[..., Any] | None, parts: int
) -> tuple[tuple[str, ...] | None, tuple[Any, ...]]:
    """The fields of the node that a rule makes without more ado, and the values of the last of
    them, for which it has no parts; None, and nothing, where the builder is to be called.
    """
    if not isinstance(builder, type) or not issubclass(builder, syntax.Syntax):
        return None, ()
    last = builder.fields[parts + 1 :]
    if len(builder.fields) <= parts or not builder.field_defaults.keys() >= {*last}:
        return None, ()
    return builder.fields, tuple(builder.field_defaults[name] for name in last)


def too_deep(source: Source, tokens: Lexer, at: int) -> GradcliError:
    """The error of a token for which the stack is too high."""
    place = Span(source, tokens.starts[at], tokens.ends[at])
    return GradcliError("E005", "expressions nested too deeply", span=place)


def picker(mode: int, places: tuple[Any, ...]) -> Pick:
    """What takes the kept parts of a rule from the stack."""
    if mode == PASS:
        return itemgetter(places[0])
    if mode == BUILD:
        if len(places) > 1:
            return itemgetter(*places)
        # One part or none still makes a sequence.
        return itemgetter(slice(places[0], places[0] + 1 or None) if places else slice(0, 0))
    first, extends = places[0]
    rest = places[1:]

    def gather(values: list[Any]) -> list[Any]:
        # The list that a longer one begins with has no other use, so it grows in place.
        grown: list[Any] = values[first] if extends else [values[first]]
        for place, is_list in rest:
            if is_list:
                grown += values[place]
            else:
                grown.append(values[place])
        return grown

    return gather


def check_nesting(trees: list[Any], tokens: Lexer, height: int) -> None:
    """Passes what is nested no more deeply than the interpreter can follow."""
    # A tree is no deeper than the stack was high, but for attributes, calls and subscripts in rows.
    kinds = tokens.kinds
    if len(kinds) > DEPTH_LIMIT and (
        height > DEPTH_LIMIT or sum(map(kinds.count, ".([")) > DEPTH_LIMIT
    ):
        check_depth(trees)


@cache
def parser() -> Parser:
    """The parser, made at its first use."""
    return Parser(load())


def parse_program(source: Source) -> list[Statement]:
    """All statements of a text.

    Raises `SyntaxErrors`, with one error for each bad top-level statement, if it is no program.
    """
    program, errors = read_statements(source)
    if errors:
        raise SyntaxErrors(errors)
    return program


def read_statements(source: Source) -> tuple[list[Statement], list[GradcliError]]:
    """The statements of a text that can be read, and an error for each that cannot."""
    automaton = parser()
    if len(source.text) >= LONG:
        automaton.use_core()
    tokens = Lexer(source.text, automaton.scan)
    program: list[Statement] = []
    errors: list[GradcliError] = []
    failed = False
    # A bracket that is never closed takes in all that follows, which is then read again. A text
    # full of them must not cost time with the square of its length.
    patience = 100_000 + 4 * len(source.text)
    while patience > 0 and tokens.statement():
        if failed and tokens.kinds[0] == "_INDENT":
            # The block of a header that was no header.
            continue
        failed = True
        try:
            program += automaton.statement(source, tokens)
            failed = False
        except Rejected as rejected:
            from gradcli.language.parser.errors.explain import explain, recover  # lazy: start-up

            errors.append(explain(source, tokens, rejected.at, rejected.expected))
            patience -= recover(tokens, errors[-1])
        except GradcliError as error:
            errors.append(error)
    if patience <= 0:
        errors[-1].notes = ("the rest of the text was not read",)
    return program, errors


def parse_expression(source: Source) -> Expression:
    """The one expression that a text is, such as the value in `NAME=VALUE`, on a line or several.

    Raises `GradcliError` if it is none.
    """
    tokens = Lexer(source.text)
    tokens.whole()
    try:
        return parser().expression(source, tokens)
    except Rejected as rejected:
        from gradcli.language.parser.errors.explain import explain  # lazy: start-up

        raise explain(source, tokens, rejected.at, rejected.expected) from None


def statements_of(lines: Iterator[str], name: str) -> Iterator[Source]:
    """Cuts a stream of lines into top-level statements, each as soon as it is known to be complete.

    Only the statement under way is held.
    """
    tokens = Lexer("")
    held: list[str] = []
    first_line = 1
    margin: str | None = None
    first = 0
    unfinished = False
    for number, line in enumerate(lines, 1):
        tokens.feed(line)
        if not unfinished:
            margin = tokens.next_line()
            if margin is not None:
                if not tokens.belongs(margin):
                    yield Source(name, "".join(held), first_line)
                    held.clear()
                    tokens.begin()
                tokens.indent(margin)
                first = len(tokens.kinds)
        if margin is None and not held:
            continue
        if not held:
            first_line = number
        held.append(line)
        if margin is not None:
            unfinished = not tokens.line()
            if not unfinished and not tokens.may_go_on(first):
                yield Source(name, "".join(held), first_line)
                held.clear()
                tokens.begin()
    if held:
        yield Source(name, "".join(held), first_line)


def is_incomplete(text: str) -> bool:
    r"""Whether more lines could make this text a program.

    So they could after an open bracket, an open triple quote, a `\` at the end and a header without
    its block. A compound statement may always go on; an empty last line says that it does not.
    """
    source = Source("", text)
    tokens = Lexer(text)
    while tokens.statement():
        kinds = tokens.kinds
        try:
            parser().run(source, tokens, "start")
        except Rejected as rejected:
            kind = kinds[rejected.at]
            if kind == "_NEWLINE":
                return bool(tokens.brackets)
            if kind == "UNCLOSED":
                return tokens.texts[rejected.at].startswith(STRINGS)
            # Past the last line only the closing of blocks and the end are left.
            return kind == "BACKSLASH" or "_NEWLINE" not in kinds[rejected.at :]
        except GradcliError:
            return False
        if tokens.next_line() is None:
            last_line = text[text.rfind("\n") + 1 :]
            return kinds[0] in COMPOUNDS and bool(last_line.strip())
    return False
