"""The order in which each rank computes, for each kind of schedule.

An entry is an action, or None where the rank has to wait for others if all actions take one step.
"""

from __future__ import annotations

from collections import deque

from facula.distributed.pipelining._actions import OVERLAP_F_B, B, F, I, W, _Action


def gpipe(rank, microbatches):
    """All forwards, then all backwards (Huang et al., 2019)."""
    return [_Action(rank, kind, m) for kind in (F, B) for m in range(microbatches)]


def one_forward_one_backward(rank, ranks, microbatches):
    """After a warm-up forwards and backwards alternate (Narayanan et al., 2019)."""
    warmup = min(microbatches, ranks - rank)
    order = [_Action(rank, F, m) for m in range(warmup)]
    for m in range(microbatches):
        order.append(_Action(rank, B, m))
        if warmup + m < microbatches:
            order.append(_Action(rank, F, warmup + m))
    return order


def looped_breadth_first(rank, ranks, local_stages, microbatches):
    """Each stage runs all microbatches before the next of the rank does (Lamy-Poirier, 2022)."""
    stages = [rank + ranks * i for i in range(local_stages)]
    order = [None] * rank
    order += [_Action(s, F, m) for s in stages for m in range(microbatches)]
    order += [None] * (2 * (ranks - 1 - rank))
    backwards = [(s, m) for s in stages[::-1] for m in reversed(range(microbatches))]
    return order + [_Action(s, B, m) for s, m in backwards]


class _Counter:
    """Hands out actions of one kind; each gets the next microbatch of its stage."""

    def __init__(self, kind, stage_of_step):
        self.kind, self.stage_of_step, self.steps, self.next = kind, stage_of_step, 0, {}

    def take(self):
        stage = self.stage_of_step(self.steps)
        self.steps += 1
        batch = self.next.get(stage, 0)
        self.next[stage] = batch + 1
        return _Action(stage, self.kind, batch)


def warmup_steps(rank, ranks, local_stages, per_round, microbatches, factor):
    """The forwards of a rank before its first backward."""
    steps = (local_stages - 1) * per_round + factor * (ranks - 1 - rank)
    return min(steps, microbatches * local_stages)


