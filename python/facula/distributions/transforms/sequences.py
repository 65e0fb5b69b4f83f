"""Transforms of the parts of a tensor."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.transforms.base import Transform
from facula.distributions.utils import _sum_rightmost, lazy_property


def _checked_parts(tseq, cache_size):
    if not all(isinstance(t, Transform) for t in tseq):
        raise AssertionError(f"expected a sequence of transforms; got {tseq!r}")
    return [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)


class CatTransform(Transform):
    """Transforms of the parts of a tensor along one dimension, joined by `facula.cat`.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the size of each part; None: one each.
        cache_size: 0 or 1.

    Example:
        >>> from facula.distributions import AffineTransform, ExpTransform
        >>> t = CatTransform([ExpTransform(), AffineTransform(1.0, 1.0)], lengths=[1, 2])
        >>> t(facula.zeros(3))
        tensor([1., 1., 1.])
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.transforms = _checked_parts(tseq, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform(): expected a length for each of {len(self.transforms)} transforms; "
                f"got {len(self.lengths)}"
            )
        self.dim = dim

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x):
        """The parts of x, with their transforms."""
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != self.length:
            raise AssertionError(
                f"CatTransform(): expected size {self.length} in dimension {self.dim}; got "
                f"{tuple(x.shape)}"
            )
        return zip(self.transforms, x.split(self.lengths, self.dim), strict=True)

    def _call(self, x):
        return facula.cat([t(part) for t, part in self._parts(x)], dim=self.dim)

    def _inverse(self, y):
        return facula.cat([t.inv(part) for t, part in self._parts(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for (t, before), (_, after) in zip(self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return facula.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transforms of the slices of a tensor along one dimension, joined by `facula.stack`.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: 0 or 1.

    Example:
        >>> from facula.distributions import ExpTransform, identity_transform
        >>> StackTransform([ExpTransform(), identity_transform])(facula.zeros(2))
        tensor([1., 0.])
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.transforms = _checked_parts(tseq, cache_size)
        self.dim = dim

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, x):
        """The slices of x, with their transforms."""
        count = len(self.transforms)
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != count:
            raise AssertionError(
                f"StackTransform(): expected size {count} in dimension {self.dim}; got "
                f"{tuple(x.shape)}"
            )
        return zip(self.transforms, x.unbind(self.dim), strict=True)

    def _call(self, x):
        return facula.stack([t(part) for t, part in self._slices(x)], self.dim)

    def _inverse(self, y):
        return facula.stack([t.inv(part) for t, part in self._slices(y)], self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self._slices(x), self._slices(y), strict=True)
        terms = [t.log_abs_det_jacobian(before, after) for (t, before), (_, after) in pairs]
        return facula.stack(terms, dim=self.dim)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
