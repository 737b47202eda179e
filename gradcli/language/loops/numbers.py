"""Numbers in a traced round: those that come out of tensors, and are added up or collected."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language import tree
from gradcli.language.compiler.names import is_direct
from gradcli.language.library.builtins import BUILTINS
from gradcli.language.loops.capture import Watch
from gradcli.language.loops.expressions import parts
from gradcli.language.loops.lower_forward import operations_of
from gradcli.language.tree.base import Expression
from gradcli.ops.codegen.runtime import EVERYDAY
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.ir import Inline, Value

NUMBERS = (int, float)


def _place(operands: list[Any], operand: Any) -> str:
    """The place of one more operand in a text."""
    operands.append(operand)
    return f"{{{len(operands) - 1}}}"


class Numbers:
    """Expressions of numbers as text. What a round adds up is kept where the program keeps it:
    among its values.

    Attributes:
        now: the numbers that the round has bound so far, by name.
    """

    def __init__(self, text: TraceBuilder, watch: Watch) -> None:
        self.text = text
        self.watch = watch
        self.now: dict[str, Value] = {}

    def bind(self, target: tree.Name, text: str, operands: list[Any], value: float) -> None:
        """Write that a name is bound to a number, of which this is the text."""
        number = self.text.number(Inline(text), operands, type(value).__name__)
        self.now[target.name] = number
        variables = self._variables_of(target)
        self.text.effect(Inline("{0}[{1}] = {2}"), [variables, target.name, number], state=())

    def gives_number(self, node: Expression) -> bool:
        """Whether an expression works with numbers, of which some come out of tensors."""
        if isinstance(node, tree.Name):
            return type(self.watch.read(node)) in NUMBERS
        if isinstance(node, tree.Call):
            function = node.function
            name = function.name if isinstance(function, (tree.Attribute, tree.Name)) else ""
            if name == "abs" and isinstance(function, tree.Name):
                return all(self.gives_number(each.value) for each in node.arguments)
            return name in ("item", "float")
        return isinstance(node, tree.Constant) or (
            isinstance(node, (tree.Binary, tree.Unary)) and all(map(self.gives_number, parts(node)))
        )

    def text_of(self, node: Expression) -> tuple[str, list[Any]]:
        """The text of such an expression, with places for operands, and those.

        Raises:
            GraphBreak: where it may fail, or is made of other things than floating elements,
                numbers that stay, and those that the round adds up.
        """
        read: list[Any] = []
        return self._text(node, read), read

    def test_of(self, node: Expression) -> tuple[str, list[Any]]:
        """The text of what is true or false by such expressions, and by tensors of one element."""
        read: list[Any] = []
        return self._test(node, read), read

    def _test(self, node: Expression, read: list[Any]) -> str:
        if isinstance(node, tree.Logical):
            return f"({f' {node.operator} '.join(self._test(each, read) for each in parts(node))})"
        if isinstance(node, tree.Unary) and node.operator == "not":
            return f"(not {self._test(node.operand, read)})"
        if isinstance(node, tree.Comparison) and all(map(self.gives_number, parts(node))):
            ((symbol, right),) = node.rest
            return f"({self._text(node.first, read)} {symbol} {self._text(right, read)})"
        tensor = operations_of(self.text, self.watch, node)
        if type(tensor) is not Tensor or tensor.array.size != 1:
            raise GraphBreak("B06", "a test is of more than one element")
        return f"{_place(read, self.text.value_of(tensor.array))}.item()"

    def _variables_of(self, name: tree.Name) -> Any:
        """What a number is kept in from round to round."""
        if not is_direct(name, self.watch.scope):
            raise GraphBreak("B06", "a number is bound to a name of a function around the loop")
        return self.watch.variables

    def _text(self, node: Expression, read: list[Any]) -> str:
        if isinstance(node, tree.Constant):
            return _place(read, node.value)
        if isinstance(node, tree.Name):
            value = self.watch.read(node)
            if type(value) not in NUMBERS:
                raise GraphBreak("B06", "a name holds no number")
            if node.name in self.now:
                return _place(read, self.now[node.name])
            if node.name in self.watch.bound:
                variables = self._variables_of(node)
                return f"{_place(read, variables)}[{_place(read, node.name)}]"
            self.watch.expression(node)
            return _place(read, value)
        if isinstance(node, tree.Unary):
            return f"(-{self._text(node.operand, read)})"
        if isinstance(node, tree.Call):
            if isinstance(node.function, tree.Name) and node.function.name == "abs":
                if self.watch.known(node.function) is not BUILTINS["abs"]:
                    raise GraphBreak("B06", "`abs` is another function here")
                return f"{_place(read, abs)}({self._text(node.arguments[0].value, read)})"
            return f"{_place(read, self._element(node))}.item()"
        assert isinstance(node, tree.Binary)
        text = self._text(node.first, read)
        for symbol, operand in node.rest:
            if symbol == "/" and not (isinstance(operand, tree.Constant) and operand.value):
                raise GraphBreak("B06", "a division may fail")
            text = f"({text} {symbol} {self._text(operand, read)})"
        return text

    def _element(self, node: tree.Call) -> Value:
        """The variable of the tensor whose one element is wanted: `x.item()`, `float(x)`."""
        of = node.arguments[0].value if node.arguments else node.function
        if isinstance(of, tree.Attribute) and of is node.function:
            of = of.value
        tensor = operations_of(self.text, self.watch, of)
        if type(tensor) is not Tensor or tensor.array.size != 1:
            raise GraphBreak("B06", "a number is taken out of more than one element")
        if tensor.array.dtype not in EVERYDAY:
            raise GraphBreak(
                "B04", "a number is taken out of another dtype than float32 and float64"
            )
        return self.text.value_of(tensor.array)
