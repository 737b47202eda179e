"""Optimisers with a step size for each element: `Adam AdamW Adamax NAdam RAdam`, and
`RMSprop Adagrad Adadelta Rprop`; and those that look at a parameter as a matrix: `Adafactor Muon`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.kernels import in_c
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    add_product,
    add_quotient,
    add_scaled,
    check_range,
    decayed,
    interpolate,
    narrowed,
    number,
    rounded,
    scalar,
    scale,
    stepped,
    zeros_like,
)
from gradcli.ops.binding.functions import methods, torch


class RMSprop(Optimizer):
    """The gradient over the root of the running average of its square.

    Raises E204 for a setting out of range.

    Example: torch.optim.RMSprop([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable,"
        " foreach, maximize, differentiable"
    )
    before: ClassVar[dict[str, str]] = {"momentum": "alpha", "centered": "weight_decay"}
    not_negative = ("lr", "eps", "momentum", "weight_decay", "alpha")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["square_avg"] = zeros_like(array)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_like(array)
            if group["centered"]:
                state["grad_avg"] = zeros_like(array)
        stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        alpha, square = group["alpha"], state["square_avg"].array
        scale(square, alpha)
        add_product(square, gradient, gradient, 1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].array
            interpolate(mean, gradient, 1 - alpha)
            variance = square.copy()
            add_product(variance, mean, mean, -1)
            root = np.sqrt(variance)
        else:
            root = np.sqrt(square)
        root = root + rounded(group["eps"], array)
        lr = number(group["lr"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].array
            scale(buffer, group["momentum"])
            add_quotient(buffer, gradient, root, 1)
            add_scaled(array, buffer, -lr)
        else:
            add_quotient(array, gradient, root, -lr)
        return 1


class Adagrad(Optimizer):
    """The gradient over the root of the sum of all its squares so far.

    Example: torch.optim.Adagrad([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach, *,"
        " maximize, differentiable, fused"
    )
    before: ClassVar[dict[str, str]] = {"eps": "weight_decay"}
    not_negative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def begin(self, params: Any, settings: Group) -> None:
        super().begin(params, settings)
        for group in self.param_groups:
            for parameter in group["params"]:
                each = group["initial_accumulator_value"]
                if parameter.array.dtype.kind == "c":
                    each = complex(each, each)
                first = np.full_like(parameter.array, each)
                self.state[parameter] = {"step": scalar(0.0), "sum": Tensor(first)}

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:  # a parameter of a group that was added later
            state["step"] = scalar(0.0)
            state["sum"] = Tensor(np.full_like(array, group["initial_accumulator_value"]))
        step = stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        total = state["sum"].array
        add_product(total, gradient, gradient, 1)
        root = np.sqrt(total) + rounded(group["eps"], array)
        lr = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        add_quotient(array, gradient, root, -lr)
        return 1


class Adadelta(Optimizer):
    """Steps as large as earlier ones, by running averages of squares of both gradients and
    steps.

    Example: torch.optim.Adadelta([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach, *, capturable, maximize,"
        " differentiable"
    )
    before: ClassVar[dict[str, str]] = {"foreach": "differentiable", "maximize": "capturable"}
    not_negative = ("lr", "eps", "weight_decay")

    def check(self, settings: Group) -> None:
        super().check(settings)
        if not 0.0 <= settings["rho"] <= 1.0:
            raise value_error(f"rho has to be from 0 to 1, and is {settings['rho']}")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["square_avg"] = zeros_like(array)
            state["acc_delta"] = zeros_like(array)
        stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        rho, eps = group["rho"], rounded(group["eps"], array)
        square, steps = state["square_avg"].array, state["acc_delta"].array
        scale(square, rho)
        add_product(square, gradient, gradient, 1 - rho)
        change = np.sqrt(steps + eps) / np.sqrt(square + eps) * gradient
        scale(steps, rho)
        add_product(steps, change, change, 1 - rho)
        add_scaled(array, change, -number(group["lr"]))
        return 1


class Rprop(Optimizer):
    """Steps by the gradient's sign, longer while it stays the same and shorter when it turns.

    Example: torch.optim.Rprop([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcmul_"

    settings = (
        "lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable, foreach, maximize,"
        " differentiable"
    )
    before: ClassVar[dict[str, str]] = {"capturable": ""}

    def check(self, settings: Group) -> None:
        super().check(settings)
        etas = settings["etas"]
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise value_error(f"Invalid eta values: {etas[0]}, {etas[1]}")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["prev"] = zeros_like(array)
            state["step_size"] = Tensor(np.full_like(array, number(group["lr"])))
        stepped(state)
        shorter, longer = group["etas"]
        before, size = state["prev"].array, state["step_size"].array
        sign = np.sign(gradient * before)
        kind = array.dtype.type
        factor = np.where(sign > 0, kind(longer), np.where(sign < 0, kind(shorter), kind(1)))
        size[...] = np.clip(size * factor, *map(kind, group["step_sizes"]))
        gradient = np.where(sign < 0, kind(0), gradient)
        add_product(array, np.sign(gradient), size, -1)
        before[...] = gradient
        return 1


# --- Adam and its relatives -----------------------------------------------------------------------


def _averages(state: State, array: Any, *more: str) -> None:
    """The initial state: a step count, and running averages of zero."""
    state["step"] = scalar(0.0)
    for name in ("exp_avg", *more):
        state[name] = zeros_like(array)


def _decayed(array: Any, gradient: Any, group: Group) -> tuple[Any, int]:
    """The gradient with the decay of the weights, or the weights decayed; how often they were
    written.
    """
    decay = group["weight_decay"]
    if decay == 0 or not group["decoupled_weight_decay"]:
        return decayed(array, gradient, decay), 0
    scale(array, 1 - number(group["lr"]) * decay)
    return gradient, 1


def _moments(state: State, gradient: Any, group: Group) -> tuple[Any, Any]:
    """The running averages of the gradient and of its square, after one more gradient."""
    beta1, beta2 = map(number, group["betas"])
    average, square = state["exp_avg"].array, state["exp_avg_sq"].array
    interpolate(average, gradient, 1 - beta1)
    scale(square, beta2)
    add_product(square, gradient, gradient, 1 - beta2)
    return average, square


def _numbers(step: float, group: Group) -> tuple[float, ...]:
    """The numbers of the kernel in C."""
    beta1, beta2 = group["betas"]
    settings = group["weight_decay"], group["decoupled_weight_decay"], group["eps"]
    return _numbers_of(step, number(group["lr"]), number(beta1), number(beta2), *settings)


@lru_cache(maxsize=16)  # the parameters of a group have the same ones in a step
def _numbers_of(
    step: float, lr: float, beta1: float, beta2: float, decay: float, decoupled: bool, eps: float
) -> tuple[float, ...]:
    return (
        0 if decoupled else decay,
        1 - lr * decay if decoupled else 1,
        beta1,
        beta2,
        (1 - beta2**step) ** 0.5,
        eps,
        -(lr / (1 - beta1**step)),
    )


class _Averaging(Optimizer):
    """The base of those with two decay rates of running averages."""

    not_negative = ("lr", "eps", "weight_decay")

    def check(self, settings: Group) -> None:
        super().check(settings)
        betas = settings["betas"]
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise value_error("betas must be either both floats or both Tensors")
        check_range("betas[0]", number(betas[0]), 0.0, 1.0)
        check_range("betas[1]", number(betas[1]), 0.0, 1.0)


class Adam(_Averaging):
    """Steps of about `lr`: the running average of the gradient over the root of its square's.

    Raises E204 for a setting out of range.

    Example: torch.optim.Adam([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach,"
        " maximize, capturable, differentiable, fused, decoupled_weight_decay=False"
    )
    before: ClassVar[dict[str, str]] = {"maximize": "foreach"}

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            more = ("max_exp_avg_sq",) if group["amsgrad"] else ()
            _averages(state, array, "exp_avg_sq", *more)
        step = stepped(state)
        if not group["amsgrad"]:
            writes = self.apply(array, gradient, state, group, _numbers(step, group))
            if writes:
                return writes
        gradient, writes = _decayed(array, gradient, group)
        average, square = _moments(state, gradient, group)
        beta1, beta2 = map(number, group["betas"])
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"].array
            np.maximum(largest, square, out=largest)
            square = largest
        root = narrowed(np.sqrt(square) / rounded((1 - beta2**step) ** 0.5, square), square)
        root = narrowed(root + rounded(group["eps"], square), square)
        add_quotient(array, average, root, -(number(group["lr"]) / (1 - beta1**step)))
        return 1 + writes

    def scheduled(self, group: Group) -> tuple[str, ...]:
        return ("lr", "betas")

    def numbers(self, state: State, group: Group) -> tuple[float, ...] | None:
        return _numbers(stepped(state), group) if state and not group["amsgrad"] else None

    def apply(
        self, array: Any, gradient: Any, state: State, group: Group, numbers: tuple[Any, ...]
    ) -> int:
        """A step by the kernel in C; 0 where there is none for these arrays."""
        averages = state["exp_avg"].array, state["exp_avg_sq"].array
        if not in_c.adam((array, gradient, *averages), numbers):
            return 0
        return 2 if group["weight_decay"] != 0 and group["decoupled_weight_decay"] else 1


class AdamW(Adam):
    """Adam with weight decay apart from the gradient.

    Example: torch.optim.AdamW([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "mul_"

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize,"
        " foreach, capturable, differentiable, fused"
    )

    def check(self, settings: Group) -> None:
        super().check(settings)
        settings["decoupled_weight_decay"] = True


class Adamax(_Averaging):
    """Adam with the largest gradient so far, which fades, in place of the root of the average.

    Example: torch.optim.Adamax([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach, *, maximize,"
        " differentiable, capturable"
    )

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            _averages(state, array, "exp_inf")
        step = stepped(state)
        beta1, beta2 = group["betas"]
        gradient = decayed(array, gradient, group["weight_decay"])
        average, largest = state["exp_avg"].array, state["exp_inf"].array
        interpolate(average, gradient, 1 - beta1)
        scale(largest, beta2)
        np.maximum(largest, np.abs(gradient) + rounded(group["eps"], array), out=largest)
        add_quotient(array, average, largest, -(number(group["lr"]) / (1 - beta1**step)))
        return 1


class NAdam(_Averaging):
    """Adam with Nesterov's momentum, which looks one step ahead.

    Example: torch.optim.NAdam([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,"
        " decoupled_weight_decay=False, *, foreach, maximize, capturable, differentiable"
    )
    before: ClassVar[dict[str, str]] = {"maximize": "foreach"}

    def check(self, settings: Group) -> None:
        super().check(settings)
        check_range("momentum_decay", number(settings["momentum_decay"]))

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"], state["mu_product"] = scalar(0.0), scalar(1.0)
            state["exp_avg"], state["exp_avg_sq"] = zeros_like(array), zeros_like(array)
        step = stepped(state)
        lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        gradient, writes = _decayed(array, gradient, group)
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        product = state["mu_product"]
        product.array = product.array * rounded(mu, product.array)
        so_far = float(product.array)
        average, square = _moments(state, gradient, group)
        root = np.sqrt(square / rounded(1 - beta2**step, square))
        root = root + rounded(group["eps"], square)
        add_quotient(array, gradient, root, -lr * (1.0 - mu) / (1.0 - so_far))
        add_quotient(array, average, root, (-lr * mu_next) / (1.0 - so_far * mu_next))
        return 2 + writes


class RAdam(_Averaging):
    """Adam that goes by the gradient's average alone until its square's is reliable.

    Example: torch.optim.RAdam([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,"
        " foreach, maximize, capturable, differentiable"
    )
    before: ClassVar[dict[str, str]] = {
        "decoupled_weight_decay": "differentiable",
        "maximize": "foreach",
    }

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            _averages(state, array, "exp_avg_sq")
        step = stepped(state)
        lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        gradient, writes = _decayed(array, gradient, group)
        average, square = _moments(state, gradient, group)
        correction = 1 - beta2**step
        change = average / rounded(1 - beta1**step, array) * rounded(lr, array)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction
        if length > 5.0:
            root = np.sqrt(square) + rounded(group["eps"], array)
            change = change * (rounded(correction**0.5, array) / root)
            rectified = (length - 4) * (length - 2) * longest
            rectified = (rectified / ((longest - 4) * (longest - 2) * length)) ** 0.5
            change = change * rounded(rectified, array)
        array -= change.astype(array.dtype)
        return 1 + writes


def _check(value: Any, least: float, text: str) -> None:
    """Raise E204 for a setting below the least one."""
    if number(value) < least:
        raise value_error(f"{text} should be >= {least:g} but is: {value}")


class Adafactor(Optimizer):
    """Steps over the root of a running average of squares, of which a matrix keeps the means of its
    rows and columns alone; each is as large as the parameter's own elements.

    Raises E204 for a setting out of range.

    Example: torch.optim.Adafactor([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach, maximize"
    )

    def check(self, settings: Group) -> None:
        _check(settings["lr"], 0, "Learning rate")
        if settings["beta2_decay"] > 0:
            raise value_error(f"beta2_decay should be <= 0 but is: {settings['beta2_decay']}")
        _check(settings["eps"][0] or 0, 0, "epsilon1")
        _check(settings["eps"][1], 0, "epsilon2")
        _check(settings["d"], 1, "Clipping threshold d")
        _check(settings["weight_decay"], 0, "weight_decay")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            shape = gradient.shape
            if gradient.ndim > 1:
                state["row_var"] = Tensor(np.zeros((*shape[:-1], 1), gradient.dtype))
                state["col_var"] = Tensor(np.zeros((*shape[:-2], 1, shape[-1]), gradient.dtype))
            else:
                state["variance"] = Tensor(np.zeros(shape, gradient.dtype))
        step = stepped(state)
        parameter, grad, lr = Tensor(array), Tensor(gradient), number(group["lr"])
        least = group["eps"][0]
        least = float(np.finfo(array.dtype).eps) if least is None else least
        size = math.sqrt(array.size)
        alpha = max(group["eps"][1], _length(parameter) / size) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            methods.mul_(parameter, 1 - lr * group["weight_decay"])
        estimate = _squares(grad, state, step ** group["beta2_decay"], least)
        update = methods.rsqrt_(methods.clamp_(estimate, min=least * least))
        methods.mul_(update, grad)
        clipped = max(1.0, _length(update) / (size * group["d"]))
        methods.add_(parameter, update, alpha=-alpha / clipped)
        array[...] = parameter.array
        return 1


def _length(tensor: Tensor) -> float:
    return float(methods.norm(tensor, 2).item())


def _squares(grad: Tensor, state: State, share: float, least: float) -> Tensor:
    """The running average of squares, moved by a share towards those of a gradient."""
    if grad.ndim < 2:
        variance = state["variance"]
        methods.lerp_(variance, grad * grad, share)
        return Tensor(variance.array.copy())
    rows, columns = state["row_var"], state["col_var"]
    for averages, dim in ((rows, -1), (columns, -2)):
        lengths = torch.norm(grad, dim=dim, keepdim=True)
        means = methods.div_(methods.square_(lengths), grad.array.shape[dim])
        methods.lerp_(averages, means, share)
    whole = methods.clamp_(methods.mean(rows, dim=-2, keepdim=True), min=least)
    return methods.div_(torch.matmul(rows, columns), whole)


class Muon(Optimizer):
    """Steps along the nearest matrix with orthogonal rows to a running average of the gradients.

    Raises E204 for a parameter that is no matrix, and for a setting out of range.

    Example: torch.optim.Muon([torch.ones(2, 2, requires_grad=True)], lr=0.1)
    """

    written_by = "mul_"

    settings = (
        "lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,"
        " ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None"
    )

    def check(self, settings: Group) -> None:
        _check(settings["lr"], 0, "Learning rate")
        _check(settings["momentum"], 0, "momentum")
        _check(settings["weight_decay"], 0, "weight decay")
        kind = settings["adjust_lr_fn"]
        if kind not in (None, "original", "match_rms_adamw"):
            raise value_error(f"Adjust learning rate function {kind} is not supported")
        if len(settings["ns_coefficients"]) != 3:
            raise value_error("Coefficients must be a tuple of exactly 3 values")
        if settings["ns_steps"] >= 100:
            raise value_error("Number of steps must be less than 100 for computational efficiency")

    def begin(self, params: Any, settings: Group) -> None:
        super().begin(params, settings)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise value_error(
                        "Muon only supports 2D parameters whereas we found a parameter with size:"
                        f" torch.Size({list(parameter.array.shape)})"
                    )

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["momentum_buffer"] = Tensor(np.zeros_like(gradient))
        parameter, grad, lr = Tensor(array), Tensor(gradient), number(group["lr"])
        average, momentum = state["momentum_buffer"], group["momentum"]
        methods.lerp_(average, grad, 1 - momentum)
        update = methods.lerp(grad, average, momentum) if group["nesterov"] else average
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = array.shape
        share = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            share = 0.2 * math.sqrt(max(rows, columns))
        methods.mul_(parameter, 1 - lr * group["weight_decay"])
        methods.add_(parameter, update, alpha=-lr * share)
        array[...] = parameter.array
        return 1


def _orthogonal(matrix: Tensor, factors: Any, steps: int, least: float) -> Tensor:
    """A matrix with singular values near 1, in bfloat16: each step of Newton and Schulz moves them
    there by a polynomial of degree five.
    """
    first, third, fifth = factors
    tall = matrix.array.shape[0] > matrix.array.shape[1]
    iterate = methods.to(matrix, dtypes.bfloat16)
    iterate = methods.t(iterate) if tall else iterate
    iterate = iterate / methods.clamp(methods.norm(iterate), min=least)
    addmm = torch.addmm
    for _ in range(steps):
        gram = torch.matmul(iterate, methods.t(iterate))
        factor = addmm(gram, gram, gram, beta=third, alpha=fifth)
        iterate = addmm(iterate, factor, iterate, beta=first)
    return methods.t(iterate) if tall else iterate
