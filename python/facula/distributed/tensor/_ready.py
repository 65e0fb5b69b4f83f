"""Calls that were made before, moved no data, and are made again with other values.

Most calls of a training step are: they are found by the specs of their tensors and by their other
arguments, without binding, rules and plans.
"""

from __future__ import annotations

import facula
from facula.distributed.tensor import _local
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor._settings import settings

known = {}  # key -> ReadyCall
_MOST = 10_000
_PLAIN = (int, float, bool, str, type(None), facula.dtype, complex)


def key_of(func, args, kwargs):
    """What tells calls apart, or None for calls that are not kept.

    Args:
        func (OpOverload): the operator.
        args (sequence): its arguments: DTensors, numbers and lists of numbers.
        kwargs (dict): keyword arguments; a call that has any is not kept.
    """
    if kwargs:
        return None
    key = [func, settings.loss_parallel]
    for a in args:
        if isinstance(a, DTensor):
            key.append(a._spec)
        elif isinstance(a, _PLAIN):
            key += (a, a.__class__)  # True and 1 are equal, but not the same argument
        elif isinstance(a, (list, tuple)) and all(isinstance(i, int) for i in a):
            key.append(tuple(a))
        else:
            return None
    return tuple(key)


class ReadyCall:
    """An operator with all arguments but its tensors.

    Args:
        function (callable): the operator.
        args (list): its positional arguments, for parts.
        kwargs (dict): its keyword arguments.
        places (list of int): where its tensors are among the positional arguments.
        spec (DTensorSpec): of its result; None if that is its first argument.
    """

    __slots__ = ("args", "function", "kwargs", "places", "spec")

    def __init__(self, function, args, kwargs, places, spec):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.places, self.spec = places, spec

    def __call__(self, args):
        parts = list(self.args)
        for i in self.places:
            parts[i] = args[i]._local_tensor
        result = self.function(*parts, **self.kwargs)
        return args[0] if self.spec is None else DTensor(result, self.spec)


def remember(key, call, plan, local, result):
    """Keep a call, if it is the operator on the parts and has one result.

    Args:
        key (tuple): from `key_of`.
        call (Call): the operator, and its arguments as specs.
        plan (Plan): how it ran.
        local (dict): the arguments that it ran with.
        result (object): what it returned.
    """
    op = call.op
    if not isinstance(result, facula.Tensor) or len(op.returns) != 1 or not _local.is_plain(call):
        return
    in_place = op.returns[0][6]
    if op.written and not (in_place and op.written == op.names[:1]):
        return
    args, kwargs = op.split(local)
    places = [op.names.index(slot.name) for slot in call.slots]
    function = op.func
    if op.is_view and op.family == "sizes" and call.get("size") is not None:
        function, kwargs = facula.Tensor.reshape, {}
    for i in places:
        args[i] = None  # keep no tensor alive
    if len(known) >= _MOST:
        known.clear()
    known[key] = ReadyCall(function, args, kwargs, places, None if in_place else plan.outputs[0])
