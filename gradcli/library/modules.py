"""The modules that programs import beside torch's: which there are, and what stands in for others.

A module is a table of names, made when a program first asks for one of them. To add a module, write
its table (a dict from name to value) in a file of this folder and give it a line in `LIBRARY`; to
say what to write in place of one that stays outside, name it in `_REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gradcli.language.objects.attributes import Module
from gradcli.ops.binding.catalogue import modules as TORCH_MODULES

_UNDRAWN = """IPython matplotlib.animation matplotlib.axes matplotlib.collections
    matplotlib.colors matplotlib.dates matplotlib.figure matplotlib.gridspec matplotlib.image
    matplotlib.lines matplotlib.patches matplotlib.pylab matplotlib.style matplotlib.ticker
    mpl_toolkits mpl_toolkits.axes_grid1 mpl_toolkits.mplot3d mpl_toolkits.mplot3d.axes3d seaborn"""
"""The modules whose pictures are not drawn: they are accepted."""

_LAYERS = """activation batchnorm container conv distance dropout flatten fold instancenorm lazy
    linear loss module normalization padding pixelshuffle pooling rnn sparse transformer
    upsampling"""

_DISTRIBUTIONS = """bernoulli beta binomial categorical dirichlet distribution exponential gamma
    geometric independent laplace log_normal multivariate_normal normal one_hot_categorical poisson
    transformed_distribution uniform"""

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
    "csv": "python.csv:CSV",
    "dataclasses": "python.classes.dataclasses:DATACLASSES",
    "datetime": "python.time:DATETIME",
    "decimal": "python.numbers.decimal:DECIMAL",
    "enum": "python.classes.enum:ENUM",
    "fractions": "python.numbers.fractions:FRACTIONS",
    "functorch": "torch.functorch:FUNCTORCH",
    "functorch.experimental": "torch.functorch:EXPERIMENTAL",
    "functools": "python.functional:FUNCTOOLS",
    "gc": "python.system.process:GC",
    "glob": "python.system.folders:GLOB",
    "hashlib": "python.hashlib:HASHLIB",
    "heapq": "python.sequences:HEAPQ",
    "importlib": "python.system.process:IMPORTLIB",
    "importlib.metadata": "python.system.process:METADATA",
    "io": "streams:IO",
    "IPython.display": "drawing.pyplot:DISPLAY",
    "itertools": "python.functional:ITERTOOLS",
    "json": "python.json:JSON",
    "logging": "python.reports.logging:LOGGING",
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
    "traceback": "python.reports.traceback:TRACEBACK",
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
    "torch.compiler": "torch.compilation:COMPILER",
    "torch.cuda.amp": "torch.amp:CUDA_AMP",
    "torch.distributed": "torch.settings:DISTRIBUTED",
    "torch.jit": "torch.compilation:JIT",
    "torch.mps": "torch.settings:MPS_DEVICE",
    "torch.nn.modules.utils": "torch.settings:TUPLES",
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
    "warnings": "python.reports.warnings:WARNINGS",
    **dict.fromkeys(_UNDRAWN.split(), "drawing.undrawn:DRAWING"),
}
"""Each module with the file of this folder and the table in it that holds its names."""

ALIASES: dict[str, str] = {
    "torch.nn.modules": "torch.nn",
    "torch.nn.parameter": "torch.nn",
    "torch.functional": "torch",
    "torch.autograd.variable": "torch.autograd",
    "torch.optim.optimizer": "torch.optim",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
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
