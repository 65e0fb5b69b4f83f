"""Whether functions that make sparse tensors check all of what must hold of their parts."""

import functools

from facula.ops import aten


class check_sparse_tensor_invariants:  # noqa: N801 (PyTorch's name)
    """Checks of the invariants of sparse tensors: as a context, a decorator, or for good.

    Args:
        enable (bool): whether parts are checked within the context.

    Example:
        >>> import facula
        >>> with facula.sparse.check_sparse_tensor_invariants():
        ...     facula.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable=True):
        self.state = enable
        self.saved_state = None

    @staticmethod
    def is_enabled():
        """Whether parts are checked now; returns a bool."""
        return aten._checks_sparse_invariants()

    @staticmethod
    def enable():
        """Check from now on all parts that sparse tensors are made of."""
        aten._set_checks_sparse_invariants(True)

    @staticmethod
    def disable():
        """Check no more than shapes from now on; operators check the indices that they read."""
        aten._set_checks_sparse_invariants(False)

    def __enter__(self):
        if self.saved_state is not None:
            raise RuntimeError(
                "check_sparse_tensor_invariants: expected a context that is not entered yet; use "
                "a new one"
            )
        self.saved_state = self.is_enabled()
        aten._set_checks_sparse_invariants(self.state)

    def __exit__(self, kind, value, traceback):
        aten._set_checks_sparse_invariants(self.saved_state)
        self.saved_state = None

    def __call__(self, function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
