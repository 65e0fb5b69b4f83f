"""Some of the items."""

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _warn_of_lambda, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items for which a function is True.

    Args:
        datapipe (IterDataPipe): the source.
        filter_fn (callable): gives a bool.
        input_col: None for the whole item; an index or key, or a list of them, for its arguments.

    Raises:
        ValueError: the function takes another number of arguments; on iteration, gives no bool.
    """

    def __init__(self, datapipe, filter_fn, input_col=None):
        super().__init__()
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        _warn_of_lambda(filter_fn)
        validate_input_col(filter_fn, input_col)

    def _holds(self, item):
        columns = self.input_col
        if columns is None:
            return self.filter_fn(item)
        if isinstance(columns, (list, tuple)):
            return self.filter_fn(*(item[c] for c in columns))
        return self.filter_fn(item[columns])

    def __iter__(self):
        for item in self.datapipe:
            holds = self._holds(item)
            if not isinstance(holds, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                    f"{type(holds)}"
                )
            if holds:
                yield item
            else:
                StreamWrapper.close_streams(item)
