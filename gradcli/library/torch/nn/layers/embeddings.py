"""Embeddings: rows of a matrix by their numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.arrays.backend import module_of
from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error, attribute_error
from gradcli.language.objects.classes.extensible import arguments_of
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.library.torch.nn.init import normal_
from gradcli.library.torch.nn.layer import new_parameter, register
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F
from gradcli.ops.creation.data import parameter


class _Rows(Module):
    """What both embeddings share: a matrix of normal numbers, with a row of zeros for padding.

    Attributes:
        shown: the settings that are printed where they are not what is given here.
    """

    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"from_pretrained"})
    language_attributes = Module.language_attributes | language_class_attributes
    shown: ClassVar[dict[str, Any]]

    def _set_up(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        _weight: Any,
        device: Any,
        dtype: Any,
        _freeze: bool = False,
        **settings: Any,
    ) -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        for name, value in settings.items():
            self.register(name, value)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                start = "p" if isinstance(self, EmbeddingBag) else "P"
                text = f"{start}adding_idx must be within num_embeddings"
                raise assertion_error(text)
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = new_parameter((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            self.weight = parameter(_weight)
        self.weight.requires_grad = not _freeze

    @classmethod
    def _of_rows(cls: Any, embeddings: Any, freeze: bool, **settings: Any) -> Any:
        if not isinstance(embeddings, Tensor):
            raise attribute_error(f"from_pretrained() takes a matrix, not {kind_of(embeddings)}")
        sizes = embeddings.array.shape
        if len(sizes) != 2:
            raise assertion_error(
                f"from_pretrained() takes a matrix, not a tensor of {len(sizes)} dimensions"
            )
        layer = cls(*sizes, **settings, _weight=embeddings)
        layer.weight.requires_grad = not freeze
        return layer

    def reset_parameters(self) -> None:
        """Draw the rows."""
        normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        """Set the row of the padding to 0, if there is one."""
        if self.padding_idx is not None:
            values = module_of(self.weight.array).array(self.weight.array)
            values[self.padding_idx] = 0
            overwrite(self.weight, values)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in self.shown.items():
            value = self.lookup(name)
            if value != default:
                text += f", {name}={value!r}"
        return text


class Embedding(_Rows):
    """Rows of a matrix, picked by integers of any shape.

    Example: nn.Embedding(3, 2)
    """

    shown: ClassVar[dict[str, Any]] = {
        "padding_idx": None,
        "max_norm": None,
        "norm_type": 2.0,
        "scale_grad_by_freq": False,
        "sparse": False,
    }

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
        self._set_up(**arguments_of(locals()))

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
        return cls._of_rows(**arguments_of(locals()))

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(_Rows):
    """Sums, means or maxima of rows of a matrix.

    Example: nn.EmbeddingBag(3, 2)
    """

    shown: ClassVar[dict[str, Any]] = {
        "max_norm": None,
        "norm_type": 2.0,
        "scale_grad_by_freq": False,
        "mode": None,
        "padding_idx": None,
    }

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
        self._set_up(**arguments_of(locals()))

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
        return cls._of_rows(**arguments_of(locals()))

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Any = None
    ) -> Tensor:
        return F.embedding_bag(
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


for _kind in (Embedding, EmbeddingBag):
    register("sparse", _kind)
