"""What is said of names that facula lacks: one place for all its modules.

A missing name is an AttributeError and a missing module a ModuleNotFoundError, never anything else,
so that `hasattr` and `try: import` answer as they do of any package.
"""

import sys


class _Text(str):
    """A message whose names nearby are looked up when it is read: most askers only test."""

    def __new__(cls, message, module, name):
        text = super().__new__(cls, message)
        text._place = module, name
        return text

    def __str__(self):
        near = _near(*self._place)
        return f"{self[:]}: facula lacks it" + (f"; near it are {', '.join(near)}" if near else "")

    def __reduce__(self):
        return str, (str(self),)


def _near(module, name):
    from difflib import get_close_matches

    known = {n.lower(): n for n in dir(sys.modules.get(module)) if not n.startswith("__")}
    return [known[n] for n in get_close_matches(name.lower(), known, 3, 0.7)]


def attribute(module, name):
    """The error for an attribute that a module lacks.

    Args:
        module (str): the module's full name.
        name (str): what was asked for.

    Returns:
        AttributeError

    Example:
        >>> raise attribute("facula.nn", "Linaer")  # doctest: +SKIP
    """
    return AttributeError(_Text(f"module {module!r} has no attribute {name!r}", module, name))


def submodule(module, name):
    """The module `name` in the package `module`, imported; AttributeError where there is none."""
    full = f"{module}.{name}"
    try:
        __import__(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
        raise attribute(module, name) from None
    return sys.modules[full]


def raise_for_import(full_name, finding):
    """Raise where an `import` found no module `full_name`; `find_spec` of others is told None.

    Args:
        full_name (str): the module's full name.
        finding (frame): importlib's, which asks the finders.
    """
    package, _, name = full_name.rpartition(".")
    asking = finding.f_back
    if asking.f_code.co_name != "_find_and_load_unlocked":  # importlib.util.find_spec
        return
    if _is_from_import(asking.f_back):
        message = f"cannot import name {name!r} from {package!r}"
        raise ImportError(_Text(message, package, name), name=package)
    message = _Text(f"No module named {full_name!r}", package, name)
    raise ModuleNotFoundError(message, name=full_name)


def _is_from_import(frame):
    """Whether `from package import name` asks, and found no attribute of this name before."""
    for _ in range(4):
        if frame is None:
            return False
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False
