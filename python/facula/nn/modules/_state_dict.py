"""Saving and loading the state of a module."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import facula
from facula.__future__ import get_swap_module_params_on_conversion
from facula.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The keys that `load_state_dict` missed and did not expect."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    __str__ = __repr__


class StateDictMethods:
    """The part of Module that gives and takes its state."""

    def get_extra_state(self):
        """Override to add a value to the state_dict; returns that value."""
        raise RuntimeError(_not_overridden("get_extra_state"))

    def set_extra_state(self, state):
        """Override to take back the value that `get_extra_state` gave."""
        raise RuntimeError(_not_overridden("set_extra_state"))

    def _local_state(self):
        """Parameters and persistent buffers of this module alone, by name, without None."""
        state = {k: v for k, v in self._parameters.items() if v is not None}
        hidden = self._non_persistent_buffers_set
        state.update((k, v) for k, v in self._buffers.items() if v is not None and k not in hidden)
        return state

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._local_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not StateDictMethods.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """The state of this module and its children, by dotted name.

        Args:
            destination: OrderedDict to fill; a new one when None.
            prefix: put before every name.
            keep_vars: give the parameters themselves, not detached ones.

        Returns:
            OrderedDict from name to Tensor, with the versions of the modules in `_metadata`.
        """
        if args:
            destination, prefix, keep_vars = _positional(args, destination, prefix, keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for before in tuple(self._state_dict_pre_hooks.values()):
            before(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is None:
                continue
            child.state_dict(
                prefix=f"{prefix}{name}.", keep_vars=keep_vars, destination=destination
            )
        for hook in tuple(self._state_dict_hooks.values()):
            replaced = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if replaced is None else replaced
            elif replaced is not None:
                raise RuntimeError("state_dict(): a post-hook must return None")
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        for hook in tuple(self._load_state_dict_pre_hooks.values()):
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        local_state = self._local_state()
        for name, target in local_state.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, target, state_dict[key], key, assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateDictMethods.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            self._find_unexpected(state_dict, prefix, local_state, extra_key, unexpected_keys)

    def _find_unexpected(self, state_dict, prefix, local_state, extra_key, unexpected_keys):
        for key in state_dict:
            if key == extra_key or not key.startswith(prefix):
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (self._modules if dot else local_state):
                unexpected_keys.append(key)

    def _load_one(self, name, target, source, key, assign, error_msgs):
        """Copy (or assign) one entry of a state_dict; failures go to `error_msgs`."""
        if not isinstance(source, facula.Tensor):
            error_msgs.append(
                f"{key}: expected a Tensor in state_dict; got {type(source).__name__}"
            )
            return
        lazy = is_lazy(target)
        if not lazy and target.dim() == 0 and source.dim() == 1 and len(source) == 1:
            # Checkpoints of very old versions hold scalars as one-element vectors.
            source = source[0]
        if not lazy and source.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: the model has shape {target.shape}; got {source.shape} "
                "in state_dict"
            )
            return
        if target.is_meta and not source.is_meta and not assign:
            _warn_meta(key)
        try:
            with facula.no_grad():
                if get_swap_module_params_on_conversion():
                    _swap_in(target, target.module_load(source, assign=assign))
                elif assign:
                    setattr(self, name, _assignable(target, source))
                else:
                    target.copy_(source)
        except Exception as error:
            error_msgs.append(
                f"{key}: cannot copy shape {tuple(source.shape)} to {tuple(target.shape)}: {error}"
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy a state into this module and its children.

        Args:
            state_dict: mapping from dotted name to Tensor.
            strict: the names must be exactly those of `state_dict()`.
            assign: put the given tensors in place instead of copying their values.

        Returns:
            A named tuple of `missing_keys` and `unexpected_keys`.

        Raises:
            TypeError: not a mapping.
            RuntimeError: keys or shapes that do not match.
        """
        if not hasattr(state_dict, "keys") or not hasattr(state_dict, "__getitem__"):
            raise TypeError(
                f"load_state_dict(): state_dict must be a mapping; got {type(state_dict).__name__}"
            )
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        keys = _IncompatibleKeys([], [])
        errors = []
        _load(self, state_dict, "", metadata, assign, keys, errors)
        if strict:
            if keys.missing_keys:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
            if keys.unexpected_keys:
                errors.insert(
                    1 if keys.missing_keys else 0,
                    f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ",
                )
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(
                    type(self).__name__, "\n\t".join(errors)
                )
            )
        return keys


def _load(module, state_dict, prefix, metadata, assign, keys, errors):
    about = dict((metadata or {}).get(prefix[:-1], {}))
    if assign:
        about["assign_to_params_buffers"] = assign
    module._load_from_state_dict(
        state_dict, prefix, about, True, keys.missing_keys, keys.unexpected_keys, errors
    )
    for name, child in module._modules.items():
        if child is None:
            continue
        child_prefix = f"{prefix}{name}."
        child_state = {k: v for k, v in state_dict.items() if k.startswith(child_prefix)}
        _load(child, child_state, child_prefix, metadata, assign, keys, errors)
    for hook in tuple(module._load_state_dict_post_hooks.values()):
        if hook(module, keys) is not None:
            raise AssertionError(
                "load_state_dict(): a post-hook changes incompatible_keys in place and returns None"
            )


def _swap_in(target, value):
    """Exchange a parameter or buffer for a loaded value; the object stays."""
    from facula.utils import swap_tensors

    if isinstance(target, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, requires_grad=target.requires_grad)
    swap_tensors(target, value)


def _assignable(target, source):
    if not isinstance(target, Parameter):
        return source
    if not isinstance(source, Parameter):
        return Parameter(source, requires_grad=target.requires_grad)
    return source.requires_grad_(target.requires_grad)


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys)


def _positional(args, destination, prefix, keep_vars):
    import warnings

    warnings.warn(
        "state_dict(): destination, prefix and keep_vars should be given by name",
        FutureWarning,
        stacklevel=3,
    )
    given = [*args[:3], *(destination, prefix, keep_vars)[len(args) :]]
    return tuple(given)


def _warn_meta(key):
    import warnings

    warnings.warn(
        f"load_state_dict(): {key} is on the meta device, so copying to it does nothing; "
        "assign=True takes the tensors of state_dict themselves",
        stacklevel=5,
    )


def _not_overridden(name):
    return f"Module.{name}() is a name for typing and cannot be called"
