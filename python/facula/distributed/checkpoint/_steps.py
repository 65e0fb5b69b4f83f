"""Steps of saving and loading that ranks make together: what one cannot do, all are told."""

from __future__ import annotations

import pickle
import traceback

import facula.distributed as dist
from facula.distributed.checkpoint.api import CheckpointException


class Failure:
    """An exception of a rank, with where it came from."""

    def __init__(self, error):
        self.error, self.summary = error, traceback.extract_tb(error.__traceback__)

    def __reduce__(self):
        try:
            pickle.loads(pickle.dumps(self.error))
            error = self.error
        except Exception:  # whatever an exception of the user's raises when it is pickled
            error = RuntimeError(f"{type(self.error).__name__}: {self.error}")
        return _remade, (error, self.summary)


def _remade(error, summary):
    failure = Failure.__new__(Failure)
    failure.error, failure.summary = error, summary
    return failure


class _Failed:
    """What a rank gets in place of its part."""

    def __init__(self, failures):
        self.failures = failures


def _tried(call, *args):
    try:
        return call(*args)
    except CheckpointException:
        raise
    except BaseException as error:  # also Ctrl-C: ranks that wait for this one are to hear of it
        return Failure(error)


class Ranks:
    """The ranks that save or load together; alone where there is no group.

    Args:
        group (ProcessGroup): the ranks; the default group if None.
        use_dist (bool): whether there are others.
        coordinator (int): the rank of the group that decides.
    """

    def __init__(self, group, use_dist, coordinator):
        self.group, self.use_dist = group, use_dist
        self.rank = dist.get_rank(group) if use_dist else 0
        self.size = dist.get_world_size(group) if use_dist else 1
        self.coordinator = coordinator
        self.is_coordinator = not use_dist or self.rank == coordinator

    def _root(self):
        if self.group is None:
            return self.coordinator
        return dist.get_global_rank(self.group, self.coordinator)

    def _gather(self, mine):
        if not self.use_dist:
            return [mine]
        found = [None] * self.size if self.is_coordinator else None
        dist.gather_object(mine, found, self._root(), group=self.group)
        return found

    def _scatter(self, parts):
        if not self.use_dist:
            return parts[0]
        found = [None]
        dist.scatter_object_list(found, parts, self._root(), group=self.group)
        return found[0]

    def _decide(self, gathered, decide):
        """A part for each rank, or the failures of some for all."""
        failures = {r: v for r, v in enumerate(gathered) if isinstance(v, Failure)}
        if not failures:
            parts = _tried(decide, gathered)
            if not isinstance(parts, Failure):
                return parts
            failures = {self.rank: parts}
        return [_Failed(failures)] * self.size

    def reduce_scatter(self, step, local, decide):
        """local() on each rank; decide(all results) on the coordinator; each gets its part.

        Raises:
            CheckpointException: on all ranks, where one has failed.
        """
        gathered = self._gather(_tried(local))
        parts = self._decide(gathered, decide) if self.is_coordinator else None
        part = self._scatter(parts)
        if isinstance(part, _Failed):
            told = {r: (f.error, f.summary) for r, f in part.failures.items()}
            raise CheckpointException(step, told)
        return part

    def all_reduce(self, step, local, decide):
        """As reduce_scatter(), but all ranks get the one result of decide()."""
        return self.reduce_scatter(step, local, lambda found: [decide(found)] * self.size)

    def broadcast(self, step, call):
        """call() on the coordinator, its result on all ranks."""
        at = self.coordinator if self.use_dist else 0
        return self.all_reduce(
            step, lambda: call() if self.is_coordinator else None, lambda found: found[at]
        )
