"""Calls the functions of a program and of the library, and explains calls that fail."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from gradcli.autograd.batched import NeedsExamples
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.language.functions.hot_bodies import HotBody
from gradcli.language.hints.spelling import closest
from gradcli.language.limits import (
    DEEPEST_CALL,
    DEEPEST_HOST_CALL,
    enter_host_call,
    too_many_steps,
)
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.borders import FOREIGN, argument
from gradcli.language.objects.classes.user_classes import BoundMethod, computes
from gradcli.language.objects.exceptions import HOST_ERRORS, converted
from gradcli.language.objects.methods import METHODS
from gradcli.language.objects.repr import numbered
from gradcli.language.objects.types import (
    LanguageType,
    define,
    host_name,
    names,
    not_callable,
    type_name,
)
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import PARENT, Scope, Variables, has_yield
from gradcli.language.tree.syntax import Constant, ExpressionStatement, Statement
from gradcli.limits import Steps
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.arguments import NUMPY_NAMES
from gradcli.ops.binding.lazy import is_of_family
from gradcli.record import Record
from gradcli.state import State, active


class Signature(Record):
    """The parameters of a function of the program.

    Attributes:
        qualified: the function's name with those of the classes and functions around it.
        rest: the name of `*rest`, "" for none.
        keywords: the name of `**keywords`, "" for none.
        by_position: those of the positional names that no keyword gives.
        simple: how many arguments fill it with nothing else to do, -1 if there are other than
            positional parameters.
    """

    qualified: str
    positional: tuple[str, ...]
    rest: str
    keyword_only: tuple[str, ...]
    keywords: str
    by_position: frozenset[str]
    simple: int

    def text(self, defaults: dict[str, Any]) -> str:
        """The parameters as they are written, with `=…` for those that have a default."""
        shown = [f"{p}=…" if p in defaults else p for p in self.positional]
        if self.rest or self.keyword_only:
            shown.append(f"*{self.rest}")
        shown += [f"{p}=…" if p in defaults else p for p in self.keyword_only]
        if self.keywords:
            shown.append(f"**{self.keywords}")
        return f"({', '.join(shown)})"


class Function(Record):
    """A function of the program: `def` or `lambda`, with the variables around it.

    It is called by `invoke` from compiled code and by the host's own call from everywhere else
    (`sorted(key=…)`, hooks).

    Attributes:
        statements: its body as it is written; `body` is the same, compiled.
        run: the body as a function of the host's, of this function and its arguments by position,
            of which there are `least` to `most`; -1 where it is not written so.
    """

    name: str
    signature: Signature
    defaults: dict[str, Any]
    statements: list[Statement]
    scope: Scope
    body: Run
    parent: Variables
    state: State
    steps: Steps
    number: int = 0
    wrapped: Any = None
    stored: dict[str, Any] | None = None
    annotate: Callable[[], dict[str, Any]] | None = None
    hot: HotBody | None = None
    run: Any = None
    least: int = 0
    most: int = -1

    language_attributes = frozenset({"__defaults__", "__kwdefaults__", "__name__"})
    language_qualified = True

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def makes_generator(self) -> bool:
        """Whether a call returns a generator."""
        return has_yield(self.statements)

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        return tuple(self._defaults_of(self.signature.positional).values()) or None

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        return self._defaults_of(self.signature.keyword_only) or None

    def _defaults_of(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.defaults[name] for name in names if name in self.defaults}

    def language_getattr(self, name: str) -> Any:
        """What the program stored under a name, and what Python keeps there; raises
        AttributeError.
        """
        if name == "__wrapped__" and type(self.wrapped) is Function:
            return self.wrapped
        if name == "__annotations__":
            return {} if self.annotate is None else self.annotate()
        if name == "__module__":
            return "__main__"
        if name == "__qualname__":
            qualified = self.signature.qualified
            return qualified if qualified.endswith(self.name) else self.name
        if self.stored is None or name not in self.stored:
            raise AttributeError(name)
        return self.stored[name]

    def language_setattr(self, name: str, new: Any) -> None:
        """Store a value under a name; its own name is what messages call it."""
        if name == "__name__":
            self.name = str(new)
        elif name.startswith("__"):
            raise GradcliError("E102", f"the attribute '{name}' of a function cannot be set")
        else:
            self.stored = {**(self.stored or {}), name: new}

    def rows_of(self, owner: Any) -> list[Tensor] | None:
        """The tensors whose rows it gives, as a method of a data set; None for other functions."""
        names = self.signature.positional
        return rows_of(self.statements, names, owner) if self.signature.simple == 2 else None

    @property
    def language_doc(self) -> str | None:
        """The text at the top of its body, or of the function that it wraps."""
        wrapped = getattr(self, "wrapped", None)
        return docstring(self.statements) if wrapped is None else wrapped.language_doc

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """What a class's function is when it is read from an instance, or (None) from the class."""
        return self if instance is None else BoundMethod(instance, self)

    def __repr__(self) -> str:
        return numbered(f"function {self.name}", self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        steps = self.steps
        if steps.nested >= DEEPEST_HOST_CALL:
            enter_host_call(steps)  # which says so
        steps.nested += 1
        try:
            return self.invoke(args, kwargs)
        finally:
            steps.nested -= 1

    def invoke(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run the body; raises E201 for arguments that do not fit, E601 for deep nesting."""
        if self.least <= len(args) <= self.most and not kwargs:
            return self.run(self, *args)
        signature = self.signature
        count = signature.simple
        variables: Variables
        if len(args) == count and not kwargs:
            names = signature.positional
            if count == 1:
                variables = {names[0]: args[0], PARENT: self.parent}
            elif count == 2:
                variables = {names[0]: args[0], names[1]: args[1], PARENT: self.parent}
            else:
                variables = {PARENT: self.parent}
                variables.update(zip(names, args))  # noqa: B905  `strict=` costs as much as it all
        else:
            simple = self._bound_simply(args, kwargs) if count >= 0 else None
            variables = self.bind(args, kwargs) if simple is None else simple
        if self.hot is not None:
            if self.most < 0:
                self.hot.called(self)
            if self.most >= 0:
                return self.run(self, *[variables[name] for name in signature.positional])
        steps = self.steps
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        state = self.state
        stack = state.stack
        place = state.place
        if len(stack) >= DEEPEST_CALL:
            raise too_many_calls(self.name)
        stack.append((self.name, place))
        try:
            ended = self.body(variables)
        except GradcliError as error:
            locate(error, state)
            raise
        except RecursionError as error:
            raise locate(too_many_calls(self.name, len(stack)), state) from error
        finally:
            stack.pop()
            state.place = place
        return None if ended is None else ended[0]

    def enter_by(self, body: Run) -> Run:
        """Run a body from now on, as written where it is the function's own; gives the former."""
        former, self.body = self.body, body
        hot = self.hot
        if hot is not None and hot.run is not None and hot.body is body:
            self.run, self.least, self.most = hot.run, hot.least, hot.most
        else:
            self.most = -1
        return former

    def positional_arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position, defaults included; raises E201 for a misfit."""
        bound = self.bind(args, kwargs)
        signature = self.signature
        rest = bound[signature.rest] if signature.rest else ()
        return (*[bound[name] for name in signature.positional], *rest)

    def placed_arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments, those by keyword in their places, without defaults; raises E201."""
        placed = list(args)
        left = dict(kwargs)
        for name in self.signature.positional[len(args) :]:
            if not left:
                break
            if name not in left:
                raise self._misfit(f"needs a value for {name!r}", missing([name]))
            placed.append(left.pop(name))
        for name in left:
            raise self._unknown_keyword(name)
        return tuple(placed)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Variables:
        """The variables that a call starts with."""
        signature = self.signature
        positional = signature.positional
        variables = dict(zip(positional, args, strict=False))
        variables[PARENT] = self.parent
        if signature.rest:
            variables[signature.rest] = tuple(args[len(positional) :])
        more: dict[str, Any] = {}
        for name, value in kwargs.items():
            if (name in positional and name not in signature.by_position) or (
                name in signature.keyword_only
            ):
                if name in variables:
                    raise self._misfit(f"got the argument {name!r} twice", twice(name))
                variables[name] = value
            elif signature.keywords:
                more[name] = value
            elif name in positional:
                raise self._misfit(
                    f"has no argument {name!r}",
                    f"got some positional-only arguments passed as keyword arguments: '{name}'",
                )
            else:
                raise self._unknown_keyword(name)
        if len(args) > len(positional) and not signature.rest:
            raise self._misfit(
                f"takes {_count(len(positional))} by position and got {len(args)}",
                too_many(
                    sum(name not in self.defaults for name in positional),
                    len(positional),
                    len(args),
                ),
            )
        if signature.keywords:
            variables[signature.keywords] = more
        for name in (*positional, *signature.keyword_only):
            if name not in variables:
                if name not in self.defaults:
                    kind, names = "positional", positional
                    if name not in positional:
                        kind, names = "keyword-only", signature.keyword_only
                    left = [n for n in names if n not in variables and n not in self.defaults]
                    raise self._misfit(f"needs a value for {name!r}", missing(left, kind))
                variables[name] = self.defaults[name]
        return variables

    def _bound_simply(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Variables | None:
        """Those of a call whose arguments fit parameters by position; None for any other."""
        signature, defaults = self.signature, self.defaults
        left = signature.positional[len(args) :]
        if len(args) > signature.simple or (
            kwargs and (signature.by_position or not kwargs.keys() <= {*left})
        ):
            return None
        variables: Variables = {PARENT: self.parent}
        variables.update(zip(signature.positional, args))  # noqa: B905  as above
        for name in left:
            if name in kwargs:
                variables[name] = kwargs[name]
            elif name in defaults:
                variables[name] = defaults[name]
            else:
                return None
        return variables

    def _misfit(self, problem: str, in_python: str) -> GradcliError:
        signature = self.signature
        text = f"{signature.qualified}() {in_python}"
        return misfit(self.name, problem, signature.text(self.defaults), text)

    def _unknown_keyword(self, name: str) -> GradcliError:
        known = [*self.signature.positional, *self.signature.keyword_only]
        signature = self.signature
        return unknown_keyword(
            self.name, name, known, signature.text(self.defaults), signature.qualified
        )


define("function", Function)


def docstring(body: list[Statement]) -> str | None:
    """The text at the top of a body, None where there is none."""
    first = body[0] if body else None
    value = first.value if isinstance(first, ExpressionStatement) else None
    text = value.value if isinstance(value, Constant) else None
    return text if isinstance(text, str) else None


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def too_many_calls(name: str, depth: int = DEEPEST_CALL) -> GradcliError:
    """The error of calls that are nested too deeply, or as deep as the host can nest them, which an
    early Python 3.12 can do less of.
    """
    return GradcliError("E601", f"{name}() was called {depth} calls deep")


def locate(error: GradcliError, state: State) -> GradcliError:
    """The error with the span of the running operation and the open calls."""
    if error.span is None:
        error.span = state.place
    if not error.stack:
        error.stack = tuple(state.stack)
    return error


def misfit(name: str, problem: str, parameters: str, text: str | None = None) -> GradcliError:
    """The error of a call whose arguments do not fit the written signature; `text` is Python's."""
    notes = (f"it is {name}{parameters}",)
    return GradcliError("E201", f"{name}() {problem}", text=text, notes=notes)


def missing(names: Sequence[str], kind: str = "positional") -> str:
    """CPython's words for parameters without a value."""
    *others, last = map(repr, names)
    shown = f"{', '.join(others)}{',' * (len(others) > 1)} and {last}" if others else last
    return f"missing {len(names)} required {kind} argument{'s' * bool(others)}: {shown}"


def too_many(least: int, most: int, count: int) -> str:
    """CPython's words for more arguments by position than a function takes."""
    takes = f"{most}" if least == most else f"from {least} to {most}"
    return (
        f"takes {takes} positional argument{'s' * (most != 1)} but {count}"
        f" {'was' if count == 1 else 'were'} given"
    )


def twice(name: str) -> str:
    """CPython's words for a parameter with two values."""
    return f"got multiple values for argument {name!r}"


def unknown_keyword(
    name: str, keyword: str, known: list[str], parameters: str, qualified: str | None = None
) -> GradcliError:
    """The error of a keyword that a function does not have."""
    text = f"{qualified or name}() got an unexpected keyword argument {keyword!r}"
    error = misfit(name, f"has no argument {keyword!r}", parameters, text)
    near = closest(keyword, known)
    if near is not None:
        error.help = f"did you mean `{near}`?"
    return error


def call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call any value of a program; raises E202 for one that cannot be called."""
    if type(function) is Function:
        return function.invoke(args, kwargs)
    bound = None
    if type(function) in (BoundMethod, Method):
        bound = function
        args = (function.receiver, *args)
        function = function.function
        if type(function) is Function:
            return function.invoke(args, kwargs)
        called = function
    elif "out" in kwargs:
        called, kwargs = _with_out(function, kwargs)
    else:
        called = function
    if FOREIGN and (kwargs or not FOREIGN.isdisjoint(map(type, args))):
        args = for_op(function, args)
        kwargs = dict(zip(kwargs, for_op(function, tuple(kwargs.values())), strict=True))
    for name in kwargs:
        if name in _FLAGS and type(kwargs[name]) is not bool and _is_catalogue(function):
            from gradcli.language.hints import arguments  # lazy: start-up

            wrong = arguments.wrong_flag(_name(function), function, name, kwargs[name])
            if wrong is not None:
                raise wrong
    try:
        return called(*args, **kwargs)
    except NeedsExamples:
        return active.state.batch.looped(called, args, kwargs)
    except Exception as error:
        if type(error) is TypeError and not NUMPY_NAMES.keys().isdisjoint(kwargs):
            own = _own_names(called, kwargs, str(error))
            if own is not None:
                return call(called, args, own)
        raise call_failed(error, function, args, kwargs, bound and bound.__name__) from error


def for_host(function: Any) -> Any:
    """A value that a program calls as a function of the host's; None as it is."""
    return None if function is None else lambda *values: call(function, values, {})


def _own_names(function: Any, kwargs: dict[str, Any], problem: str) -> dict[str, Any] | None:
    """The keywords of a call with PyTorch's names for NumPy's, None where that is not the problem
    or the function, which PyTorch writes in Python, takes no others.
    """
    name = _name(function)
    tables = (catalogue.methods, *[catalogue.modules[module] for module in _NATIVE])
    # An op's table has its generated function, which the one that a program holds may stand for.
    forms = (function, getattr(function, "__wrapped__", function))
    if (
        "unexpected keyword argument" not in problem
        or name in _WRITTEN_IN_PYTHON
        or not any(table.get(name) in forms for table in tables)
    ):
        return None
    own = {NUMPY_NAMES.get(keyword, keyword): value for keyword, value in kwargs.items()}
    return own if len(own) == len(kwargs) else None


_NATIVE = ("torch", "torch.fft", "torch.linalg", "torch.special")

_WRITTEN_IN_PYTHON = frozenset({"norm", "split", "stft", "unique", "unique_consecutive"})
"""Functions of torch that take the names of their own parameters alone."""


def for_op(function: Any, values: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a call as a function of torch sees them; any other function gets them as
    they are.
    """
    target = function.construct if isinstance(function, LanguageType) else function
    if not _is_catalogue(target):
        return values
    return tuple([argument(target, value) for value in values])


def _with_out(function: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A function that writes to the tensors given as `out`, and the other keywords; for one without
    `out=` the function itself, and all of them.
    """
    from gradcli.ops.binding.out import WITH_OUT, written  # lazy: start-up

    name = _name(function).removeprefix("special_").removeprefix("linalg_")
    if name not in WITH_OUT or not _is_catalogue(function):
        return function, kwargs
    others = {key: value for key, value in kwargs.items() if key != "out"}
    return partial(written, name, function, kwargs["out"]), others


_FLAGS = names("""accumulate adjoint align_corners as_tuple assume_unique ceil_mode check_errors
    compute_uv copy count_include_pad descending enable_gqa equal_nan full full_matrices
    hermitian implicit include_self increasing invert is_causal keepdim largest left log_input
    log_target non_blocking normalized onesided out_int32 periodic pivot replacement
    requires_grad return_complex return_counts return_inverse right scale_grad_by_freq some
    sorted sparse sparse_grad stable swap train training transpose unbiased unitriangular
    unpack_data unpack_pivots upper use_input_stats with_replacement wrap zero_infinity""")
"""The keywords of ops for which PyTorch takes True and False alone, and no other value's truth."""


def call_failed(
    error: Exception,
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    method: str | None = None,
) -> Exception:
    """The error that a program sees for an exception of a call; a bug of gradcli stays as it is.
    Where the first argument is what a method is called on, `method` is the method's name.
    """
    seen = _call_failed(error, function, args, kwargs)
    if isinstance(seen, GradcliError) and seen.code in ("E201", "E202"):
        from gradcli.language.hints import arguments  # lazy: start-up

        if seen.raises == "TypeError":
            if type(function) in (BoundMethod, Method):
                method = function.__name__
                args, function = (function.receiver, *args), function.function
            seen.text = arguments.refusal(function, method, args, kwargs) or seen.text
    return seen


def _call_failed(
    error: Exception, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Exception:
    if isinstance(error, GradcliError):
        return _by_arguments(error, function, args, kwargs)
    if not callable(function):
        return not_callable(function)
    if type(function) in (BoundMethod, Method):
        return _call_failed(error, function.function, (function.receiver, *args), kwargs)
    is_op = _is_catalogue(function)
    if isinstance(error, TypeError):
        bad_call = _bad_call(function, args, kwargs)
        if bad_call is not None:
            return bad_call if is_op else offer_op(bad_call, _name(function), args)
    if not is_op:
        if isinstance(error, AttributeError):
            receiver = getattr(function, "__self__", None)
            return _lacking(error, function, [receiver, *args, *kwargs.values()]) or error
        return converted(error) if isinstance(error, HOST_ERRORS) else error
    from gradcli.language.hints import arguments  # lazy: start-up

    wrong = arguments.wrong_operand(_name(function), function, args, kwargs)
    if wrong is not None:
        return _by_arguments(wrong, function, args, kwargs)
    if isinstance(error, (AttributeError, TypeError)):
        # An op took a value for a tensor, or a tensor for a number. With tensors alone in its
        # arguments the mistake is not the program's, unless one of them stands for a number.
        values = [*args, *kwargs.values()]
        if not values:
            return type_error(f"{_name(function)}() needs a tensor")
        if all(type(value) is Tensor for value in values) and not (
            (len(values) > 1 and "'Tensor'" in str(error)) or "not callable" in str(error)
        ):
            return error
        kinds = ", ".join(type_name(value) for value in values)
        return type_error(f"{_name(function)}() does not take ({kinds})")
    return converted(error) if isinstance(error, _OP_ERRORS) else error


def _lacking(error: AttributeError, function: Any, values: list[Any]) -> GradcliError | None:
    """The error of a value that lacks what its user reads, as Python has it, where the program gave
    the value: as an argument, inside one, or as what it set in one. None for any other.
    """
    lacks = error.obj
    if hasattr(type(lacks), "language_class"):
        return None
    seen = {id(value) for value in values}
    for value in values:
        if value is lacks:
            kind = type_name(lacks)
            return GradcliError(
                "E202",
                f"{_name(function)}() cannot use a value of {kind} here: it has no `{error.name}`",
                text=f"'{kind}' object has no attribute '{error.name}'",
                raises="AttributeError",
            )
        inside = [each for each in _parts(value) if id(each) not in seen]
        seen.update(map(id, inside))
        values.extend(inside[: _PARTS - len(values)])
    return None


_PARTS = 10_000
"""How many values are looked at for the one that lacks an attribute."""


def _parts(value: Any) -> list[Any]:
    """The items of a value, or what stands in it that a program may set."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    names = getattr(type(value), "settable_attributes", ())
    set_in_it = [getattr(value, name) for name in names if hasattr(value, name)]
    return [*set_in_it, *getattr(value, "__dict__", {}).values()]


def _by_arguments(
    error: GradcliError, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> GradcliError:
    """The error itself, or that of a wrong argument which an op found further in."""
    if type(function) in (BoundMethod, Method):
        args, function = (function.receiver, *args), function.function
    if error.code not in _FURTHER_IN or error.raises == "ValueError":
        return error  # a ValueError is about the very argument
    of_layer = getattr(type(function), "function", None)
    if type(of_layer) is str:
        function = catalogue.modules["torch.nn.functional"][of_layer]
    if not _is_catalogue(function):
        return error
    from gradcli.language.hints import arguments  # lazy: start-up

    if error.raises != "AttributeError":  # an op that raises this has found the operand
        error = arguments.wrong_operand(_name(function), function, args, kwargs) or error
    if error.code != "E202":
        return arguments.wrong_argument(_name(function), function, args, kwargs) or error
    if error.raises == "TypeError" and arguments.lacks_attribute(function, args, kwargs):
        error.raises = "AttributeError"
    return error


_FURTHER_IN = frozenset({"E202", "E203", "E204", "E301", "E302", "E405"})
"""What an op raises over its arguments, of which one may be of a wrong type."""

_OP_ERRORS = (ValueError, OverflowError, ZeroDivisionError, IndexError, MemoryError, RecursionError)
"""What the host may raise inside an op on the values of a program."""


def _is_catalogue(function: Any) -> bool:
    """Whether a function is the catalogue's; generated ones belong to no module."""
    home = getattr(function, "__module__", None) or ""
    own = home.startswith(("gradcli.language.", "gradcli.library.")) and not is_of_family(home)
    return isinstance(function, (FunctionType, type)) and not own


def _name(function: Any) -> str:
    if isinstance(function, LanguageType):
        return function.name
    if isinstance(function, type):
        return host_name(function).rpartition(".")[2]
    name = getattr(function, "name", None) or getattr(function, "__name__", "function")
    return str(name)


def _bad_call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> GradcliError | None:
    """The error of arguments that a host function has no parameters for, None if they fit."""
    import inspect  # lazy: start-up

    host: Any = function.construct if isinstance(function, LanguageType) else function
    try:
        signature = inspect.signature(host)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as misfitting:
        problem = str(misfitting)
    else:
        return None
    shown = [p for p in signature.parameters.values() if not p.name.startswith("_")]
    written = ", ".join(_written(parameter) for parameter in shown)
    known = [p.name for p in shown if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in shown)
    for keyword in kwargs:
        if keyword not in known and not takes_all:
            name = _name(function)
            qualified = _qualified(function, host)
            error = unknown_keyword(name, keyword, known, f"({written})", qualified)
            error.text = _host_text(name, function, args, kwargs, True) or error.text
            return error
    words, in_python = _misfit_in_words(problem, shown, args, kwargs)
    name = _name(function)
    home = getattr(host, "__module__", None) or "gradcli.ops."
    if (qualified := _qualified(function, host)) != name:
        text = f"{qualified}() {in_python}"
    elif in_python.startswith("missing") and home.startswith("gradcli.ops."):
        wanted = in_python.partition(": ")[2].replace("'", '"').replace(" and ", ", ")
        text = f"{name}() missing {wanted.count(',') + 1} required positional arguments: {wanted}"
    else:
        text = _host_text(name, function, args, kwargs, False) or f"{name}() {in_python}"
    return misfit(name, words, f"({written})", text)


def _qualified(function: Any, host: Any) -> str:
    """The name by which Python's errors call a function that PyTorch writes in Python."""
    name = _name(function)
    if isinstance(host, type) and not host.__module__.startswith("gradcli.language"):
        return f"{name}.__init__"
    is_method = name in _METHODS_IN_PYTHON and catalogue.methods.get(name) is function
    return f"Tensor.{name}" if is_method else name


_METHODS_IN_PYTHON = names("""backward lu norm register_hook register_post_accumulate_grad_hook
    split istft stft unique unique_consecutive""")
"""Methods of tensors that PyTorch writes in Python."""


_ASKED_IN_CPYTHON = """abs all any bool bytes callable chr complex dict divmod enumerate filter
    float
    frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min next oct
    ord pow print range repr reversed round set slice sorted str sum tuple type zip"""
"""The functions that do nothing beside what they return, but for `print`, which is asked about
keywords alone."""


def _host_text(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any], is_keyword: bool
) -> str | None:
    """CPython's text for arguments that a function of its has no parameters for; None for other
    functions, and where CPython sees no misfit. Its own function is asked, with empty lists in the
    place of the arguments: nothing of the program's is touched.

    Args:
        is_keyword: whether the misfit is a keyword's.
    """
    home = getattr(function, "__module__", None) or ""
    stand_ins: list[Any] = [[] for _ in args]
    target: Any = None
    of_library = home.startswith("gradcli.library.") and not is_of_family(home)
    if isinstance(function, LanguageType) or of_library:
        if name in _ASKED_IN_CPYTHON.split() and (is_keyword or name != "print"):
            target = getattr(builtins, name)
    elif args and METHODS.get(type(args[0]), {}).get(name) is function:
        target = getattr(type(args[0]), name, None)
        stand_ins[0] = type(args[0])()
    if target is None:
        return None
    try:
        target(*stand_ins, **{key: [] for key in kwargs})
    except TypeError as error:
        return str(error)
    except Exception:
        return None
    return None


def _misfit_in_words(
    problem: str, parameters: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, str]:
    """The host's message on arguments that do not fit, in our words and in CPython's."""
    _, quoted, name = problem.rstrip("'").rpartition("'")
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p.name for p in by_place if p.default is p.empty]
    if problem.startswith("missing") and quoted:
        left = [each for each in needed[len(args) :] if each not in kwargs]
        return f"needs a value for {name!r}", missing(left or [name])
    if problem.startswith("multiple values") and quoted:
        return f"got the argument {name!r} twice", twice(name)
    if problem.startswith("too many positional"):
        most = len(by_place)
        return (
            f"takes {_count(most)} by position and got {len(args)}",
            too_many(len(needed), most, len(args)),
        )
    return f"cannot be called so: {problem}", problem


def offer_op(error: GradcliError, name: str, args: Sequence[Any]) -> GradcliError:
    """The error of a built-in function; where an argument is a tensor, it names the op instead."""
    if name in catalogue.modules["torch"] and any(type(value) is Tensor for value in args):
        error.help = f"this is Python's {name}(); the op on tensors is torch.{name}()"
    return error


def _written(parameter: Any) -> str:
    """A parameter as it stands in a signature, with a default only if it is plain."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    name = f"{stars}{parameter.name}"
    if parameter.default is parameter.empty:
        return name
    plain = isinstance(parameter.default, (int, float, str, type(None)))
    return f"{name}={parameter.default!r}" if plain else f"{name}=…"


def rows_of(body: Sequence[tree.Statement], parameters: Sequence[str], owner: Any) -> Any:
    """The tensors whose rows at its argument a method gives, as a list; None for any other method.

    Args:
        parameters: the names of the object and of the row's number.
        owner: the object.
    """
    names = _names_of(body, parameters)
    cls = getattr(type(owner), "language_class", None)
    if not names or cls is None or any(computes(cls.find(name)) for name in names):
        return None
    try:
        tensors = [owner.language_getattr(name) for name in names]
    except AttributeError:
        return None
    return tensors if all(type(each) is Tensor for each in tensors) else None


def _names_of(body: Sequence[tree.Statement], parameters: Sequence[str]) -> list[str] | None:
    """The attributes of the object of which the rows come."""
    named: dict[str, str] = {}
    for statement in body:
        if isinstance(statement, tree.Return):
            value = statement.value
            parts = value.elements if isinstance(value, (tree.Tuple, tree.List)) else []
            attributes = [_name_of(part, parameters, named) for part in parts]
            return [name for name in attributes if name] if all(attributes) else None
        if isinstance(statement, tree.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            name = _name_of(statement.value, parameters, {})
            if name is None or not isinstance(target, tree.Name) or target.name in parameters:
                return None
            named[target.name] = name
        elif not isinstance(statement, tree.ExpressionStatement) or not isinstance(
            statement.value, tree.Constant
        ):
            return None
    return None


def _name_of(node: tree.Expression, parameters: Sequence[str], named: dict[str, str]) -> str | None:
    """`x` of `self.x[index]`, or of a name that holds it."""
    if isinstance(node, tree.Name):
        return named.get(node.name)
    if not isinstance(node, tree.Subscript) or not isinstance(node.value, tree.Attribute):
        return None
    owner, index = node.value.value, node.index
    if not isinstance(owner, tree.Name) or not isinstance(index, tree.Name):
        return None
    return node.value.name if [owner.name, index.name] == [*parameters] else None
