"""PowerSGD: gradients as products of two thin matrices (Vogels, Karimireddy, Jaggi 2019)."""

from __future__ import annotations

import math

import facula
from facula.distributed.algorithms.ddp_comm_hooks.default_hooks import _group, _sum, allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The state of `powerSGD_hook`.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        matrix_approximation_rank (int): the columns of the thin matrices.
        start_powerSGD_iter (int): before that many iterations gradients are averaged as they are.
        min_compression_rate (float): matrices that do not become smaller by this are averaged as
            they are.
        use_error_feedback (bool): add what an iteration has lost to the next.
        warm_start (bool): begin with the thin matrix of the iteration before.
        orthogonalization_epsilon (float): added to norms, against division by zero.
        random_seed (int): for the first thin matrices.
        compression_stats_logging_frequency (int), batch_tensors_with_same_shape (bool): have no
            effect.

    Raises:
        ValueError: a start before the second iteration, which error feedback and warm starts do not
            allow.
    """

    def __init__(
        self,
        process_group,
        matrix_approximation_rank=1,
        start_powerSGD_iter=1000,
        min_compression_rate=2,
        use_error_feedback=True,
        warm_start=True,
        orthogonalization_epsilon=0,
        random_seed=0,
        compression_stats_logging_frequency=10_000,
        batch_tensors_with_same_shape=False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "PowerSGDState(): expected start_powerSGD_iter above 1 with error feedback or warm "
                f"start, as buckets change after the first iteration; got {start_powerSGD_iter}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = facula.Generator()
        self.generator.manual_seed(random_seed)
        self.error_dict, self.q_memory_dict, self.iter = {}, {}, 0


def _should_compress(rows, columns, rank, least_rate):
    """Whether thin matrices are so much smaller."""
    return (rows + columns) * rank * least_rate < rows * columns


def _orthogonalize(matrix, epsilon):
    """Make the columns orthonormal, in place (Gram and Schmidt)."""
    for i in range(matrix.shape[1]):
        column = matrix[:, i : i + 1]
        if i > 0:
            before = matrix[:, :i]
            column -= before @ (before.T @ column)
        column /= column.norm() + epsilon if epsilon or column.norm() > 0 else 1.0


def powerSGD_hook(state, bucket):
    """Average gradients over ranks as products of thin matrices.

    Args:
        state (PowerSGDState): what is kept between iterations.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor
    """
    if state.iter < state.start_powerSGD_iter:
        state.iter += bucket.is_last()
        return allreduce_hook(state.process_group, bucket)
    size = _group(state.process_group).size()
    buffer = bucket.buffer()
    if state.use_error_feedback:
        kept = state.error_dict.get(bucket.index())
        if kept is None or kept.shape != buffer.shape:
            kept = facula.zeros_like(buffer)
        buffer.add_(kept)
        before = buffer.clone()
    plain, matrices = [], []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() > 1 else None
        rank = state.matrix_approximation_rank
        if matrix is None or not _should_compress(*matrix.shape, rank, state.min_compression_rate):
            plain.append(gradient)
        else:
            matrices.append(matrix)
    _average(state, size, plain)
    _average_as_products(state, size, bucket.index(), matrices)
    if state.use_error_feedback:
        lost = before.sub_(buffer)
        # What is averaged as it is loses nothing, and differs from this rank's own by the average.
        for gradient in plain:
            offset = gradient.storage_offset() - buffer.storage_offset()
            lost[offset : offset + gradient.numel()].zero_()
        state.error_dict[bucket.index()] = lost
    return _finished(state, bucket, buffer)


def batched_powerSGD_hook(state, bucket):
    """Average the gradients of a bucket as one product of thin matrices.

    All gradients make one square matrix, which is faster than a matrix for each parameter and
    mostly less exact.

    Args:
        state (PowerSGDState): what is kept between iterations.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor
    """
    if state.iter < state.start_powerSGD_iter:
        state.iter += bucket.is_last()
        return allreduce_hook(state.process_group, bucket)
    size = _group(state.process_group).size()
    buffer = bucket.buffer()
    side = math.isqrt(buffer.numel() - 1) + 1
    matrix = facula.nn.functional.pad(buffer, (0, side * side - buffer.numel())).view(side, side)
    if state.use_error_feedback:
        kept = state.error_dict.get(bucket.index())
        if kept is not None and kept.shape == matrix.shape:
            matrix.add_(kept)
        before = matrix.clone()
    _average_as_products(state, size, bucket.index(), [matrix])
    if state.use_error_feedback:
        state.error_dict[bucket.index()] = before.sub_(matrix)
    buffer.copy_(matrix.view(-1)[: buffer.numel()])
    return _finished(state, bucket, buffer)


def _finished(state, bucket, buffer):
    """A future that has its tensor; the iteration ends with the last bucket."""
    state.iter += bucket.is_last()
    future = facula.futures.Future()
    future.set_result(buffer)
    return future


def _average(state, size, tensors):
    """Average tensors over ranks, in place, in one message."""
    if not tensors:
        return
    flat = facula.cat([t.reshape(-1) for t in tensors]).div_(size)
    _sum(state.process_group, flat).wait()
    offset = 0
    for t in tensors:
        t.copy_(flat[offset : offset + t.numel()].view(t.shape))
        offset += t.numel()


def _average_as_products(state, size, index, matrices):
    rank = state.matrix_approximation_rank
    remembered = state.q_memory_dict.get(index)
    if not state.warm_start or remembered is None or len(remembered) != len(matrices):
        remembered = [
            facula.randn(m.shape[1], min(rank, *m.shape), generator=state.generator).to(m.dtype)
            for m in matrices
        ]
    for q in remembered:
        _orthogonalize(q, state.orthogonalization_epsilon)
    ps = [m @ q for m, q in zip(matrices, remembered, strict=True)]
    _average(state, size, ps)
    for p in ps:
        _orthogonalize(p, state.orthogonalization_epsilon)
    qs = [m.T @ p for m, p in zip(matrices, ps, strict=True)]
    _average(state, size, qs)
    for m, p, q in zip(matrices, ps, qs, strict=True):
        m.copy_(p @ q.T)
    state.q_memory_dict[index] = qs
