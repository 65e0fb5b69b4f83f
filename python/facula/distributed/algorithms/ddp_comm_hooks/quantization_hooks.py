"""Communication hooks that send gradients as bytes: a quarter of float32."""

from __future__ import annotations

import facula
from facula.distributed.algorithms.ddp_comm_hooks.default_hooks import _group

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_LEVELS = 255


def _gather(group, tensor):
    """The tensors of all ranks."""
    parts = [facula.empty_like(tensor) for _ in range(group.size())]
    facula.distributed.all_gather(parts, tensor, group=group)
    return parts


def _average_as_bytes(process_group, rows):
    """The average over ranks of the rows of (R, C), each of which has a scale of its own."""
    group = _group(process_group)
    least, most = rows.amin(1, keepdim=True).clamp(max=0), rows.amax(1, keepdim=True).clamp(min=0)
    scales = ((most - least) / _LEVELS).clamp(min=facula.finfo(rows.dtype).tiny)
    zero_points = (-least / scales).round()
    levels = (rows / scales).round().add_(zero_points).clamp_(0, _LEVELS).to(facula.uint8)
    of_all = _gather(group, facula.stack([scales, zero_points]))
    total = facula.zeros_like(rows)
    for part, (scale, zero_point) in zip(_gather(group, levels), of_all, strict=True):
        total += (part.to(rows.dtype) - zero_point) * scale
    return total / group.size()


def _done(value):
    future = facula.futures.Future()
    future.set_result(value)
    return future


def quantization_pertensor_hook(process_group, bucket):
    """Average gradients that travel as bytes, with one scale for a bucket.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor
    """
    return _done(_average_as_bytes(process_group, bucket.buffer()[None])[0])


def quantization_perchannel_hook(process_group, bucket, bucket_size=512):
    """Average gradients that travel as bytes, with a scale for each piece of a bucket.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        bucket (GradBucket): the gradients.
        bucket_size (int): elements of a piece.

    Returns:
        Future of a tensor
    """
    buffer = bucket.buffer()
    padded = facula.nn.functional.pad(buffer, (0, -buffer.numel() % bucket_size))
    average = _average_as_bytes(process_group, padded.view(-1, bucket_size))
    return _done(average.view(-1)[: buffer.numel()])
