"""local_map: a function on plain tensors, called on the parts of DTensors."""

from __future__ import annotations

import functools

import facula
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor._utils import normalized
from facula.distributed.tensor.placement_types import Placement
from facula.utils._pytree import tree_flatten, tree_unflatten


def local_map(
    func=None,
    out_placements=None,
    in_placements=None,
    in_grad_placements=None,
    device_mesh=None,
    *,
    redistribute_inputs=False,
    spmd_types=False,
):
    """A function of DTensors that calls one of plain tensors on their parts.

    Args:
        func (callable): of plain tensors; leave it out to use this as a decorator.
        out_placements (sequence of Placement, or tuple of them): how its results lie; None for
            those that are no tensors.
        in_placements (tuple of sequences): how each argument must lie; None for those that are no
            DTensors. Default as they come.
        in_grad_placements (tuple of sequences): how the gradient of each argument's part lies.
        device_mesh (DeviceMesh): default that of the arguments.
        redistribute_inputs (bool): redistribute arguments that lie otherwise.
        spmd_types (bool): not supported.

    Returns:
        callable

    Raises:
        AssertionError: not a placement for each argument or result.
        ValueError: an argument lies otherwise, and `redistribute_inputs` is False.

    Example:
        >>> from facula.distributed.tensor import Partial, Shard, distribute_tensor
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.arange(4), mesh, [Shard(0)])
        ...     add_up = local_map(lambda part: part.sum(), out_placements=[Partial()])
        ...     return add_up(x).full_tensor().item()
        >>> facula.distributed.threads.run(work, 2)
        [6, 6]
    """
    if spmd_types:
        raise NotImplementedError("local_map(): spmd_types is not there yet")
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        values, structure = tree_flatten(args)
        for name, given in (
            ("in_placements", in_placements),
            ("in_grad_placements", in_grad_placements),
        ):
            if given is not None and len(given) != len(values):
                raise AssertionError(
                    f"local_map(): expected {name} for each of {len(values)} arguments; "
                    f"got {len(given)}"
                )
        tensors = [v for v in values if isinstance(v, DTensor)]
        mesh = device_mesh or (tensors[0].device_mesh if tensors else None)
        parts = []
        for i, value in enumerate(values):
            wanted = None if in_placements is None else in_placements[i]
            grads = None if in_grad_placements is None else in_grad_placements[i]
            parts.append(_part_of(value, wanted, grads, redistribute_inputs))
        result = func(*tree_unflatten(parts, structure), **kwargs)
        return result if mesh is None else _wrapped(result, out_placements, mesh)

    return mapped


def _part_of(value, wanted, grad_placements, may_redistribute):
    if not isinstance(value, DTensor):
        if wanted is not None and isinstance(value, facula.Tensor):
            raise AssertionError(
                f"local_map(): expected None in in_placements for a plain tensor; got {wanted}"
            )
        return value
    if wanted is not None:
        wanted = normalized(tuple(wanted), value.dim())
        if wanted != value.placements:
            if not may_redistribute:
                raise ValueError(
                    f"local_map(): expected an argument that lies as {wanted}, or "
                    f"redistribute_inputs=True; got {value.placements}"
                )
            value = value.redistribute(placements=wanted)
    return value.to_local(grad_placements=grad_placements)


def _wrapped(result, out_placements, mesh):
    values, structure = tree_flatten(result)
    for_all = out_placements is None or (
        len(out_placements) > 0 and isinstance(out_placements[0], Placement)
    )
    placements = [out_placements] * len(values) if for_all else list(out_placements)
    if len(placements) != len(values):
        raise AssertionError(
            f"local_map(): expected out_placements for each of {len(values)} results; "
            f"got {len(placements)}"
        )
    made = []
    for value, lies in zip(values, placements, strict=True):
        if isinstance(value, facula.Tensor) and lies is not None:
            made.append(DTensor.from_local(value, mesh, lies))
        elif lies is not None and not isinstance(value, facula.Tensor):
            raise AssertionError(
                f"local_map(): expected None in out_placements for a result that is no tensor; "
                f"got {lies} for {type(value).__name__}"
            )
        else:
            made.append(value)
    return tree_unflatten(made, structure)
