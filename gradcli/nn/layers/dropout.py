"""Dropout as layers, which drop in training only."""

from __future__ import annotations

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.nn.layer import FUNCTIONS, Layer, layer


class _Dropout(Layer):
    """Sets elements, or whole channels, to 0 with probability p."""

    def check(self) -> None:
        p = self._values["p"]
        if not 0 <= p <= 1:
            raise value_error(
                f"{self._get_name()}(): p is a probability, and {p} is none",
                text=f"dropout probability has to be between 0 and 1, but got {p}",
            )

    def forward(self, input: Tensor) -> Tensor:
        values = self._values
        function = FUNCTIONS[self.function]
        return function(input, values["p"], self.training, inplace=values["inplace"])


for _name, _function in (
    ("Dropout", "dropout"),
    ("Dropout1d", "dropout1d"),
    ("Dropout2d", "dropout2d"),
    ("Dropout3d", "dropout3d"),
    ("AlphaDropout", "alpha_dropout"),
    ("FeatureAlphaDropout", "feature_alpha_dropout"),
):
    layer("dropout", _name, _function, "p inplace", "p={p}, inplace={inplace}", _Dropout)
