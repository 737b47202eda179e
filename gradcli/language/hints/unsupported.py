"""Says of what PyTorch has and gradcli has not why it is left out, or what to write instead.

`pytorch_names.txt` holds the public names of PyTorch, a line for each module or class. A rule gives
the reason for a family of them.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from gradcli.ops.binding import catalogue

RULES: tuple[tuple[str, str], ...] = (
    # What is there under another name, or was taken away.
    ("PyTorch itself has removed it: `torch.linalg` has what came after it",
     r"^(torch|Tensor)\.(eig|lstsq|solve|symeig|matrix_rank)$"),
    ("write `torch.norm(x, p)`", r"^torch\.(frobenius_norm|nuclear_norm|norm_except_dim)$"),
    ("write the function without `_copy`, and `.clone()`", r"_copy$"),
    ("write the function without `_with_indices`, and `return_indices=True`", r"_with_indices$"),
    ("write into the part that is picked of `x.clone()`", r"\.slice_inverse$"),
    ("write the function of elements with tensors", r"^Tensor\.(apply_|map_|map2_)$"),
    ("write `with torch.autocast('cpu', dtype=torch.bfloat16):`",
     r"autocast|^torch\.amp\."),
    ("windows are `torch.hann_window(n)` and its like", r"^torch\.signal"),
    ("compare with `torch.allclose`, and draw with `torch.randn`", r"^torch\.testing"),
    ("`checkpoint` and `checkpoint_sequential` are there", r"^torch\.utils\.checkpoint"),
    ("`Dataset`, `DataLoader` and the samplers are there", r"^torch\.utils\.data\."),
    ("`F.scaled_dot_product_attention` computes it, in one way",
     r"^torch\.nn\.attention|multi_head_attention_forward"),
    # What there is none of.
    ("there is one process and one device: call the module itself", r"^torch\.nn\.parallel"),
    ("there are no other processes: `--jobs` shares records among some",
     r"^torch\.distributed|DataParallel|SyncBatchNorm|multiproc|is_shared|share_memory|RRefType|"
     r"^torch\.(fork|wait|Future|futures)$|Tensor\.is_distributed"),
    ("a run is measured from outside, or by `time.perf_counter()`",
     r"profil|\.benchmark$|\.monitor$|[lL]ogger|Benchmark|[tT]hroughput"),
    ("there is one device at a time, named by `--device` or `device=`; its memory, streams and"
     " settings are not a program's",
     r"^torch\.(cuda|mps|accelerator|cpu|backends|mtia|ipu|xpu|vulkan|mkl|miopen)\b|[sS]tream|Event$|"
     r"\.(is_)?(cpu|ipu|maia|meta|mkldnn|mps|mtia|vulkan|xla|xpu)$|get_device|vulkan|DeviceObj|"
     r"^torch\.autograd\.(graph\.|set_multi|enforce_)"),
    ("there are no sparse tensors: write the matrix with its zeros, `A = torch.zeros(n, m)` and"
     " `A[i, j] = values`; its product is `A @ x`",
     r"sparse|_(cs[rc]|bs[rc]|coo)\b|coalesce|(col|row)_indices$|Sparse|"
     r"^Tensor\.(indices|values|to_dense|dense_dim|to_mkldnn)$|\.(s|hs|ds|hsp|ssp|sp|s?sp?add)mm$"),
    ("there are no nested tensors: `nn.utils.rnn.pad_sequence` makes one of sequences",
     r"nested|jagged|to_padded"),
    ("there are no masked tensors: `torch.where(mask, x, other)` picks elements",
     r"[mM]asked_?[tT]ensor"),
    ("there are no tensors of that dtype", r"^torch\.(bits\d|float[48]_|u?int\d|complex32)|chalf"),
    ("there are no quantised tensors",
     r"quant|q_(scale|zero|per)|int_repr|qscheme|qu?int\d|QU?Int|fbgemm|grouped_mm|scaled_mm|"
     r"per_(channel|tensor)_|\.(ao|qat|intrinsic)$|Scaling|Swizzle|fake_quant|choose_qparams"),
    ("sizes are known from the start, so nothing is lazy: write them, as in `nn.Linear(3, 4)`",
     r"Lazy|Uninitialized|is_lazy"),
    ("memory is out of a program's reach",
     r"[sS]torage|data_ptr|resize|empty_(strided|permuted)|from_file|frombuffer|dlpack|as_subclass|"
     r"memory_format|contiguous_format|channels_last|dim_order|Tensor\.set_|is_set_to|pin|"
     r"swap_tensors"),
    ("nothing is fetched: `torch.load` reads a file", r"^torch\.(hub|package)$"),
    # What is written with what there is.
    ("write `type(x).__name__`, and `x.type()` of a tensor", r"^torch\.typename$"),
    ("write `torch.nonzero(x)`", r"nonzero_static$"),
    ("what a distribution takes is checked where it is made; what it supports is no object",
     r"constraints|biject_to|transform_to|register_kl"),
    ("other distributions and transforms are there (`gradcli help library`); the `log_prob` of this"
     " one is written with `torch.lgamma` and its like", r"^torch\.distributions"),
    ("averages of parameters are written with `torch.no_grad()` and `lerp_`", r"\.swa?p?_"),
    ("an optimizer is a class derived from `torch.optim.Optimizer`", r"^torch\.optim"),
    ("a mask is a buffer that `forward` multiplies with the weight", r"\.prune"),
    ("what changes parameters is written with `torch.no_grad()`: they are plain tensors",
     r"^torch\.nn\.(utils|parameter)\b"),
    ("a `state_dict` is a dict, which can be changed before it is loaded", r"state_dict_\w+_hook$"),
    ("the methods and hooks that are there build, move, save and step",
     r"^(Module|Optimizer)\.(?!compile)"),
    ("programs are run as they are, not traced, compiled or exported",
     r"[sS]cript|compil|Compil|jit|\.fx$|export|onnx|\.[sS]ym|while_loop|\.cond$|functionalize|_ir\b|"
     r"_ir_|parse_|\w(Type|Graph)$|\.Graph|JIT|ExecutionPlan|StaticModule|Argument|CallStack|TracingState|"
     r"FunctionSchema|AliasDb|ErrorReport|Capsule|IODescriptor|cxx11|GraphExec|Dispatch|nativert|"
     r"ConcreteModule|\.(library|ops|classes|overrides)$|handle_torch_f|has_torch_f|Frozen"),
    # What stands below the functions that programs call.
    ("it is for PyTorch's own kernels: `torch.nn.functional` and the layers call them",
     r"cudnn|miopen|mkldnn|^torch\.(native_|lstm|gru|rnn_)|_backward|batch_norm_|grid_sampler|"
     r"affine_grid_generator|embedding_renorm_|\.convolution$|unsafe_split|\.fill$|"
     r"native_channel|as_strided_$"),
    ("random numbers come from `torch.manual_seed` and `torch.Generator`",
     r"generator|quasirandom"),
    ("it is not in the catalogue: it can be written with what is",
     r"\.(cauchy_|geometric_|log_normal_|histogram(dd)?|lobpcg|(svd|pca)_lowrank|geqrf|"
     r"ldl_\w+|nonzero_static|hash_tensor|conv_tbc|upsample_\w+|\w*chebyshev_polynomial_[vw]|"
     r"linear_cross_entropy|triplet_margin_with\w+|grad_dtype|index|new|reinforce|"
     r"set_flush_denormal|rearrange)$|^torch\.nn\.([A-Z])"),
    ("it belongs to PyTorch's own machinery", ""),
)  # fmt: skip
"""Reasons, each with a pattern of the `MODULE.NAME`s that it is given for; the first counts."""


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """The public names of PyTorch's modules, and of `Tensor`, `Module` and `Optimizer`."""
    with open(
        os.path.join(os.path.dirname(__file__), "pytorch_names.txt"), encoding="utf-8"
    ) as file:
        text = file.read()
    rows = [line.partition(":") for line in text.splitlines()]
    return {home: frozenset(names.split()) for home, _, names in rows}


def reason_unsupported(home: str, name: str) -> str | None:
    """Why a name of one of PyTorch's modules or classes is left out; None for one that it has not.

    Args:
        home: a module's name, `Tensor`, `Module` or `Optimizer`.
    """
    if name not in pytorch_names().get(home, ()):
        return None
    for other in ("torch.nn.functional", "torch.nn"):
        if home == "torch" and name in catalogue.modules[other]:
            return f"write `{other}.{name}`"
    return next(reason for reason, pattern in RULES if re.search(pattern, f"{home}.{name}"))


def home_of(value: Any) -> str | None:
    """The class of PyTorch that a value is of, among those whose names are known."""
    for kind in type(value).__mro__:
        name = str(getattr(kind, "language_name", kind.__name__)).rpartition(".")[2]
        if name in ("Tensor", "Module", "Optimizer"):
            return name
    return None
