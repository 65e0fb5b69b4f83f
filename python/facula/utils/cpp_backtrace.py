"""The native functions that are running, as text."""

from __future__ import annotations

import ctypes
from operator import index

_MOST = 256


class _Symbol(ctypes.Structure):
    """What the dynamic linker knows of an address (dladdr's Dl_info)."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("start", ctypes.c_void_p),
    ]


def get_cpp_backtrace(frames_to_skip=0, maximum_number_of_frames=64):
    """The stack of native functions of this thread, the innermost first.

    Runs of frames that belong to the Python interpreter are shown as one line.

    Args:
        frames_to_skip (int): how many frames to leave out, of those above Python's.
        maximum_number_of_frames (int): how many to look at after these.

    Returns:
        str: a line for each frame: function, offset in it, address, file.

    Raises:
        TypeError: a number that is no integer.
        NotImplementedError: the C library has no `backtrace`.

    Example:
        >>> text = facula.utils.get_cpp_backtrace()
        >>> text.startswith("frame #0: ")
        True
    """
    frames_to_skip = _number("frames_to_skip", frames_to_skip)
    most = _number("maximum_number_of_frames", maximum_number_of_frames)
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "backtrace"):
        raise NotImplementedError("get_cpp_backtrace(): expected a C library with backtrace()")
    addresses = (ctypes.c_void_p * _MOST)()
    count = libc.backtrace(addresses, _MOST)
    chosen = addresses[frames_to_skip:count][:most]
    lines, hidden = [], False
    for number, address in enumerate(chosen):
        symbol = _symbol(libc, address)
        if _is_python(symbol):
            lines += [] if hidden else ["<omitting python frames>\n"]
            hidden = True
            continue
        hidden = False
        lines.append(f"frame #{number}: {_described(symbol, address)}\n")
    return "".join(lines)


def _number(name, given):
    try:
        return index(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(f"get_cpp_backtrace(): expected an integer as {name}; got {kind}") from None


def _symbol(libc, address):
    found = _Symbol()
    known = libc.dladdr(ctypes.c_void_p(address), ctypes.byref(found))
    return found if known else _Symbol()


def _is_python(symbol):
    name = symbol.name or b""
    return name.startswith((b"_Py", b"Py")) or b"python" in (symbol.file or b"").rpartition(b"/")[2]


def _described(symbol, address):
    name = _demangled(symbol.name) if symbol.name else "<unknown function>"
    offset = address - (symbol.start or symbol.base or address)
    file = (symbol.file or b"??").decode(errors="replace")
    return f"{name} + {offset:#x} ({address:#x} in {file})"


def _demangled(name):
    """A C++ function's name as its source has it; other names as they are."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return name.decode(errors="replace")
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = demangle(name, None, None, ctypes.byref(status))
    if not found:
        return name.decode(errors="replace")
    text = ctypes.string_at(found).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return text
