"""One datapipe of several."""

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _check_sources(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(source, MapDataPipe) for source in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(source), "__len__") for source in datapipes):
        raise TypeError("Expected all inputs be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """All items of the first datapipe, then those of the next.

    Args:
        datapipes (MapDataPipe): the sources.
    """

    def __init__(self, *datapipes):
        _check_sources(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        at = index
        for source in self.datapipes:
            if at < len(source):
                return source[at]
            at -= len(source)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(len(source) for source in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of an item of each datapipe.

    Args:
        datapipes (MapDataPipe): the sources.
    """

    def __init__(self, *datapipes):
        _check_sources(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        items = []
        for source in self.datapipes:
            try:
                items.append(source[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {source}."
                ) from error
        return tuple(items)

    def __len__(self):
        return min(len(source) for source in self.datapipes)
