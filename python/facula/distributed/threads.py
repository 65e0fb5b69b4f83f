"""Ranks that are threads of one process: for tests, and to look at a program in one debugger."""

from __future__ import annotations

import threading

from facula import _C
from facula.distributed import _world as world
from facula.distributed._store import HashStore

__all__ = ["run"]


def run(function, nprocs, args=(), timeout=None):
    """Call a function on several threads, each of which is a rank with a process group.

    Like processes that were seeded alike, each draws from a default generator of its own, which
    begins as this thread's is; `facula.manual_seed` on a rank seeds that rank alone.

    Args:
        function (callable): called with the rank and `args`.
        nprocs (int): the number of ranks.
        args (tuple): further arguments.
        timeout (timedelta): of the default group.

    Returns:
        list: what each rank returned

    Raises:
        TypeError: `function` cannot be called.
        Exception: that of the first rank that failed; the others end with an error that quotes it.

    Example:
        >>> import facula.distributed as dist
        >>> def work(rank):
        ...     x = facula.tensor([rank + 1.0])
        ...     dist.all_reduce(x)
        ...     return x.item()
        >>> facula.distributed.threads.run(work, 3)
        [6.0, 6.0, 6.0]
    """
    if not callable(function):
        raise TypeError(f"run(): expected a function; got {type(function).__name__}")
    store = HashStore()
    results, errors = [None] * nprocs, []

    generators = [_C._default_generator().clone_state() for _ in range(nprocs)]

    def be_rank(rank):
        world._of_thread.groups = world._Groups()
        _C._set_thread_generator(generators[rank])
        try:
            world.init_process_group(
                "threads", store=store, rank=rank, world_size=nprocs, timeout=timeout
            )
            results[rank] = function(rank, *args)
            if world.is_initialized():
                world.destroy_process_group()
        except BaseException as error:
            errors.append(error)
            for pg in list(world._of_thread.groups.pg_map):
                if getattr(pg, "_core", None) is not None:
                    pg._core.leave(world._text_of_error(error), False)
        finally:
            _C._set_thread_generator(None)
            del world._of_thread.groups

    threads = [threading.Thread(target=be_rank, args=(r,), daemon=True) for r in range(nprocs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
