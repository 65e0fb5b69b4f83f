"""scan: a function of a state and a slice, for one slice after the other."""

from __future__ import annotations

import facula
from facula._higher_order_ops import _functional
from facula._higher_order_ops._capture import (
    Captured,
    attribute,
    mode_that_records,
    operands_of,
    record,
)
from facula._higher_order_ops._operator import HigherOrderOperator
from facula._higher_order_ops._slices import (
    check_no_gradient,
    first_rows,
    length_of,
    tensors_of,
)
from facula.utils._pytree import tree_flatten, tree_unflatten


def scan(combine_fn, init, xs, *, dim=0, reverse=False, length=None):
    """A function of a state and a slice, called for one slice after the other.

    Args:
        combine_fn (callable): of the state and the slices; gives the next state and an output.
        init (nest of Tensors): the first state; each next one has its shapes and dtypes.
        xs (nest of Tensors): cut into slices along `dim`; None with `length`.
        dim (int): the dimension.
        reverse (bool): begin with the last slice; outputs stay in the order of the slices.
        length (int | None): how many calls, where there are no `xs`.

    Returns:
        tuple: the last state, and the outputs stacked in dimension 0.

    Raises:
        RuntimeError: an argument or a result of another kind.

    Example:
        >>> from facula._higher_order_ops import scan
        >>> scan(lambda c, x: (c + x, c * x), facula.zeros(()), facula.tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([0., 2., 9.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan(): expected combine_fn to be callable; got {combine_fn!r}")
    states, state_spec = tensors_of("scan", "init", init)
    slices, slice_spec = tree_flatten(xs) if xs is None else tensors_of("scan", "xs", xs)
    slices = [] if xs is None else slices
    if not slices and length is None:
        raise RuntimeError("scan(): expected xs or length=; got neither")
    count = length_of("scan", slices, dim) if slices else length
    if length is not None and length != count:
        raise RuntimeError(f"scan(): expected xs of length {length}; got {count}")
    slices = [t.movedim(dim, 0) if dim else t for t in slices]
    slices = [t.flip(0) for t in slices] if reverse else slices
    out_specs = []

    def of_leaves(*leaves):
        state = tree_unflatten(list(leaves[: len(states)]), state_spec)
        given = tree_unflatten(list(leaves[len(states) :]), slice_spec) if slices else None
        result = combine_fn(state, given)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(
                f"scan(): expected combine_fn to give a state and an output; got {result!r}"
            )
        new, spec = tree_flatten(result[0])
        if spec != state_spec:
            raise RuntimeError(f"scan(): expected a state of {state_spec}; got {spec}")
        outputs, out_spec = tree_flatten(result[1])
        out_specs[:] = [out_spec]
        return [*new, *outputs]

    mode = mode_that_records()
    run = _scan_in_graph if mode is not None and slices else _scanned
    results = run(of_leaves, states, slices, (), count)
    new, outputs = list(results[: len(states)]), list(results[len(states) :])
    outputs = [t.flip(0) for t in outputs] if reverse else outputs
    return tree_unflatten(new, state_spec), tree_unflatten(outputs, out_specs[0])


def _scanned(combine, states, slices, further, count):
    """The last states, and the outputs stacked."""
    rows = []
    for i in range(count):
        results = list(combine(*states, *(t[i] for t in slices), *further))
        _check_state(states, results[: len(states)])
        states = results[: len(states)]
        rows.append(results[len(states) :])
    return [*states, *(facula.stack(column) for column in zip(*rows, strict=True))]


def _check_state(before, after):
    kinds = [[(t.dtype, tuple(t.shape)) for t in ts] for ts in (before, after)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"scan(): expected combine_fn to give a state of {kinds[0]}; got {kinds[1]}"
        )


def _scan_in_graph(combine, states, slices, further, count):
    mode = mode_that_records()
    if _functional.any_of([states, slices, further]):
        return _functional.call(_scan_in_graph, combine, states, slices, further, count)
    rows = first_rows(mode, slices)
    operands = [*states, *rows, *further]
    captured = Captured("scan", combine, operands, mode)
    _check_state(states, captured.values[: len(states)])
    kept, lifted, names = operands_of([captured], operands, mode, keep_all=True, named=False)
    check_no_gradient("scan", [*states, *slices, *further, *lifted], mode)
    module = captured.module(kept, lifted, names, as_list=True)
    proxy = attribute(mode, "scan_combine_graph", module)
    further = (*further, *lifted)
    return record(
        mode,
        scan_op,
        (proxy, list(states), list(slices), further),
        lambda: tuple(_scanned(module, states, slices, further, count)),
    )


def _run_scan(combine_fn, init, xs, additional_inputs=()):
    """`scan` of flat values, as graphs call it."""
    mode = mode_that_records()
    run = _scanned if mode is None else _scan_in_graph
    further = tuple(additional_inputs)
    return tuple(run(combine_fn, list(init), list(xs), further, xs[0].shape[0]))


scan_op = HigherOrderOperator("scan", _run_scan)
