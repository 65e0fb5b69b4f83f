"""Constructors of sparse_coo tensors by dtype, as old programs call them: `FloatTensor` and kin."""

import facula


class _Constructor(type):
    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, facula.Tensor)
            and instance.is_sparse
            and instance.dtype == cls.dtype
        )


def constructor(name, dtype):
    """The class of a dtype, whose calls make sparse_coo tensors.

    Args:
        name (str): its name, as "FloatTensor".
        dtype (str): the dtype's name.

    Returns:
        type: a class that takes sizes, or indices and values and perhaps a size.

    Example:
        >>> constructor("FloatTensor", "float32")(2, 3)._nnz()
        0
    """
    wanted = getattr(facula, dtype)

    def new(cls, *args, device=None):
        if len(args) >= 2 and all(isinstance(a, facula.Tensor) for a in args[:2]):
            return facula.sparse_coo_tensor(*args, dtype=wanted, device=device)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return facula.sparse_coo_tensor(tuple(size), dtype=wanted, device=device)

    doc = f"Makes sparse_coo tensors of {dtype}: of sizes, or of indices, values and a size."
    members = {"__new__": new, "dtype": wanted, "__doc__": doc, "__module__": "facula.sparse"}
    return _Constructor(name, (), members)
