"""Numbers that a traced program reads out of tensors' data: symbols without a sample, `u0`, `u1`.

They are sizes of results (`nonzero`) or ints (`item`). What is known of them - `torch._check`, the
most elements that a result can have - decides comparisons; no other comparison may be branched on.
A trace is checked against another one, in which they are small numbers that fit what is known.
"""

from __future__ import annotations

import itertools

import facula
from facula import _C
from facula.fx.experimental._expressions import RELATIONS, Relation, Symbol

_STAND_INS = (
    *(60013, 64007, 68023, 72019, 76031, 80021, 84011, 88001, 92003, 96001, 100003, 104003),
    *(108007, 112019, 116009, 120011, 124001, 128021, 132001, 136013, 140009, 144013, 148013),
)
# What such numbers may be in the trace that a trace is checked against.
_SAMPLES = (3, 2, 4, 1, 5, 7, 11, 30, 100, 1000)


class DataDependent(RuntimeError):  # noqa: N818  (it says what the program is)
    """A program needs a number that depends on data which the trace does not know."""


def refuse(op):
    """Raise DataDependent for an operator."""
    raise DataDependent(
        "make_fx(): expected a program that reads no numbers out of traced tensors; got "
        f"{op}, whose result depends on data that the graph does not know"
    )


class UnbackedSymbols:
    """The symbols without samples of a trace, and what is known of them; a part of `Sizes`."""

    def __init__(self):
        self.ranges = {}  # symbol -> (least, greatest), None where there is none
        self.known = []  # differences of which it is known that they are at least 0
        self.unequal = []  # those that are not 0
        self.derived = {}  # symbol -> function of the samples of the others

    def __contains__(self, symbol):
        return symbol in self.ranges

    def stand_in(self):
        """The number that stands for the next symbol."""
        if len(self.ranges) == len(_STAND_INS):
            raise NotImplementedError(
                f"export(): at most {len(_STAND_INS)} numbers may be read out of tensors"
            )
        return _STAND_INS[len(self.ranges)]

    # --- what is known

    def assume(self, relation):
        """Take a comparison for true."""
        for difference in _at_least_zero(relation):
            self.known.append(difference)
        if relation.op == "!=":
            self.unequal.append(relation.a - relation.b)
        if relation.op == "==":
            self._narrow(Relation(">=", relation.a, relation.b))
            self._narrow(Relation("<=", relation.a, relation.b))
        self._narrow(relation)

    def _narrow(self, relation):
        bounds = relation.bounds()
        if bounds is None or bounds[0] not in self.ranges:
            return
        name, low, high = bounds
        least, greatest = self.ranges[name]
        least = low if least is None or (low is not None and low > least) else least
        greatest = high if greatest is None or (high is not None and high < greatest) else greatest
        self.ranges[name] = least, greatest

    def decided(self, relation):
        """Whether a comparison holds, by what is known; None where that does not say."""
        difference = relation.a - relation.b
        if relation.op in ("==", "!="):
            equal = self._is_zero(difference)
            return equal if equal is None or relation.op == "==" else not equal
        (wanted,) = _at_least_zero(relation)
        if self._is_at_least(wanted, 0):
            return True
        return False if self._is_at_least(wanted * -1, 1) else None

    def _is_zero(self, difference):
        if self._is_at_least(difference, 1) or self._is_at_least(difference * -1, 1):
            return False
        if any(difference in (d, d * -1) for d in self.unequal):
            return False
        both = self._is_at_least(difference, 0) and self._is_at_least(difference * -1, 0)
        return True if both else None

    def _is_at_least(self, difference, number):
        """Whether a difference is known to be at least a number."""
        low = self._least(difference)
        if low is not None and low >= number:
            return True
        for known in self.known:
            rest = difference - known
            low = self._least(rest)
            if low is not None and low >= number:
                return True
        return False

    def _least(self, expression):
        """The least value of a sum by the ranges of its symbols, or None."""
        total = 0
        for factors, n in expression.terms.items():
            low, high = self._range_of(factors)
            bound = low if n > 0 else high
            if bound is None:
                return None
            total += n * bound
        return total

    def _range_of(self, factors):
        low, high = 1, 1
        for factor in factors:
            if not isinstance(factor, Symbol):
                return None, None
            # Sizes of arguments are at least 0.
            least, greatest = self.ranges.get(str(factor), (0, None))
            if least is None or least < 0:
                return (least, greatest) if len(factors) == 1 else (None, None)
            low = low * least
            high = None if high is None or greatest is None else high * greatest
        return low, high

    # --- samples

    def give_samples(self, samples):
        """Choose a sample for each symbol such that all that is known holds.

        Args:
            samples (dict): of the other symbols; those chosen are added.

        Returns:
            list[int] | None: of the symbols that are not derived; None where no choice is found.
        """
        free = [name for name in self.ranges if name not in self.derived]
        for shift, base in itertools.product((0, 1, -1), _SAMPLES):
            for i, name in enumerate(free):
                samples[name] = self._clamped(name, base + i * shift)
            for name, value in self.derived.items():
                samples[name] = value(samples)
            if self._all_hold(samples):
                return [samples[name] for name in free]
        return None

    def _clamped(self, name, value):
        least, greatest = self.ranges[name]
        value = value if least is None else max(value, least)
        return value if greatest is None else min(value, greatest)

    def _all_hold(self, samples):
        holds = all(difference.value(samples) >= 0 for difference in self.known)
        return holds and all(difference.value(samples) != 0 for difference in self.unequal)


