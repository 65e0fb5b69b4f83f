"""What a rank of a pipeline does, one action after the other, and how it is written as text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class _ComputationType(str, Enum):
    """The kind of an action."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    WAIT_SEND_F = "WAIT_SEND_F"
    WAIT_SEND_B = "WAIT_SEND_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"
    WAIT_REDUCE_GRAD = "WAIT_REDUCE_GRAD"

    __str__ = Enum.__str__
    __format__ = Enum.__format__

    @staticmethod
    def from_str(action):
        """The kind that a text names; RuntimeError if there is none."""
        for kind in _ComputationType:
            if kind.value == action:
                return kind
        raise RuntimeError(f"_ComputationType.from_str(): expected a kind; got {action!r}")


F = FORWARD = _ComputationType.FORWARD
I = BACKWARD_INPUT = _ComputationType.BACKWARD_INPUT  # noqa: E741
W = BACKWARD_WEIGHT = _ComputationType.BACKWARD_WEIGHT
B = FULL_BACKWARD = _ComputationType.FULL_BACKWARD
UNSHARD, RESHARD = _ComputationType.UNSHARD, _ComputationType.RESHARD
SEND_F, RECV_F = _ComputationType.SEND_F, _ComputationType.RECV_F
SEND_B, RECV_B = _ComputationType.SEND_B, _ComputationType.RECV_B
WAIT_SEND_F, WAIT_SEND_B = _ComputationType.WAIT_SEND_F, _ComputationType.WAIT_SEND_B
OVERLAP_F_B = _ComputationType.OVERLAP_F_B
REDUCE_GRAD = _ComputationType.REDUCE_GRAD
WAIT_REDUCE_GRAD = _ComputationType.WAIT_REDUCE_GRAD

_COMPUTES = frozenset({F, I, W, B, OVERLAP_F_B})
# Longer names first, so that the first that matches is the whole name.
_KINDS = "|".join(sorted((k.value for k in _ComputationType), key=len, reverse=True))
_SINGLE = re.compile(rf"(\d+)({_KINDS})(\d*)")
_SEVERAL = re.compile(rf"\((.*)\)({_KINDS})")


class _Action(NamedTuple):
    """One action: a stage, what is done, and the microbatch if it is about one.

    Example:
        >>> from facula.distributed.pipelining.schedules import _Action
        >>> _Action.from_str("2RECV_F0").microbatch_index
        0
    """

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple | None = None

    def __str__(self):
        if self.sub_actions is not None:
            inner = ";".join(map(str, self.sub_actions))
            return f"({inner}){self.computation_type.value}"
        batch = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{batch}"

    __repr__ = __str__

    @property
    def is_compute_op(self):
        """Whether it runs a part of the model, forward or backward."""
        return self.computation_type in _COMPUTES

    @staticmethod
    def from_str(action_string):
        """The action that a text means, None for an empty text.

        Raises:
            RuntimeError: the text is no action.
        """
        text = action_string.strip()
        if not text:
            return None
        if found := _SEVERAL.fullmatch(text):
            parts = tuple(_Action.from_str(part) for part in found[1].split(";"))
            return _Action(-1, _ComputationType.from_str(found[2]), None, parts)
        if found := _SINGLE.fullmatch(text):
            batch = int(found[3]) if found[3] else None
            return _Action(int(found[1]), _ComputationType.from_str(found[2]), batch)
        raise RuntimeError(
            "_Action.from_str(): expected a stage, a kind and a microbatch such as 2F0; "
            f"got {action_string!r}"
        )


def parts_of(action):
    """The actions that run at once: those inside of an overlapping one, or the action itself."""
    return (action,) if action.sub_actions is None else action.sub_actions


def _format_pipeline_order(pipeline_order, error_step_number=None):
    """A table of actions: a row for each step, a column for each rank.

    Args:
        pipeline_order (dict): lists of actions or None, by rank.
        error_step_number (int): a step to be marked.

    Returns:
        str
    """
    steps = max(len(actions) for actions in pipeline_order.values())
    digits = len(str(steps - 1))
    head = [f"Rank {rank}" for rank in pipeline_order]
    columns = []
    for name, actions in zip(head, pipeline_order.values(), strict=True):
        cells = ["" if a is None else str(a) for a in actions] + [""] * (steps - len(actions))
        width = max(len(name), *map(len, cells)) + 1
        columns.append([cell.ljust(width) for cell in [name, *cells]])
    names = [" " * len(f"Step {0:0{digits}}:")]
    names += [f"Step {step:0{digits}}:" for step in range(steps)]
    lines = [" ".join([n, *cells]) for n, *cells in zip(names, *columns, strict=True)]
    if error_step_number is not None:
        lines[error_step_number + 1] += " <-- ERROR HERE"
    return "\n".join(lines) + "\n"
