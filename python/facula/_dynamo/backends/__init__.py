"""Names of backends for `compile`. Each of facula's own runs the function as it is."""

from __future__ import annotations

from facula._dynamo.backends.registry import (  # noqa: F401
    list_backends,
    lookup_backend,
    register_backend,
)