def _at_least_zero(relation):
    """The differences that a comparison says to be at least 0."""
    difference = relation.a - relation.b
    return {
        ">": [difference + -1],
        ">=": [difference],
        "<": [difference * -1 + -1],
        "<=": [difference * -1],
        "==": [difference, difference * -1],
        "!=": [],
    }[relation.op]


def holds_for_all(relation):
    """Whether a comparison without symbols holds."""
    return RELATIONS[relation.op]((relation.a - relation.b).number(), 0)


class SampleNumbers:
    """What stands for data in the trace of a sample: given numbers, one after the other."""

    def __init__(self, values):
        self._values = iter(values)

    def item(self, tracer, call):
        """The int that a tensor has."""
        return next(self._values)

    def size(self, limit=None):
        """The size of a result."""
        return next(self._values)

    def is_symbolic(self, value):
        """Whether an argument is a symbol's: none is."""
        return False

    def note_results(self, tensors):
        """Nothing: there are no symbols."""


# --- results


def result_of(func, args, kwargs, numbers):
    """What an operator gives whose result's shape depends on data, or on numbers from data.

    Args:
        func (OpOverload): the operator.
        args (tuple), kwargs (dict): fake tensors, and numbers.
        numbers: `Sizes` or `SampleNumbers`; None where such results are not known.

    Returns:
        fake tensors, or NotImplemented for an operator that computes it itself.

    Raises:
        DataDependent: there are no `numbers`.
    """
    rule = _RULES.get(func.overloadpacket.__name__)
    if rule is None or not _is_fake(args):
        return NotImplemented
    bound = _by_name(func, args, kwargs)
    return rule(func, bound, numbers)


def _is_fake(args):
    first = args[0] if args else None
    return isinstance(first, facula.Tensor) and _C._is_fake(first)


def _by_name(func, args, kwargs):
    found = dict(kwargs)
    for argument, value in zip(func._schema.arguments, args, strict=False):
        found[argument.name] = value
    return found


def _size(func, numbers, limit=None):
    return refuse(func) if numbers is None else numbers.size(limit)


def _nonzero(func, given, numbers):
    x = given["self"]
    count = _size(func, numbers, x.numel())
    return x.new_empty((x.dim(), count), dtype=facula.int64).t()


