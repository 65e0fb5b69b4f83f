"""Which submodules of a model are wrapped: policies, and `wrap` within `enable_wrap`."""

from __future__ import annotations

import contextlib
import threading

import facula
from facula.nn import Module

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args, **kwargs):
    """The policy that wraps each submodule: always True."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Wraps the submodules for which a function returns True.

    Args:
        module (Module): the submodule.
        recurse (bool): whether the question is about going on to its submodules.
        nonwrapped_numel (int): how many elements its parameters have that are not wrapped yet.
        lambda_fn (callable): called with the submodule.

    Returns:
        bool
    """
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Wraps the submodules of some classes.

    Args:
        module, recurse, nonwrapped_numel: as for `lambda_auto_wrap_policy`.
        transformer_layer_cls (set of type): the classes.

    Returns:
        bool
    """
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _module_wrap_policy(module, recurse, nonwrapped_numel, module_classes):
    return True if recurse else isinstance(module, tuple(module_classes))


def _or_policy(module, recurse, nonwrapped_numel, policies):
    """Wraps what any of several policies wraps."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
        for policy in policies
    )


def size_based_auto_wrap_policy(
    module,
    recurse,
    nonwrapped_numel,
    min_num_params=int(1e8),
    force_leaf_modules=None,
    exclude_wrap_modules=None,
):
    """Wraps the submodules that have many parameters.

    Args:
        module, recurse, nonwrapped_numel: as for `lambda_auto_wrap_policy`.
        min_num_params (int): how many elements are enough.
        force_leaf_modules (set of type): submodules of these are not looked at; default
            MultiheadAttention.
        exclude_wrap_modules (set of type): not wrapped themselves; default ModuleList, ModuleDict.

    Returns:
        bool

    Example:
        >>> size_based_auto_wrap_policy(facula.nn.Linear(9, 9), False, 90, min_num_params=80)
        True
    """
    leaves = force_leaf_modules
    if leaves is None:
        leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES
    excluded = exclude_wrap_modules
    if excluded is None:
        excluded = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(leaves))
    return is_large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {facula.nn.ModuleList, facula.nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {facula.nn.MultiheadAttention}


class _Policy:
    """A policy that looks at a whole model at once."""

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        """The submodules to wrap, each with the arguments of its wrapper."""
        raise NotImplementedError(f"{type(self).__name__}: expected _run_policy; got none")


class ModuleWrapPolicy(_Policy):
    """Wraps the submodules of some classes.

    Args:
        module_classes (iterable of type): the classes.

    Example:
        >>> ModuleWrapPolicy({facula.nn.Linear})(facula.nn.Linear(1, 1), False, 2)
        True
    """

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, tuple(self._module_classes))
        }

    def __call__(self, module, recurse, *args, **kwargs):
        return _module_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self):
        return super().__repr__() + f"({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wraps the submodules for which a function returns True, or arguments of the wrapper.

    Args:
        lambda_fn (callable): called with a submodule; returns a bool, or a dict of arguments that
            replace the root's.
    """

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (bool, dict)):
                raise ValueError(
                    f"CustomPolicy(): expected a bool or a dict of lambda_fn; got {answer!r}"
                )
            if answer is not False:
                found[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


# --- wrapping


def _wrap(module, wrapper_cls, **kwargs):
    """The module wrapped, with what the module itself asks for in `_wrap_overrides`."""
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _recursive_wrap(
    module,
    auto_wrap_policy,
    wrapper_cls,
    ignored_modules,
    ignored_params,
    only_wrap_children=False,
    **kwargs,
):
    """Wrap the submodules that a policy names, innermost first, and the module itself.

    Returns:
        (Module, int): the module, or its wrapper; how many elements were wrapped
    """
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    wrapped_numel = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, wrapped)
        wrapped_numel += count
    rest = numel - wrapped_numel
    if only_wrap_children:
        return module, wrapped_numel
    if auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=rest):
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, wrapped_numel


def _wrap_targets(root, targets, wrapper_cls):
    """Wrap the submodules of a dict, innermost first; the root stays as it is."""
    made, seen = {}, set()

    def visit(module):
        # By items, since named_children() names a shared module but once.
        for name, child in list(module._modules.items()):
            if child is None or child in made.values():
                continue
            if child in made:
                setattr(module, name, made[child])
                continue
            if child not in seen:
                seen.add(child)
                visit(child)
            if child in targets:
                made[child] = wrapper_cls(child, **targets[child])
                setattr(module, name, made[child])

    visit(root)


def _auto_wrap(root, policy, ignored_modules, ignored_params, wrapper_cls, kwargs):
    """Wrap the submodules of a model as a policy says.

    Args:
        root (Module): stays as it is.
        policy (callable or _Policy): which.
        ignored_modules (set of Module): left alone.
        ignored_params (set of Parameter): not counted.
        wrapper_cls (callable): called with a submodule and arguments.
        kwargs (dict): the arguments.
    """
    if isinstance(policy, _Policy):
        targets = policy._run_policy(root, ignored_modules, kwargs)
        targets.pop(root, None)
        _wrap_targets(root, targets, wrapper_cls)
        return
    _recursive_wrap(
        root,
        policy,
        wrapper_cls,
        ignored_modules,
        ignored_params,
        only_wrap_children=True,
        **kwargs,
    )


class _ConfigAutoWrap:
    """The wrapper of `wrap`, within `enable_wrap`."""

    _of_thread = threading.local()


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Have `wrap` wrap modules.

    Args:
        wrapper_cls (callable): takes a module.
        wrapper_kwargs: its further arguments.

    Example:
        >>> with enable_wrap(wrapper_cls=facula.nn.Sequential):
        ...     layer = wrap(facula.nn.Linear(1, 1))
        >>> type(layer).__name__, type(wrap(facula.nn.Linear(1, 1))).__name__
        ('Sequential', 'Linear')
    """
    here = _ConfigAutoWrap._of_thread
    if getattr(here, "config", None) is not None:
        raise RuntimeError("enable_wrap(): expected one at a time; got one inside of another")
    here.config = (wrapper_cls, wrapper_kwargs)
    try:
        yield
    finally:
        here.config = None


def wrap(module, **wrap_overrides):
    """Wrap a module within `enable_wrap`; leave it as it is elsewhere.

    Args:
        module (Module): the module.
        wrap_overrides: arguments in place of those of `enable_wrap`.

    Returns:
        Module
    """
    if not isinstance(module, Module):
        raise TypeError(f"wrap(): expected a Module; got {type(module).__name__}")
    config = getattr(_ConfigAutoWrap._of_thread, "config", None)
    if config is None:
        return module
    wrapper_cls, kwargs = config
    return _wrap(module, wrapper_cls, **{**kwargs, **wrap_overrides})
