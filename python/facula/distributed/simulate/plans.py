"""One training step of a decoder under DDP, fully_shard or a pipeline, by the simulated clock."""

from __future__ import annotations

import gc
from typing import NamedTuple

import facula
from facula.distributed.pipelining import _orders
from facula.distributed.simulate.clock import simulate
from facula.distributed.simulate.models import Decoder


class Step(NamedTuple):
    """What one step takes.

    Args:
        seconds (float): from its beginning to its end.
        waited (float): of these, seconds in which the rank computes nothing.
        sent (float): bytes of collectives that it takes part in.
        peak (float): bytes of tensors at most, on the rank that has most.
    """

    seconds: float
    waited: float
    sent: float
    peak: float


class Task(NamedTuple):
    """What is trained how.

    Args:
        size (Size): the decoder.
        batch, length (int): sequences of each rank in a step, and their tokens.
        dtype (dtype): of parameters, gradients, optimizer states and what is computed.
        is_checkpointed (bool): blocks compute their forward pass again in the backward.
    """

    size: object
    batch: int = 4
    length: int = 2048
    dtype: object = facula.bfloat16
    is_checkpointed: bool = False


def _model(task, **part):
    with facula.device("meta"):
        model = Decoder(task.size, is_checkpointed=task.is_checkpointed, **part)
        return model.to(task.dtype)


def _tokens(task, batch=None):
    shape = (task.batch if batch is None else batch, task.length)
    return facula.zeros(shape, dtype=facula.int64, device="meta")


def _train(watch, model, task):
    """A step after one that made the optimizer's states."""
    optimizer = facula.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(2):
        gc.collect()  # what only cycles keep is no part of a step
        watch.clock.reset()
        watch.peak = 0
        model(_tokens(task), _tokens(task)).backward()
        optimizer.step()
        optimizer.zero_grad()
    clock = watch.clock
    return Step(clock.now, clock.waited, clock.sent, watch.peak)


def ddp(machine, ranks, task):
    """A step with whole copies of the model: `DistributedDataParallel`.

    Args:
        machine (Machine): of each rank.
        ranks (int): that train.
        task (Task): what is trained.

    Returns:
        Step
    """
    with simulate(machine, ranks) as watch:
        model = _model(task)
        watch.note(model.parameters())
        return _train(watch, facula.nn.parallel.DistributedDataParallel(model), task)


def fully_shard(machine, ranks, task):
    """A step with parameters in shards: `fully_shard` of each block and of the whole.

    Args:
        machine, ranks, task: see `ddp`.

    Returns:
        Step
    """
    from facula.distributed.fsdp import fully_shard as shard

    with simulate(machine, ranks) as watch:
        model = _model(task)
        watch.note(model.parameters())
        for block in model.blocks:
            shard(block)
        shard(model)
        return _train(watch, model, task)


# --- pipelines

ORDERS = {
    "gpipe": (1, lambda rank, ranks, m: _orders.gpipe(rank, m)),
    "1f1b": (1, lambda rank, ranks, m: _orders.one_forward_one_backward(rank, ranks, m)),
    "interleaved": (2, lambda rank, ranks, m: _orders.interleaved(rank, ranks, 2, m, ranks)),
}


class _Part(NamedTuple):
    forward: float  # seconds
    backward: float
    kept: float  # bytes for the backward pass of one microbatch
    states: float  # bytes of parameters, gradients and optimizer
    grads: float
    update: float  # seconds of the optimizer


def _part(machine, task, layers, is_first, is_last):
    """What one microbatch takes in one stage."""
    with simulate(machine, 1) as watch:
        model = _model(task, layers=layers, is_first=is_first, is_last=is_last)
        watch.note(model.parameters())
        clock = watch.clock
        x = _tokens(task, 1)
        if not is_first:
            shape = (1, task.length, task.size.width)
            x = facula.zeros(shape, dtype=task.dtype, device="meta", requires_grad=True)
        optimizer = facula.optim.AdamW(model.parameters(), lr=1e-4)
        clock.reset()
        before = watch.live()
        out = model(x, _tokens(task, 1))
        forward, kept = clock.now, watch.live() - before
        out.backward(None if is_last else facula.ones_like(out))
        backward = clock.now - forward
        optimizer.step()
        clock.reset()
        optimizer.step()
        parameters = sum(p.numel() * p.element_size() for p in model.parameters())
        return _Part(forward, backward, kept, 4 * parameters, parameters, clock.now)


