"""The codes of errors: one per kind of mistake, with the text that `gradcli help CODE` shows."""

from __future__ import annotations

from gradcli.code import Code

# One code per kind of mistake. The hundreds follow the stages: E0 text that is no program, E1
# names, E2 calls and types, E3 shapes and indices, E4 differentiation, E5 values from outside, E6
# limits, E7 what a program raises itself, E9 ours.
CODES: dict[str, Code] = {
    "E001": Code(
        "invalid syntax",
        "SyntaxError",
        "parsing",
        "The text is not a statement of the language. The caret stands where the reading stopped.",
        "x = (1 + )",
    ),
    "E002": Code(
        "unexpected character",
        "SyntaxError",
        "parsing",
        "The text holds a character that begins no token: a stray `$`, a control character, or"
        " binary data.",
        "x = 2 $ 3",
    ),
    "E003": Code(
        "unfinished string or bracket",
        "SyntaxError",
        "parsing",
        "A string or a bracket is opened and never closed.",
        "x = [1, 2",
    ),
    "E004": Code(
        "inconsistent indentation",
        "IndentationError",
        "parsing",
        "A block is missing, or a line is indented to a depth that no open block has.",
        "if True:\nx = 1",
    ),
    "E005": Code(
        "nested too deeply",
        "SyntaxError",
        "parsing",
        "Brackets or expressions are nested more deeply than Python itself accepts (200 brackets).",
    ),
    "E006": Code(
        "statement out of place",
        "SyntaxError",
        "parsing",
        "A `return` outside a function, a `break` outside a loop, or a target that cannot be"
        " assigned to.",
        "break",
    ),
    "E007": Code(
        "outside the language",
        "SyntaxError",
        "parsing",
        "Python has this statement, gradcli's subset of it does not: see `gradcli help language`.",
        "async def f(): pass",
    ),
    "E101": Code(
        "name without a value",
        "NameError",
        "evaluating",
        "The name was not assigned before it is read. In a one-shot, give it a value after the"
        " program: `a=2`.",
        "print(undefined_name)",
    ),
    "E102": Code(
        "no such attribute",
        "AttributeError",
        "evaluating",
        "The value has no attribute or method of this name in the language. Attributes of"
        " Python's own machinery (`__dict__` and its like) are never reachable.",
        "tensor(1.).foo",
    ),
    "E103": Code(
        "module or name that cannot be imported",
        "ModuleNotFoundError",
        "evaluating",
        "Only torch, its sub-modules that the language knows, numpy and math can be imported.",
        "import os",
    ),
    "E104": Code(
        "no such dot-command",
        "NameError",
        "evaluating",
        "A statement that starts with `.` and a letter is a command for the session, and there is"
        " none of this name: `.help` lists them. An expression that goes on in the next line needs"
        " brackets around it.",
        ".varz",
        exit_code=2,
    ),
    "E105": Code(
        "wrong arguments of a dot-command",
        "ValueError",
        "evaluating",
        "The dot-command does not take these words: `.help` shows what each one takes.",
        ".timer perhaps",
        exit_code=2,
    ),
    "E201": Code(
        "wrong arguments",
        "TypeError",
        "evaluating",
        "The function was called with an argument too many or too few, or with a keyword that it"
        " does not have.",
        "exp()",
    ),
    "E202": Code(
        "wrong type",
        "TypeError",
        "evaluating",
        "An operation met a value of a type that it is not defined for.",
        "1 + 'a'",
    ),
    "E203": Code(
        "wrong dtype",
        "RuntimeError",
        "evaluating",
        "An operation met tensors of a dtype, or of two dtypes, that it is not defined for.",
        "ones(2, 2) @ ones(2, 2, dtype=float64)",
    ),
    "E204": Code(
        "invalid value",
        "ValueError",
        "evaluating",
        "An argument has the right type and an impossible value.",
        "int('x')",
    ),
    "E205": Code(
        "outside the catalogue",
        "NotImplementedError",
        "evaluating",
        "PyTorch has this function, or this form of it, and gradcli does not.",
        "ones(2).sum(0, out=zeros(()))",
    ),
    "E206": Code(
        "division by zero",
        "ZeroDivisionError",
        "evaluating",
        "A Python number, or an integer tensor, was divided by zero.",
        "1 / 0",
    ),
    "E207": Code(
        "no such key",
        "KeyError",
        "evaluating",
        "The dictionary has no entry under this key.",
        "{'a': 1}['b']",
    ),
    "E208": Code(
        "tensors on different devices",
        "RuntimeError",
        "evaluating",
        "An operation met tensors of which one is in the host's memory and another in a GPU's."
        " Move them to one device with `x.to(device)`; only 0-dim tensors on the CPU go with any:"
        " `torch.ones(2) + torch.ones(2, device='cuda')` does not.",
        "",
    ),
    "E209": Code(
        "a value that was not expected",
        "SystemError",
        "evaluating",
        "An operation failed on a value that none of its checks refused. The message is the host's,"
        " and so is the class, which `except` can catch. Where the program is right, this is a bug"
        " of gradcli: please report it with the output of `gradcli info`.",
        "",
    ),
    "E301": Code(
        "shapes do not fit",
        "RuntimeError",
        "evaluating",
        "The operands' shapes cannot be broadcast, multiplied, joined or reshaped as asked.",
        "ones(2) + ones(3)",
    ),
    "E302": Code(
        "index out of range",
        "IndexError",
        "evaluating",
        "An index or a dimension lies outside the value it is used on.",
        "ones(3)[5]",
    ),
    "E303": Code(
        "cannot unpack",
        "ValueError",
        "evaluating",
        "The number of targets differs from the number of values.",
        "a, b = 1, 2, 3",
    ),
    "E401": Code(
        "seed missing",
        "RuntimeError",
        "differentiating",
        "A backward pass starts from a gradient of the output. Only a one-element output has an"
        " obvious one, 1; any other needs a seed of the output's shape: `y.backward(ones(3))`, or"
        " `--seed 'ones(3)'` in a one-shot.",
        "(ones(3, requires_grad=True) * 2).backward()",
    ),
    "E402": Code(
        "nothing to differentiate",
        "RuntimeError",
        "differentiating",
        "The tensor does not require grad and has no grad_fn: no operation on a tensor that"
        " requires grad led to it.",
        "ones(1).backward()",
    ),
    "E403": Code(
        "graph already freed",
        "RuntimeError",
        "differentiating",
        "A backward pass frees the values that its nodes saved. A second pass through the same"
        " nodes needs `retain_graph=True` on the first.",
        "x = ones(1, requires_grad=True)\ny = x * x\ny.backward()\ny.backward()",
    ),
    "E404": Code(
        "saved value was modified",
        "RuntimeError",
        "differentiating",
        "A node saved a tensor for its gradient and the tensor was changed in place before the"
        " backward pass.",
        "x = ones(2, requires_grad=True)\ny = x * 1\nz = y * y\ny += 1\nz.sum().backward()",
    ),
    "E405": Code(
        "in-place change refused",
        "RuntimeError",
        "evaluating",
        "A leaf that requires grad, a view of one, or a tensor whose elements share memory cannot"
        " be changed in place while gradients are recorded. Write under `torch.no_grad()`, or build"
        " a new tensor.",
        "x = ones(2, requires_grad=True)\nx += 1",
    ),
    "E406": Code(
        "seed does not fit",
        "RuntimeError",
        "differentiating",
        "The gradient that a backward pass starts from must have the shape of the output.",
        "(ones(3, requires_grad=True) * 2).backward(ones(2))",
    ),
    "E407": Code(
        "input not in the graph",
        "RuntimeError",
        "differentiating",
        "`torch.autograd.grad` was asked for the gradient of a tensor that the outputs do not"
        " depend on; allow_unused=True gives None for it.",
        "x = ones(1, requires_grad=True)\ny = ones(1, requires_grad=True)\n"
        "torch.autograd.grad((x * 2).sum(), [y])",
    ),
    "E408": Code(
        "cannot require grad",
        "RuntimeError",
        "evaluating",
        "Only leaves of a floating dtype can require grad, and only a leaf's flag can be changed.",
        "tensor([1]).requires_grad_()",
    ),
    "E409": Code(
        "no derivative",
        "RuntimeError",
        "differentiating",
        "PyTorch defines no derivative for this operation (`//` on tensors, for instance).",
        "(tensor(3., requires_grad=True) // 2).backward()",
    ),
    "E410": Code(
        "invalid gradient",
        "RuntimeError",
        "differentiating",
        "A backward rule returned a gradient of a number, shape or dtype that does not fit its"
        " input.",
    ),
    "E411": Code(
        "nan in a backward pass",
        "RuntimeError",
        "differentiating",
        "Anomaly detection is on (`torch.autograd.detect_anomaly()`), and the backward rule of an"
        " operation returned a nan. The operation is often at the edge of its domain: the square"
        " root or the logarithm of 0, 0 divided by 0.",
        "x = tensor(0., requires_grad=True)\nwith torch.autograd.detect_anomaly():\n"
        "    (sqrt(x) * 0).backward()",
    ),
    "E412": Code(
        "gradient check failed",
        "GradcheckError",
        "differentiating",
        "`torch.autograd.gradcheck` compared the gradients of a function with differences of its"
        " values, and they do not agree. Differences need float64; a function that uses"
        " `.detach()`, rounds, or has a kink at the input fails for good reason.",
        "x = tensor(2., dtype=float64, requires_grad=True)\n"
        "torch.autograd.gradcheck(lambda x: x.detach() * x, x)",
    ),
    "E413": Code(
        "no formula",
        "NotImplementedError",
        "differentiating",
        "`derive` writes the gradient down as formulas, and an op on the way has none in the"
        " language, or not in the target of `--to`. Its numbers are in `gradcli explain`.",
        "x = eye(2, requires_grad=True)\ny = torch.linalg.svd(x)[1].sum()\nderive(y)",
    ),
    "E501": Code(
        "unreadable value",
        "ValueError",
        "reading",
        "A `NAME=VALUE` could not be read: VALUE is an expression of the language, or `@` and a"
        " file.",
        exit_code=4,
    ),
    "E502": Code(
        "unreadable file",
        "OSError",
        "reading",
        "A file named by `NAME=@FILE` is missing, unreadable, damaged, or of a kind that gradcli"
        " does not read.",
        exit_code=4,
    ),
    "E503": Code(
        "unreadable program",
        "OSError",
        "reading",
        "A program file is missing, unreadable or not UTF-8 text.",
        exit_code=2,
    ),
    "E504": Code(
        "damaged file",
        "ValueError",
        "reading",
        "A file of data is not what its format says: it ends too early, its header does not fit its"
        " content, a row is too short, or a name stands twice. The message names the line or byte.",
        exit_code=4,
    ),
    "E505": Code(
        "no numbers of PyTorch's",
        "ValueError",
        "reading",
        "A file of data holds what makes no tensor: a cell that is no number, a ragged list, Python"
        " objects (a pickle, which could run any code), or a dtype that PyTorch has not.",
        exit_code=4,
    ),
    "E506": Code(
        "no such part of a file",
        "KeyError",
        "reading",
        "The array, column or name behind `FILE:` is not in the file, or the file holds several and"
        " none was named.",
        exit_code=4,
    ),
    "E507": Code(
        "wrong record",
        "ValueError",
        "reading",
        "A line of `--inputs` is no JSON object of names and values.",
        exit_code=4,
    ),
    "E601": Code(
        "too many calls",
        "RecursionError",
        "evaluating",
        "Functions called each other more deeply than the limit.",
        "def f(x): return f(x)\nf(1)",
        exit_code=5,
    ),
    "E602": Code(
        "too much work",
        "MemoryError",
        "evaluating",
        "The program asked for a value larger than the limits allow: see `--max-elements` and"
        " `--max-memory`.",
        "'a' * 10**12",
        exit_code=5,
    ),
    "E603": Code(
        "output file",
        "OSError",
        "evaluating",
        "The output file could not be written; nothing was left half-written.",
        exit_code=5,
    ),
    "E604": Code(
        "no such device",
        "RuntimeError",
        "evaluating",
        "The program asked for a GPU, and CuPy is not installed or finds none. `gradcli info` lists"
        " what there is.",
        "torch.ones(2, device='cuda')",
        exit_code=5,
    ),
    "E605": Code(
        "too many steps",
        "TimeoutError",
        "evaluating",
        "The loops and calls of the program used up their steps: most likely a loop does not end."
        " `--max-steps` raises the limit.",
        "while True: pass",
        exit_code=5,
    ),
    "E606": Code(
        "files are out of bounds",
        "PermissionError",
        "evaluating",
        "The run was started with `--sandbox`, and its program or a `NAME=@FILE` asked for a file.",
        exit_code=5,
    ),
    "E607": Code(
        "out of time",
        "TimeoutError",
        "evaluating",
        "The program ran for longer than `--timeout` allows.",
        exit_code=5,
    ),
    "E608": Code(
        "lost process",
        "RuntimeError",
        "evaluating",
        "A process of `--jobs` ended before its work was done, most likely ended by the system for"
        " its memory.",
        exit_code=5,
    ),
    "E701": Code(
        "assertion failed",
        "AssertionError",
        "evaluating",
        "An `assert` of the program did not hold.",
        "assert 1 == 2, 'no'",
        exit_code=1,
    ),
    "E702": Code(
        "raised by the program",
        "Exception",
        "evaluating",
        "The program itself raised this error.",
        "raise ValueError('no')",
    ),
    "E703": Code(
        "iteration ended",
        "StopIteration",
        "evaluating",
        "`next` was called on an iterator that has no more values.",
        "next(iter([]))",
    ),
    "E901": Code(
        "internal error",
        "SystemError",
        "evaluating",
        "gradcli itself failed. Please report the program that led here, with the output of"
        " `gradcli info`.",
        exit_code=70,
    ),
}
