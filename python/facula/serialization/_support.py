"""Small public helpers of `facula.serialization`."""

import contextlib
import importlib

import facula


class SourceChangeWarning(Warning):
    """The source of a class differs from that of the saved object."""


@contextlib.contextmanager
def mkdtemp():
    """A temporary folder, as a path, that is removed at the end of the block."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield folder


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's `__version__` is at least a version.

    Args:
        module: a module with `__version__`.
        req_version_tuple (tuple of int): the version that is needed.
        error_if_malformed (bool): raise for a version that cannot be read; else warn, return True.

    Raises:
        RuntimeError: the version cannot be read.
    """
    try:
        parts = module.__version__.split(".")[: len(req_version_tuple)]
        pairs = zip(req_version_tuple, parts, strict=False)
        found = tuple(type(want)(part) for want, part in pairs)
        return found >= req_version_tuple
    except Exception as error:
        text = f"'{module.__name__}' has a version that cannot be read: {module.__version__!r}"
        if error_if_malformed:
            raise RuntimeError(text) from error
        import warnings

        warnings.warn(text, stacklevel=2)
        return True


def normalize_storage_type(storage_type):
    """The CPU storage class that has the name of a storage class of any device."""
    return getattr(facula, storage_type.__name__)


def storage_to_tensor_type(storage):
    """The tensor class that goes with a storage's class, such as FloatTensor for FloatStorage."""
    kind = type(storage)
    module = importlib.import_module(kind.__module__)
    return getattr(module, kind.__name__.replace("Storage", "Tensor"))
