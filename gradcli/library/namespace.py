"""Resolves names to builtins, modules and ops; the modules that programs import beside torch's:
which there are, and what stands in for others.

A module is a table of names, made when a program first asks for one of them. To add a module, write
its table (a dict from name to value) in a file of this folder and give it a line in `LIBRARY`; to
say what to write in place of one that stays outside, name it in `_REASONS`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.autograd import tensor
from gradcli.autograd.engine import backward
from gradcli.autograd.graph import Graph
from gradcli.errors import RECORDED, GradcliError, Span, ways_out
from gradcli.language.hints.spelling import closest, suggestion
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.types import (
    EXCEPTIONS,
    PARAMETER,
    TENSOR,
    UNINITIALIZED,
    called,
    class_of_host,
    define,
    full_type_name,
    host_name,
)
from gradcli.library.builtins import BUILTINS as BUILTINS
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.catalogue import modules as TORCH_MODULES
from gradcli.ops.codegen import runtime
from gradcli.ops.creation.data import parameter
from gradcli.ops.creation.settings import Layout
from gradcli.ops.definition.doc import describe

# --- modules beside torch's -----------------------------------------------------------------------


_UNDRAWN = """IPython matplotlib.animation matplotlib.axes matplotlib.collections
    matplotlib.colors matplotlib.dates matplotlib.figure matplotlib.gridspec matplotlib.image
    matplotlib.lines matplotlib.patches matplotlib.pylab matplotlib.style matplotlib.ticker
    mpl_toolkits mpl_toolkits.axes_grid1 mpl_toolkits.mplot3d mpl_toolkits.mplot3d.axes3d seaborn"""
"""The modules whose pictures are not drawn: they are accepted."""

_LAYERS = """activation adaptive batchnorm channelshuffle container conv distance dropout flatten
    fold instancenorm lazy linear loss module normalization padding pixelshuffle pooling rnn sparse
    transformer upsampling"""

_DISTRIBUTIONS = """bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli
    dirichlet distribution exp_family exponential fishersnedecor gamma generalized_pareto
    geometric gumbel half_cauchy half_normal independent inverse_gamma kumaraswamy laplace
    lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal mixture_same_family
    multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto
    poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform
    von_mises weibull wishart"""

_OPTIMIZERS = "adam adamw adagrad adadelta adamax asgd lbfgs nadam radam rmsprop rprop sgd"

LIBRARY: dict[str, str] = {
    "__future__": "python.classes.typing:FUTURE",
    "abc": "python.contextlib:ABSTRACT_CLASSES",
    "argparse": "python.system.argparse:ARGPARSE",
    "bisect": "python.sequences:BISECT",
    "collections": "python.collections:COLLECTIONS",
    "collections.abc": "python.classes.typing:ABSTRACT",
    "contextlib": "python.contextlib:CONTEXTLIB",
    "copy": "copy:COPY",
    "csv": "python.documents:CSV",
    "dataclasses": "python.classes.dataclasses:DATACLASSES",
    "datetime": "python.time:DATETIME",
    "decimal": "python.numbers.exact:DECIMAL",
    "enum": "python.classes.enum:ENUM",
    "fractions": "python.numbers.exact:FRACTIONS",
    "functorch": "torch.func.stateless:FUNCTORCH",
    "functorch.experimental": "torch.func.stateless:EXPERIMENTAL",
    "functools": "python.functional:FUNCTOOLS",
    "gc": "python.system.process:GC",
    "glob": "python.system.folders:GLOB",
    "hashlib": "python.hashlib:HASHLIB",
    "heapq": "python.sequences:HEAPQ",
    "importlib": "python.system.process:IMPORTLIB",
    "importlib.metadata": "python.system.process:METADATA",
    "io": "files:IO",
    "IPython.display": "drawing.pyplot:DISPLAY",
    "itertools": "python.functional:ITERTOOLS",
    "json": "python.documents:JSON",
    "logging": "python.reports:LOGGING",
    "math": "python.numbers.math:MATH",
    "matplotlib": "drawing.pyplot:MATPLOTLIB",
    "matplotlib.cm": "drawing.pyplot:COLOR_MAPS",
    "matplotlib.pyplot": "drawing.pyplot:PYPLOT",
    "numpy": "numpy.load:NUMPY",
    "numpy.exceptions": "numpy.load:ERRORS",
    "numpy.fft": "numpy.load:FFT",
    "numpy.linalg": "numpy.load:LINALG",
    "numpy.random": "numpy.load:RANDOM",
    "numpy.testing": "numpy.load:TESTING",
    "numbers": "python.classes.typing:NUMBERS",
    "operator": "python.functional:OPERATOR",
    "os": "python.system.process:OS",
    "os.path": "python.system.process:OS_PATH",
    "pathlib": "python.system.pathlib:PATHLIB",
    "platform": "python.system.process:PLATFORM",
    "pprint": "python.text:PPRINT",
    "random": "python.numbers.random:RANDOM",
    "re": "python.text:RE",
    "statistics": "python.sequences:STATISTICS",
    "string": "python.text:STRING",
    "sys": "python.system.process:SYS",
    "tempfile": "python.system.folders:TEMPFILE",
    "textwrap": "python.text:TEXTWRAP",
    "time": "python.time:TIME",
    "timeit": "python.time:TIMEIT",
    "traceback": "python.reports:TRACEBACK",
    "types": "python.classes.typing:TYPES",
    "typing": "python.classes.typing:TYPING",
    "unicodedata": "python.text:UNICODEDATA",
    "torch.accelerator": "torch.settings:ACCELERATOR",
    "torch.autograd.profiler": "torch.settings:PROFILER",
    "torch.profiler": "torch.settings:PROFILER",
    "torch.random": "torch.settings:GENERATOR",
    "torch.amp": "torch.amp:AMP",
    "torch.amp.autocast_mode": "torch.amp:AMP",
    "torch.amp.grad_scaler": "torch.amp:AMP",
    "torch.cpu": "torch.settings:CPU_DEVICE",
    "torch.cpu.amp": "torch.amp:CPU_AMP",
    "torch.backends": "torch.settings:BACKENDS",
    **{
        f"torch.backends.{name}": f"torch.settings:{name.upper()}"
        for name in ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")
    },
    "torch.backends.cuda.matmul": "torch.settings:MATMUL",
    "torch.compiler": "torch.settings:COMPILER",
    "torch.cuda.amp": "torch.amp:CUDA_AMP",
    "torch.distributed": "torch.settings:DISTRIBUTED",
    "torch.jit": "torch.settings:JIT",
    "torch.mps": "torch.settings:MPS_DEVICE",
    "torch.nn.modules.utils": "torch.settings:TUPLES",
    "torch.optim.optimizer": "torch.optim.optimizer:OPTIMIZER",
    "torch.serialization": "torch.serialization:SERIALIZATION",
    "torch.testing": "torch.testing:TESTING",
    "torch.utils._pytree": "torch.func.structure:PYTREE",
    "torch.utils.tensorboard": "drawing.undrawn:TENSORBOARD",
    "torch.utils.tensorboard.writer": "drawing.undrawn:TENSORBOARD",
    "torch.version": "torch.settings:VERSION",
    "torch.xpu": "torch.settings:XPU",
    "tensorboardX": "drawing.undrawn:TENSORBOARD",
    "tqdm": "tqdm:TQDM",
    **{
        f"tqdm.{name}": "tqdm:TQDM"
        for name in ("asyncio", "auto", "autonotebook", "notebook", "std")
    },
    "warnings": "python.reports:WARNINGS",
    **dict.fromkeys(_UNDRAWN.split(), "drawing.undrawn:DRAWING"),
}
"""Each module with the file of this folder and the table in it that holds its names."""

ALIASES: dict[str, str] = {
    "torch.nn.modules": "torch.nn",
    "torch.nn.parallel": "torch.nn",
    "torch.nn.parameter": "torch.nn",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.nn.utils.convert_parameters": "torch.nn.utils",
    "torch.nn.utils.fusion": "torch.nn.utils",
    "torch.nn.utils.init": "torch.nn.utils",
    "torch.functional": "torch",
    "torch.autograd.anomaly_mode": "torch.autograd",
    "torch.autograd.grad_mode": "torch.autograd",
    "torch.autograd.variable": "torch.autograd",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
    "torch.utils.data.distributed": "torch.utils.data",
    "torch.utils.data.sampler": "torch.utils.data",
    **{f"torch.nn.modules.{name}": "torch.nn" for name in _LAYERS.split()},
    **{f"torch.distributions.{name}": "torch.distributions" for name in _DISTRIBUTIONS.split()},
    **{f"torch.optim.{name}": "torch.optim" for name in _OPTIMIZERS.split()},
}
"""The modules of torch that hold the same names as another: its own files."""

_DATA = "tensors come in as `NAME=@FILE`: npy, npz, csv, json, safetensors"
_TENSORS = "what it computes is written with torch here"
_PROCESSES = "a program here is one process of its own"
_NETWORK = "a program here reaches no network: download first, then bind the file: `NAME=@FILE`"
_FILES = "files come in as `NAME=@FILE`, and `load('x.npy')` reads one"
_MODELS = "write the layers with torch.nn, and load weights with `load('w.safetensors')`"

_REASONS = {
    "PIL cv2 datasets h5py joblib torchaudio torchtext": _DATA,
    "asyncio multiprocessing signal subprocess threading": _PROCESSES,
    "ctypes": "no code of the host can be reached",
    "flax jax keras tensorflow": _TENSORS,
    "shutil": _FILES,
    "inspect": "the host's objects cannot be looked into",
    "networkx torchviz": "`trace(x)` draws the graph of a tensor",
    "pandas": f"{_DATA}; a column of a table is `NAME=@t.csv:column`",
    "pickle": "pickles could run any code: `save(x, 'x.npz')` and `load` keep tensors",
    "pytest unittest": "`assert` checks, and a run that fails ends with exit code 1",
    "pytorch_lightning lightning": "write the training loop with torch.optim",
    "requests socket urllib": _NETWORK,
    "scipy": "special functions are in torch.special, decompositions in torch.linalg",
    "sklearn": f"{_TENSORS}; data: {_DATA}",
    "sympy": "`gradcli derive` writes gradients as formulas",
    "timm transformers": _MODELS,
    "torchvision": f"data: {_DATA}; models: {_MODELS}",
    "wandb": "print the values, or keep them with -o",
    "yaml": "settings are written as a dict, or come in as `NAME=VALUE`",
}

BEFORE_FILES = frozenset(
    {"torch", "numpy", "__future__", "abc", "builtins", "gc", "io", "itertools", "math", "os"}
    | {"sys", "time"}
)
"""The modules that a file of their name beside the script does not stand in for: torch, NumPy, and
those that Python has compiled in or has loaded before a script begins, by their first name.
"""

INSTEAD = {name: reason for names, reason in _REASONS.items() for name in names.split()}
"""What to write in place of the modules that programs import most, by their first name."""


_KNOWN = {
    "abc": ("ABC", "abstractmethod"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "contextlib": ("contextmanager",),
    "dataclasses": ("dataclass",),
    "enum": ("Enum",),
    "functools": ("lru_cache", "partial", "wraps"),
    "torch.autograd": ("Function", "backward", "grad"),
    "torch.func": ("hessian", "jacfwd", "jacrev", "jvp", "vjp"),
    "typing": ("Callable", "Dict", "List", "NamedTuple", "Optional", "Union"),
}


def import_of(name: str) -> str | None:
    """The import that gives a name its usual meaning, where there is one."""
    if LIBRARY.get(name, "").startswith("python."):
        return f"import {name}"
    home = next((module for module, names in _KNOWN.items() if name in names), None)
    return None if home is None else f"from {home} import {name}"


def library_modules(torch: dict[str, Module]) -> dict[str, Module]:
    """The modules of `LIBRARY` and `ALIASES`, each inside its parent, which may be one of torch's;
    their tables are filled when asked for.
    """
    modules = {name: Module(name, {}) for name in LIBRARY}
    for name, module in modules.items():
        module.load = _filling(module, LIBRARY[name])
    for name, kept in ALIASES.items():
        modules[name] = module = Module(name, TORCH_MODULES[kept])
        module.load = torch[kept].load
    modules["torch.functional"].modules["F"] = torch["torch.nn.functional"]
    around = {**torch, **modules}
    for name, module in modules.items():
        parent, _, own = name.rpartition(".")
        if parent:
            around[parent].modules[own] = module
    return modules


def _filling(module: Module, place: str) -> Callable[[], None]:
    """What fills the table of a module."""
    file, _, table = place.partition(":")

    def load() -> None:
        module.fill(getattr(import_module(f"gradcli.library.{file}"), table))

    return load


# --- names ----------------------------------------------------------------------------------------


def _torch_modules() -> dict[str, Module]:
    """The catalogue's modules by their dotted names, each inside its parent."""
    modules: dict[str, Module] = {}
    for full_name in catalogue.modules:
        parts = full_name.split(".")
        for length in range(1, len(parts) + 1):
            dotted = ".".join(parts[:length])
            if dotted not in modules:
                modules[dotted] = Module(dotted, catalogue.modules.get(dotted, {}))
            if length > 1:
                modules[".".join(parts[: length - 1])].modules[parts[length - 1]] = modules[dotted]
    return modules


