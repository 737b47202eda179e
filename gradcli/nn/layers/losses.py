"""Losses as layers: called with predictions and targets."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.nn.layer import FUNCTIONS, Layer, layer
from gradcli.ops.binding.catalogue import modules


class Loss(Layer):
    """A loss; weights among its settings are buffers, and the old settings `size_average` and
    `reduce` choose the reduction where they are given.
    """

    weights: ClassVar[tuple[str, ...]] = ("weight", "pos_weight")

    def check(self) -> None:
        average, reduce = self._values.pop("size_average", None), self._values.pop("reduce", None)
        if average is not None or reduce is not None:
            kept = "mean" if average is not False else "sum"
            self._values["reduction"] = kept if reduce is not False else "none"
        for name in self.weights:
            if name in self._values:
                self.register_buffer(name, self._values.pop(name))

    def forward(self, *inputs: Any) -> Tensor:
        values = {
            name: self.lookup(name)
            for name in self.settings
            if name not in ("size_average", "reduce")
        }
        return FUNCTIONS[self.function](*inputs, **values)


class _OfDistance(Loss):
    """A loss whose distance is a function or a module of the program's."""

    def check(self) -> None:
        given = self._values.pop("distance_function")
        self.register(
            "distance_function",
            modules["torch.nn"]["PairwiseDistance"]() if given is None else given,
        )


_LEGACY = {"size_average": None, "reduce": None}
_MEAN = {"reduction": "mean"}

for _name, _function, _settings in (
    ("BCELoss", "binary_cross_entropy", {"weight": None, **_LEGACY, **_MEAN}),
    (
        "BCEWithLogitsLoss",
        "binary_cross_entropy_with_logits",
        {"weight": None, **_LEGACY, **_MEAN, "pos_weight": None},
    ),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 0.0, **_LEGACY, **_MEAN}),
    (
        "CrossEntropyLoss",
        "cross_entropy",
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
            "label_smoothing": 0.0,
        },
    ),
    ("GaussianNLLLoss", "gaussian_nll_loss", {"full": False, "eps": 1e-06, **_MEAN}),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 1.0, **_LEGACY, **_MEAN}),
    ("HuberLoss", "huber_loss", {**_MEAN, "delta": 1.0}),
    ("KLDivLoss", "kl_div", {**_LEGACY, **_MEAN, "log_target": False}),
    ("L1Loss", "l1_loss", {**_LEGACY, **_MEAN}),
    ("MSELoss", "mse_loss", {**_LEGACY, **_MEAN}),
    ("MarginRankingLoss", "margin_ranking_loss", {"margin": 0.0, **_LEGACY, **_MEAN}),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", {**_LEGACY, **_MEAN}),
    (
        "MultiMarginLoss",
        "multi_margin_loss",
        {"p": 1, "margin": 1.0, "weight": None, **_LEGACY, **_MEAN},
    ),
    ("CTCLoss", "ctc_loss", {"blank": 0, **_MEAN, "zero_infinity": False}),
    (
        "MultiLabelSoftMarginLoss",
        "multilabel_soft_margin_loss",
        {"weight": None, **_LEGACY, **_MEAN},
    ),
    (
        "NLLLoss",
        "nll_loss",
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    (
        "PoissonNLLLoss",
        "poisson_nll_loss",
        {
            "log_input": True,
            "full": False,
            "size_average": None,
            "eps": 1e-08,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    ("SmoothL1Loss", "smooth_l1_loss", {**_LEGACY, **_MEAN, "beta": 1.0}),
    ("SoftMarginLoss", "soft_margin_loss", {**_LEGACY, **_MEAN}),
    (
        "TripletMarginLoss",
        "triplet_margin_loss",
        {"margin": 1.0, "p": 2.0, "eps": 1e-06, "swap": False, **_LEGACY, **_MEAN},
    ),
):
    layer("loss", _name, _function, _settings, base=Loss)

layer("distance", "CosineSimilarity", "cosine_similarity", {"dim": 1, "eps": 1e-08})
layer(
    "distance", "PairwiseDistance", "pairwise_distance", {"p": 2.0, "eps": 1e-06, "keepdim": False}
)
layer(
    "loss",
    "TripletMarginWithDistanceLoss",
    "triplet_margin_with_distance_loss",
    {"distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean"},
    base=_OfDistance,
    example="nn.TripletMarginWithDistanceLoss(swap=True)",
)
