"""Results of functional collectives that are still under way, and the works that fill them.

An operator of `_c10d_functional` returns at once. Its work is noted here by the memory of the
result, until `wait_tensor` of the result, or of a view of it, has waited for it.
"""

from __future__ import annotations

import facula
from facula.utils import _pytree as pytree

# Address of a result's memory -> (the result, its work). The result is kept so that the address is
# not given to another tensor.
_under_way = {}
_MOST_ENDED = 64


def note(tensor, work):
    """Note that a work fills a tensor, which it returns.

    Args:
        tensor (Tensor): on the CPU.
        work (Work): of an asynchronous collective.
    """
    if work is None or work.is_completed() and work.exception() is None:
        if work is not None:
            work.wait()
        return tensor
    if tensor.numel() == 0:  # it has no memory to be found by, and ranks may be threads
        work.wait()
        return tensor
    if len(_under_way) > _MOST_ENDED:
        forget_ended()
    _under_way[tensor.untyped_storage().data_ptr()] = tensor, work
    return tensor


def forget_ended():
    """Forget works that have ended well: nobody needs to wait for them any more."""
    for address, (_, work) in list(_under_way.items()):
        if work.is_success():
            work.wait()
            _under_way.pop(address, None)


def wait(tensor):
    """Wait for the work that fills a tensor's memory, if there is one; returns the tensor."""
    address = tensor.untyped_storage().data_ptr()
    found = _under_way.get(address)
    if found is None:
        return tensor
    try:
        found[1].wait()
    finally:
        if _under_way.get(address) is found:
            del _under_way[address]
    return tensor


def _plain(value):
    return value.trigger_wait() if isinstance(value, AsyncCollectiveTensor) else value


# Operators that only look at memory: their results are under way as their inputs are.
_VIEWS = ("view", "_unsafe_view", "slice", "select", "t", "transpose", "permute", "detach")
_VIEWS += ("alias", "expand", "unsqueeze", "squeeze", "as_strided", "narrow", "view_as", "reshape")


class AsyncCollectiveTensor(facula.Tensor):
    """The result of a functional collective: whatever needs its values waits for them.

    Args:
        elem (Tensor): the result, perhaps still under way.

    Example:
        >>> import facula.distributed as dist
        >>> from facula.distributed import _functional_collectives as functional
        >>> def work(rank):
        ...     total = functional.all_reduce(facula.ones(2), "sum", dist.group.WORLD)
        ...     return (total + 1).tolist()
        >>> facula.distributed.threads.run(work, 2)
        [[3.0, 3.0], [3.0, 3.0]]
    """

    __torch_function__ = facula._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem):
        made = facula.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        made.elem, made.completed = elem, False
        return made

    def __init__(self, *args):
        pass

    def __repr__(self, *, tensor_contents=None):
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    def __tensor_flatten__(self):
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors, meta, outer_size, outer_stride):
        return AsyncCollectiveTensor(inner_tensors["elem"])

    def __reduce_ex__(self, protocol):
        return self.trigger_wait().__reduce_ex__(protocol)

    def __deepcopy__(self, memo):
        return self.trigger_wait().clone()

    def trigger_wait(self):
        """Wait for the values.

        Returns:
            Tensor: the plain tensor
        """
        if not self.completed:
            wait(self.elem)
            self.completed = True
        return self.elem

    wait = trigger_wait

    def _get_acs_underlying_tensor(self):
        return self.elem

    def tolist(self):
        """The values as lists."""
        return self.trigger_wait().tolist()

    def numpy(self, *, force=False):
        """The values as an array."""
        return self.trigger_wait().numpy(force=force)

    def data_ptr(self):
        """The address of the values."""
        return self.trigger_wait().data_ptr()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        name = func._schema.name.partition("::")[2]
        if name in _VIEWS and isinstance(args[0], cls) and not args[0].completed:
            return cls(func(args[0].elem, *args[1:], **(kwargs or {})))
        args, kwargs = pytree.tree_map(_plain, (args, kwargs or {}))
        return func(*args, **kwargs)
