"""Whether operators are being recorded on proxies; facula records programs otherwise.

`facula.fx.symbolic_trace` runs modules on proxies above the operators, and `facula._trace` records
operators in the core. No mode of the kind that this module is about is ever active.
"""

from __future__ import annotations

__all__ = ["get_innermost_proxy_mode", "get_proxy_mode"]


def get_proxy_mode():
    """The mode that records operators on proxies: None, as facula has no such mode.

    Example:
        >>> get_proxy_mode() is None
        True
    """
    return None


get_innermost_proxy_mode = get_proxy_mode
