"""Dropout as layers, which drop in training only."""

from __future__ import annotations

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.nn.layer import FUNCTIONS, Layer, layer


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


class _AlphaDropout(_Dropout):
    """The same to the lowest value of `selu`; it takes `inplace` and never writes to its input."""

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS[self.function](input, self._values["p"], self.training)


def _layer(name: str, function: str, base: type[Layer] = _Dropout) -> type[Layer]:
    return layer("dropout", name, function, "p inplace", "p={p}, inplace={inplace}", base)


Dropout = _layer("Dropout", "dropout")
_layer("Dropout1d", "dropout1d")
_layer("Dropout2d", "dropout2d")
_layer("Dropout3d", "dropout3d")
_layer("AlphaDropout", "alpha_dropout", _AlphaDropout)
_layer("FeatureAlphaDropout", "feature_alpha_dropout", _AlphaDropout)
