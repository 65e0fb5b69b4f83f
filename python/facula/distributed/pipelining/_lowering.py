"""From the order of computations to all that a rank does: messages, parameters and gradients."""

from __future__ import annotations

from facula.distributed.pipelining._actions import (
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    WAIT_REDUCE_GRAD,
    WAIT_SEND_B,
    WAIT_SEND_F,
    B,
    F,
    I,
    W,
    _Action,
    parts_of,
)


def _merge_bw(compute_actions):
    """The actions, with a full backward in place of the two halves where one follows the other."""
    merged = []
    for action in filter(None, compute_actions):
        last = merged[-1] if merged else None
        if action.computation_type is W and last == (action[0], I, action[2], None):
            merged[-1] = _Action(action.stage_index, B, action.microbatch_index)
        else:
            merged.append(action)
    return merged


def _add_reduce_grad(actions, n_microbatches, defer_wait=False):
    """The actions, with a reduction of gradients after the last backward of each stage.

    With `defer_wait` the wait for it comes before the next reduction, or at the end.
    """
    left, result, waits = {}, [], []
    for action in actions:
        result.append(action)
        for part in parts_of(action) if action is not None else ():
            if part.computation_type not in (B, W):
                continue
            stage = part.stage_index
            left[stage] = left.get(stage, n_microbatches) - 1
            if left[stage] == 0:
                result += [*waits, _Action(stage, REDUCE_GRAD)]
                waits = [_Action(stage, WAIT_REDUCE_GRAD)]
                if not defer_wait:
                    result += waits
                    waits = []
    return result + waits


def _next_stages(actions, most, defer_wait):
    found = []
    for action in actions:
        if defer_wait and action.computation_type is WAIT_REDUCE_GRAD:
            continue  # it needs no parameters
        for part in parts_of(action):
            if part.stage_index not in found:
                if len(found) == most:
                    return found
                found.append(part.stage_index)
    return found


def _add_unshard_reshard(compute_actions, max_active_stages=3, defer_wait=False):
    """The actions, with those that gather and free the parameters of sharded stages.

    Args:
        compute_actions (list): actions or None.
        max_active_stages (int): how many of a rank's stages hold whole parameters at once.
        defer_wait (bool): waits for reductions do not follow them at once.
    """
    actions = [a for a in compute_actions if a is not None]
    active, result = [], []
    for i, action in enumerate(actions):
        wanted = _next_stages(actions[i:], max_active_stages, defer_wait)
        result += [_Action(s, RESHARD) for s in active if s not in wanted]
        result += [_Action(s, UNSHARD) for s in wanted if s not in active]
        active = [s for s in active if s in wanted] + [s for s in wanted if s not in active]
        result.append(action)
    return result + [_Action(s, RESHARD) for s in active]


class _Messages:
    """What has to be sent between ranks after an action."""

    def __init__(self, stage_to_rank, num_stages):
        self.stage_to_rank, self.num_stages = stage_to_rank, num_stages

    def receiver(self, action):
        """The action that takes this one's result on another rank, or None."""
        stage, kind, batch, _ = action
        target, receive = (stage + 1, RECV_F) if kind is F else (stage - 1, RECV_B)
        if kind not in (F, B, I) or not 0 <= target < self.num_stages:
            return None
        if self.stage_to_rank(target) == self.stage_to_rank(stage):
            return None
        return _Action(target, receive, batch)

    def is_ready(self, action, done):
        """Whether the rank that has done `done` has what an action needs."""
        stage, kind, batch, _ = action
        if kind is F:
            return stage == 0 or (stage, RECV_F, batch) in done or (stage - 1, F, batch) in done
        if kind in (B, I):
            received = (stage, RECV_B, batch) in done
            local = any((stage + 1, k, batch) in done for k in (B, I))
            return stage == self.num_stages - 1 or received or local
        return True


