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

    def size(self, limit=None, least=0):
        """The size of a result that data decide."""
        return next(self._values)

    def is_symbolic(self, value):
        """Whether an argument is a symbol's: none is."""
        return False

    def note_results(self, tensors):
        """Nothing: there are no symbols."""


class NoNumbers:
    """What stands for data where nothing may: asking for a size refuses the operator.

    Args:
        op (OpOverload): the operator.
    """

    def __init__(self, op):
        self._op = op

    def size(self, limit=None, least=0):
        """Raises DataDependent."""
        refuse(self._op)

    def is_symbolic(self, value):
        """Whether an argument is a symbol's: none is."""
        return False


# --- operators


def run(func, args, kwargs, numbers):
    """Call an operator; its shape rule may ask for sizes that data decide.

    Args:
        func (OpOverload): the operator.
        args (tuple), kwargs (dict): its arguments.
        numbers: `Sizes` or `SampleNumbers`; None where nothing may stand for data.

    Returns:
        what the operator gives.

    Raises:
        DataDependent: there are no `numbers`, and it needs one.
    """
    numbers = NoNumbers(func) if numbers is None else numbers
    return _C._with_data_sizes(numbers, func, tuple(args), kwargs)


def reads_data(func):
    """Whether what an operator returns is read out of a tensor: a number, or whether it is so."""
    return "data_dependent_output" in func._tags()


def reads_int(func, leaves):
    """Whether such an operator reads an int: one that gives a number of the tensor's dtype."""
    if func._schema.returns[0].type != "Scalar":
        return False
    dtype = leaves[0].dtype
    return not dtype.is_floating_point and not dtype.is_complex and dtype is not facula.bool
