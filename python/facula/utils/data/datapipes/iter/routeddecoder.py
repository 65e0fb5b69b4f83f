"""Objects of files' bytes."""

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import validate_pathname_binary_tuple
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """Pairs of a path and the object that a handler made of the file.

    Args:
        datapipe (IterDataPipe): of pairs of a path and a file.
        handlers (callables): of extension and data; by default texts, numbers, JSON, tensors,
            pickles and images.
        key_fn (callable): makes the extension of a path.
    """

    def __init__(self, datapipe, *handlers, key_fn=extension_extract_fn):
        super().__init__()
        self.datapipe = datapipe
        handlers = handlers or (basichandlers, imagehandler("torch"))
        self.decoder = Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler):
        """Ask further handlers, after the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self):
        for data in self.datapipe:
            validate_pathname_binary_tuple(data)
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self):
        return len(self.datapipe)
