"""Losses as layers: called with predictions and targets."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.library.torch.nn.layer import (
    FUNCTIONS,
    Layer,
    Settings,
    bound,
    layer,
    register_base,
)
from gradcli.library.torch.nn.module import Module
from gradcli.ops.nn.loss.elementwise import chosen_reduction


class Loss(Layer):
    """A loss; weights among its settings are buffers, and the old settings `size_average` and
    `reduce` choose the reduction where they are given. One that a program derives from it, as
    `_Loss`, has no function.
    """

    function: ClassVar[str] = ""
    template: ClassVar[str] = ""
    own: ClassVar[Settings] = {"size_average": None, "reduce": None, "reduction": "mean"}
    defaults: ClassVar[Settings] = {"size_average": None, "reduce": None}
    weights: ClassVar[tuple[str, ...]] = ("weight", "pos_weight")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.function:
            super().__init__(*args, **kwargs)
            return
        Module.__init__(self)
        self._values.update(bound(type(self).__name__, self.own, args, kwargs))
        self.check()

    def check(self) -> None:
        average, reduce = self._values.pop("size_average", None), self._values.pop("reduce", None)
        if average is not None or reduce is not None:
            self._values["reduction"] = chosen_reduction(average, reduce, "")
        for name in self.weights:
            if name in self._values:
                self.register_buffer(name, self._values.pop(name))

    def forward(self, *inputs: Any) -> Tensor:
        if not self.function:
            result: Tensor = Module.forward(self, *inputs)
            return result
        values = {name: self.lookup(name) for name in self.settings if name not in self.defaults}
        return FUNCTIONS[self.function](*inputs, **values)


class _Weighted(Loss):
    """The base of those with a weight for each class."""

    own: ClassVar[Settings] = {"weight": None, **Loss.own}


class _OfDistance(Loss):
    """A loss whose distance is a function or a module of the program's."""

    def check(self) -> None:
        distance = self._values.pop("distance_function")
        self.register(
            "distance_function",
            PairwiseDistance() if distance is None else distance,
        )


for _name, _function, _settings in (
    ("BCELoss", "binary_cross_entropy", "weight size_average reduce reduction"),
    (
        "BCEWithLogitsLoss",
        "binary_cross_entropy_with_logits",
        "weight size_average reduce reduction pos_weight",
    ),
    ("CTCLoss", "ctc_loss", "blank reduction zero_infinity"),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", "margin size_average reduce reduction"),
    (
        "CrossEntropyLoss",
        "cross_entropy",
        "weight size_average ignore_index reduce reduction label_smoothing",
    ),
    ("GaussianNLLLoss", "gaussian_nll_loss", "full eps reduction"),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", "margin size_average reduce reduction"),
    ("HuberLoss", "huber_loss", "reduction delta"),
    ("KLDivLoss", "kl_div", "size_average reduce reduction log_target"),
    ("L1Loss", "l1_loss", "size_average reduce reduction"),
    ("MSELoss", "mse_loss", "size_average reduce reduction"),
    ("MarginRankingLoss", "margin_ranking_loss", "margin size_average reduce reduction"),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", "size_average reduce reduction"),
    (
        "MultiLabelSoftMarginLoss",
        "multilabel_soft_margin_loss",
        "weight size_average reduce reduction",
    ),
    ("MultiMarginLoss", "multi_margin_loss", "p margin weight size_average reduce reduction"),
    ("NLLLoss", "nll_loss", "weight size_average ignore_index reduce reduction"),
    ("PoissonNLLLoss", "poisson_nll_loss", "log_input full size_average eps reduce reduction"),
    ("SmoothL1Loss", "smooth_l1_loss", "size_average reduce reduction beta"),
    ("SoftMarginLoss", "soft_margin_loss", "size_average reduce reduction"),
    (
        "TripletMarginLoss",
        "triplet_margin_loss",
        "margin p eps swap size_average reduce reduction",
    ),
):
    _is_weighted = _settings.split()[0] == "weight" and "pos_weight" not in _settings
    _is_weighted = _is_weighted or _name == "MultiMarginLoss"
    layer("loss", _name, _function, _settings, "", _Weighted if _is_weighted else Loss)

layer("distance", "CosineSimilarity", "cosine_similarity", "dim eps", "")
PairwiseDistance = layer("distance", "PairwiseDistance", "pairwise_distance", "p eps keepdim", "")
layer(
    "loss",
    "TripletMarginWithDistanceLoss",
    "triplet_margin_with_distance_loss",
    "distance_function margin swap reduction",
    "",
    _OfDistance,
    "nn.TripletMarginWithDistanceLoss(swap=True)",
)

register_base("loss", "_Loss", Loss)
register_base("loss", "_WeightedLoss", _Weighted)
