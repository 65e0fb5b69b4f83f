"""New DTensors: each rank makes its part."""

from __future__ import annotations

import facula
from facula.distributed.tensor._api import DTensor, _mesh_or_current, _part_of_whole, _placed
from facula.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from facula.distributed.tensor._utils import compute_local_shape, contiguous_strides

_ARGUMENTS = """

    Args:
        {first}
        dtype (dtype): default the default dtype.
        layout (layout): `facula.strided`.
        requires_grad (bool): whether autograd notes what happens to it.
        device_mesh (DeviceMesh): default that of the enclosing `with`.
        placements (sequence of Placement): default `Replicate()` everywhere.

    Returns:
        DTensor

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     return {name}({call}, device_mesh=mesh, placements=[Shard(0)]).to_local().shape
        >>> facula.distributed.threads.run(work, 2)
        [facula.Size([2]), facula.Size([2])]
    """


def _documented(function, sentence, first, call):
    text = _ARGUMENTS.format(name=function.__name__, first=first, call=call)
    function.__doc__ = sentence + text
    function.__module__ = "facula.distributed.tensor"
    return function


def _size_of(size):
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    return facula.Size(size)


def _made(size, make, layout, requires_grad, device_mesh, placements, shape_matters=True):
    """A DTensor whose part `make` makes, of the part's shape."""
    if layout != facula.strided:
        raise AssertionError(f"expected the layout facula.strided; got {layout}")
    mesh = _mesh_or_current(device_mesh)
    placements = _placed(placements, mesh, len(size))
    inside = mesh.get_coordinate() is not None
    local = make(compute_local_shape(size, mesh, placements) if inside else (0,), mesh, placements)
    meta = TensorMeta(size, contiguous_strides(size), local.dtype)
    return DTensor(local, DTensorSpec(mesh, placements, meta), requires_grad=requires_grad)


def _filled(name, sentence):
    def function(
        *size,
        dtype=None,
        layout=facula.strided,
        requires_grad=False,
        device_mesh=None,
        placements=None,
    ):
        def make(shape, mesh, placements):
            return getattr(facula, name)(shape, dtype=dtype, device=mesh.device_type)

        return _made(_size_of(size), make, layout, requires_grad, device_mesh, placements)

    function.__name__ = function.__qualname__ = name
    return _documented(function, sentence, "size (int...): the shape of the whole.", "4")


def _random(name, sentence):
    def function(
        *size,
        requires_grad=False,
        dtype=None,
        layout=facula.strided,
        device_mesh=None,
        placements=None,
    ):
        size = _size_of(size)
        made = empty(
            size, dtype=dtype, layout=layout, device_mesh=device_mesh, placements=placements
        )
        getattr(made, {"rand": "uniform_", "randn": "normal_"}[name])()
        return made.requires_grad_(requires_grad)

    function.__name__ = function.__qualname__ = name
    return _documented(function, sentence, "size (int...): the shape of the whole.", "4")


empty = _filled("empty", "A DTensor whose values are whatever is there.")
zeros = _filled("zeros", "A DTensor of zeros.")
ones = _filled("ones", "A DTensor of ones.")
rand = _random("rand", "A DTensor of numbers between 0 and 1, as one process would draw them.")
randn = _random("randn", "A DTensor of normal numbers, as one process would draw them.")


def full(
    size,
    fill_value,
    *,
    dtype=None,
    layout=facula.strided,
    requires_grad=False,
    device_mesh=None,
    placements=None,
):
    def make(shape, mesh, placements):
        return facula.full(shape, fill_value, dtype=dtype, device=mesh.device_type)

    return _made(_size_of((size,)), make, layout, requires_grad, device_mesh, placements)


_documented(
    full,
    "A DTensor of one value.",
    "size (sequence of int): the shape of the whole.\n        fill_value (Scalar): the value.",
    "[4], 1.0",
)


def _spaced(whole, layout, requires_grad, device_mesh, placements):
    def make(shape, mesh, placements):
        return _part_of_whole(whole, mesh, placements, None)

    return _made(whole.shape, make, layout, requires_grad, device_mesh, placements)


def linspace(
    start,
    end,
    steps,
    *,
    dtype=None,
    layout=facula.strided,
    requires_grad=False,
    device_mesh=None,
    placements=None,
):
    whole = facula.linspace(start, end, steps, dtype=dtype)
    return _spaced(whole, layout, requires_grad, device_mesh, placements)


def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    dtype=None,
    layout=facula.strided,
    requires_grad=False,
    device_mesh=None,
    placements=None,
):
    whole = facula.logspace(start, end, steps, base, dtype=dtype)
    return _spaced(whole, layout, requires_grad, device_mesh, placements)


_documented(
    linspace,
    "A DTensor of numbers at equal distances.",
    "start, end (Scalar): the first and the last.\n        steps (int): how many.",
    "0, 1, 4",
)
_documented(
    logspace,
    "A DTensor of powers whose exponents are at equal distances.",
    "start, end (Scalar): the first and the last exponent.\n        steps (int): how many.\n"
    "        base (float): of which number.",
    "0, 1, 4",
)
