"""Values that all ranks of a group tell each other through a store."""

from __future__ import annotations

from facula.distributed._errors import DistBackendError


def exchange(store, key, rank, ranks, value, timeout):
    """What each rank has put under a key of a store.

    Args:
        store (Store): one that all ranks share.
        key (str): the same at all ranks, and used once.
        rank (int): of this process.
        ranks (list): all ranks.
        value (bytes): of this rank.
        timeout (timedelta): how long to wait for each of the others.

    Returns:
        list of bytes: by rank

    Raises:
        DistBackendError: some have not come; they are named.
    """
    store.set(f"{key}/{rank}", value)
    found = []
    for other in range(len(ranks)):
        try:
            if other != rank:
                store.wait([f"{key}/{other}"], timeout)
            found.append(bytes(store.get(f"{key}/{other}")))
        except RuntimeError as error:
            missing = [r for r in range(other, len(ranks)) if not _has(store, f"{key}/{r}")]
            raise DistBackendError(
                f"init_process_group(): rank {rank} waited for all {len(ranks)} ranks; missing "
                f"are {', '.join(map(str, missing)) or other} ({error})"
            ) from error
    return found


def exchange_made(store, key, rank, ranks, make, timeout):
    """What each rank makes, told to all; where one fails the others hear of it at once.

    Args:
        store, key, rank, ranks, timeout: see `exchange`.
        make (callable): gives the bytes of this rank.

    Returns:
        list of bytes: by rank

    Raises:
        DistBackendError: another rank could not make its own, or has not come.
        Exception: what `make` raises here.
    """
    try:
        value = make()
    except Exception as error:
        store.set(f"{key}/{rank}", b"-" + f"{type(error).__name__}: {error}".encode())
        raise
    found = exchange(store, key, rank, ranks, b"+" + value, timeout)
    failures = [
        f"rank {r}: {told[1:].decode(errors='replace')}"
        for r, told in enumerate(found)
        if told.startswith(b"-")
    ]
    if failures:
        raise DistBackendError(
            f"init_process_group(): expected all {len(ranks)} ranks to connect; got errors at\n  "
            + "\n  ".join(failures)
        )
    return [told[1:] for told in found]


def _has(store, key):
    try:
        return store.check([key])
    except Exception:
        return False
