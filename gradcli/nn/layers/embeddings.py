"""Embeddings: rows of a matrix by their numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.arrays.backend import module_of
from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.nn.attributes import kind_of
from gradcli.nn.init import normal_
from gradcli.nn.layer import FUNCTIONS, new_parameter, register
from gradcli.nn.module import Module
from gradcli.ops.creation.data import parameter


class _Rows(Module):
    """What both embeddings share: a matrix of normal numbers, with a row of zeros for padding."""

    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"from_pretrained"})
    language_attributes = Module.language_attributes | language_class_attributes

    def _set_up(
        self, count: int, width: int, padding_idx: int | None, weight: Any, device: Any, dtype: Any
    ) -> None:
        self.num_embeddings = count
        self.embedding_dim = width
        if padding_idx is not None:
            if not -count <= padding_idx < count:
                raise GradcliError(
                    "E204",
                    f"padding_idx is {padding_idx}, and there are {count} rows",
                    raises="AssertionError",
                )
            padding_idx %= count
        self.padding_idx = padding_idx
        if weight is None:
            self.weight = new_parameter((count, width), device, dtype)
            self.reset_parameters()
        else:
            self.weight = parameter(weight)

    def reset_parameters(self) -> None:
        """Draw the rows."""
        normal_(self.weight)
        if self.padding_idx is not None:
            values = module_of(self.weight.array).array(self.weight.array)
            values[self.padding_idx] = 0
            overwrite(self.weight, values)


def _sizes(rows: Any) -> tuple[int, int]:
    """The number of rows and their length."""
    if not isinstance(rows, Tensor):
        raise GradcliError(
            "E202",
            f"from_pretrained() takes a matrix, not {kind_of(rows)}",
            raises="AttributeError",
        )
    if rows.array.ndim != 2:
        raise GradcliError(
            "E204",
            f"from_pretrained() takes a matrix, not a tensor of {rows.array.ndim} dimensions",
            raises="AssertionError",
        )
    count, width = rows.array.shape
    return count, width


class Embedding(_Rows):
    """Rows of a matrix, picked by integers of any shape.

    Example: nn.Embedding(3, 2)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.weight.requires_grad = not _freeze

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """An embedding of given rows, which are trained unless `freeze`.

        Raises E204 for rows that are no matrix.
        """
        count, width = _sizes(embeddings)
        return cls(
            count,
            width,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["embedding"](
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = self.lookup(name)
            if value != default:
                text += f", {name}={value}"
        return text


class EmbeddingBag(_Rows):
    """Sums, means or maxima of rows of a matrix.

    Example: nn.EmbeddingBag(3, 2)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        """An embedding of given rows, which are trained unless `freeze`.

        Raises E204 for rows that are no matrix.
        """
        count, width = _sizes(embeddings)
        made = cls(
            count,
            width,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Any = None
    ) -> Tensor:
        return FUNCTIONS["embedding_bag"](
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2.0:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text


for _kind in (Embedding, EmbeddingBag):
    register("sparse", _kind)
