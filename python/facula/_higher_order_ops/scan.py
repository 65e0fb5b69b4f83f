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
from facula._higher_order_ops._gradients import (
    called_with_leaves,
    gradient_of,
    has_gradient,
    needs_gradient,
    wanted_of,
)
from facula._higher_order_ops._operator import HigherOrderOperator
from facula._higher_order_ops._slices import first_rows, length_of, tensors_of
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


def _scan_in_graph(combine, states, slices, further, count, with_grad=frozenset()):
    mode = mode_that_records()
    if _functional.any_of([states, slices, further]):
        return _functional.call(_scan_in_graph, combine, states, slices, further, count, with_grad)
    rows = first_rows(mode, slices)
    operands = [*states, *rows, *further]
    captured = Captured("scan", combine, operands, mode, with_grad)
    _check_state(states, captured.values[: len(states)])
    kept, lifted, names = operands_of([captured], operands, mode, keep_all=True, named=False)
    module = captured.module(kept, lifted, names, as_list=True)
    further = (*further, *lifted)
    if needs_gradient([*states, *slices, *further], mode):
        return _Scan.apply(module, len(states), len(slices), *states, *slices, *further)
    return _recorded(module, states, slices, further, count)


def _recorded(module, states, slices, further, count):
    mode = mode_that_records()
    proxy = attribute(mode, "scan_combine_graph", module)
    return record(
        mode,
        scan_op,
        (proxy, list(states), list(slices), further),
        lambda: tuple(_scanned(module, states, slices, further, count)),
    )


class _Scan(facula.autograd.Function):
    """A recorded `scan` that keeps the state of each step; its gradient is a `scan` back."""

    @staticmethod
    def forward(ctx, module, state_count, slice_count, *operands):
        """Record the call."""
        ctx.module, ctx.counts, ctx.operands = module, (state_count, slice_count), operands
        states, slices, further = _parts(operands, state_count, slice_count)

        def keeping(*values):
            kept = [facula.ops.aten.clone.default(state) for state in values[:state_count]]
            return [*module(*values), *kept]

        results = _scan_in_graph(keeping, states, slices, tuple(further), slices[0].shape[0])
        results, ctx.kept = results[:-state_count], results[-state_count:]
        return outputs_of_steps(ctx, results)

    @staticmethod
    def backward(ctx, *grads):
        """Record the call that goes back through the steps."""
        return None, None, None, *gradients_of_steps(ctx, grads)


def outputs_of_steps(ctx, results):
    """The outputs of a recorded call; notes for `gradients_of_steps` which have gradients."""
    ctx.needs_output = [has_gradient(r) for r in results]
    ctx.mark_non_differentiable(*(r for r in results if not has_gradient(r)))
    return tuple(results)


def gradients_of_steps(ctx, grads):
    """The gradients of a call that has stepped through states, by a `scan` back through them.

    Args:
        ctx: has `module`, a step; `operands`, of which `counts` are states and slices; `kept`, the
            states before each step, stacked; `needs_output`, whether results can have gradients.
        grads (tuple): the cotangents of the results.

    Returns:
        list: for each operand.
    """
    operands, wanted = ctx.operands, wanted_of(ctx.operands)
    step = _StepBack(ctx, wanted)
    _, slices, further = _parts(operands, *ctx.counts)
    carried = [grads[i] for i in step.floating]
    carried += [facula.zeros_like(operands[i]) for i in step.summed]
    rows = [t.flip(0) for t in (*(grads[i] for i in step.outputs), *ctx.kept, *slices)]
    with_grad = step.leaves(len(carried))
    if mode_that_records() is None:
        run = called_with_leaves(step, with_grad)
        found = _scanned(run, carried, rows, further, len(rows[0]))
    else:
        found = _scan_in_graph(step, carried, rows, tuple(further), len(rows[0]), with_grad)
    by_operand = dict(zip(step.floating + step.summed, found, strict=False))
    by_operand |= zip(step.sliced, (g.flip(0) for g in found[len(carried) :]), strict=True)
    return [by_operand[i] if i in wanted else None for i in range(len(operands))]


class _StepBack:
    """One step of a scan's gradient: cotangents of the state, sums, and gradients of the slices.

    Called with the cotangents of the next state and the sums, then with rows: cotangents of the
    outputs, the state, the slices; then with what each step reads.
    """

    def __init__(self, ctx, wanted):
        states, slices = ctx.counts
        count = len(ctx.operands)
        self.floating = [i for i in range(states) if has_gradient(ctx.operands[i])]
        self.sliced = [i for i in wanted if states <= i < states + slices]
        self.summed = [i for i in wanted if i >= states + slices]
        results = len(ctx.needs_output)
        self.outputs = [i for i in range(states, results) if ctx.needs_output[i]]
        self._results, self._states, self._slices = results, states, slices
        self._inputs = self.floating + self.sliced + self.summed
        self._gradient = gradient_of(ctx.module, count, self._inputs)

    def leaves(self, carried):
        """The positions of the operands that need gradients, for so many carried values."""
        start = carried + len(self.outputs)
        return {i + start for i in self._inputs}

    def __call__(self, *values):
        floating, summed, outputs = len(self.floating), len(self.summed), len(self.outputs)
        of_states, sums = values[:floating], values[floating : floating + summed]
        rest = values[floating + summed :]
        grads = [None] * self._results
        for place, g in zip(self.floating + self.outputs, (*of_states, *rest[:outputs])):  # noqa: B905
            grads[place] = g
        found = self._gradient(*rest[outputs:], *grads)
        sliced = found[floating : floating + len(self.sliced)]
        further = found[floating + len(self.sliced) :]
        added = [total + g for total, g in zip(sums, further, strict=True)]
        return [*found[:floating], *added, *sliced]


def _parts(operands, states, slices):
    """States, slices, and what each step reads."""
    return operands[:states], operands[states : states + slices], operands[states + slices :]


def _run_scan(combine_fn, init, xs, additional_inputs=()):
    """`scan` of flat values, as graphs call it."""
    mode = mode_that_records()
    run = _scanned if mode is None else _scan_in_graph
    further = tuple(additional_inputs)
    return tuple(run(combine_fn, list(init), list(xs), further, xs[0].shape[0]))


scan_op = HigherOrderOperator("scan", _run_scan)
