"""A function of items."""

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import _warn_of_lambda

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data):
    """The item itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """A function of each item.

    Args:
        datapipe (MapDataPipe): the source.
        fn (callable): what is applied.
    """

    def __init__(self, datapipe, fn=default_fn):
        super().__init__()
        self.datapipe, self.fn = datapipe, fn
        _warn_of_lambda(fn)

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)