def interleaved(rank, ranks, local_stages, microbatches, per_round, zero_bubble=False):
    """Forwards and backwards alternate, over several stages of a rank (Narayanan et al., 2021).

    Args:
        rank, ranks (int): of the pipeline.
        local_stages (int): stages of each rank.
        microbatches (int): of a batch.
        per_round (int): consecutive microbatches of one stage.
        zero_bubble (bool): weights have a backward of their own, which fills gaps
            (Qi et al., 2023).
    """

    def forward_stage(step):
        return step // per_round % local_stages * ranks + rank

    def backward_stage(step):
        return (local_stages - 1 - step // per_round % local_stages) * ranks + rank

    forwards = _Counter(F, forward_stage)
    backwards = _Counter(I if zero_bubble else B, backward_stage)
    weights = _Counter(W, backward_stage)
    total = microbatches * local_stages
    factor = 1 if zero_bubble else 2
    warmup = warmup_steps(rank, ranks, local_stages, per_round, microbatches, factor)

    order = [None] * rank + [forwards.take() for _ in range(warmup)]
    first_backward = local_stages * ranks + 2 * (ranks - 1 - rank)
    order += [None] * (ranks - 1 - rank if zero_bubble else first_backward - warmup - rank)
    while backwards.steps < total:
        if forwards.steps < total:
            order.append(forwards.take())
        elif not zero_bubble:
            order.append(None)
        order.append(backwards.take())
        # Rank r runs r backwards ahead of those of the weights, so as not to keep others waiting.
        if zero_bubble and backwards.steps > rank:
            order.append(weights.take())
    while zero_bubble and weights.steps < total:
        order.append(weights.take())
    return order


def with_bubbles(orders, stages):
    """Orders in which a rank waits (None) for results that others have not computed yet.

    Args:
        orders (dict): lists of actions by rank.
        stages (int): of the whole pipeline.
    """
    todo = {rank: deque(order) for rank, order in orders.items()}
    done, result = set(), {rank: [] for rank in orders}

    def waits_for(action):
        stage, kind, batch, _ = action
        if kind is F and stage > 0:
            return (stage - 1, F, batch)
        if kind in (I, B) and stage < stages - 1:
            return (stage + 1, kind, batch)
        return None

    while any(todo.values()):
        now = []
        for rank, actions in todo.items():
            if not actions:
                continue
            needed = None if actions[0] is None else waits_for(actions[0])
            if needed is None or needed in done:
                now.append(actions.popleft())
                result[rank].append(now[-1])
            else:
                result[rank].append(None)
        if not now:
            raise RuntimeError(f"with_bubbles(): expected an order without a cycle; got {orders}")
        done.update(a[:3] for a in now if a is not None)
    return result


class _Vee:
    """Two stages of a rank, in a pipeline that goes to the last rank and back."""

    def __init__(self, rank, ranks, microbatches):
        self.stages = (rank, 2 * ranks - 1 - rank)
        self.microbatches, self.order = microbatches, []
        self.counts = {}

    def count(self, kind, side):
        return self.counts.get((kind, side), 0)

    def action(self, kind, side):
        # A full backward counts for both of its parts.
        kinds = (I, W) if kind is B else (kind,)
        batch = self.count(kinds[0], side)
        if batch >= self.microbatches:
            return None
        for k in kinds:
            self.counts[k, side] = batch + 1
        return _Action(self.stages[side], kind, batch)

    def add(self, kind, side):
        action = self.action(kind, side)
        if action is not None:
            self.order.append(action)
        return action


def zero_bubble_vee(rank, ranks, microbatches):
    """Two stages a rank in the shape of a V, memory as even as 1F1B's (Qi et al., 2024)."""
    # The pattern needs this many microbatches; those that do not exist are waits.
    vee = _Vee(rank, ranks, max(microbatches, 2 * ranks - 1))
    for _ in range(2 * (ranks - rank) - 1):
        vee.add(F, 0)
    for _ in range(rank):
        vee.add(F, 1)
        vee.add(F, 0)
    for _ in range(ranks - rank):
        for kind in (F, I, W):
            vee.add(kind, 1)
    while vee.count(F, 1) < vee.count(F, 0) or vee.count(F, 0) < vee.microbatches:
        for kind, side in ((F, 0), (I, 0), (W, 0), (F, 1), (I, 1), (W, 1)):
            vee.add(kind, side)
    for _ in range(rank):
        vee.add(I, 0)
        vee.add(I, 1)
    for _ in range(ranks - rank):
        vee.add(I, 0)
        vee.add(W, 0)
    for side in (1, 0):
        while vee.count(W, side) < vee.count(I, side):
            vee.add(W, side)
    exists = [a if a.microbatch_index < microbatches else None for a in vee.order]
    return [None] * rank + exists


def dual_pipe_vee(rank, ranks, microbatches):
    """DualPipe folded to a V: forwards overlap with backwards (DeepSeek-AI, 2025; Sea AI Lab)."""
    vee = _Vee(rank, ranks, microbatches)
    waiting = deque()  # sides of backwards whose weights are still to come

    def backward(side, split):
        if vee.add(I if split else B, side) and split:
            waiting.append(side)

    def weight():
        if waiting:
            vee.add(W, waiting.popleft())

    def overlap(forward, backward):
        parts = (vee.action(F, forward), vee.action(B, backward))
        vee.order.append(_Action(-1, OVERLAP_F_B, None, parts))

    before = ranks - rank - 1
    for _ in range(2 * before):
        vee.add(F, 0)
    for _ in range(rank + 1):
        vee.add(F, 0)
        vee.add(F, 1)
    for _ in range(before):
        backward(1, True)
        weight()
        vee.add(F, 1)
    for i in range(microbatches - 2 * ranks + rank + 1):
        if i == 0 and rank == ranks - 1:
            # The last rank has just computed what this backward needs: there is nothing to overlap.
            vee.add(F, 0)
            backward(1, False)
        else:
            overlap(0, 1)
        overlap(1, 0)
    for _ in range(before):
        backward(1, False)
        overlap(1, 0)
    half, split = (rank + 1) // 2, False
    for i in range(rank + 1):
        split = split or (i == half and rank % 2 == 1)
        backward(1, split)
        split = split or (i == half and rank % 2 == 0)
        backward(0, split)
    for _ in range(before):
        weight()
        backward(0, True)
    while waiting:
        weight()
    return vee.order
