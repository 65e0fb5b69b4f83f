"""What a loader tells all datapipes of a graph: shards, whether to shuffle, seeds."""

from __future__ import annotations

import inspect

from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph):
    """The datapipes of a graph that traverse_dps() gave, each once; returns a list."""
    found: dict = {}

    def collect(graph):
        for identity, (datapipe, below) in graph.items():
            if identity not in found:
                found[identity] = datapipe
                collect(below)

    collect(graph)
    return list(found.values())


def _pipes(datapipe):
    return get_all_graph_pipes(traverse_dps(datapipe))


def apply_sharding(
    datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT
):
    """Give each sharding datapipe its part.

    Args:
        datapipe: the last of the graph.
        num_of_instances (int): how many parts.
        instance_id (int): which of them.
        sharding_group (SHARDING_PRIORITIES): what the parts are of.

    Raises:
        RuntimeError: two of them stand on one way, so that items were lost.
    """

    def walk(graph, was_sharded):
        for pipe, below in graph.values():
            now = was_sharded
            if _can(pipe, "apply_sharding"):
                if was_sharded:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause "
                        f"data loss. Sharding already applied to {was_sharded}"
                    )
                now = pipe
                arguments = inspect.signature(pipe.apply_sharding).parameters
                group = (sharding_group,) if len(arguments) >= 3 else ()
                pipe.apply_sharding(num_of_instances, instance_id, *group)
            walk(below, now)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _can(pipe, name):
    return inspect.ismethod(getattr(pipe, name, None))


def apply_shuffle_settings(datapipe, shuffle=None):
    """Switch all shuffling datapipes on or off; None leaves them.

    Where shuffle is True and none shuffles, one is put behind the last, with a warning.
    """
    if shuffle is None:
        return datapipe
    shufflers = [p for p in _pipes(datapipe) if _can(p, "set_shuffle") and _can(p, "set_seed")]
    if not shufflers and shuffle:
        import warnings

        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at "
            "the end.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """As apply_random_seed, which is to be used in its place."""
    import warnings

    warnings.warn(
        "apply_shuffle_seed() is deprecated: use apply_random_seed()", FutureWarning, stacklevel=2
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe, rng):
    """Seed all random datapipes of a graph, each once.

    Args:
        datapipe: the last of the graph.
        rng (Generator): the seeds are drawn from it.
    """
    import facula

    for pipe in _pipes(datapipe):
        if _can(pipe, "set_seed"):
            pipe.set_seed(int(facula.empty((), dtype=facula.int64).random_(generator=rng).item()))
    return datapipe