def _install_classes() -> None:
    """Put the classes of torch that programs name into its module."""
    table = catalogue.modules["torch"]
    for cls in (
        TENSOR,
        define("torch.Size", Size),
        define("torch.dtype", DType),
        define("torch.device", Device),
        define("torch.layout", Layout),
    ):
        cls.construct = table.get(cls.name)
        table[cls.name] = cls
    PARAMETER.construct = parameter
    catalogue.modules["torch.nn"].update(UNINITIALIZED, Parameter=PARAMETER)
    catalogue.modules["torch.linalg"]["LinAlgError"] = EXCEPTIONS["_LinAlgError"]
    catalogue.modules["torch.autograd.gradcheck"]["GradcheckError"] = EXCEPTIONS["GradcheckError"]


def _load_functions() -> None:
    """Complete the tables of custom functions, which few programs need."""
    from gradcli.autograd import custom_function  # lazy: family

    base = define(host_name(custom_function.Function), custom_function.Function)
    catalogue.modules["torch.autograd"]["Function"] = base
    catalogue.modules["torch.autograd.function"].update(
        Function=base,
        FunctionCtx=define("torch.autograd.function.FunctionCtx", custom_function.FunctionNode),
        once_differentiable=custom_function.once_differentiable,
    )


def _in_one_batch(function: Callable[..., Any], seeds: list[Any]) -> Any:
    """What a function returns for all rows of seeds at once."""
    from gradcli.library.torch.func.vmap import of_rows  # lazy: family

    return of_rows(function, seeds)


