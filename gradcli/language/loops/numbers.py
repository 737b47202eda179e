"""Numbers in a traced round: those that come out of tensors, and are added up or collected."""

from __future__ import annotations

from gradcli.autograd.tensor import Tensor
from gradcli.language import tree
from gradcli.language.compiler.names import is_direct
from gradcli.language.library.builtins import BUILTINS
from gradcli.language.loops.capture import Watch
from gradcli.language.loops.expressions import parts
from gradcli.language.loops.lower_forward import operations_of
from gradcli.language.tree.base import Expression
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.trace.builder import StraightLine, Untraceable
from gradcli.trace.ufuncs import Variable

NUMBERS = (int, float)


class Numbers:
    """Expressions of numbers as text. What a round adds up is kept where the program keeps it:
    among its values.

    Attributes:
        now: the numbers that the round has bound so far, by name.
    """

    def __init__(self, text: StraightLine, watch: Watch) -> None:
        self.text = text
        self.watch = watch
        self.now: dict[str, Variable] = {}

    def bind(self, target: tree.Name, text: str, read: list[Variable], value: float) -> None:
        """Write that a name is bound to a number, of which this is the text."""
        self.now[target.name] = self.text.number(text, read, value)
        self.text.write(f"{self._place_of(target)} = {self.now[target.name].name}")

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

    def text_of(self, node: Expression) -> tuple[str, list[Variable]]:
        """The text of such an expression, and the variables that it reads.

        Raises:
            Untraceable: where it may fail, or is made of other things than floating elements,
                numbers that stay, and those that the round adds up.
        """
        read: list[Variable] = []
        return self._text(node, read), read

    def test_of(self, node: Expression) -> tuple[str, list[Variable]]:
        """The text of what is true or false by such expressions, and by tensors of one element."""
        read: list[Variable] = []
        return self._test(node, read), read

    def _test(self, node: Expression, read: list[Variable]) -> str:
        if isinstance(node, tree.Logical):
            return f"({f' {node.operator} '.join(self._test(each, read) for each in parts(node))})"
        if isinstance(node, tree.Unary) and node.operator == "not":
            return f"(not {self._test(node.operand, read)})"
        if isinstance(node, tree.Comparison) and all(map(self.gives_number, parts(node))):
            ((symbol, right),) = node.rest
            return f"({self._text(node.first, read)} {symbol} {self._text(right, read)})"
        tensor = operations_of(self.text, self.watch, node)
        if type(tensor) is not Tensor or tensor.array.size != 1:
            raise Untraceable
        read.append(self.text.variable_of(tensor.array))
        return f"{read[-1].name}.item()"

    def _place_of(self, name: tree.Name) -> str:
        """Where a number is kept from round to round."""
        if not is_direct(name, self.watch.scope):
            raise Untraceable
        return f"{self.text.refer(self.watch.variables)}[{name.name!r}]"

    def _text(self, node: Expression, read: list[Variable]) -> str:
        if isinstance(node, tree.Constant):
            return self.text.refer(node.value)
        if isinstance(node, tree.Name):
            value = self.watch.read(node)
            if type(value) not in NUMBERS:
                raise Untraceable
            if node.name in self.now:
                read.append(self.now[node.name])
                return read[-1].name
            if node.name in self.watch.bound:
                return self._place_of(node)
            self.watch.expression(node)
            return self.text.refer(value)
        if isinstance(node, tree.Unary):
            return f"(-{self._text(node.operand, read)})"
        if isinstance(node, tree.Call):
            if isinstance(node.function, tree.Name) and node.function.name == "abs":
                if self.watch.known(node.function) is not BUILTINS["abs"]:
                    raise Untraceable
                return f"{self.text.refer(abs)}({self._text(node.arguments[0].value, read)})"
            read.append(self._element(node))
            return f"{read[-1].name}.item()"
        assert isinstance(node, tree.Binary)
        text = self._text(node.first, read)
        for symbol, operand in node.rest:
            if symbol == "/" and not (isinstance(operand, tree.Constant) and operand.value):
                raise Untraceable  # which may be an error
            text = f"({text} {symbol} {self._text(operand, read)})"
        return text

    def _element(self, node: tree.Call) -> Variable:
        """The variable of the tensor whose one element is wanted: `x.item()`, `float(x)`."""
        of = node.arguments[0].value if node.arguments else node.function
        if isinstance(of, tree.Attribute) and of is node.function:
            of = of.value
        tensor = operations_of(self.text, self.watch, of)
        if type(tensor) is not Tensor or tensor.array.size != 1:
            raise Untraceable
        if tensor.array.dtype not in EVERYDAY:
            raise Untraceable
        return self.text.variable_of(tensor.array)
