"""The types of what Python programs use. Inputs and settings are keywords of one call, and a type
for some of its keywords has to name them: what `gradcli/doors/python` takes as `named`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from gradcli.doors.notebook.magics import load_ipython_extension as load_ipython_extension
from gradcli.doors.python.host import GradcliWarning as GradcliWarning
from gradcli.doors.python.inputs import Text
from gradcli.doors.python.program import Compiled as Compiled
from gradcli.doors.python.program import compile as compile
from gradcli.doors.python.questions import Answer as Answer
from gradcli.doors.python.result import Edge as Edge
from gradcli.doors.python.result import Graph as Graph
from gradcli.doors.python.result import Node as Node
from gradcli.doors.python.result import Place as Place
from gradcli.doors.python.result import Result as Result
from gradcli.doors.python.session import Session as Session
from gradcli.doors.torch.library import torch as torch
from gradcli.errors import GradcliError as GradcliError

_Dtype = Literal["float16", "bfloat16", "float32", "float64", "half", "float", "double"]

__version__: str
__all__: tuple[str, ...]

def run(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Result: ...
def grad(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> dict[str, Any]: ...
def flow(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
def explain(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    element: Sequence[int] | None = None,
    ties: bool = False,
    paths: str | None = None,
    saved: bool = False,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
def derive(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    target: Literal["gradcli", "latex", "numpy", "torch"] = "gradcli",
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
def why(
    question: str,
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
def blame(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    all: bool = False,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
def check(
    text: Text | Path,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    order: Literal[1, 2] = 1,
    elements: int | None = None,
    equals: Mapping[str, str] | None = None,
    against: Mapping[str, Any] | str | None = None,
    of: str | None = None,
    wrt: str | Sequence[str] | None = None,
    seed: ArrayLike | None = None,
    dtype: _Dtype | None = None,
    device: str | None = None,
    manual_seed: int | None = None,
    no_compiled_loops: bool = False,
    timeout: float | None = None,
    max_memory: int | str | None = None,
    max_elements: int | None = None,
    max_steps: int | None = None,
    sandbox: bool = False,
    **named: Any,
) -> Answer: ...
