"""Sizes, devices, and the modules that arrays belong to."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from gradcli.arrays import backend
from gradcli.arrays.gpu import runtime
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from tests.running import invoke, run


def test_sizes_stay_sizes() -> None:
    size, plain = Size.of([2, 3]), (2, 3)
    assert repr(size) == str(size) == "torch.Size([2, 3])"
    for made in (size[:1], size[::-1], size + plain, plain + size, size * 2, 2 * size):
        assert type(made) is Size
    assert size[1] == 3
    assert tuple(size) == plain
    assert hash(size) == hash(plain)
    assert (size.numel(), Size().numel()) == (6, 1)
    assert repr(Size()) == "torch.Size([])"
    with pytest.raises(TypeError):
        size + list(plain)


@pytest.mark.parametrize("sizes", [[2.5], ["2"], 3])
def test_sizes_are_integers(sizes: list[object]) -> None:
    with pytest.raises(GradcliError) as caught:
        Size.of(sizes)
    assert caught.value.code == "E202"


@pytest.mark.parametrize(
    ("device", "representation", "text"),
    [
        (Device("cpu"), "device(type='cpu')", "cpu"),
        (Device("cuda"), "device(type='cuda')", "cuda"),
        (Device("cuda:12"), "device(type='cuda', index=12)", "cuda:12"),
        (Device("cpu", 0), "device(type='cpu', index=0)", "cpu:0"),
        (Device(type="cuda", index=1), "device(type='cuda', index=1)", "cuda:1"),
        (Device(Device("cuda:1")), "device(type='cuda', index=1)", "cuda:1"),
        (Device(1), "device(type='cuda', index=1)", "cuda:1"),
    ],
)
def test_devices(device: Device, representation: str, text: str) -> None:
    assert repr(device) == representation
    assert str(device) == text


def test_devices_are_compared_with_their_index() -> None:
    assert Device("cuda:0") == Device("cuda", 0)
    assert hash(Device("cuda:0")) == hash(Device("cuda", 0))
    assert Device("cuda") != Device("cuda:0")
    assert Device("cpu") != "cpu"


@pytest.mark.parametrize(
    "name", ["", "gpu", "CPU", " cpu", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:²", "cpu:0:0"]
)
def test_names_of_no_device(name: str) -> None:
    with pytest.raises(GradcliError) as caught:
        Device(name)
    assert (caught.value.code, caught.value.raises) == ("E204", "RuntimeError")


def test_wrong_indices() -> None:
    for arguments, code in ((("cuda:0", 1), "E204"), (("cuda", -1), "E204"), ((True,), "E202")):
        with pytest.raises(GradcliError) as caught:
            Device(*arguments)
        assert caught.value.code == code


def test_numpys_arrays_are_on_the_cpu() -> None:
    for array in (np.ones(2), np.float32(1)):
        assert backend.module_of(array) is np
        assert backend.to_host(array) is array
        assert str(backend.device_of(array)) == str(Tensor(array).device) == "cpu"
    assert str(backend.located("ones", "cpu")) == "cpu"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """No array was on a GPU yet."""
    monkeypatch.setattr(backend, "_gpus", [])
    monkeypatch.setattr(runtime, "_loaded", {})


@pytest.mark.usefixtures("no_gpu")
def test_gpu_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(GradcliError) as caught:
        backend.located("ones", "cuda:0")
    assert (caught.value.code, caught.value.exit_code) == ("E604", 5)
    assert caught.value.help is not None
    assert "cuda12" in caught.value.help
    outcome = run("print(torch.cuda.is_available(), torch.cuda.device_count())\nones(2).cuda()")
    assert outcome.stdout == "False 0\n"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.raises) == ("E604", "RuntimeError")
    assert outcome.error.span is not None
    assert outcome.error.span.text == "ones(2).cuda()"


@pytest.mark.usefixtures("no_gpu")
def test_cupy_without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = ModuleType("cupy")
    monkeypatch.setattr(cupy, "is_available", lambda: False, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(GradcliError) as caught:
        backend.located("ones", "cuda")
    assert caught.value.code == "E604"


def test_devices_outside_the_catalogue() -> None:
    with pytest.raises(GradcliError) as caught:
        backend.located("ones", "xla")
    assert caught.value.code == "E205"


def test_the_option_for_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is not there ends a run with 5, a word that is no device with 2."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(backend, "_gpus", [])
    monkeypatch.setattr(runtime, "_loaded", {})
    program = ["y = x * 2", "x=1", "--no-trace", "--device"]
    assert invoke(*program, "cuda:0").code == 5
    assert invoke(*program, "gpu").code == 2
    shown = invoke(*program, "cpu")
    assert (shown.code, shown.stdout.splitlines()[0]) == (
        0,
        "y = tensor(2., grad_fn=<MulBackward0>)",
    )
