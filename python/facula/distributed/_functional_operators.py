"""The operators of functional collectives: `facula.ops._c10d_functional`.

Each makes a new tensor (or, with a trailing underscore, changes its input), has a shape rule, so
that tracing and fake tensors see it as any other operator, and a derivative. They return at once,
with the collective under way: `wait_tensor` of the result waits for its data, which nobody may look
at before.
"""

from __future__ import annotations

import facula
from facula import library
from facula.distributed import _async_tensor
from facula.distributed import _reduce_op as options
from facula.distributed._reduce_op import ReduceOp
from facula.distributed._world import _resolve_process_group

_NAMESPACE = "_c10d_functional"
_GROUP = "str group_name"

_SCHEMAS = [
    f"all_reduce(Tensor input, str reduce_op, {_GROUP}) -> Tensor",
    f"all_reduce_(Tensor(a!) input, str reduce_op, {_GROUP}) -> Tensor(a!)",
    f"all_reduce_coalesced(Tensor[] inputs, str reduce_op, {_GROUP}) -> Tensor[]",
    f"broadcast(Tensor input, int src, {_GROUP}) -> Tensor",
    f"broadcast_(Tensor(a!) input, int src, {_GROUP}) -> Tensor(a!)",
    f"all_gather_into_tensor(Tensor input, int group_size, {_GROUP}) -> Tensor",
    f"all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, {_GROUP}) -> Tensor[]",
    f"reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, {_GROUP}) -> Tensor",
    "reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, "
    f"{_GROUP}) -> Tensor[]",
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, "
    f"{_GROUP}) -> Tensor",
    "wait_tensor(Tensor tensor) -> Tensor",
]


def reduction(name):
    """The ReduceOp of a name, "sum" or "AVG"; a ReduceOp itself."""
    if not isinstance(name, str):
        return name
    found = getattr(ReduceOp, name.upper(), None)
    if found is None:
        raise ValueError(f"expected the name of a reduction; got {name!r}")
    return found


def _all_reduce_(input, reduce_op, group_name):
    opts = options.AllreduceOptions(reduceOp=reduction(reduce_op), asyncOp=True)
    return _async_tensor.note(input, _resolve_process_group(group_name).allreduce([input], opts))


def _all_reduce(input, reduce_op, group_name):
    return _all_reduce_(input.detach().clone(), reduce_op, group_name)


def _broadcast_(input, src, group_name):
    opts = options.BroadcastOptions(rootRank=src, asyncOp=True)
    return _async_tensor.note(input, _resolve_process_group(group_name).broadcast([input], opts))


def _broadcast(input, src, group_name):
    return _broadcast_(input.detach().clone(), src, group_name)


def _gathered_shape(input, group_size):
    return [group_size * input.shape[0] if input.dim() else group_size, *input.shape[1:]]


def _all_gather_into_tensor(input, group_size, group_name):
    output = input.new_empty(_gathered_shape(input, group_size))
    opts = options.AllgatherOptions(asyncOp=True)
    group = _resolve_process_group(group_name)
    return _async_tensor.note(output, group._allgather_base(output, input.detach(), opts))