backward.in_one_batch = _in_one_batch
catalogue.class_of = class_of_host
runtime.language_name = full_type_name


def _documented(value: Any) -> Any:
    """What says in words what a value does: a class of the language is documented by its host's."""
    return getattr(value, "construct", None) or value


def _loaded_when_called(module_name: str, name: str) -> Callable[..., Any]:
    """A function of a module that is filled late, reachable where the module is not named."""

    def load_and_call(*args: Any, **kwargs: Any) -> Any:
        return MODULES[module_name].names[name](*args, **kwargs)

    called(name, load_and_call)
    # Whoever asks what it does is shown what the function does.
    vars(load_and_call)["loaded"] = lambda: _documented(MODULES[module_name].names[name])
    return load_and_call


def _of_arrays(name: str, summary: str, example: str) -> Callable[..., Any]:
    """A function between tensors and arrays, which loads `numpy` when it is called."""

    def exchange_and_call(*args: Any, **kwargs: Any) -> Any:
        from gradcli.library.numpy import exchange  # lazy: family

        assert MODULES["numpy"].names
        return getattr(exchange, name)(*args, **kwargs)

    called(name, exchange_and_call)
    describe(exchange_and_call, summary, example)
    return exchange_and_call


catalogue.methods["numpy"] = _of_arrays(
    "numpy", "The array of NumPy on the tensor's memory.", "tensor([0.5, 1., 2.]).numpy()"
)
catalogue.modules["torch"]["from_numpy"] = _of_arrays(
    "from_numpy", "The tensor on an array's memory.", "torch.from_numpy(np.ones(2))"
)
_install_classes()
_TORCH = _torch_modules()
for _name in ("torch.autograd", "torch.autograd.function"):
    _TORCH[_name].load = _load_functions
