"""One datapipe of several, and several of one."""

import copy
import warnings
from collections import deque

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _warn_of_lambda

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _check_sources(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(source, IterDataPipe) for source in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """All items of the first datapipe, then those of the next.

    Args:
        datapipes (IterDataPipe): the sources.
    """

    def __init__(self, *datapipes):
        _check_sources(datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        for source in self.datapipes:
            yield from source

    def __len__(self):
        return sum(len(source) for source in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of an item of each datapipe, until one ends.

    Args:
        datapipes (IterDataPipe): the sources.
    """

    def __init__(self, *datapipes):
        if not all(isinstance(source, IterDataPipe) for source in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*map(iter, self.datapipes), strict=False)

    def __len__(self):
        return min(len(source) for source in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """An item of each datapipe in turn, until one ends.

    Args:
        datapipes (IterDataPipe): the sources.
    """

    def __init__(self, *datapipes):
        self.datapipes = datapipes
        self.buffer = []

    def __iter__(self):
        sources = list(map(iter, self.datapipes))
        while sources:
            for source in sources:
                try:
                    self.buffer.append(next(source))
                except StopIteration:  # what was read of this round is left out
                    self.buffer.clear()
                    return
            yield from self.buffer
            self.buffer.clear()

    def reset(self):
        """Begin with an empty round."""
        self.buffer = []

    def __len__(self):
        return min(len(source) for source in self.datapipes) * len(self.datapipes)


class _ChildDataPipe(IterDataPipe):
    """One of the datapipes that a datapipe was split into.

    Args:
        main_datapipe: what they have in common.
        instance_id (int): which of them.
    """

    _has_many_iterators = True

    def __init__(self, main_datapipe, instance_id):
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self):
        generation = self.main_datapipe.begin(self.instance_id)
        return self._items(generation)

    def _items(self, generation):
        while True:
            if generation != self.main_datapipe.generation:
                raise RuntimeError(
                    "This iterator has been invalidated because another iterator has been created "
                    "from the same IterDataPipe, or from one split off with it"
                )
            try:
                item = self.main_datapipe.next_of(self.instance_id)
            except StopIteration:
                return
            yield item

    def __len__(self):
        return len(self.main_datapipe)


class _Split(IterDataPipe):
    """What the parts of a split datapipe read from together.

    Args:
        datapipe (IterDataPipe): the source.
        num_instances (int): how many parts.
        buffer_size (int): items that may wait for slower parts; -1 for any number.
    """

    def __init__(self, datapipe, num_instances, buffer_size):
        self.main_datapipe, self.num_instances = datapipe, num_instances
        self.buffer_size = buffer_size
        self.generation = 0
        self._begin_anew()

    def _begin_anew(self):
        self.source = None
        self.begun = set()
        self.waiting = [deque() for _ in range(self.num_instances)]

    def begin(self, instance_id):
        """A part begins; a second time it begins all of them anew. Returns the generation."""
        if instance_id in self.begun:
            self.generation += 1
            self._begin_anew()
        self.begun.add(instance_id)
        if self.source is None:
            self.source = iter(self.main_datapipe)
        return self.generation

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.update(source=None, begun=set())
        state["waiting"] = [deque() for _ in range(self.num_instances)]
        return state

    def __iter__(self):
        raise TypeError(f"{self} is read by the datapipes that it was split into")


class _Forker(_Split):
    def __init__(self, datapipe, num_instances, buffer_size, copy_fn):
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy_fn = copy_fn

    def next_of(self, instance_id):
        """The next item for a part."""
        own = self.waiting[instance_id]
        if not own:
            if 0 <= self.buffer_size <= max(map(len, self.waiting)):
                raise BufferError(
                    "ForkerIterDataPipe buffer overflow,"
                    f"buffer size {self.buffer_size} is insufficient."
                )
            item = next(self.source)
            for queue in self.waiting:
                queue.append(item)
        item = own.popleft()
        return item if self.copy_fn is None else self.copy_fn(item)

    def __len__(self):
        return len(self.main_datapipe)


def _check_split(num_instances, buffer_size):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size == 0:
        raise ValueError("Expected a buffer_size larger than 0, or -1 for no limit; got 0")
    if buffer_size < 0:
        warnings.warn(
            "Unlimited buffer size is set, which may lead to OOM errors: one part may wait with "
            "all items",
            stacklevel=3,
        )


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several datapipes with all the items of one.

    Args:
        datapipe (IterDataPipe): the source.
        num_instances (int): how many.
        buffer_size (int): how far one may be ahead of another; -1 for no limit.
        copy (str): "shallow" or "deep" copies of items; None for the same objects.

    Returns:
        list of IterDataPipe
    """

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        _check_split(num_instances, buffer_size)
        if num_instances == 1:
            return datapipe
        main = _Forker(datapipe, num_instances, buffer_size, _copy_function(copy))
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


def _copy_function(kind):
    known = {None: None, "shallow": copy.copy, "deep": copy.deepcopy}
    if kind not in known:
        raise ValueError(
            f"Unknown copy method `{kind}` requested, choose one of None, `shallow` or `deep`."
        )
    return known[kind]


class _Demultiplexer(_Split):
    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _class_of(self, item):
        kind = self.classifier_fn(item)
        if kind is None and self.drop_none:
            StreamWrapper.close_streams(item)
        elif kind is None or not 0 <= kind < self.num_instances:
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{self.num_instances - 1}. {kind} is returned."
            )
        return kind

    def next_of(self, instance_id):
        """The next item for a part."""
        own = self.waiting[instance_id]
        while not own:
            item = next(self.source)
            kind = self._class_of(item)
            if kind is None:
                continue
            if kind != instance_id and 0 <= self.buffer_size <= sum(map(len, self.waiting)):
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is "
                    "insufficient."
                )
            self.waiting[kind].append(item)
        return own.popleft()

    def __len__(self):
        raise TypeError("the parts of a demultiplexed datapipe have no known length")


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several datapipes, among which a function divides the items of one.

    Args:
        datapipe (IterDataPipe): the source.
        num_instances (int): how many.
        classifier_fn (callable): which of them an item goes to, as an int, or None.
        drop_none (bool): leave out items for which it is None; else that is a ValueError.
        buffer_size (int): items that may wait for slower readers; -1 for any number.

    Returns:
        list of IterDataPipe
    """

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        _check_split(num_instances, buffer_size)
        _warn_of_lambda(classifier_fn)
        main = _Demultiplexer(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]
