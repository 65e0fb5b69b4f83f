"""NestedInt: the size of a ragged dimension, which no single number tells."""

from __future__ import annotations

import itertools
import weakref

import facula

# The value of a NestedInt as an int is coefficient * _UNIT + number, so that two are equal as ints
# where they are equal, and no real size is ever equal to one: no memory has as many bytes.
_UNIT = 1 << 56
_numbers = itertools.count(1)


class NestedInt(int):
    """The size of a ragged dimension: `j1`, `j2` ..., one name for each set of lengths.

    Two are equal where they stand for the same lengths. It is at least 2, whatever the lengths are;
    comparisons with greater numbers have no answer.

    Example:
        >>> x = facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged)
        >>> x.shape[1] == x.shape[1], x.shape[1] == 2
        (True, False)
    """

    __slots__ = ()

    def __repr__(self):
        coefficient, number = divmod(int(self), _UNIT)
        return f"j{number}" if coefficient == 1 else f"{coefficient}*j{number}"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __mul__(self, other):
        if isinstance(other, NestedInt) or not isinstance(other, int):
            raise ValueError(f"NestedInt: a ragged size is multiplied by ints only; got {other!r}")
        coefficient, number = divmod(int(self), _UNIT)
        return NestedInt(coefficient * int(other) * _UNIT + number)

    __rmul__ = __mul__

    def __ge__(self, other):
        if int(other) <= 2 or self == other:
            return True
        raise _indeterminate("ge", self, other)

    def __gt__(self, other):
        if int(other) <= 1:
            return True
        if self == other:
            return False
        raise _indeterminate("gt", self, other)

    def __lt__(self, other):
        return not self >= other

    def __le__(self, other):
        return not self > other

    __hash__ = int.__hash__
    __eq__ = int.__eq__
    __ne__ = int.__ne__

    def __reduce__(self):
        return fresh, ()


def _indeterminate(relation, a, b):
    return ValueError(f"{relation}: relation is indeterminate; got {a!r} and {b!r}")


def _no_number(name):
    def refuse(self, *other):
        raise AttributeError(f"NestedInt.{name}(): a ragged size is no number; got {self!r}")

    refuse.__name__ = name
    return refuse


for _name in "add radd sub rsub floordiv rfloordiv mod rmod truediv rtruediv neg pow rpow".split():
    setattr(NestedInt, f"__{_name}__", _no_number(f"__{_name}__"))


def fresh():
    """A NestedInt that is equal to none there was.

    Returns:
        NestedInt
    """
    return NestedInt(_UNIT + next(_numbers))


# By the id of a tensor of offsets or lengths: a weak reference to it, and what is known of it.
_of_tensors = {}


class Raggedness:
    """What is known of the lengths that a tensor of offsets (or of lengths) tells.

    It belongs to the tensor, so all nested tensors with the same offsets share it and know that
    they fit together. It holds neither of the tensors: a table holds it as long as they live.

    Args:
        min_seqlen, max_seqlen (int): the least and the greatest length where known.
    """

    def __init__(self, min_seqlen=None, max_seqlen=None):
        self.size = fresh()
        self.min_seqlen, self.max_seqlen = min_seqlen, max_seqlen
        self.starts = self.lengths = None
        self.batch_index = self.position = None

    @classmethod
    def of(cls, offsets, lengths=None):
        """The one of these offsets and lengths, made where there is none yet.

        Args:
            offsets (Tensor): of ints, [batch + 1].
            lengths (Tensor): of ints, [batch]; None where sequences lie side by side.

        Returns:
            Raggedness
        """
        key = offsets if lengths is None else lengths
        entry = _of_tensors.get(id(key))
        return cls().attach(key) if entry is None else entry[1]

    def attach(self, key):
        """Note that a tensor of offsets or lengths tells these lengths.

        Args:
            key (Tensor): the tensor.

        Returns:
            Raggedness: this one.
        """
        place = id(key)
        _of_tensors[place] = weakref.ref(key, lambda _: _of_tensors.pop(place, None)), self
        return self


