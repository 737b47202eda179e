"""Python's own syntax tree as the oracle of ours: both are written down in the same words."""

from __future__ import annotations

import ast
import re
from typing import Any

from gradcli.language.tree import syntax

OPERATORS: dict[str, Any] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "//": ast.FloorDiv(),
    "%": ast.Mod(), "@": ast.MatMult(), "**": ast.Pow(), "<<": ast.LShift(), ">>": ast.RShift(),
    "&": ast.BitAnd(), "^": ast.BitXor(), "|": ast.BitOr(),
    "==": ast.Eq(), "!=": ast.NotEq(), "<": ast.Lt(), "<=": ast.LtE(), ">": ast.Gt(),
    ">=": ast.GtE(), "is": ast.Is(), "is not": ast.IsNot(), "in": ast.In(), "not in": ast.NotIn(),
    "and": ast.And(), "or": ast.Or(),
}  # fmt: skip
SIGNS: dict[str, Any] = {"-": ast.USub(), "+": ast.UAdd(), "~": ast.Invert(), "not": ast.Not()}
COMPREHENSIONS: dict[str, Any] = {
    "list": ast.ListComp,
    "set": ast.SetComp,
    "generator": ast.GeneratorExp,
}


def described(tree: Any) -> str:
    """A tree of Python's, or of ours, in words; places and contexts are left out."""
    return re.sub(r",? ?(?:ctx=\w+\(\)|kind='u'|type_params=\[\])", "", ast.dump(tree))


def python_module(text: str) -> str:
    """What Python makes of a program, without annotations, which have no effect here."""
    return described(_Unannotated().visit(ast.parse(text)))


def our_module(statements: list[syntax.Statement]) -> str:
    """The same for statements of ours."""
    return described(ast.Module(convert(statements), []))


