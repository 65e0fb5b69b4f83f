"""Averages of parameters over the ranks of a group."""

from __future__ import annotations

import facula
import facula.distributed as dist

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]


def average_parameters(params, process_group):
    """Replace the numbers of parameters by their averages over ranks.

    Args:
        params (iterable): Tensors, one or more.
        process_group (ProcessGroup): the ranks; the default group if None.

    Raises:
        ValueError: no parameters.
    """
    params = list(params)
    if not params:
        raise ValueError("average_parameters(): expected parameters; got none")
    group = dist.group.WORLD if process_group is None else process_group
    if dist.get_rank(group) < 0:  # this rank is not of the group
        return
    share = dist.get_world_size(group)
    with facula.no_grad():
        for of_one_dtype in _by_dtype(params):
            flat = facula.cat([p.reshape(-1) for p in of_one_dtype]).div_(share)
            dist.all_reduce(flat, group=group)
            parts = flat.split([p.numel() for p in of_one_dtype])
            for p, part in zip(of_one_dtype, parts, strict=True):
                p.copy_(part.view(p.shape))


def _by_dtype(params):
    found = {}
    for p in params:
        found.setdefault(p.dtype, []).append(p)
    return found.values()


def get_params_to_average(params):
    """The parameters among `params` that have a gradient.

    Args:
        params (iterable): Tensors, or dicts that describe groups of an optimizer.

    Returns:
        list of Tensor

    Raises:
        NotImplementedError: something else.
    """
    found = []
    for each in params:
        if isinstance(each, facula.Tensor):
            found.append(each)
        elif isinstance(each, dict):
            found.extend(each["params"])
        else:
            raise NotImplementedError(
                "get_params_to_average(): expected Tensors or groups of parameters; got "
                f"{type(each).__name__}"
            )
    return [p for p in found if p.grad is not None]


def average_parameters_or_parameter_groups(params, process_group):
    """Average the parameters that have a gradient over the ranks of a group.

    Args:
        params (iterable): Tensors, or dicts that describe groups of an optimizer.
        process_group (ProcessGroup): the ranks; the default group if None.
    """
    average_parameters(get_params_to_average(params), process_group)
