"""The parsing tables: lark computes them from the grammar once, a cache keeps them.

Lark reads `gradcli.lark` and works out the LALR tables, which takes some tenths of a second;
loading them takes a millisecond. An installation carries them beside the grammar. A checkout keeps
them in a cache in the user's own folder. Both hold the grammar's text, so that tables of another
grammar are never used. Whatever is wrong with them, the tables are built.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import gradcli
from gradcli.arrays.files import cache
from gradcli.record import Record

# Raise it when what `Tables` holds changes.
FORMAT = 2

# How the value of a rule is made: by a builder, as one of its parts, as the list of its parts.
BUILD, PASS, LIST = range(3)

# A rule: the index of the symbol that it reduces to, the number of its parts, how its value is
# made, the builder's name, and the places of the parts that are kept, counted from the top of the
# stack. 0 is the place of an optional part that is absent. In a LIST rule, True marks a part that
# is a list itself.
Rule = tuple[int, int, int, str, tuple[Any, ...]]

# What the cached tables depend on.
Key = tuple[int, str, str, str]


class Tables(Record):
    """An LALR automaton.

    `rows[state]` maps the kind of the next token to the state that it leads to or, when a rule ends
    before it, to a negative index into `rules`. `gotos[symbol]` maps a state to the one that
    follows when the symbol has been read there. `starts` names the first states.
    """

    rows: list[dict[str, int]]
    rules: list[Rule]
    gotos: list[dict[int, int]]
    starts: dict[str, int]


def grammar_path() -> str:
    """Where the grammar is: inside the installed package, or beside it in a checkout."""
    package = os.path.dirname(os.path.abspath(gradcli.__file__))
    installed = os.path.join(package, "grammar", "gradcli.lark")
    if os.path.exists(installed):
        return installed
    return os.path.join(os.path.dirname(package), "grammar", "gradcli.lark")


def read_grammar() -> str:
    """The text of the grammar."""
    with open(grammar_path(), encoding="utf-8") as file:
        return file.read()


def load() -> Tables:
    """The tables of the grammar: those beside it, those in the cache, or built afresh."""
    grammar = read_grammar()
    installed = read_beside_grammar(grammar)
    if installed is not None:
        return installed
    key = (FORMAT, sys.version, lark_stamp(), grammar)
    path = cache.path_of("tables", key)
    content = cache.read(path, key)
    if content is not None:
        return Tables(*content)
    tables = build(grammar)
    cache.write(path, key, tables.rows, tables.rules, tables.gotos, tables.starts)
    return tables


# ---- beside the grammar ----


def path_beside_grammar() -> str:
    """Where an installation has its tables."""
    return os.path.join(os.path.dirname(grammar_path()), "tables.marshal")


def read_beside_grammar(grammar: str) -> Tables | None:
    """The tables of an installation; None where there are none, or those of another grammar."""
    try:
        with open(path_beside_grammar(), "rb") as file:
            key, *content = cache.unpacked(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return Tables(*content) if key == (FORMAT, grammar) else None


def write_beside_grammar() -> None:
    """Make the tables that a wheel carries; raises OSError where they cannot be written."""
    grammar = read_grammar()
    tables = build(grammar)
    content = cache.packed(
        (FORMAT, grammar), tables.rows, tables.rules, tables.gotos, tables.starts
    )
    with open(path_beside_grammar(), "wb") as file:
        file.write(content)


# ---- what the cached ones depend on ----


def lark_stamp() -> str:
    """Identifies the installed version of lark, without importing it."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("lark")
    if spec is None or spec.origin is None:
        return ""
    status = os.stat(spec.origin)
    return f"{spec.origin} {status.st_size} {status.st_mtime_ns}"


# ---- building ----


def build(grammar: str) -> Tables:
    """Has lark work out the tables of a grammar."""
    from lark import Lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import Lexer, TerminalDef

    class NoLexer(Lexer):
        """Stands where lark wants a lexer: the text is cut by our own."""

        def __init__(self, conf: object) -> None:
            pass

        def lex(self, *_: object) -> Any:
            return iter(())

    parser = Lark(grammar, parser="lalr", lexer=NoLexer, start=["start", "value"])
    data, memo = parser.memo_serialize([TerminalDef, LarkRule])
    table = data["parser"]["parser"]
    states: dict[int, dict[int, tuple[int, Any]]] = table["states"]

    # A token of fixed text has this text for its kind.
    kinds: dict[str, str] = {}
    symbols: dict[str, int] = {}
    rules: dict[int, Rule] = {}
    for identity, entry in memo.items():
        if entry["__type__"] == "TerminalDef":
            kinds[entry["name"]] = str(entry["pattern"]["value"])
        else:
            symbol = symbols.setdefault(entry["origin"]["name"], len(symbols))
            rules[identity] = convert(entry, symbol)
    indices = {identity: index - len(rules) for index, identity in enumerate(rules)}

    # The first states come first, so that no token leads to state 0.
    numbers = {state: number for number, state in enumerate(table["start_states"].values())}
    for state in states:
        numbers.setdefault(state, len(numbers))

    rows: list[dict[str, int]] = [{} for _ in numbers]
    gotos: list[dict[int, int]] = [{} for _ in symbols]
    shared: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
    for state, actions in states.items():
        row: dict[str, int] = {}
        for token, (reduces, argument) in actions.items():
            name = table["tokens"][token]
            if name in symbols:
                gotos[symbols[name]][numbers[state]] = numbers[argument]
            else:
                # Lark 1.2 has tokens for names, which `marshal` does not take.
                row[kinds.get(name, str(name))] = (
                    indices[argument["@"]] if reduces else numbers[argument]
                )
        # Many states do the same; `marshal` writes an object once however often it is met.
        rows[numbers[state]] = shared.setdefault(tuple(row.items()), row)
    # Lark accepts where all has been read and the text ends; here the end is a token like others.
    for state in table["end_states"].values():
        rows[numbers[state]] = {"$END": numbers[state]}
    starts = {name: numbers[state] for name, state in table["start_states"].items()}
    return Tables(rows, list(rules.values()), gotos, starts)


def convert(rule: dict[str, Any], symbol: int) -> Rule:
    """One of lark's rules as one of ours."""
    options = rule["options"]
    expansion = rule["expansion"]
    length = len(expansion)
    kept: list[tuple[int, bool]] = []
    places = iter(range(-length, 0))
    # Lark says where the optional parts are that this variant of the rule goes without.
    for absent in options["empty_indices"] or (False,) * length:
        if absent:
            kept.append((0, False))
            continue
        place = next(places)
        part = expansion[place]
        if options["keep_all_tokens"] or not part.get("filter_out"):
            kept.append((place, part["__type__"] == "NonTerminal" and is_list(part["name"])))
    name = str(rule["alias"] or rule["origin"]["name"])
    passes = kept[0][1] if is_list(name) else options["expand1"] and rule["alias"] is None
    if len(kept) == 1 and passes:
        return symbol, length, PASS, "", (kept[0][0],)
    if is_list(name):
        return symbol, length, LIST, "", tuple(kept)
    return symbol, length, BUILD, name, tuple(place for place, _ in kept)


def is_list(name: str) -> bool:
    """Whether a rule's value is the list of its parts: by its name, or as lark's own for `x+`."""
    return name.endswith("_list") or name.startswith("__")