class _Unannotated(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        return ast.Assign([node.target], node.value) if node.value else ast.Pass()

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        # Versions of Python differ in where they cut the text between fields.
        self.generic_visit(node)
        node.values = _joined(
            [part.value if isinstance(part, ast.Constant) else part for part in node.values]
        )
        return node


def _joined(parts: list[Any]) -> list[Any]:
    """The parts of an f-string, with neighbouring texts made one."""
    joined: list[Any] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return [ast.Constant(part) if isinstance(part, str) else part for part in joined]


def convert(tree: Any) -> Any:
    """A tree of ours, a list of them, or None, as Python's own."""
    if tree is None:
        return None
    if isinstance(tree, list):
        return [convert(part) for part in tree]
    return globals()[f"_{type(tree).__name__}"](tree)


def _Name(t: syntax.Name) -> ast.AST:
    return ast.Name(t.name)


def _Constant(t: syntax.Constant) -> ast.AST:
    value: Any = t.value
    return ast.Constant(value)


def _FormattedString(t: syntax.FormattedString) -> ast.AST:
    parts: list[Any] = []
    for part in t.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        bare = part.debug and part.format is None
        conversion = part.conversion or ("r" if bare else "")
        code = ord(conversion) if conversion else -1
        field = ast.FormattedValue(convert(part.value), code, convert(part.format))
        parts += [part.debug, field]
    return ast.JoinedStr(_joined(parts))


def _Unary(t: syntax.Unary) -> ast.AST:
    return ast.UnaryOp(SIGNS[t.operator], convert(t.operand))


def _Binary(t: syntax.Binary) -> ast.AST:
    tree: ast.expr = convert(t.first)
    for operator, operand in t.rest:
        tree = ast.BinOp(tree, OPERATORS[operator], convert(operand))
    return tree


def _Comparison(t: syntax.Comparison) -> ast.AST:
    operators = [OPERATORS[operator] for operator, _ in t.rest]
    return ast.Compare(convert(t.first), operators, [convert(operand) for _, operand in t.rest])


def _Logical(t: syntax.Logical) -> ast.AST:
    return ast.BoolOp(OPERATORS[t.operator], convert(t.operands))


def _Conditional(t: syntax.Conditional) -> ast.AST:
    return ast.IfExp(convert(t.test), convert(t.body), convert(t.orelse))


def _NamedExpression(t: syntax.NamedExpression) -> ast.AST:
    return ast.NamedExpr(convert(t.name), convert(t.value))


def _Lambda(t: syntax.Lambda) -> ast.AST:
    return ast.Lambda(convert(t.parameters), convert(t.body))


def _Parameters(t: syntax.Parameters) -> ast.AST:
    def named(*kinds: str) -> list[syntax.Parameter]:
        return [parameter for parameter in t.parameters if parameter.kind in kinds]

    def one(kind: str) -> ast.arg | None:
        found = [ast.arg(parameter.name) for parameter in named(kind) if parameter.name]
        return found[0] if found else None

    marks = [number for number, each in enumerate(t.parameters) if each.kind == "/"]
    by_position = [ast.arg(p.name) for p in t.parameters[: marks[0] if marks else 0]]
    return ast.arguments(
        by_position,
        [ast.arg(parameter.name) for parameter in named("")][len(by_position) :],
        one("*"),
        [ast.arg(parameter.name) for parameter in named("keyword")],
        [convert(parameter.default) for parameter in named("keyword")],
        one("**"),
        [convert(parameter.default) for parameter in named("") if parameter.default],
    )


def _Call(t: syntax.Call) -> ast.AST:
    values = [a for a in t.arguments if a.name is None and a.kind != "**"]
    return ast.Call(
        convert(t.function),
        [ast.Starred(convert(a.value)) if a.kind else convert(a.value) for a in values],
        [ast.keyword(a.name, convert(a.value)) for a in t.arguments if a not in values],
    )


def _Attribute(t: syntax.Attribute) -> ast.AST:
    assert t.name_span.text == t.name
    return ast.Attribute(convert(t.value), t.name)


def _Subscript(t: syntax.Subscript) -> ast.AST:
    return ast.Subscript(convert(t.value), convert(t.index))


def _Slice(t: syntax.Slice) -> ast.AST:
    return ast.Slice(convert(t.lower), convert(t.upper), convert(t.step))


def _Tuple(t: syntax.Tuple) -> ast.AST:
    return ast.Tuple(convert(t.elements))


def _List(t: syntax.List) -> ast.AST:
    return ast.List(convert(t.elements))


def _Set(t: syntax.Set) -> ast.AST:
    return ast.Set(convert(t.elements))


def _Dict(t: syntax.Dict) -> ast.AST:
    return ast.Dict([convert(key) for key, _ in t.items], [convert(value) for _, value in t.items])


def _Starred(t: syntax.Starred) -> ast.AST:
    return ast.Starred(convert(t.value))


def _Comprehension(t: syntax.Comprehension) -> ast.AST:
    if t.kind == "dict":
        return ast.DictComp(convert(t.element), convert(t.value), convert(t.clauses))
    found: ast.AST = COMPREHENSIONS[t.kind](convert(t.element), convert(t.clauses))
    return found


def _ComprehensionFor(t: syntax.ComprehensionFor) -> ast.AST:
    return ast.comprehension(convert(t.target), convert(t.iterable), convert(t.conditions), 0)


def _ExpressionStatement(t: syntax.ExpressionStatement) -> ast.AST:
    return ast.Expr(convert(t.value))


def _Assign(t: syntax.Assign) -> ast.AST:
    return ast.Assign(convert(t.targets), convert(t.value))


def _AugmentedAssign(t: syntax.AugmentedAssign) -> ast.AST:
    return ast.AugAssign(convert(t.target), OPERATORS[t.operator], convert(t.value))


def _If(t: syntax.If) -> ast.AST:
    orelse = convert(t.orelse)
    for test, body in reversed(t.branches):
        orelse = [ast.If(convert(test), convert(body), orelse)]
    found: ast.AST = orelse[0]
    return found


def _For(t: syntax.For) -> ast.AST:
    return ast.For(convert(t.target), convert(t.iterable), convert(t.body), convert(t.orelse))


def _While(t: syntax.While) -> ast.AST:
    return ast.While(convert(t.test), convert(t.body), convert(t.orelse))


def _Break(t: syntax.Break) -> ast.AST:
    return ast.Break()


def _Continue(t: syntax.Continue) -> ast.AST:
    return ast.Continue()


def _Declare(t: syntax.Declare) -> ast.AST:
    return ast.Pass()


def _Yield(t: syntax.Yield) -> ast.AST:
    return ast.Yield(convert(t.value))


def _YieldFrom(t: syntax.YieldFrom) -> ast.AST:
    return ast.YieldFrom(convert(t.value))


def _Pass(t: syntax.Pass) -> ast.AST:
    return ast.Pass()


def _Def(t: syntax.Def) -> ast.AST:
    parts = convert(t.parameters), convert(t.body), convert(t.decorators)
    return ast.FunctionDef(t.name, *parts)


def _Class(t: syntax.Class) -> ast.AST:
    bases = [
        *convert(t.bases),
        *[ast.Starred(convert(each.value)) for each in t.keywords if each.kind == "*"],
    ]
    keywords = [ast.keyword(a.name, convert(a.value)) for a in t.keywords if a.kind != "*"]
    return ast.ClassDef(t.name, bases, keywords, convert(t.body), convert(t.decorators))


def _Async(t: syntax.Async) -> ast.AST:
    body = convert(t.body)
    kind: Any = getattr(ast, f"Async{type(body).__name__}")
    return kind(**dict(ast.iter_fields(body)))


def _Await(t: syntax.Await) -> ast.AST:
    return ast.Await(convert(t.value))


def _Match(t: syntax.Match) -> ast.AST:
    cases = []
    for case in t.cases:
        found = _pattern(case.pattern)
        if case.name:
            found = ast.MatchAs(found, case.name)
        cases.append(ast.match_case(found, convert(case.guard), convert(case.body)))
    return ast.Match(convert(t.subject), cases)


def _pattern(t: syntax.Expression) -> Any:
    if isinstance(t, syntax.Name):
        return ast.MatchAs(None, None if t.name == "_" else t.name)
    if isinstance(t, syntax.Constant) and isinstance(t.value, (bool, type(None))):
        return ast.MatchSingleton(t.value)
    if isinstance(t, syntax.Binary) and t.rest[0][0] == "|":
        return ast.MatchOr([_pattern(each) for each in (t.first, *[r for _, r in t.rest])])
    if isinstance(t, (syntax.Tuple, syntax.List)):
        return ast.MatchSequence([_pattern(each) for each in t.elements])
    if isinstance(t, syntax.Starred):
        assert isinstance(t.value, syntax.Name)
        return ast.MatchStar(None if t.value.name == "_" else t.value.name)
    if isinstance(t, syntax.Dict):
        pairs = [(key, value) for key, value in t.items if key is not None]
        rest = [value.span.text for key, value in t.items if key is None]
        keys = [convert(key) for key, _ in pairs]
        return ast.MatchMapping(keys, [_pattern(v) for _, v in pairs], *rest)
    if isinstance(t, syntax.Call):
        named = [(a.name, _pattern(a.value)) for a in t.arguments if a.name is not None]
        return ast.MatchClass(
            convert(t.function),
            [_pattern(a.value) for a in t.arguments if a.name is None],
            [name for name, _ in named],
            [pattern for _, pattern in named],
        )
    return ast.MatchValue(convert(t))


def _Return(t: syntax.Return) -> ast.AST:
    return ast.Return(convert(t.value))


def _With(t: syntax.With) -> ast.AST:
    items = [ast.withitem(convert(context), convert(target)) for context, target in t.items]
    return ast.With(items, convert(t.body))


def _Assert(t: syntax.Assert) -> ast.AST:
    return ast.Assert(convert(t.test), convert(t.message))


def _Del(t: syntax.Del) -> ast.AST:
    return ast.Delete(convert(t.targets))


def _Raise(t: syntax.Raise) -> ast.AST:
    return ast.Raise(convert(t.exception), convert(t.cause))


def _Try(t: syntax.Try) -> ast.AST:
    return ast.Try(convert(t.body), convert(t.handlers), convert(t.orelse), convert(t.final))


def _Handler(t: syntax.Handler) -> ast.AST:
    return ast.ExceptHandler(convert(t.exception), t.name, convert(t.body))


def _Import(t: syntax.Import) -> ast.AST:
    return ast.Import([ast.alias(name, alias) for name, alias in t.names])


def _FromImport(t: syntax.FromImport) -> ast.AST:
    module = t.module.lstrip(".")
    names = [ast.alias(name, alias) for name, alias in t.names]
    return ast.ImportFrom(module or None, names, len(t.module) - len(module))


def _Global(t: syntax.Global) -> ast.AST:
    return (ast.Global if t.keyword == "global" else ast.Nonlocal)(t.names)
