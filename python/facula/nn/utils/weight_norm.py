"""Weight norm by a hook; `parametrizations.weight_norm` is its successor."""

from __future__ import annotations

import facula
from facula.nn.parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


def norm_of_slices(v, dim):
    """The 2-norms of the slices of `v` along `dim`, kept as sizes of 1; of all for dim -1."""
    return facula.norm_except_dim(v, 2, dim)


def scaled_to_norm(v, g, dim):
    """The slices of `v` along `dim` scaled to the norms `g`; returns a Tensor."""
    return v * (g / norm_of_slices(v, dim))


class WeightNorm:
    """The hook that computes a weight from its norms and directions before each forward.

    Args:
        name: of the parameter.
        dim: the dimension whose slices have norms of their own, or -1.
    """

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of `module`; returns a Tensor."""
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return scaled_to_norm(v, g, self.dim)

    @staticmethod
    def apply(module, name, dim):
        """Put the hook on a parameter; returns the hook."""
        import warnings

        warnings.warn(
            "nn.utils.weight_norm is deprecated; nn.utils.parametrizations.weight_norm takes "
            "its place",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"weight_norm(): {name!r} of {type(module).__name__} has one already"
                )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "weight_norm(): an uninitialized parameter has no shape yet; run the module once "
                "before"
            )
        del module._parameters[name]
        norms = norm_of_slices(weight, hook.dim)
        module.register_parameter(f"{name}_g", Parameter(norms.data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        """Make the weight a plain parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for part in "gv":
            del module._parameters[f"{self.name}_{part}"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Keep a weight as norms `<name>_g` and directions `<name>_v`, by a hook.

    Args:
        module: the Module. name: of its parameter.
        dim: the dimension whose slices have norms of their own; None: one norm for all.

    Returns:
        `module`.

    Raises:
        RuntimeError: it has been done already.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Undo `weight_norm`; returns `module`. Raises ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"remove_weight_norm(): {name!r} of {type(module).__name__} has none")