def _nonzero_numpy(func, given, numbers):
    x = given["self"]
    count = _size(func, numbers, x.numel())
    return [x.new_empty((count,), dtype=facula.int64) for _ in range(max(x.dim(), 1))]


def _masked_select(func, given, numbers):
    x, mask = given["self"], given["mask"]
    shape = facula.broadcast_shapes(x.shape, mask.shape)
    return x.new_empty((_size(func, numbers, x.new_empty(shape).numel()),))


def _index(func, given, numbers):
    indices, count, limits = [], None, []
    masks = [i for i in given["indices"] if _is_mask(i)]
    if not masks:
        return NotImplemented
    limits = [mask.numel() for mask in masks]
    count = _size(func, numbers, min(limits))
    for index in given["indices"]:
        if _is_mask(index):
            indices += [index.new_empty((count,), dtype=facula.int64)] * max(index.dim(), 1)
        else:
            indices.append(index)
    return func(given["self"], indices)


def _is_mask(index):
    return index is not None and index.dtype in (facula.bool, facula.uint8)


def _unique(func, given, numbers):
    x, dim = given["self"], given.get("dim")
    count = _size(func, numbers, x.numel() if dim is None else x.shape[dim])
    shape = [count] if dim is None else list(x.shape)
    inverse = list(x.shape)
    if dim is not None:
        shape[dim], inverse = count, [x.shape[dim]]
    if not given.get(
        "return_inverse", dim is not None and func.overloadpacket.__name__[-3:] == "dim"
    ):
        inverse = [0]
    counted = [count] if given.get("return_counts") else [0]
    return (
        x.new_empty(shape),
        x.new_empty(inverse, dtype=facula.int64),
        x.new_empty(counted, dtype=facula.int64),
    )


def _repeat_interleave(func, given, numbers):
    repeats = given.get("repeats")
    if given.get("output_size") is not None or not isinstance(repeats, facula.Tensor):
        return NotImplemented
    x, dim = given.get("self"), given.get("dim")
    count = _size(func, numbers)
    if x is None:
        return repeats.new_empty((count,))
    shape = [count] if dim is None else list(x.shape)
    if dim is not None:
        shape[dim] = count
    return x.new_empty(shape)


def _bincount(func, given, numbers):
    weights = given.get("weights")
    dtype = facula.int64 if weights is None else facula.float64
    return given["self"].new_empty((_size(func, numbers),), dtype=dtype)


def _slice(func, given, numbers):
    parts = [given.get(name) for name in ("start", "end", "step")]
    if numbers is None or not any(numbers.is_symbolic(part) for part in parts):
        return NotImplemented
    x, dim = given["self"], given.get("dim", 0)
    start, end, step = parts[0] or 0, parts[1], parts[2] or 1
    count = numbers.size_of_slice(dim, x.shape[dim], start, end, step)
    shape, strides = list(x.shape), list(x.stride())
    shape[dim], strides[dim] = count, strides[dim] * step
    return x.new_empty_strided(shape, strides)


def _select(func, given, numbers):
    if numbers is None or not numbers.is_symbolic(given["index"]):
        return NotImplemented
    return func(given["self"], given["dim"], 0)


_RULES = {
    "nonzero": _nonzero,
    "argwhere": _nonzero,
    "nonzero_numpy": _nonzero_numpy,
    "masked_select": _masked_select,
    "index": _index,
    "_unique": _unique,
    "_unique2": _unique,
    "unique_dim": _unique,
    "unique_consecutive": _unique,
    "repeat_interleave": _repeat_interleave,
    "bincount": _bincount,
    "slice": _slice,
    "select": _select,
}


def reads_int(func, leaves):
    """Whether an operator reads an int out of a tensor."""
    if func.overloadpacket.__name__ == "equal":
        return False
    dtype = leaves[0].dtype
    return not dtype.is_floating_point and not dtype.is_complex and dtype is not facula.bool
