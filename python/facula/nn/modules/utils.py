"""Helpers of layers: one value per spatial dimension."""

from __future__ import annotations

from facula.nn import init


def ntuple(n):
    """A function that makes an n-tuple of one value, and a tuple of an iterable."""

    def parse(x):
        if isinstance(x, (tuple, list)) or hasattr(x, "__iter__"):
            return tuple(x)
        return (x,) * n

    return parse


_single = ntuple(1)
_pair = ntuple(2)
_triple = ntuple(3)
_quadruple = ntuple(4)


def _keep(module, **settings):
    """Assign settings to attributes of their names."""
    for name, value in settings.items():
        setattr(module, name, value)


def _ones_and_zeros(weight, bias=None):
    """Set a weight to 1 and a bias to 0, where there are any."""
    for parameter, fill in ((weight, init.ones_), (bias, init.zeros_)):
        if parameter is not None:
            fill(parameter)


def _reverse_repeat_tuple(t, n):
    """Each element of `t` n times, last element first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """`out_size` (int or list) with each None replaced by the trailing `defaults`."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"input must have at least {len(out_size) + 1} dimensions; got {len(defaults)}"
        )
    tail = defaults[-len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, tail, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strip `prefix` from the keys of `state_dict` and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if not key:
            continue
        if key == prefix.replace(".", "") or key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
