"""A datapipe over anything that can be iterated."""

import copy
import warnings

from ..datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable.

    Args:
        iterable: what is read.
        deepcopy (bool): each pass reads a copy of its own, made when it begins.
    """

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied: the pass changes what was given",
                    stacklevel=2,
                )
        yield from source

    def __len__(self):
        if hasattr(self.iterable, "__len__"):
            return len(self.iterable)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
