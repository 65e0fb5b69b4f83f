"""How numbers of several ranks become one, and the options of collectives."""

from __future__ import annotations

import enum

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "_make_nccl_premul_sum",
    "reduce_op",
    "supports_complex",
]


class ReduceOp:
    """How numbers of ranks become one: `ReduceOp.SUM` and its like.

    Args:
        op (RedOpType): the reduction.

    Example:
        >>> facula.distributed.ReduceOp.MAX
        <RedOpType.MAX: 4>
    """

    class RedOpType(enum.Enum):
        """The reductions."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8

        def __repr__(self):
            return f"<RedOpType.{self.name}: {self.value}>"

        def __str__(self):
            return f"RedOpType.{self.name}"

        def __hash__(self):
            return self.value

        def __eq__(self, other):
            return self is (other.op if isinstance(other, ReduceOp) else other)

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType
    __slots__ = ("factor", "op")

    def __init__(self, op=RedOpType.SUM):
        self.op = op.op if isinstance(op, ReduceOp) else op
        self.factor = 1.0

    def __eq__(self, other):
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self):
        return hash(self.op)

    def __deepcopy__(self, memo):
        copy = ReduceOp(self.op)
        copy.factor = self.factor
        return copy


def _make_nccl_premul_sum(factor):
    """The sum of inputs that are multiplied by a float first."""
    op = ReduceOp(ReduceOp.PREMUL_SUM)
    op.factor = float(factor)
    return op


class reduce_op:
    """The reductions by their names of old."""

    SUM, PRODUCT, MAX, MIN = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MAX, ReduceOp.MIN


def number_and_factor(op):
    """The number of a reduction in the core, and the factor of PREMUL_SUM."""
    if isinstance(op, ReduceOp):
        return op.op.value, op.factor
    if isinstance(op, ReduceOp.RedOpType):
        return op.value, 1.0
    raise TypeError(f"expected a ReduceOp; got {type(op).__name__}")


_NOT_OF_COMPLEX = {
    ReduceOp.MAX,
    ReduceOp.MIN,
    ReduceOp.PRODUCT,
    ReduceOp.BAND,
    ReduceOp.BOR,
    ReduceOp.BXOR,
}


def supports_complex(reduceOp):
    """Whether a reduction is defined for complex numbers.

    Args:
        reduceOp (ReduceOp): the reduction.

    Returns:
        bool

    Example:
        >>> facula.distributed.distributed_c10d.supports_complex(facula.distributed.ReduceOp.SUM)
        True
    """
    return ReduceOp(reduceOp).op not in _NOT_OF_COMPLEX


class _Options:
    """The options of a collective, each of which may be changed before the call."""

    rootRank = 0
    rootTensor = 0
    reduceOp = ReduceOp.SUM
    timeout = None
    asyncOp = True

    def __init__(self, **values):
        self.__dict__.update(values)


class AllreduceOptions(_Options):
    """Options of ProcessGroup.allreduce."""


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of ProcessGroup.allreduce_coalesced."""


class BroadcastOptions(_Options):
    """Options of ProcessGroup.broadcast."""


class ReduceOptions(_Options):
    """Options of ProcessGroup.reduce."""


class AllgatherOptions(_Options):
    """Options of ProcessGroup.allgather."""


class GatherOptions(_Options):
    """Options of ProcessGroup.gather."""


class ScatterOptions(_Options):
    """Options of ProcessGroup.scatter."""


class ReduceScatterOptions(_Options):
    """Options of ProcessGroup.reduce_scatter."""


class AllToAllOptions(_Options):
    """Options of ProcessGroup.alltoall."""


class BarrierOptions(_Options):
    """Options of ProcessGroup.barrier."""

    device_ids = ()
    device = None
