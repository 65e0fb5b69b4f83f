"""Runs a small program in facula and in PyTorch, and gives what it returned as comparable text."""

import re
import warnings


def outcome(program, lib):
    """What `program(lib)` returns as text, or the class and text of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(program(lib))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("facula", "torch")


def error_class(text):
    """The class of an error in an outcome; the outcome itself when there is none."""
    found = re.match(r"(\w+(?:Error|Exception)): ", text)
    return found.group(1) if found else text


def programs(names):
    """The functions of a namespace whose names begin with `program_`, as name -> function."""
    return {name[8:]: value for name, value in names.items() if name.startswith("program_")}
