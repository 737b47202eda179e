"""Stand-ins for CuPy's kernels: their text is compiled as C++ and run here.

Each block has one thread, which goes over its share of the elements as a GPU's threads would; what
is shared within a block is its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("c++") or shutil.which("g++")
"""What compiles kernels; tests that run kernels skip without one."""

_TYPES = {"float32": "float", "float64": "double", "bool": "bool", "int64": "long long"}

_BEFORE = """
#include <cmath>
using namespace std;
#define __device__
#define __shared__
#define __syncthreads()
struct Place { unsigned x; };
"""

_ELEMENTWISE = """
extern "C" void run(long long size, unsigned blocks, void** given) {
  Place blockDim = {1}, threadIdx = {0}, gridDim = {blocks};
  (void)blockDim; (void)threadIdx;
  for (unsigned block = 0; block < blocks; ++block) {
    Place blockIdx = {block}; (void)blockIdx;
    %(raw)s
    %(loop_prep)s
    for (long long at = block; at < size; at += gridDim.x) {
      %(element)s
      %(operation)s;
    }
    %(after_loop)s
  }
}
"""

_REDUCTION = """
extern "C" void run(long long size, unsigned parts, void** given) {
  for (unsigned part = 0; part < parts; ++part) {
    %(type)s a = %(identity)s;
    for (long long at = part * size; at < part * size + size; ++at) {
      %(element)s
      const %(type)s b = %(map)s;
      a = %(reduce)s;
    }
    %(outputs)s
    %(post)s;
  }
}
"""


def _parsed(parameters: str) -> list[tuple[bool, str, str]]:
    """Whether each parameter is raw, its dtype and its name."""
    found = []
    for text in parameters.split(","):
        *raw, dtype, name = text.split()
        found.append((raw == ["raw"], dtype, name))
    return found


_compiled: dict[str, Any] = {}


def _function(source: str) -> Any:
    """The function `run` of a source text."""
    if source not in _compiled:
        assert COMPILER is not None, "no C++ compiler"
        folder = Path(tempfile.gettempdir()) / f"gradcli-kernels-{id(_compiled):x}"
        folder.mkdir(exist_ok=True)
        name = hashlib.sha256(source.encode()).hexdigest()[:20]
        text, library = folder / f"{name}.cpp", folder / f"{name}.so"
        text.write_text(source)
        command = [COMPILER, "-O0", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([*command, str(text), "-o", str(library)], check=True)
        _compiled[source] = ctypes.CDLL(str(library)).run
        shutil.rmtree(folder)
    return _compiled[source]


def _called(function: Any, size: int, blocks: int, arrays: list[Any]) -> None:
    pointers = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    function(ctypes.c_longlong(size), ctypes.c_uint(blocks), pointers)


def _hosts(values: Any, parameters: list[tuple[bool, str, str]]) -> list[Any]:
    """The operands as ndarrays; each must have its parameter's dtype."""
    hosts = []
    for value, (_, dtype, name) in zip(values, parameters, strict=True):
        host = value.host if hasattr(value, "host") else np.asarray(value, dtype)
        assert host.dtype == dtype, f"{name} is {host.dtype}, not {dtype}"
        hosts.append(host)
    return hosts


class ElementwiseKernel:
    """A kernel that runs once for every element; arrays that are not raw are broadcast."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str,
        *,
        no_return: bool = False,
        loop_prep: str = "",
        after_loop: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        assert no_return
        self.made_of = (
            (in_params, out_params, operation, name),
            {
                "no_return": no_return,
                "loop_prep": loop_prep,
                "after_loop": after_loop,
                "options": options,
            },
        )
        inputs, outputs = _parsed(in_params), _parsed(out_params)
        self.parameters = [*inputs, *outputs]
        self.inputs = len(inputs)
        raw, element = [], []
        for number, (is_raw, dtype, each) in enumerate(self.parameters):
            pointer = f"(({_TYPES[dtype]}*)given[{number}])"
            constant = "const " if number < len(inputs) else ""
            if is_raw:
                raw.append(f"{_TYPES[dtype]}* {each} = {pointer};")
            else:
                element.append(f"{constant}{_TYPES[dtype]}& {each} = {pointer}[at];")
        self.source = _BEFORE + _ELEMENTWISE % {
            "raw": "\n".join(raw),
            "element": "\n".join(element),
            "loop_prep": loop_prep,
            "operation": operation,
            "after_loop": after_loop,
        }

    def __call__(self, *values: Any, block_size: int = 128) -> None:
        from tests.stand_in_cupy import counts, tried

        counts.launched += 1
        tried("ElementwiseKernel", values, {"block_size": block_size}, self.made_of)
        hosts = _hosts(values, self.parameters)
        shown = [a for a, (raw, _, _) in zip(hosts, self.parameters, strict=True) if not raw]
        shape = np.broadcast_shapes(*[array.shape for array in shown])
        size = int(np.prod(shape))
        given: list[Any] = []
        for array, (raw, _, name) in zip(hosts, self.parameters, strict=True):
            assert raw or len(given) < self.inputs or array.shape == shape, f"{name}: {array.shape}"
            whole = array if raw else np.broadcast_to(array, shape)
            given.append(np.array(whole, order="C"))
        _called(_function(self.source), size, -(-size // block_size), given)
        for array, result in zip(hosts[self.inputs :], given[self.inputs :], strict=True):
            array[...] = result


class ReductionKernel:
    """A kernel that combines what an expression gives for every element."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: str,
        name: str,
        *,
        reduce_type: str,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        self.made_of = (
            (in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name),
            {
                "reduce_type": reduce_type,
                "preamble": preamble,
                "options": options,
            },
        )
        self.parameters = _parsed(in_params)
        results = _parsed(out_params)
        self.dtypes = [dtype for _, dtype, _ in results]
        element = [
            f"const {_TYPES[dtype]}& {each} = (({_TYPES[dtype]}*)given[{number}])[at];"
            for number, (_, dtype, each) in enumerate(self.parameters)
        ]
        outputs = [
            f"{_TYPES[dtype]}& {each} = (({_TYPES[dtype]}*)given[{number}])[part];"
            for number, (_, dtype, each) in enumerate(results, len(self.parameters))
        ]
        self.source = f"{_BEFORE}{preamble}" + _REDUCTION % {
            "type": reduce_type,
            "identity": identity,
            "element": "\n".join(element),
            "map": map_expr,
            "reduce": reduce_expr,
            "outputs": "\n".join(outputs),
            "post": post_map_expr,
        }

    def __call__(self, *values: Any, axis: Any) -> Any:
        from tests.stand_in_cupy import asarray, counts, tried

        counts.launched += 1
        same = tried("ReductionKernel", values, {"axis": axis}, self.made_of)
        hosts = _hosts(values, self.parameters)
        shape = np.broadcast_shapes(*[array.shape for array in hosts])
        kept = [k for k in range(len(shape)) if k not in axis]
        order = [*kept, *axis]
        given = [
            np.array(np.broadcast_to(array, shape).transpose(order), order="C") for array in hosts
        ]
        found = [np.empty([shape[k] for k in kept], dtype) for dtype in self.dtypes]
        parts = found[0].size
        size = int(np.prod([shape[k] for k in axis]))
        _called(_function(self.source), size, parts, [*given, *found])
        results = [asarray(each) for each in found]
        return same(results[0] if len(results) == 1 else tuple(results))
