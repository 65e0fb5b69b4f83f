"""parallelize_module: a plan applied to the submodules that its names match."""

from __future__ import annotations

import fnmatch
import warnings

from facula.distributed.device_mesh import _mesh_resources
from facula.distributed.tensor.parallel.style import ParallelStyle


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Cut the parameters of a module, and of its submodules, by a plan.

    Args:
        module (Module): changed in place.
        device_mesh (DeviceMesh): of one dimension; default that of the enclosing `with`.
        parallelize_plan (ParallelStyle or dict): for the module itself, or for submodules by name.
            Each part of a name may be a pattern: "layers.*.attention".
        src_data_rank (int): the rank whose values are taken; None for each rank's own.

    Returns:
        Module

    Raises:
        ValueError: the mesh has several dimensions.
        TypeError: the plan is neither a style nor a dict of styles.

    Example:
        >>> from facula.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     model = facula.nn.Sequential(facula.nn.Linear(2, 4), facula.nn.Linear(4, 2))
        ...     plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
        ...     model = parallelize_module(model, mesh, plan)
        ...     return model[0].weight.to_local().shape
        >>> facula.distributed.threads.run(work, 2)
        [facula.Size([2, 2]), facula.Size([2, 2])]
    """
    mesh = device_mesh if device_mesh is not None else _mesh_resources.get_current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module(): expected a mesh of one dimension; got {mesh}")
    if parallelize_plan is None:
        warnings.warn("parallelize_module(): no plan was given, and nothing is done", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            f"parallelize_module(): expected a ParallelStyle or a dict of them; "
            f"got {type(parallelize_plan).__name__}"
        )
    for path, style in parallelize_plan.items():
        _apply_at(module, path, style, mesh, src_data_rank)
    return module


def _apply_at(module, path, style, mesh, src_data_rank):
    """Apply a style, or a plan, to all submodules that a name matches."""
    if path == "":
        parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
        return
    first, _, rest = path.partition(".")
    matched = [(n, child) for n, child in module.named_children() if fnmatch.fnmatch(n, first)]
    if not matched:
        warnings.warn(
            f"parallelize_module(): no submodule matches {first!r} of the plan", stacklevel=4
        )
    for name, child in matched:
        if rest:
            _apply_at(child, rest, style, mesh, src_data_rank)
        else:
            made = parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
            module.register_module(name, made)
