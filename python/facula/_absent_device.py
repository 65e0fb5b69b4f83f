"""Modules of kinds of devices that this build does not have: what they answer."""

from __future__ import annotations

from contextlib import contextmanager

_ZERO = "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
_FALSE = (
    "is_available is_initialized is_current_stream_capturing is_bf16_supported is_tf32_supported "
    "_is_compiled _is_in_bad_fork"
)
_EMPTY = "get_rng_state_all get_arch_list"
_NOTHING = "manual_seed manual_seed_all seed seed_all"


def _answering(name, make, doc):
    def function(*args, **kwargs):
        return make()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def install(module, names, error):
    """Give a module the functions of a kind of device.

    Args:
        module (dict): the module's names.
        names (str): the functions that need a device.
        error: takes a function's name, gives the exception.
    """

    def need(name):
        def raise_it():
            raise error(name)

        return _answering(name, raise_it, "Needs a device: raises, as this build has none.")

    for name in names.split():
        module[name] = need(name)
    kinds = (
        (_ZERO, int, "0: there is no device."),
        (_FALSE, bool, "False: there is no device."),
        (_EMPTY, list, "An empty list: there is no device."),
        (_NOTHING, lambda: None, "Nothing: there is no device whose generator is to be seeded."),
    )
    for known, make, doc in kinds:
        for name in known.split():
            if name in module["__all__"] or name.startswith("_"):
                module[name] = _answering(name, make, doc)


@contextmanager
def no_change():
    """Context manager: nothing changes, as there is no device."""
    yield


class device_guard:
    """Context manager: a device is the current one within; with none, nothing changes."""

    def __init__(self, device):
        self.idx, self.prev_idx = device, -1

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False
