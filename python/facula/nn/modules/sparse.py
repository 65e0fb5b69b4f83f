"""Embedding layers."""

from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn import init
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter


def _rows_and_columns(embeddings):
    if embeddings.dim() != 2:
        raise AssertionError(f"embeddings must have 2 dimensions; got {embeddings.dim()}")
    return dict(zip(("num_embeddings", "embedding_dim"), embeddings.shape, strict=True))


def _row_number(padding_idx, rows):
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"padding_idx must be in [-{rows}, {rows}), the rows of the table; got {padding_idx}"
        )
    return padding_idx % rows


class _Table(Module):
    """What holds a table of vectors: `weight`, (num_embeddings, embedding_dim)."""

    def __init__(self, shape, given, trained, options, padding_idx, **settings):
        super().__init__()
        rows, columns = shape
        _keep(
            self,
            num_embeddings=rows,
            embedding_dim=columns,
            padding_idx=_row_number(padding_idx, rows),
            **settings,
        )
        if given is not None and tuple(given.shape) != shape:
            raise AssertionError(f"_weight must have shape {shape}; got {tuple(given.shape)}")
        table = facula.empty(shape, **options) if given is None else given
        self.weight = Parameter(table, requires_grad=trained)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self):
        """Draw the table from N(0, 1) and zero the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is None:
            return
        with facula.no_grad():
            self.weight[self.padding_idx].zero_()

    def _shown(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return parts


class Embedding(_Table):
    """A table of vectors that integers look up.

    Args:
        num_embeddings, embedding_dim: rows and columns of the table.
        padding_idx: a row that starts at zero and is not trained.
        max_norm: rows of a greater norm are scaled down when they are used.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by the count of the index in the batch.
        sparse: the table's gradient is a sparse tensor.
        device, dtype: of the table.

    Example:
        >>> facula.nn.Embedding(10, 3)(facula.tensor([1, 4])).shape
        facula.Size([2, 3])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: facula.Tensor | None = None,
        _freeze: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            (num_embeddings, embedding_dim),
            _weight,
            not _freeze,
            {"device": device, "dtype": dtype},
            padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """The rows at the integers `input`."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self):
        """The settings that are not default."""
        parts = self._shown()
        if self.padding_idx is not None:
            parts.insert(1, f"padding_idx={self.padding_idx}")
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
    ):
        """An Embedding over the given 2-D table, not trained when `freeze`."""
        return cls(
            **_rows_and_columns(embeddings),
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table.

    Args: as `Embedding`, and
        mode: "sum", "mean" or "max".
        include_last_offset: offsets have the total as a last entry.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]
    # What functional.embedding_bag takes by these names.
    _settings = tuple(__constants__[2:])

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: facula.Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            (num_embeddings, embedding_dim),
            _weight,
            True,
            {"device": device, "dtype": dtype},
            padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            mode=mode,
            include_last_offset=include_last_offset,
        )

    def forward(
        self,
        input: facula.Tensor,
        offsets: facula.Tensor | None = None,
        per_sample_weights: facula.Tensor | None = None,
    ) -> facula.Tensor:
        """The reduced bags of the integers `input`."""
        settings = {name: getattr(self, name) for name in self._settings}
        return F.embedding_bag(
            input, self.weight, offsets, per_sample_weights=per_sample_weights, **settings
        )

    def extra_repr(self):
        """The settings that are not default."""
        parts = [*self._shown(), f"mode={self.mode!r}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        include_last_offset=False,
        padding_idx=None,
    ):
        """An EmbeddingBag over the given 2-D table, not trained when `freeze`."""
        bag = cls(
            **_rows_and_columns(embeddings),
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            mode=mode,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
            _weight=embeddings,
        )
        bag.weight.requires_grad_(not freeze)
        return bag
