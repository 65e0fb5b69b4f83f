"""Which datapipes a datapipe is built of."""

from __future__ import annotations

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def _pipes_in(value, found, depth=0):
    """Notes the datapipes among a datapipe's attributes, in containers too."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        found[id(value)] = value
    elif depth < 5 and isinstance(value, dict):
        for part in value.values():
            _pipes_in(part, found, depth + 1)
    elif depth < 5 and isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            _pipes_in(part, found, depth + 1)


def traverse_dps(datapipe):
    """The graph of datapipes that end in one.

    Args:
        datapipe (IterDataPipe or MapDataPipe): the last.

    Returns:
        dict: from the id of the datapipe to a pair of it and such a dict of its sources.
    """
    return _graph(datapipe, set())


def traverse(datapipe, only_datapipe=None):
    """As traverse_dps, which is to be used in its place."""
    import warnings

    warnings.warn("traverse() is deprecated: use traverse_dps()", FutureWarning, stacklevel=2)
    return traverse_dps(datapipe)


def _graph(datapipe, above):
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(
            f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found"
        )
    if id(datapipe) in above:
        return {}
    found: dict = {}
    _pipes_in(vars(datapipe), found)
    below: dict = {}
    for source in found.values():
        below.update(_graph(source, above | {id(datapipe)}))
    return {id(datapipe): (datapipe, below)}
