"""Apple's devices: this build has none."""


def is_built():
    """Whether this build can use them: False."""
    return False


def is_available():
    """Whether there is one: False in this build.

    Example:
        >>> facula.backends.mps.is_available()
        False
    """
    return False


def is_macos_or_newer(major, minor):
    """Whether the system is this macOS: RuntimeError without Apple's devices."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor=0):
    """Whether the system is macOS 13: RuntimeError without Apple's devices."""
    return is_macos_or_newer(13, minor)


def get_name():
    """The name of the device: RuntimeError without one."""
    raise RuntimeError("Cannot execute getName() without MPS backend.")


def get_core_count():
    """The number of its cores: RuntimeError without one."""
    raise RuntimeError("Cannot execute getCoreCount() without MPS backend.")
