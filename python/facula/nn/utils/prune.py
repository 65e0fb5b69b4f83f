"""Pruning: masks that make elements of parameters zero."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import facula


class BasePruningMethod(ABC):
    """Base of pruning methods: forward pre-hooks that set a parameter to its masked value.

    A subclass defines `compute_mask` and `PRUNING_TYPE`, one of "unstructured", "structured" and
    "global": which elements a mask may be computed from when the parameter is pruned again.
    """

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for importance scores `t`, under an earlier mask; returns a Tensor."""

    def apply_mask(self, module):
        """The parameter of `module` times its mask; returns a Tensor."""
        if self._tensor_name is None:
            raise AssertionError("apply_mask(): the module has not been pruned by this method")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter.

        Args:
            module: the Module that has it.
            name: its name there.
            importance_scores: Tensor of its shape, by which the mask is chosen; the parameter
                itself when None.
            args, kwargs: of the pruning method.

        Returns:
            The method, or the container of all methods that have pruned this parameter.
        """
        earlier = _take_hook(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        is_first = earlier is None
        if not is_first:
            container = earlier
            if not isinstance(earlier, PruningContainer):
                container = PruningContainer(earlier)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores must have the shape {tuple(original.shape)} of {name!r}; got "
                f"{tuple(importance_scores.shape)}"
            )
        if is_first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = facula.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                del module._parameters[name + "_orig"]
                module.register_parameter(name, original)
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A masked copy of `t`.

        Args:
            t: Tensor. default_mask: an earlier mask of its shape.
            importance_scores: Tensor of its shape, by which the mask is chosen.

        Returns:
            Tensor.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"prune(): importance_scores must have the shape {tuple(t.shape)}; got "
                f"{tuple(importance_scores.shape)}"
            )
        default_mask = facula.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        """Make the masked value the parameter for good, without mask and hook."""
        name = self._tensor_name
        if name is None:
            raise AssertionError("remove(): the module has not been pruned by this method")
        value = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = value.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _take_hook(module, name):
    """Remove the pruning hook of a parameter; returns it, or None."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return module._forward_pre_hooks.pop(key)
    return None


class PruningContainer(BasePruningMethod):
    """The methods that have pruned one parameter, one after another.

    Args:
        args: a method, or an iterable of methods of one parameter.
    """

    def __init__(self, *args):
        self._pruning_methods = ()
        if not isinstance(args, Iterable) or not args:
            self._tensor_name = None
            return
        methods = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        for method in methods:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a further method of the same parameter.

        Raises:
            TypeError: no pruning method.
            ValueError: a method of another parameter.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(
                f"add_pruning_method(): expected a BasePruningMethod; got {type(method).__name__}"
            )
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"add_pruning_method(): method must prune {self._tensor_name!r}; got one of "
                f"{method._tensor_name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method, computed of what the earlier ones have left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        chosen = _still_there(method, mask)
        new_mask = mask.clone()
        new_mask[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen]).to(mask.dtype)
        return new_mask


def _still_there(method, mask):
    """The index of the elements of which a further mask is computed."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * mask.dim()
    if kind != "structured":
        raise ValueError(
            f"PRUNING_TYPE must be 'unstructured', 'structured' or 'global'; got {kind!r}"
        )
    if not hasattr(method, "dim"):
        raise AttributeError(f"{type(method).__name__}: a structured method needs a dim")
    dim = method.dim % mask.dim()
    others = [d for d in range(mask.dim()) if d != dim]
    index = [slice(None)] * mask.dim()
    index[dim] = mask.sum(dim=others) != 0
    return tuple(index)


class Identity(BasePruningMethod):
    """Prunes nothing, but leaves mask and original in place."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The earlier mask."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """Put a mask of ones on a parameter; returns the method."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """A method that prunes a number of elements or channels, or a share of them."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _number(self, size):
        number = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(number, size)
        return number


