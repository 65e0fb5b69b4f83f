"""Forward passes of DistributedDataParallel in another dtype than that of the parameters."""

from __future__ import annotations

import dataclasses

import facula
from facula.utils._pytree import tree_map


@dataclasses.dataclass
class _MixedPrecision:
    """The dtypes of a pass; None leaves them as they are.

    Args:
        param_dtype (dtype): of parameters and inputs while the module runs.
        reduce_dtype (dtype): in which ranks add gradients up; default param_dtype.
        buffer_dtype (dtype): of buffers.
    """

    param_dtype: facula.dtype | None = None
    reduce_dtype: facula.dtype | None = None
    buffer_dtype: facula.dtype | None = None

    def communication_dtype(self):
        """The dtype in which gradients travel; None for their own."""
        return self.reduce_dtype or self.param_dtype


def cast_buffers(buffers, dtype):
    """Give floating buffers another dtype, for good."""
    for buffer in buffers:
        if dtype is not None and buffer.is_floating_point():
            buffer.data = buffer.to(dtype)


def cast_inputs(dtype, values):
    """Floating tensors among arguments in another dtype."""

    def cast(value):
        is_float = isinstance(value, facula.Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    return values if dtype is None else tree_map(cast, values)


class CastParameters:
    """Has a module compute with casts of its parameters, through which gradients come back.

    Args:
        module (Module): it and its children.
        params (list of Parameter): those to cast.
        dtype (dtype): the dtype to compute in; None leaves parameters alone.
    """

    def __init__(self, module, params, dtype):
        self.module, self.dtype = module, dtype
        self.wanted = {id(p) for p in params if p.is_floating_point()}

    def __enter__(self):
        self.replaced, casts = [], {}
        if self.dtype is None:
            return
        for part in self.module.modules():
            for name, param in part._parameters.items():
                if id(param) in self.wanted:
                    self.replaced.append((part, name, param))
        for part, name, param in self.replaced:
            if id(param) not in casts:
                casts[id(param)] = param.to(self.dtype)
            part._parameters[name] = casts[id(param)]

    def __exit__(self, *error):
        for part, name, param in self.replaced:
            part._parameters[name] = param
        self.replaced = []
