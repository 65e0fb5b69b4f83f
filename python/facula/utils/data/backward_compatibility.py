"""What programs of old called."""

import warnings


def worker_init_fn(worker_id):
    """Does nothing: the loader shards datapipes by itself."""
    warnings.warn(
        "backward_compatibility.worker_init_fn() is not needed: DataLoader shards datapipes",
        FutureWarning,
        stacklevel=2,
    )
