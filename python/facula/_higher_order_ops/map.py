"""map: a function of each slice."""

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
from facula._higher_order_ops._gradients import (
    called_with_leaves,
    gradient_of,
    needs_gradient,
    wanted_of,
)
from facula._higher_order_ops._operator import HigherOrderOperator
from facula._higher_order_ops._slices import first_rows, length_of, tensors_of
from facula.utils._pytree import tree_flatten, tree_unflatten


def map(f, xs, *args):  # noqa: A001  (the name that PyTorch has)
    """A function of each slice along dimension 0, the results stacked.

    Args:
        f (callable): of slices of `xs`, and of `args`; gives nested tensors.
        xs (nest of Tensors): cut into slices along dimension 0.
        *args: what `f` is called with besides.

    Returns:
        nest of Tensors

    Raises:
        RuntimeError: `xs` has no slices.

    Example:
        >>> from facula._higher_order_ops import map
        >>> map(lambda x, y: x.sum() + y, facula.ones(3, 2), facula.tensor(1.0))
        tensor([3., 3., 3.])
    """
    if not callable(f):
        raise RuntimeError(f"map(): expected f to be callable; got {f!r}")
    slices, spec = tensors_of("map", "xs", xs)
    length_of("map", slices, 0)
    further, further_spec = tree_flatten(args)
    out_specs = []

    def of_leaves(*leaves):
        given = tree_unflatten(list(leaves[: len(slices)]), spec)
        rest = tree_unflatten(list(leaves[len(slices) :]), further_spec)
        outputs, out_spec = tree_flatten(f(given, *rest))
        out_specs[:] = [out_spec]
        return outputs

    run = _mapped if mode_that_records() is None else _map_in_graph
    return tree_unflatten(list(run(of_leaves, slices, further)), out_specs[0])


def _mapped(f, slices, further):
    rows = [f(*(t[i] for t in slices), *further) for i in range(slices[0].shape[0])]
    return [facula.stack(column) for column in zip(*rows, strict=True)]


def _map_in_graph(f, slices, further, with_grad=frozenset()):
    mode = mode_that_records()
    if _functional.any_of([slices, further]):
        return _functional.call(_map_in_graph, f, slices, further, with_grad)
    operands = [*first_rows(mode, slices), *further]
    captured = Captured("map", f, operands, mode, with_grad)
    _, lifted, names = operands_of([captured], [*slices, *further], mode, keep_all=True)
    kept = list(range(len(operands)))
    module = captured.module(kept, lifted, names)
    further = [*further, *lifted]
    if needs_gradient([*slices, *further], mode):
        return _Map.apply(module, len(slices), *slices, *further)
    return _recorded(module, slices, further)


def _recorded(module, slices, further):
    mode = mode_that_records()
    proxy = attribute(mode, "body_graph", module)
    return record(
        mode,
        map_impl_op,
        (proxy, list(slices), further),
        lambda: tuple(_mapped(module, slices, further)),
    )


class _Map(facula.autograd.Function):
    """A recorded `map` whose gradient is a `map` of the function's gradient."""

    @staticmethod
    def forward(ctx, module, count, *operands):
        """Record the call."""
        ctx.module, ctx.count, ctx.operands = module, count, operands
        return _recorded(module, operands[:count], list(operands[count:]))

    @staticmethod
    def backward(ctx, *grads):
        """Record the call of the function's gradient."""
        count, operands, wanted = ctx.count, ctx.operands, wanted_of(ctx.operands)
        slices, further = operands[:count], operands[count:]
        given = [g for g in grads if g is not None]
        gradient = gradient_of(ctx.module, len(operands), wanted)

        def of_rows(*values):
            rows, rest = values[:count], values[count + len(given) :]
            of_results = iter(values[count : count + len(given)])
            return gradient(*rows, *rest, *(None if g is None else next(of_results) for g in grads))

        with_grad = {i if i < count else i + len(given) for i in wanted}
        if mode_that_records() is None:
            found = _mapped(called_with_leaves(of_rows, with_grad), [*slices, *given], further)
        else:
            found = _map_in_graph(of_rows, [*slices, *given], list(further), with_grad)
        by_operand = dict(zip(wanted, found, strict=True))
        # What each row reads gets the sum of the rows' gradients.
        return (
            None,
            None,
            *(
                g.sum(0) if i >= count and g is not None else g
                for i, g in ((i, by_operand.get(i)) for i in range(len(operands)))
            ),
        )


def _run_map(f, xs, pos_args):
    """`map` of flat values, as graphs call it."""
    run = _mapped if mode_that_records() is None else _map_in_graph
    return tuple(run(f, list(xs), list(pos_args)))


map_impl_op = HigherOrderOperator("map_impl", _run_map)