for _name, _where in (
    ("GradScaler", "torch.amp"),
    ("autocast", "torch.amp"),
    ("compile", "torch.compiler"),
    ("load", "torch.serialization"),
    ("save", "torch.serialization"),
):
    catalogue.modules["torch"][_name] = _loaded_when_called(_where, _name)
catalogue.modules["torch"]["vmap"] = _loaded_when_called("torch.func", "vmap")
# As an attribute of torch.autograd it is the function, which has the name of its module.
_TORCH["torch.autograd"].modules.pop("gradcheck")
for _name in ("gradcheck", "gradgradcheck"):
    catalogue.modules["torch.autograd"][_name] = _loaded_when_called(
        "torch.autograd.gradcheck", _name
    )

MODULES: dict[str, Module] = {**_TORCH, **library_modules(_TORCH)}
MODULES["torch"].modules["torch"] = MODULES["torch"]  # as in PyTorch, where __init__ imports it
"""The modules that can be imported."""

PREDEFINED: dict[str, Any] = {
    "__name__": "__main__",
    "F": MODULES["torch.nn.functional"],
    "math": MODULES["math"],
    "nn": MODULES["torch.nn"],
    "np": MODULES["numpy"],
    "torch": MODULES["torch"],
}
"""Names that need no import: modules, and `__name__`."""

