"""Batches of items."""

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Batches of so many items.

    Args:
        datapipe (MapDataPipe): the source.
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

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        end = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, end)])

    def __len__(self):
        extra = 0 if self.drop_last else self.batch_size - 1
        return (len(self.datapipe) + extra) // self.batch_size
