"""Functions of items."""

from facula.utils.data._utils.collate import default_collate

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import _warn_of_lambda, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A function of each item, or of columns of it.

    Args:
        datapipe (IterDataPipe): the source.
        fn (callable): what is applied.
        input_col: None for the whole item; an index or key, or a list of them, for its arguments.
        output_col: where the result goes: None takes the place of the (first) input, which then
            loses the others; -1 adds a column behind; else an index or key.

    Raises:
        ValueError: the function takes another number of arguments, or output_col is of several.
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        super().__init__()
        self.datapipe, self.fn, self.input_col = datapipe, fn, input_col
        _warn_of_lambda(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data):
        columns = self.input_col
        if columns is None:
            return self.fn(data)
        several = isinstance(columns, (list, tuple))
        chosen = tuple(data[c] for c in columns) if several else (data[columns],)
        result = self.fn(*chosen)
        is_tuple = isinstance(data, tuple)
        data = list(data) if is_tuple else data
        if self.output_col is None:
            data[columns[0] if several else columns] = result
            for column in sorted(columns[1:], reverse=True) if several else ():
                del data[column]
        elif self.output_col == -1:
            data.append(result)
        else:
            data[self.output_col] = result
        return tuple(data) if is_tuple else data

    def __iter__(self):
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of tensors, of batches of items.

    Args:
        datapipe (IterDataPipe): the source.
        conversion (callable): makes a batch of a list; default_collate where nothing is given.
        collate_fn (callable): the same, under its older name.

    Raises:
        NotImplementedError: `conversion` is a dict, which is for data frames.
    """

    def __init__(self, datapipe, conversion=None, collate_fn=None):
        if conversion is not None and not callable(conversion):
            raise NotImplementedError("collate(): conversion by columns needs data frames")
        super().__init__(datapipe, fn=collate_fn or conversion or default_collate)
