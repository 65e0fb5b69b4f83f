"""Switches of behaviour that may become the default.

Example:
    >>> facula.__future__.set_swap_module_params_on_conversion(False)
    >>> facula.__future__.get_swap_module_params_on_conversion()
    False
"""

_flags = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value):
    """Whether `Module.to` and its like make new Parameters in place of changing their data."""
    _flags["overwrite"] = value


def get_overwrite_module_params_on_conversion():
    """Whether `Module.to` and its like make new Parameters; returns a bool."""
    return _flags["overwrite"]


def set_swap_module_params_on_conversion(value):
    """Whether `Module.to`, its like and `load_state_dict` use `utils.swap_tensors`."""
    _flags["swap"] = value


def get_swap_module_params_on_conversion():
    """Whether `Module.to`, its like and `load_state_dict` use `utils.swap_tensors`."""
    return _flags["swap"]
