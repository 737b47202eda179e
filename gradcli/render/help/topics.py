"""The pages of `gradcli help TOPIC`, those that are made from tables aside."""

from __future__ import annotations

_EXIT_CODES = """\
Exit codes

    0  all good
    1  a check failed: an uncaught `assert`, or with --strict a warning
    2  the command line is wrong, or a program file cannot be read
    3  the program is wrong: any error that Python or PyTorch would raise
    4  a bound input is wrong or unreadable: NAME=VALUE, NAME=@FILE
    5  a limit, memory, or an output file that cannot be written
   70  a bug of gradcli
  130  interrupted with Ctrl-C
  141  the reader of the output went away

Several files, or --inputs: the code of the first that failed.
"""

_FORMATS = """\
Formats: files that values come from and results go to

In, behind NAME=@

  x.npy                  one array
  m.npz, m.npz:weight    several arrays, or one of them
  t.csv, t.csv:price     a table of numbers, or columns by header or number
  v.json, v.json:key     numbers and nested lists, or what stands under a key
  w.safetensors:name     one tensor of a file of weights
  -, csv:-               standard input, whose format its content tells

In programs, load("x.npy") reads the same files; save(x, "x.npy") writes them.
--inputs cases.jsonl runs the program once per record: its keys are the names.
Pickles are never read: they can run code.

Out, with -o FILE: the output and the gradients, as NAME.grad

  .npz .safetensors .json     all of them
  .csv                        the gradients as columns
  .npy                        the gradient, where there is one

Out, on standard output: --format text, json (one document), jsonl (one line),
or table. JSON has a schema name, all digits, and "NaN", "Infinity" and
"-Infinity" as strings. --precision N and --full are for text.
"""

_LANGUAGE = """\
The language: the part of Python that programs for PyTorch's autograd need

  statements    assignment, if, for, while, def, return, lambda, with, try,
                raise, assert, del, class, comprehensions, f-strings, import of
                torch, numpy and math
  names         torch.exp(x), x.exp() and plain exp(x) are the same; F is
                torch.nn.functional; a builtin's name (sum, max, abs) is the
                builtin, as in a file
  numbers       float32 unless told otherwise, promoted as PyTorch does
  differences   error messages are gradcli's own; nodes are told apart by small
                numbers, not by addresses; trace(e) prints the graph of e

A program means what it means in a file that imports torch. Nothing else of
Python is reachable: no modules of the host, no `__` attributes, no files but
those that load() and save() name. gradcli ops lists the functions.
"""

_LIMITS = """\
Limits: how much a program may use

  --max-elements N    of one tensor, list or string; 100 million by default
  --max-steps N       loop rounds and calls; 10 million by default
  --max-memory SIZE   as 500MB or 2GB; by default half of what there is, at most
                      4GB
  --timeout SECONDS   how long it may run; no limit by default
  --sandbox           no files: no NAME=@FILE, no load() and save(), no -o

A program that reaches a limit ends with exit code 5 and a code E6xx, which
gradcli help E601 and its neighbours explain. Elements are checked before they
are made, so 'zeros(10**6, 10**6)' ends at once. In a session each entry counts
anew.
"""

_REPL = """\
The session: gradcli on a terminal, or gradcli repl

  >>> x = tensor([1., 2.], requires_grad=True)
  >>> (x ** 2).sum().backward()
  >>> x.grad
  tensor([2., 4.])

  Enter      runs a complete entry; a `def` or a loop goes on to a blank line
  Up         the earlier entries that begin with what stands there
  Tab        names, attributes, ops, keyword arguments, commands, files
  Ctrl-C     stops a loop, or drops the entry; the session goes on
  Ctrl-D     ends
  _          the last value
  NAME?      what a value or an op is: exp?, x?, torch.sum?
  .help      the commands; .vars .grads .trace .save work in scripts as well

The history lies in the user's folder of states, readable by the user alone;
GRADCLI_HISTORY=FILE moves it, and empty it turns it off.
"""

_TRACES = """\
Traces: what a value was computed from

  --trace=tree    the backward graph, each node below the one that its gradient
                  comes from; [0] is the number of the input; a node that is
                  reached twice has a number, #4, and is drawn once
  --trace=next    next_functions of every node, as a program prints it
  --trace=steps   the backward pass in the order in which it ran: the gradient
                  that came in, what each edge passed on, and old + incoming =
                  new where gradients meet

A one-shot prints the tree of a small graph unless told otherwise: --no-trace,
or -q. In a program, trace(e) and trace(e, "steps") print the same.
"""

_VALUES = """\
Values for a program's names: NAME=VALUE, behind the program or the files

  a=2                     a number binds as a floating tensor
  a=[[1,2],[3,4]]         so does a list of numbers
  'a=randn(3, 4)'         any expression of the language
  a=@x.npy                an array from a file; gradcli help formats lists them
  a=@m.npz:weight         one array of several
  a=@-                    standard input
  k:const=3               Python's own 3: no tensor, no gradient

Bound floating tensors require grad; --wrt a,b leaves that to a and b. What is
integer stays integer: 'i=tensor([0, 2])'. --dtype float64 sets the dtype of
numbers and lists.

A name that the program assigns itself is replaced where it is first assigned,
and takes the kind of the value that stood there: steps=10 stays an int, and a
tensor requires grad if the script's did.
"""

TOPICS = {
    "exit-codes": _EXIT_CODES,
    "formats": _FORMATS,
    "language": _LANGUAGE,
    "limits": _LIMITS,
    "repl": _REPL,
    "traces": _TRACES,
    "values": _VALUES,
}
"""The pages by topic."""

SUMMARIES = {
    "codes": "every error and warning that has a code",
    "exit-codes": "what a run's exit code says",
    "formats": "files that values come from and results go to",
    "language": "what a program may hold",
    "limits": "how much a program may use",
    "mistakes": "the commonest mistakes and what gradcli says of them",
    "ops": "every op by family: gradcli ops [PATTERN]",
    "repl": "working in a session",
    "traces": "how the backward graph is shown",
    "values": "NAME=VALUE: what a program's names stand for",
}
"""All topics in a few words."""
