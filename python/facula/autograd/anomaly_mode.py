"""Anomaly mode: where a gradient that failed, or is NaN, comes from."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

from facula import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class detect_anomaly:
    """Context manager: errors of backward say which forward call they belong to.

    Args:
        check_nan (bool): raise when backward makes NaN.

    Operations remember where they were called, which is slow: use it to find an error.

    Example:
        >>> with facula.autograd.detect_anomaly():  # doctest: +SKIP
        ...     facula.tensor(-1.0, requires_grad=True).sqrt().backward()
    """

    def __init__(self, check_nan=True):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "detect_anomaly(): every operation is traced, which is slow; meant for debugging",
            stacklevel=2,
        )

    def __enter__(self):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Function and context manager: switches anomaly mode.

    Args:
        mode (bool): whether it is on.
        check_nan (bool): raise when backward makes NaN.
    """

    def __init__(self, mode, check_nan=True):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


# --- called by the engine


def _traceback():
    """The lines of the call that runs, without those of this module."""
    return traceback.format_stack(sys._getframe(1))


def _user_frame(frame):
    """The innermost frame outside of this package; the innermost of all where there is none."""
    inner = frame
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame or inner


def _current_line():
    frame = _user_frame(sys._getframe(1))
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _line(metadata):
    """ "file:line" of the call that made a node, from its traceback."""
    for entry in reversed(metadata.get("traceback_", ())):
        place = entry.strip().split("\n")[0]  # File "name", line 3, in f
        name, _, rest = place.removeprefix('File "').partition('", line ')
        if rest and not name.startswith(_PACKAGE):
            return f"{name}:{rest.split(',')[0]}"
    return ""


def _report(name, metadata):
    """Warn where the node that failed was made, and what it was made by."""
    lines = metadata.get("traceback_")
    if not lines:
        warnings.warn(
            f"Error detected in {name}. Where it was called is not known: anomaly mode was off",
            stacklevel=2,
        )
    else:
        warnings.warn(
            f"Error detected in {name}. It was called in forward at:\n" + "".join(lines),
            stacklevel=2,
        )
    parent = metadata.get("parent_")
    while parent is not None:
        metadata = parent.metadata
        lines = metadata.get("traceback_")
        if lines:
            warnings.warn(
                f"That call was made by the backward of {parent.name()}, which was called at:\n"
                + "".join(lines),
                stacklevel=2,
            )
        else:
            warnings.warn(
                f"That call was made by the backward of {parent.name()}; where that was called is "
                "not known",
                stacklevel=2,
            )
        parent = metadata.get("parent_")
