"""Setting a datapipe forward to where another pass of it was."""

from ...graph_settings import apply_random_seed


def _simple_graph_snapshot_restoration(datapipe, n_iterations, rng=None):
    """Read items of a datapipe and drop them, so that the next is the one after.

    Args:
        datapipe (IterDataPipe): not begun.
        n_iterations (int): how many items.
        rng (Generator): seeds its random parts first.
    """
    if rng is not None:
        apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        if next(iterator, iterator) is iterator:
            break
    return iterator
