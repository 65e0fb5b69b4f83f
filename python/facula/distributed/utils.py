"""Small helpers of wrappers: arguments by name, casts, storages, states that all ranks share."""

from __future__ import annotations

import traceback

import facula
from facula.utils._pytree import tree_map

__all__ = []


def _pack_kwargs(*args, **kwargs):
    """Arguments as one tuple, and the names of the last ones of it."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args, kwarg_keys):
    """The arguments of `_pack_kwargs`: a tuple, and a dict of those that have names."""
    count = len(flat_args) - len(kwarg_keys)
    if count < 0:
        raise AssertionError(
            f"_unpack_kwargs(): expected an argument for each of {len(kwarg_keys)} names; got "
            f"{len(flat_args)}"
        )
    return tuple(flat_args[:count]), dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _apply_to_tensors(fn, container):
    """A container like this one, with what a function makes of each tensor."""
    return tree_map(lambda x: fn(x) if isinstance(x, facula.Tensor) else x, container)


def _cast_forward_inputs(dtype, *args, **kwargs):
    """Arguments with floating tensors in a dtype; None leaves them as they are."""

    def cast(x):
        return x.to(dtype) if x.is_floating_point() else x

    return (args, kwargs) if dtype is None else _apply_to_tensors(cast, (args, kwargs))


def _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies):
    """Values with tensors moved to a device, in a container of one; a tuple's own in a tuple."""
    moved = _apply_to_tensors(lambda x: x.to(target_device), inputs)
    return [moved]


def _to_kwargs(inputs, kwargs, target_device, use_side_stream_for_tensor_copies):
    """Arguments on a device: a tuple of one tuple, and a tuple of one dict."""
    inputs = _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies)
    kwargs = _recursive_to(kwargs or {}, target_device, use_side_stream_for_tensor_copies)
    return tuple(inputs), tuple(kwargs)


def _p_assert(cond, s, raise_assertion_error=True):
    """Checks within a backward pass, where exceptions may get lost: the text is printed, too."""
    if cond:
        return
    print(s)
    traceback.print_stack()
    if raise_assertion_error:
        raise AssertionError(s)


# --- storages


def _data_ptr_allocated(tensor):
    """Whether a tensor has memory."""
    return tensor.untyped_storage().size() > 0


def _alloc_storage(tensor, size):
    """Give a tensor whose storage is empty memory for a size."""
    with facula.no_grad():
        count = size.numel() * tensor.element_size()
        if tensor.untyped_storage().size() == count:
            return
        _p_assert(
            tensor.untyped_storage().size() == 0,
            "_alloc_storage(): expected a tensor whose storage is empty; got "
            f"{tensor.untyped_storage().size()} bytes",
        )
        tensor.untyped_storage().resize_(count)


def _free_storage(tensor):
    """Let the memory of a tensor go, which has its storage for itself."""
    with facula.no_grad():
        if tensor.untyped_storage().size() == 0:
            return
        held, used = tensor.untyped_storage().size(), tensor.numel() * tensor.element_size()
        _p_assert(
            held == used,
            f"_free_storage(): expected a tensor that has its storage for itself; got one of {used}"
            f" bytes in a storage of {held}",
        )
        tensor.untyped_storage().resize_(0)


# --- modules


def _get_root_modules(modules):
    """Those modules that are not within another of them."""
    inner = {id(part) for m in modules for part in m.modules() if part is not m}
    return [m for m in modules if id(m) not in inner]


def _replace_by_prefix(state_dict, old_prefix, new_prefix):
    """Rename the entries whose names begin with a prefix, in place."""
    if old_prefix == new_prefix:
        raise ValueError(f"_replace_by_prefix(): expected two prefixes; got {old_prefix!r} twice")
    for name in [name for name in state_dict if name.startswith(old_prefix)]:
        state_dict[new_prefix + name[len(old_prefix) :]] = state_dict.pop(name)


def _verify_param_shape_across_processes(process_group, tensors, logger=None):
    """RuntimeError at all ranks if they have not the same number and shapes of parameters."""
    _verify_same(process_group, [(tuple(t.shape), str(t.dtype)) for t in tensors])


def _verify_same(process_group, mine):
    import facula.distributed as dist

    if dist._rank_not_in_group(process_group) or process_group.size() == 1:
        return
    of_all = [None] * process_group.size()
    dist.all_gather_object(of_all, mine, group=process_group)
    for rank, theirs in enumerate(of_all):
        if theirs == of_all[0]:
            continue
        pairs = zip(of_all[0] + [None] * len(theirs), theirs + [None] * len(mine), strict=False)
        one, other = next((a, b) for a, b in pairs if a != b)
        raise RuntimeError(
            f"DistributedDataParallel: expected the same parameters at all ranks; got {one} at "
            f"rank 0 and {other} at rank {rank}"
        )


def _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src):
    """Copy tensors of one rank to all, in flat pieces.

    Args:
        process_group (ProcessGroup): the ranks.
        module_states (list of Tensor): the same at all ranks, but for values.
        broadcast_bucket_size (int): bytes of a piece.
        src (int): whose values; a rank of the group.
    """
    from facula.distributed._reduce_op import BroadcastOptions

    options = BroadcastOptions(rootRank=src)
    for group in _pieces(module_states, broadcast_bucket_size):
        flat = facula.cat([t.detach().reshape(-1) for t in group])
        process_group.broadcast([flat], options).wait()
        offset = 0
        with facula.no_grad():
            for t in group:
                t.detach().copy_(flat[offset : offset + t.numel()].view(t.shape))
                offset += t.numel()


def _sync_module_states(
    module,
    process_group,
    broadcast_bucket_size,
    src,
    params_and_buffers_to_ignore,
    broadcast_buffers=True,
):
    """Copy the parameters and buffers of one rank's module to all.

    Args:
        module (Module): the module, equal at all ranks but for values.
        process_group (ProcessGroup): the ranks.
        broadcast_bucket_size (int): bytes that are sent at once.
        src (int): whose values; a rank of the group.
        params_and_buffers_to_ignore (container of str): names to leave alone.
        broadcast_buffers (bool): whether buffers are copied, too.
    """
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [t.detach() for name, t in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _pieces(tensors, most_bytes):
    """Tensors in lists of one dtype and device, and of some size at most."""
    groups, sizes = [], {}
    for t in tensors:
        kind = (t.dtype, t.device)
        group, size = sizes.get(kind, (None, 0))
        if group is None or size + t.numel() * t.element_size() > most_bytes:
            group, size = [], 0
            groups.append(group)
        group.append(t)
        sizes[kind] = (group, size + t.numel() * t.element_size())
    return groups
