"""Decompositions that parametrizations need, with a clear word where one is not there yet."""

from __future__ import annotations

import facula


def operator(name, user):
    """The operator `facula.linalg.<name>` or `facula.<name>`.

    Args:
        name: of the operator. user: who needs it, for the error.

    Raises:
        NotImplementedError: facula lacks it.
    """
    for home in (facula.linalg, facula):
        found = getattr(home, name, None)
        if found is not None:
            return found
    raise NotImplementedError(f"{user}: needs {name}, which is not implemented yet")