def _run_orders(orders, ranks, stages, parts, send):
    """When each rank ends its plan, how long it computes, and the bytes that it keeps at most."""
    ended, clocks, positions = {}, [0.0] * ranks, [0] * ranks
    kept, most, busy = [0.0] * ranks, [0.0] * ranks, [0.0] * ranks
    last = stages - 1

    def ready(action):
        stage, kind, batch = action.stage_index, action.computation_type, action.microbatch_index
        if kind == _orders.F:
            before = None if stage == 0 else (stage - 1, kind, batch)
        else:
            before = (stage, _orders.F, batch) if stage == last else (stage + 1, kind, batch)
        if before is None:
            return 0.0
        at = ended.get(before)
        return None if at is None else at + (0.0 if before[0] == stage else send)

    moving = True
    while moving:
        moving = False
        for rank in range(ranks):
            order = orders[rank]
            while positions[rank] < len(order):
                action = order[positions[rank]]
                if action is None:
                    positions[rank] += 1
                    continue
                begin = ready(action)
                if begin is None:
                    break
                stage, kind = action.stage_index, action.computation_type
                part = parts[stage]
                seconds = part.forward if kind == _orders.F else part.backward
                clocks[rank] = max(clocks[rank], begin) + seconds
                busy[rank] += seconds
                ended[(stage, kind, action.microbatch_index)] = clocks[rank]
                kept[rank] += part.kept if kind == _orders.F else -part.kept
                most[rank] = max(most[rank], kept[rank])
                positions[rank] += 1
                moving = True
    return clocks, busy, most


def pipeline(machine, ranks, task, stages=8, schedule="1f1b"):
    """A step of a pipeline whose copies share their gradients.

    The plan is the one that `pipelining` runs; a batch has a microbatch of one sequence for each
    sequence of the task and rank of the pipeline.

    Args:
        machine, ranks, task: see `ddp`.
        stages (int): ranks of one pipeline.
        schedule (str): one of `ORDERS`.

    Returns:
        Step

    Raises:
        ValueError: ranks or layers cannot be divided among the stages; an unknown schedule.
    """
    if schedule not in ORDERS:
        raise ValueError(f"pipeline(): expected one of {sorted(ORDERS)}; got {schedule!r}")
    local, order = ORDERS[schedule]
    total = stages * local
    if ranks % stages or task.size.layers % total:
        raise ValueError(
            f"pipeline(): expected ranks that {stages} and layers that {total} divides; got "
            f"{ranks} and {task.size.layers}"
        )
    layers, microbatches = task.size.layers // total, task.batch * stages
    kinds = {
        place: _part(machine, task, layers, *place)
        for place in {(s == 0, s == total - 1) for s in range(total)}
    }
    parts = [kinds[(s == 0, s == total - 1)] for s in range(total)]
    orders = [order(rank, stages, microbatches) for rank in range(stages)]
    item = facula.empty((), dtype=task.dtype).element_size()
    message = task.length * task.size.width * item
    send = machine.network.seconds("send", message, ranks)
    clocks, busy, kept = _run_orders(orders, stages, total, parts, send)
    of_rank = [[parts[r + i * stages] for i in range(local)] for r in range(stages)]
    copies = ranks // stages
    ends, grads = [], [sum(p.grads for p in mine) for mine in of_rank]
    for rank, mine in enumerate(of_rank):
        reduce = machine.network.seconds("all_reduce", grads[rank], copies)
        ends.append(clocks[rank] + reduce + sum(p.update for p in mine))
    slowest = max(range(stages), key=lambda r: ends[r])
    worked = busy[slowest] + sum(p.update for p in of_rank[slowest])
    peak = max(k + sum(p.states for p in mine) for k, mine in zip(kept, of_rank, strict=True))
    sent = max(grads) * (copies > 1) + 2 * microbatches * message
    return Step(ends[slowest], ends[slowest] - worked, sent, peak)
