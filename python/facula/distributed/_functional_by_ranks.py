"""The operators `facula.ops.c10d_functional`: collectives of groups that are named by their ranks.

PyTorch's first functional collectives; programs use them as names, to count what runs.
"""

from __future__ import annotations

from facula import library
from facula.distributed import _waited_collectives as collectives

_GROUP = "str tag, int[] ranks, int group_size"

# schema -> the call with a list of ranks in place of a group
_OPERATORS = {
    f"broadcast(Tensor self, int src, {_GROUP}) -> Tensor": collectives.broadcast,
    f"all_reduce(Tensor self, str reduceOp, {_GROUP}) -> Tensor": collectives.all_reduce,
    f"all_reduce_coalesced(Tensor[] self, str reduceOp, {_GROUP}) -> Tensor[]": (
        collectives.all_reduce_coalesced
    ),
    f"all_gather_into_tensor(Tensor shard, {_GROUP}) -> Tensor": (
        lambda shard, ranks, tag: collectives.all_gather_tensor(shard, 0, ranks, tag)
    ),
    f"all_gather_into_tensor_coalesced(Tensor[] input, {_GROUP}) -> Tensor[]": (
        collectives.all_gather_into_tensor_coalesced
    ),
    f"reduce_scatter_tensor(Tensor input, str reduceOp, {_GROUP}) -> Tensor": (
        lambda input, op, ranks, tag: collectives.reduce_scatter_tensor(input, op, 0, ranks, tag)
    ),
    f"reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduceOp, {_GROUP}) -> Tensor[]": (
        lambda inputs, op, ranks, tag: collectives.reduce_scatter_tensor_coalesced(
            inputs, op, [0] * len(inputs), ranks, tag
        )
    ),
    "all_to_all_single(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, "
    f"{_GROUP}) -> Tensor": collectives.all_to_all_single,
}


def _by_ranks(call):
    def kernel(*args):
        *rest, tag, ranks, _ = args
        return call(*rest, list(ranks), tag)

    return kernel


def _define():
    lib = library.Library("c10d_functional", "FRAGMENT")
    for schema, call in _OPERATORS.items():
        lib.define(schema)
        lib.impl(schema.partition("(")[0], _by_ranks(call), "CompositeExplicitAutograd")
    return lib


_library = _define()