class RandomUnstructured(_Amount):
    """Prunes elements at random.

    Args:
        amount: how many, an int, or which share, a float in [0, 1].
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The earlier mask with `amount` elements less."""
        number = self._number(t.nelement())
        mask = default_mask.clone(memory_format=facula.contiguous_format)
        if number != 0:
            chosen = facula.topk(facula.rand_like(t).view(-1), k=number)
            mask.view(-1)[chosen.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount):
        """Prune elements of a parameter at random; returns the method."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements of least absolute value.

    Args:
        amount: how many, an int, or which share, a float in [0, 1].
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The earlier mask with `amount` elements less."""
        number = self._number(t.nelement())
        mask = default_mask.clone(memory_format=facula.contiguous_format)
        if number != 0:
            chosen = facula.topk(t.abs().view(-1), k=number, largest=False)
            mask.view(-1)[chosen.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """Prune the elements of least absolute value of a parameter; returns the method."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _mask_of_channels(t, dim, chosen):
    mask = facula.zeros_like(t)
    index = [slice(None)] * t.dim()
    index[dim] = chosen
    mask[tuple(index)] = 1
    return mask


class RandomStructured(_Amount):
    """Prunes channels at random.

    Args:
        amount: how many, an int, or which share, a float in [0, 1].
        dim: the dimension of the channels.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        """The earlier mask with `amount` channels less."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        number = self._number(channels)
        if number == 0:
            return default_mask
        draws = facula.rand(channels, device=t.device)
        kept = draws > facula.kthvalue(draws, k=number).values
        return default_mask * _mask_of_channels(t, self.dim, kept).to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """Prune channels of a parameter at random; returns the method."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Amount):
    """Prunes the channels of least n-norm.

    Args:
        amount: how many, an int, or which share, a float in [0, 1].
        n: order of the norm, as `facula.norm` takes it.
        dim: the dimension of the channels.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t, default_mask):
        """The earlier mask with `amount` channels less."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        number = self._number(channels)
        if number == 0:
            return default_mask
        norms = _compute_norm(t, self.n, self.dim)
        kept = facula.topk(norms, k=channels - number, largest=True).indices
        return default_mask * _mask_of_channels(t, self.dim, kept).to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """Prune the channels of least norm of a parameter; returns the method."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask, a Tensor of zeros and ones."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """The earlier mask times the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"CustomFromMask: mask must have the shape {tuple(default_mask.shape)}; got "
                f"{tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """Put a mask on a parameter; returns the method."""
        return super().apply(module, name, mask=mask)


# ---- functions


def identity(module, name):
    """Put a mask of ones on parameter `name`; returns `module`."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune elements of parameter `name` at random; returns `module`.

    Args:
        module: the Module. name: of its parameter.
        amount: how many, an int, or which share, a float in [0, 1].
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements of least absolute value of parameter `name`; returns `module`.

    Args:
        module: the Module. name: of its parameter.
        amount: how many, an int, or which share, a float in [0, 1].
        importance_scores: Tensor whose absolute values decide in the parameter's place.

    Example:
        >>> layer = facula.nn.Linear(4, 2)
        >>> _ = facula.nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5)
        >>> int((layer.weight == 0).sum())
        4
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune channels along `dim` of parameter `name` at random; returns `module`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the channels along `dim` of least n-norm of parameter `name`; returns `module`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune parameter `name` by a mask of zeros and ones; returns `module`."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several parameters as if they were one.

    Args:
        parameters: iterable of (module, name).
        pruning_method: an unstructured method, as a class.
        importance_scores: dict from (module, name) to a Tensor that decides in its place.
        kwargs: of the method.

    Raises:
        TypeError: no iterable, or a method of another kind.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError(
            "global_unstructured(): parameters must be an iterable of (module, name); got "
            f"{type(parameters).__name__}"
        )
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError(
            "global_unstructured(): importance_scores must be a dict; got "
            f"{type(importance_scores).__name__}"
        )
    parameters = list(parameters)
    values = [getattr(module, name) for module, name in parameters]
    scores = facula.nn.utils.parameters_to_vector(
        [
            importance_scores.get(pair, value).reshape(-1)
            for pair, value in zip(parameters, values, strict=True)
        ]
    )
    masks = facula.nn.utils.parameters_to_vector(
        [
            getattr(module, name + "_mask", facula.ones_like(value))
            for (module, name), value in zip(parameters, values, strict=True)
        ]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            "global_unstructured(): pruning_method must be unstructured; got a "
            f"{method.PRUNING_TYPE} one"
        )
    mask, start = container.compute_mask(scores, masks), 0
    for (module, name), value in zip(parameters, values, strict=True):
        part = mask[start : start + value.numel()].view_as(value)
        start += value.numel()
        custom_from_mask(module, name, mask=part)


def remove(module, name):
    """Make the pruning of parameter `name` permanent; returns `module`.

    Raises:
        ValueError: it is not pruned.
    """
    hook = _take_hook(module, name)
    if hook is None:
        raise ValueError(f"remove(): {name!r} of {type(module).__name__} is not pruned")
    hook.remove(module)
    return module


def is_pruned(module):
    """Whether `module` or a descendant is pruned; returns a bool."""
    return any(
        isinstance(hook, BasePruningMethod)
        for child in module.modules()
        for hook in child._forward_pre_hooks.values()
    )


# ---- checks


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"amount must be a number; got {type(amount).__name__}")
    is_count = isinstance(amount, numbers.Integral)
    if (is_count and amount < 0) or (not is_count and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount must be an int of at least 0 or a float in [0, 1]; got {amount}")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount must be at most the {tensor_size} that there are; got {amount}")


def _validate_structured_pruning(t):
    if t.dim() <= 1:
        raise ValueError(
            "structured pruning needs a tensor of at least 2 dimensions; got shape "
            f"{tuple(t.shape)}"
        )


def _compute_nparams_toprune(amount, tensor_size):
    if isinstance(amount, numbers.Integral):
        return amount
    return round(amount * tensor_size)


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"dim must be below {t.dim()}; got {dim}")


def _compute_norm(t, n, dim):
    """The n-norms of the channels along `dim`."""
    dim = dim % t.dim()
    return facula.norm(t, p=n, dim=[d for d in range(t.dim()) if d != dim])