_TABLES = (
    BUILTINS,
    PREDEFINED,
    catalogue.modules["torch"],
    catalogue.modules["torch.nn.functional"],
)

# `e` is a variable's name in every other program, so the constant is torch.e and math.e only;
# `compile` is Python's own, which is refused.
_NOT_PLAIN = frozenset({"compile", "e"})

UNSUPPORTED = {
    "__import__": "modules are imported with `import`",
    "breakpoint": "the language has no debugger of the host's",
    "compile": "a program cannot run text as code",
    "eval": "a program cannot run text as code",
    "exec": "a program cannot run text as code",
    "id": "`a is b` tells whether two values are the same",
    "input": "a program does not wait for a person: values come in as `NAME=VALUE`",
}
"""Names of Python that are not supported, and why; of its other functions there is no more to say.
"""


def plain_names() -> set[str]:
    """The names that are defined before a program assigns any."""
    return {name for table in _TABLES for name in table} - _NOT_PLAIN


def table_of(name: str) -> dict[str, Any] | None:
    """The table that defines a name which the program does not assign, None for an unknown name."""
    if name in _NOT_PLAIN:
        return None
    for table in _TABLES:
        if name in table:
            return table
    return None


def unknown_name(name: str, values: dict[str, Any], span: Span) -> GradcliError:
    """The error of an undefined name, with the one that was likely meant."""
    reason = UNSUPPORTED.get(name) or (RECORDED if hasattr(builtins, name) else None)
    if reason is not None:
        return GradcliError("E101", f"`{name}` is not part of the language", span=span, help=reason)
    needed = import_of(name)
    if needed is not None:
        help: str | None = f"write `{needed}` first"
    elif name in _NOT_PLAIN:
        help = f"the constant is `math.{name}` or `torch.{name}`, and its power `exp(x)`"
    else:
        words = ("True", "False", "None")
        help = suggestion(name, [*values, *words, *(known for table in _TABLES for known in table)])
    text = f"name '{name}' is not defined"
    return GradcliError("E101", f"`{name}` has no value", text=text, span=span, help=help)


def module(name: str) -> Module:
    """A module by its dotted name; raises E103 for one that the language does not have."""
    entry = MODULES.get(name)
    if entry is None:
        root = name.partition(".")[0]
        help = INSTEAD.get(root) or _left_out(*name.rpartition(".")[::2])
        near = closest(name, MODULES)
        if help is None and near is not None:
            help = f"did you mean `{near}`?"
        else:
            family = ", ".join(sorted(known for known in MODULES if known.startswith(f"{root}.")))
            reason = help or (family and f"of {root} there are {family}")
            help = f"{reason}; {_ways_out(root)}" if reason else _ways_out(root)
        raise GradcliError(
            "E103",
            f"there is no module `{name}` in the language",
            text=f"No module named '{name}'",
            help=help,
        )
    return entry


def _ways_out(root: str) -> str:
    return RECORDED if root in BEFORE_FILES else ways_out(root)


def _left_out(home: str, name: str) -> str | None:
    from gradcli.language.hints.unsupported import reason_unsupported  # lazy: start-up

    return reason_unsupported(home, name)


def imported(module: Module, name: str) -> Any:
    """What `from module import name` binds; raises E103 for what there is not."""
    try:
        return module.get(name)
    except KeyError:
        if f"{module.name}.{name}" in MODULES:
            return MODULES[f"{module.name}.{name}"]
        help = _left_out(module.name, name)
        near = None if help else closest(name, module.public_names())
        ways = _ways_out(module.name.partition(".")[0])
        help = f"{help}; {ways}" if help else ways
        raise GradcliError(
            "E103",
            f"the module `{module.name}` has no `{name}` in the language",
            raises="ImportError",
            help=help if near is None else f"did you mean `{near}`?",
        ) from None


def _name_parameters() -> None:
    from gradcli.library.torch.nn import traversal  # lazy: start-up: where it is used

    traversal.name_parameters()


def _module_paths() -> dict[int, tuple[str, Any]]:
    from gradcli.library.torch.nn import traversal  # lazy: start-up: where it is used

    return traversal.module_paths()


def _name_leaves(leaves: Collection[tensor.Tensor]) -> None:
    from gradcli.library.torch.nn import traversal  # lazy: start-up: where it is used

    traversal.name_leaves(leaves)


tensor.name_parameters = _name_parameters
Graph.name_leaves = staticmethod(_name_leaves)
Graph.module_paths = staticmethod(_module_paths)