def _add_send_recv(compute_actions, stage_to_rank, num_stages):
    """The actions of all ranks, with messages between them.

    Ranks take one step each in turn; a receive stands where the rank is when the other one sends,
    so that all ranks see the messages between two of them in one order.

    Args:
        compute_actions (dict): lists of actions by rank.
        stage_to_rank (callable): the rank of a stage.
        num_stages (int): of the whole pipeline.

    Raises:
        RuntimeError: the actions wait for each other.
    """
    messages = _Messages(stage_to_rank, num_stages)
    result = {rank: [] for rank in compute_actions}
    done = {rank: set() for rank in compute_actions}
    at = dict.fromkeys(compute_actions, 0)

    def note(rank, action):
        result[rank].append(action)
        done[rank].update(part[:3] for part in parts_of(action))

    def is_ready(rank, action):
        # A part of an overlapping action may need what the part before it computes.
        have = set(done[rank])
        for part in parts_of(action):
            if not messages.is_ready(part, have):
                return False
            have.add(part[:3])
        return True

    while any(at[r] < len(actions) for r, actions in compute_actions.items()):
        progress = False
        for rank in sorted(compute_actions):
            if at[rank] == len(compute_actions[rank]):
                continue
            action = compute_actions[rank][at[rank]]
            if action is not None and not is_ready(rank, action):
                continue
            at[rank] += 1
            progress = True
            if action is None:
                continue
            note(rank, action)
            for part in parts_of(action):
                receive = messages.receiver(part)
                if receive is not None:
                    send = SEND_F if receive.computation_type is RECV_F else SEND_B
                    note(rank, _Action(part.stage_index, send, part.microbatch_index))
                    note(stage_to_rank(receive.stage_index), receive)
        if not progress:
            stuck = {r: str(a[at[r]]) for r, a in compute_actions.items() if at[r] < len(a)}
            raise RuntimeError(
                f"_add_send_recv(): expected an order without a deadlock; got stuck at {stuck}"
            )
    return result


def _add_wait_send(comm_actions):
    """The actions of all ranks, with waits for what was sent.

    The wait for an activation follows its backward, before which it cannot be freed anyway; what
    is then still under way is waited for at the end.
    """
    return {rank: _wait_for_sends(actions) for rank, actions in comm_actions.items()}


def _wait_for_sends(actions):
    pending, result = [], []
    for action in actions:
        result.append(action)
        if action.computation_type in (SEND_F, SEND_B):
            pending.append(action)
        for part in parts_of(action):
            sent = _Action(part.stage_index, SEND_F, part.microbatch_index)
            if part.computation_type in (B, I) and sent in pending:
                pending.remove(sent)
                result.append(sent._replace(computation_type=WAIT_SEND_F))
    for sent in pending:
        kind = WAIT_SEND_F if sent.computation_type is SEND_F else WAIT_SEND_B
        result.append(sent._replace(computation_type=kind))
    return result


def lower(orders, stage_to_rank, num_stages, microbatches, max_active_stages=3, defer_wait=False):
    """All that each rank does, from the order of its computations.

    Args:
        orders (dict): lists of actions or None, by rank.
        stage_to_rank (callable): the rank of a stage.
        num_stages (int): of the whole pipeline.
        microbatches (int): of a batch.
        max_active_stages (int): see `_add_unshard_reshard`.
        defer_wait (bool): see `_add_reduce_grad`.
    """
    whole = {
        rank: _add_unshard_reshard(
            _add_reduce_grad(order, microbatches, defer_wait), max_active_stages, defer_wait
        )
        for rank, order in orders.items()
    }
    return _add_wait_send(_add_send_recv(whole, stage_to_rank, num_stages))


def _validate_schedule(actions, pp_group_size, num_stages, num_microbatches):
    """Check that each stage computes each microbatch once, on one rank.

    Returns:
        dict: ranks by stage

    Raises:
        AssertionError: it does not.
    """
    ranks, seen = {}, {}
    if len(actions) != pp_group_size:
        raise AssertionError(
            f"schedule: expected actions of {pp_group_size} ranks; got {len(actions)}"
        )
    for rank, order in actions.items():
        for part in (p for a in order if a is not None for p in parts_of(a)):
            stage, kind, batch, _ = part
            if kind not in (F, B, I, W):
                continue
            if ranks.setdefault(stage, rank) != rank:
                raise AssertionError(
                    f"schedule: expected stage {stage} on rank {ranks[stage]}; got it on {rank}"
                )
            done = seen.setdefault((stage, batch), [])
            needed = {F: [[]], B: [[F]], I: [[F]], W: [[F, I]]}[kind]
            if done not in needed:
                raise AssertionError(
                    f"schedule: expected {part} once and after what it needs; got it after "
                    f"{[k.value for k in done]}"
                )
            done.append(kind)
    for stage in range(num_stages):
        for batch in range(num_microbatches):
            done = seen.get((stage, batch), [])
            if done not in ([F], [F, B], [F, I, W]):
                raise AssertionError(
                    f"schedule: expected all of stage {stage}, microbatch {batch}; got "
                    f"{[k.value for k in done]}"
                )
    return ranks
