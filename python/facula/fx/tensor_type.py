"""Types of tensors by their sizes, where a size may be unknown (gradual types)."""

from __future__ import annotations

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """Tensors of certain sizes.

    Args:
        dim (tuple): a size for each dimension: an int, or `Dyn` for an unknown one.

    Example:
        >>> is_consistent(TensorType((2, Dyn)), TensorType((2, 3)))
        True
    """

    def __init__(self, dim):
        self.__origin__, self.__args__ = TensorType, dim

    @property
    def dims(self):
        """The sizes."""
        return self.__args__

    def __repr__(self):
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other):
        return isinstance(other, type(self)) and list(self.__args__) == list(other.__args__)

    def __hash__(self):
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args):
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        return TensorType(tuple(args))


class _DynType:
    """What nothing is known of."""

    def __init__(self):
        self.__name__ = "_DynType"

    def __eq__(self, other):
        return isinstance(other, type(self))

    def __hash__(self):
        return hash(self.__name__)

    def __repr__(self):
        return "Dyn"

    __str__ = __repr__


Dyn = _DynType()


def _of_same_rank(t1, t2):
    both = isinstance(t1, TensorType) and isinstance(t2, TensorType)
    return both and len(t1.__args__) == len(t2.__args__)


def is_consistent(t1, t2):
    """Whether a value can have both types: sizes are equal wherever both are known.

    Args:
        t1, t2 (TensorType | int | Dyn): the types.
    """
    if t1 == t2 or isinstance(t1, _DynType) or isinstance(t2, _DynType):
        return True
    return _of_same_rank(t1, t2) and all(map(is_consistent, t1.__args__, t2.__args__))


def is_more_precise(t1, t2):
    """Whether the first type says at least what the second says.

    Args:
        t1, t2 (TensorType | int | Dyn): the types.
    """
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    return _of_same_rank(t1, t2) and all(map(is_more_precise, t1.__args__, t2.__args__))
