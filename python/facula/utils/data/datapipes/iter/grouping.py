"""Batches, groups, and the reverse."""

import warnings
from collections import defaultdict

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import _warn_of_lambda

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of so many items.

    Args:
        datapipe (IterDataPipe): the source.
        batch_size (int): items of a batch.
        drop_last (bool): leave out a last batch that is not full.
        wrapper_class (class): what a batch becomes.
    """

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        count = len(self.datapipe)
        extra = 0 if self.drop_last else self.batch_size - 1
        return (count + extra) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of batches.

    Args:
        datapipe (IterDataPipe): of lists.
        unbatch_level (int): how many levels of lists are taken apart; -1 for all.
    """

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for item in self.datapipe:
            yield from self._parts(item, self.unbatch_level)

    def _parts(self, item, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        is_list = isinstance(item, list)
        if level == 0 or (level == -1 and not is_list):
            yield item
            return
        if not is_list:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        for part in item:
            yield from self._parts(part, max(level - 1, -1))


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of items that have the same key.

    Items wait in a buffer. A group is given when it is full; when the buffer is full, the largest
    group; at the end, all others.

    Args:
        datapipe (IterDataPipe): the source.
        group_key_fn (callable): the key of an item.
        keep_key (bool): give pairs of key and list.
        buffer_size (int): items that wait.
        group_size (int): when a group is full; None for never.
        guaranteed_group_size (int): a group that leaves a full buffer with fewer is an error.
        drop_remaining (bool): leave out such groups in place of raising.
    """

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key=False,
        buffer_size=10000,
        group_size=None,
        guaranteed_group_size=None,
        drop_remaining=False,
    ):
        _warn_of_lambda(group_key_fn)
        self.datapipe, self.group_key_fn = datapipe, group_key_fn
        self.keep_key, self.max_buffer_size = keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed_group_size, self.wrapper_class = None, DataChunk
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError(
                    "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.reset()

    def reset(self):
        """Begin with an empty buffer."""
        self.curr_buffer_size = 0
        self.buffer_elements = defaultdict(list)

    def _taken(self, key):
        group = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(group)
        return group

    def _shown(self, key, group):
        group = self.wrapper_class(group)
        return (key, group) if self.keep_key else group

    def _largest(self):
        """Key and items of the group that leaves a full buffer; None when it is left out."""
        key = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
        least = self.guaranteed_group_size
        group = self._taken(key)
        if least is not None and len(group) < least:
            if not self.drop_remaining:
                raise RuntimeError(f"Failed to group items {group}")
            warnings.warn(f"groupby(): a group of {len(group)} items is left out", stacklevel=3)
            return None
        return key, group

    def __iter__(self):
        for item in self.datapipe:
            key = self.group_key_fn(item)
            self.buffer_elements[key].append(item)
            self.curr_buffer_size += 1
            if self.group_size is not None and len(self.buffer_elements[key]) == self.group_size:
                yield self._shown(key, self._taken(key))
            if self.curr_buffer_size == self.max_buffer_size:
                found = self._largest()
                if found is not None:
                    yield self._shown(*found)
        for key in list(self.buffer_elements):
            yield self._shown(key, self._taken(key))
