"""Columns of items, files by patterns, and streams that close themselves."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(fn, input_col):
    """Raises ValueError when a function does not take as many columns as it will get.

    Args:
        fn (callable): what is applied.
        input_col: None for the whole item, a key, or a list of keys.
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):
        return  # built-in functions say nothing of themselves
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_POSITIONAL for p in parameters):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is kinds.empty for p in positional)
    only_named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    name = getattr(fn, "__name__", None) or getattr(type(fn), "__name__", str(fn))
    if only_named:
        raise ValueError(f"The function {name} takes keyword arguments that nothing gives")
    if not needed <= count <= len(positional):
        takes = needed if needed > count else len(positional)
        raise ValueError(
            f"The function {name} takes {takes} positional parameters, but {count} are required."
        )


def _warn_of_lambda(fn):
    """Workers that are started anew get datapipes by pickle, which takes no lambda."""
    inner = fn.func if isinstance(fn, functools.partial) else fn
    if getattr(inner, "__name__", None) == "<lambda>":
        warnings.warn(
            "Lambda function is not supported by pickle: use a named function or functools.partial",
            stacklevel=3,
        )


def match_masks(name, masks):
    """Whether a file's name matches a pattern, or one of a list; no patterns match all."""
    if not masks:
        return True
    masks = [masks] if isinstance(masks, str) else masks
    return any(fnmatch.fnmatch(name, mask) for mask in masks)


def get_file_pathnames_from_root(
    root, masks, recursive=False, abspath=False, non_deterministic=False
):
    """Paths of files in a folder.

    Args:
        root (str): the folder, or one file.
        masks (str or list of str): patterns of names.
        recursive (bool): of the folders in it as well.
        abspath (bool): as absolute paths.
        non_deterministic (bool): in the order of the system; else sorted.
    """

    def fail(error):
        warnings.warn(str(error), stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, folders, files in os.walk(root, onerror=fail):
        if not non_deterministic:
            folders.sort()
            files.sort()
        for name in files:
            if match_masks(name, masks):
                path = os.path.join(folder, name)
                yield os.path.abspath(path) if abspath else path
        if not recursive:
            break


def get_file_binaries_from_pathnames(pathnames, mode, encoding=None):
    """Pairs of a path and the file, opened.

    Args:
        pathnames (iterable of str): the paths.
        mode (str): as for `open`.
        encoding (str): as for `open`.

    Raises:
        TypeError: an item is no string.
    """
    pathnames = (pathnames,) if isinstance(pathnames, str) else pathnames
    mode = mode + "t" if mode in ("w", "r", "a") and encoding is None else mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))


def validate_pathname_binary_tuple(data):
    """Raises TypeError unless an item is a pair of a path and a file."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            f"pathname within the tuple should have string type, but it is type {type(data[0])}"
        )
    if not (isinstance(data[1], StreamWrapper) or hasattr(data[1], "read")):
        raise TypeError(
            "binary stream within the tuple should be a file or a StreamWrapper, but it is type "
            f"{type(data[1])}"
        )


class StreamWrapper:
    """A file that is closed when nobody holds it, and that can keep the one it was taken from.

    Args:
        file_obj: the file.
        parent_stream (StreamWrapper): closed when the last of its children is.
        name (str): what is shown.
    """

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child, self.closed = 0, False, False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(
                    f"StreamWrapper: expected parent_stream as such; got {type(parent_stream)}"
                )
            parent_stream.child_counter += 1

    @classmethod
    def close_streams(cls, v, depth=0):
        """Close all streams in an item of lists, tuples and dicts."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for part in v.values():
                cls.close_streams(part, depth + 1)
        elif isinstance(v, (list, tuple)):
            for part in v:
                cls.close_streams(part, depth + 1)

    def __getattr__(self, name):
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args, **kwargs):
        """Close the file, and its parent when this was the last child."""
        if self.closed:
            return
        self.closed = True
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()

    def autoclose(self):
        """Close the file once it has no children, at once if it has none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self):
        return list({*self.__dict__, *dir(type(self)), *dir(self.file_obj)})

    def __del__(self):
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self):
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else (f"StreamWrapper<{self.name},{self.file_obj!r}>")
        )

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)