def _scattered_shape(input, group_size):
    return [input.shape[0] // group_size, *input.shape[1:]]


def _reduce_scatter_tensor(input, reduce_op, group_size, group_name):
    output = input.new_empty(_scattered_shape(input, group_size))
    opts = options.ReduceScatterOptions(reduceOp=reduction(reduce_op), asyncOp=True)
    group = _resolve_process_group(group_name)
    return _async_tensor.note(output, group._reduce_scatter_base(output, input.detach(), opts))


def _exchanged_shape(input, output_split_sizes):
    first = sum(output_split_sizes) if output_split_sizes else input.shape[0]
    return [first, *input.shape[1:]]


def _all_to_all_single(input, output_split_sizes, input_split_sizes, group_name):
    output = input.new_empty(_exchanged_shape(input, output_split_sizes))
    opts = options.AllToAllOptions(asyncOp=True)
    work = _resolve_process_group(group_name).alltoall_base(
        output, input.detach(), list(output_split_sizes), list(input_split_sizes), opts
    )
    return _async_tensor.note(output, work)


def _of_each(f):
    return lambda inputs, *rest: [f(t, *rest) for t in inputs]


def _same(input, *rest):
    return facula.empty_like(input)


# name -> (what it computes, what shape that has)
_KERNELS = {
    "all_reduce": (_all_reduce, _same),
    "all_reduce_": (_all_reduce_, lambda input, *rest: input),
    "all_reduce_coalesced": (_of_each(_all_reduce), _of_each(_same)),
    "broadcast": (_broadcast, _same),
    "broadcast_": (_broadcast_, lambda input, *rest: input),
    "all_gather_into_tensor": (
        _all_gather_into_tensor,
        lambda t, n, group: t.new_empty(_gathered_shape(t, n)),
    ),
    "all_gather_into_tensor_coalesced": (
        _of_each(_all_gather_into_tensor),
        _of_each(lambda t, n, group: t.new_empty(_gathered_shape(t, n))),
    ),
    "reduce_scatter_tensor": (
        _reduce_scatter_tensor,
        lambda t, op, n, group: t.new_empty(_scattered_shape(t, n)),
    ),
    "reduce_scatter_tensor_coalesced": (
        _of_each(_reduce_scatter_tensor),
        _of_each(lambda t, op, n, group: t.new_empty(_scattered_shape(t, n))),
    ),
    "all_to_all_single": (
        _all_to_all_single,
        lambda t, sizes, own, group: t.new_empty(_exchanged_shape(t, sizes)),
    ),
    "wait_tensor": (_async_tensor.wait, lambda tensor: tensor),
}


# --- derivatives


def _note(*names):
    """Note the arguments of these names for the derivative."""

    def setup(ctx, inputs, output):
        for place, name in names:
            setattr(ctx, name, inputs[place])

    return setup


def _check_linear(op):
    if reduction(op) not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError(f"expected a sum or an average where gradients are asked for; got {op}")


def _all_reduce_backward(ctx, grad):
    _check_linear(ctx.op)
    ops = facula.ops._c10d_functional
    return ops.wait_tensor(ops.all_reduce(grad.contiguous(), ctx.op, ctx.group)), None, None


def _all_gather_backward(ctx, grad):
    ops = facula.ops._c10d_functional
    part = ops.reduce_scatter_tensor(grad.contiguous(), "sum", ctx.size, ctx.group)
    return ops.wait_tensor(part).reshape(ctx.shape), None, None


def _all_gather_setup(ctx, inputs, output):
    ctx.shape, ctx.size, ctx.group = inputs[0].shape, inputs[1], inputs[2]


def _reduce_scatter_backward(ctx, grad):
    _check_linear(ctx.op)
    ops = facula.ops._c10d_functional
    whole = ops.wait_tensor(ops.all_gather_into_tensor(grad.contiguous(), ctx.size, ctx.group))
    if reduction(ctx.op) == ReduceOp.AVG:
        whole = whole / ctx.size
    return whole, None, None, None


def _all_to_all_backward(ctx, grad):
    ops = facula.ops._c10d_functional
    back = ops.all_to_all_single(grad.contiguous(), ctx.sent, ctx.received, ctx.group)
    return ops.wait_tensor(back), None, None, None


_DERIVATIVES = {
    "all_reduce": (_all_reduce_backward, _note((1, "op"), (2, "group"))),
    "all_gather_into_tensor": (_all_gather_backward, _all_gather_setup),
    "reduce_scatter_tensor": (
        _reduce_scatter_backward,
        _note((1, "op"), (2, "size"), (3, "group")),
    ),
    "all_to_all_single": (
        _all_to_all_backward,
        _note((1, "received"), (2, "sent"), (3, "group")),
    ),
    "wait_tensor": (lambda ctx, grad: grad, _note()),
}


def _define():
    lib = library.Library(_NAMESPACE, "FRAGMENT")
    for schema in _SCHEMAS:
        lib.define(schema)
    for name, (kernel, shape) in _KERNELS.items():
        for key in ("CPU", "CUDA", "PrivateUse1"):
            lib.impl(name, kernel, key)
        library.register_fake(f"{_NAMESPACE}::{name}", shape, lib=lib)
    for name, (backward, setup) in _DERIVATIVES.items():
        library.register_autograd(f"{_NAMESPACE}::{name}", backward, setup_context=setup, lib=lib)
    return lib


_library = _define()