class JaggedSpec:
    """How the sequences of a jagged tensor lie in its values.

    Args:
        offsets (Tensor): of ints, [batch + 1]: where each sequence begins, and the end.
        lengths (Tensor): of ints, [batch]; None where sequences lie side by side.
        ragged_idx (int): the ragged dimension; that of the values is one less.
    """

    __slots__ = ("lengths", "offsets", "ragged_idx", "raggedness")

    layout = facula.jagged

    def __init__(self, offsets, lengths=None, ragged_idx=1, raggedness=None):
        self.offsets, self.lengths, self.ragged_idx = offsets, lengths, ragged_idx
        self.raggedness = raggedness or Raggedness.of(offsets, lengths)

    def at(self, ragged_idx):
        """The same sequences with another dimension that is ragged."""
        if ragged_idx == self.ragged_idx:
            return self
        return JaggedSpec(self.offsets, self.lengths, ragged_idx, self.raggedness)

    def moved(self, device):
        """The same sequences with offsets on another device."""
        if self.offsets.device == facula.device(device):
            return self
        lengths = self.lengths if self.lengths is None else self.lengths.to(device)
        offsets, known = self.offsets.to(device), self.known()
        known.attach(offsets if lengths is None else lengths)
        return JaggedSpec(offsets, lengths, self.ragged_idx, known)

    @property
    def inner(self):
        """The dimension of the values that counts the rows of all sequences."""
        return self.ragged_idx - 1

    @property
    def batch(self):
        """The number of sequences."""
        return self.offsets.shape[0] - 1

    def same_lengths(self, other):
        """Whether the other's sequences have the same lengths in the same dimension."""
        return self.raggedness is other.raggedness and self.ragged_idx == other.ragged_idx

    def known(self):
        """The raggedness with the lengths as Python's ints, read once.

        Returns:
            Raggedness: `starts` and `lengths` are lists of ints.
        """
        known = self.raggedness
        if known.lengths is None:
            if self.offsets.is_meta:
                raise RuntimeError("nested: tensors on meta have no lengths to read")
            ends = [int(n) for n in self.offsets.tolist()]
            known.starts = ends[:-1]
            if self.lengths is None:
                known.lengths = [b - a for a, b in zip(ends, ends[1:], strict=False)]
            else:
                known.lengths = [int(n) for n in self.lengths.tolist()]
        if known.max_seqlen is None:
            known.max_seqlen = max(known.lengths, default=0)
        if known.min_seqlen is None:
            known.min_seqlen = min(known.lengths, default=0)
        return known

    def rows(self):
        """For each row of the sequences its sequence and its place in it, of int64.

        Returns:
            (Tensor, Tensor): [rows] each; rows between sequences do not count.
        """
        known = self.known()
        if known.batch_index is None:
            device = self.offsets.device
            lengths = facula.tensor(known.lengths, dtype=facula.int64, device=device)
            which = facula.arange(len(known.lengths), device=device).repeat_interleave(lengths)
            firsts = (lengths.cumsum(0) - lengths).index_select(0, which)
            known.batch_index = which
            known.position = facula.arange(which.shape[0], device=device) - firsts
        return known.batch_index, known.position

    def sequence_of_each_row(self, values):
        """For each row of the values its sequence; of those between sequences any.

        Args:
            values (Tensor): the values.

        Returns:
            Tensor: of int64.
        """
        rows = values.shape[self.inner]
        if self.lengths is None and sum(self.known().lengths) == rows and not self.first_row():
            return self.rows()[0]
        places = facula.arange(rows, device=self.offsets.device)
        found = facula.searchsorted(self.offsets.long(), places, right=True) - 1
        return found.clamp(0, self.batch - 1)

    def first_row(self):
        """The row of the values where the first sequence begins."""
        starts = self.known().starts
        return starts[0] if starts else 0
