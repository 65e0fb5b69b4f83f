"""Spectral norm by a hook; `parametrizations.spectral_norm` is its successor."""

from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn.parameter import Parameter
from facula.nn.utils._linear_algebra import operator

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "spectral_norm",
    "remove_spectral_norm",
]


class SpectralNorm:
    """The hook that divides a weight by its greatest singular value before each forward.

    Args:
        name: of the parameter.
        n_power_iterations: of the power method at each call in training, above 0.
        dim: the dimension of the output.
        eps: least norm that is divided by.
    """

    # Of the entries in a state_dict. Version 1 has the vector v, which version 0 left out.
    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm(): n_power_iterations must be above 0; got {n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        """`weight` as a matrix with the output in its rows; returns a Tensor."""
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        """The divided weight of `module`, after further iterations if asked; returns a Tensor."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with facula.no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(matrix.t().mv(u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(matrix.mv(v), dim=0, eps=self.eps, out=u)
                # Copied, so that a later iteration does not change what this graph needs.
                u, v = u.clone(), v.clone()
        return weight / facula.dot(u, matrix.mv(v))

    def remove(self, module):
        """Make the weight a plain parameter again."""
        with facula.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for part in ("u", "v", "orig"):
            delattr(module, f"{self.name}_{part}")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, weight_mat, u, target_sigma):
        """The v for which u^T W v is `target_sigma` and u is what W v gives (least squares)."""
        inverse = operator("pinv", "spectral_norm()")(weight_mat.t() @ weight_mat)
        v = (inverse @ (weight_mat.t() @ u.unsqueeze(1))).squeeze(1)
        return v.mul_(target_sigma / facula.dot(u, weight_mat.mv(v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Put the hook on a parameter; returns the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"spectral_norm(): {name!r} of {type(module).__name__} has one already"
                )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(
                f"spectral_norm(): {name!r} of {type(module).__name__} must be a parameter; got "
                "None"
            )
        if facula.nn.parameter.is_lazy(weight):
            raise ValueError(
                "spectral_norm(): an uninitialized parameter has no shape yet; run the module "
                "once before"
            )
        with facula.no_grad():
            rows, cols = hook.reshape_weight_to_matrix(weight).size()
            u, v = (
                F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps)
                for size in (rows, cols)
            )
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # A plain attribute until the first forward; nothing may train it.
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Completes entries that were written before version 1."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        parts = [f"{key}_{part}" for part in ("orig", "u", "v")]
        if version is None and all(part in state_dict for part in parts) and key not in state_dict:
            # All is there; only the version was not written.
            return
        if any(part not in state_dict for part in (parts[0], parts[1], key)):
            if strict:
                missing_keys += [p for p in (parts[0], parts[1], key) if p not in state_dict]
            return
        with facula.no_grad():
            original = state_dict[parts[0]]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[parts[2]] = fn._solve_v_and_rescale(matrix, state_dict[parts[1]], sigma)


class SpectralNormStateDictHook:
    """Writes the version of the entries."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"spectral_norm(): the metadata has {key!r} already")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Keep the greatest singular value of a weight at 1, by a hook.

    Args:
        module: the Module. name: of its parameter, which becomes `<name>_orig`.
        n_power_iterations: of the power method, at each call in training.
        eps: least norm that is divided by.
        dim: the dimension of the output; when None 1 for transposed convolutions, else 0.

    Returns:
        `module`.

    Raises:
        RuntimeError: it has been done already.
        ValueError: no iterations, or no such parameter.
    """
    from facula.nn.utils.parametrizations import is_transposed_convolution

    if dim is None:
        dim = 1 if is_transposed_convolution(module) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo `spectral_norm`; returns `module`. Raises ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"remove_spectral_norm(): {name!r} of {type(module).__name__} has none")
    for table, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in table.items():
            hook = getattr(hook, "hook", hook)
            if isinstance(hook, kind) and hook.fn.name == name:
                del table[key]
                break
    return module
