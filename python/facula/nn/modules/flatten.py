"""Layers that change the shape."""

from __future__ import annotations

from facula.nn.modules.module import Module


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim`."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        """Apply to `input`."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        """The settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`.

    Args:
        dim: int, or the name of a dimension.
        unflattened_size: tuple of ints; for a name, tuple of (name, int).

    Raises:
        TypeError: another type.
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input):
        if not isinstance(input, tuple):
            raise TypeError(
                f"Unflatten: unflattened_size must be a tuple of pairs; got {type(input).__name__}"
            )
        for i, item in enumerate(input):
            if not isinstance(item, tuple):
                raise TypeError(
                    "unflattened_size must be tuple of tuples, but found element of "
                    f"type {type(item).__name__} at pos {i}"
                )

    def _require_tuple_int(self, input):
        if not isinstance(input, (tuple, list)):
            raise TypeError(
                f"Unflatten: unflattened_size must be a tuple of ints; got {type(input).__name__}"
            )
        for i, item in enumerate(input):
            if not isinstance(item, int):
                raise TypeError(
                    f"Unflatten: unflattened_size must hold ints; got {type(item).__name__} at {i}"
                )

    def forward(self, input):
        """Apply to `input`."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        """The settings."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
