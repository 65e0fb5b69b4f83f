"""What files hold."""

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs of a path and what the file holds.

    Args:
        datapipe (IterDataPipe): of pairs of a path and a file, which is closed at its end.
        chunk (int): read in pieces of so much; None for the whole.
    """

    def __init__(self, datapipe, chunk=None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            if self.chunk is None:
                yield path, stream.read()
            else:
                while piece := stream.read(self.chunk):
                    yield path, piece
            if hasattr(stream, "close"):
                stream.close()
