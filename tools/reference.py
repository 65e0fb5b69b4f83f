#!/usr/bin/env python3
"""Writes the reference: one Markdown page for each public module, from signatures and docstrings.

    python tools/reference.py build/docs

Names without a docstring are counted and listed at the end of a page, so that they are seen.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
import types
from pathlib import Path

from console import BUILD, Failure, run_main, say, shown

PACKAGE = "facula"


def public_modules():
    """The package and its public submodules, by name."""
    root = importlib.import_module(PACKAGE)
    found = [PACKAGE]
    for info in pkgutil.walk_packages(root.__path__, f"{PACKAGE}."):
        parts = info.name.split(".")
        # The C++ library looks like an extension module, and is none.
        if not any(part.startswith("_") or part == f"lib{PACKAGE}" for part in parts):
            found.append(info.name)
    return sorted(found)


def member_of(module, name):
    """What a module has under a name; None for a name that this version does not serve yet."""
    try:
        return getattr(module, name, None)
    except (NotImplementedError, ModuleNotFoundError):
        return None


def public_names(module):
    """Public names of a module that are not modules: those of __all__, else of dir()."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return [n for n in sorted(names) if not isinstance(member_of(module, n), types.ModuleType)]


def signature_of(name, value):
    """`name(arguments)` where Python knows them; the name alone otherwise."""
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return f"{name}(...)" if callable(value) else name


def section(name, value):
    """The part of a page about one name; None when there is no docstring of its own."""
    doc = inspect.getdoc(value)
    if not doc or doc == inspect.getdoc(type(value)):
        return None
    parts = [f"## {name}\n\n```python\n{signature_of(name, value)}\n```\n\n{doc}\n"]
    if inspect.isclass(value):
        parts += [method_section(name, n, m) for n, m in vars(value).items() if is_method(n, m)]
    return "\n".join(parts)


def is_method(name, value):
    """Whether a member of a class belongs on its page."""
    return not name.startswith("_") and callable(value) and bool(inspect.getdoc(value))


def method_section(class_name, name, value):
    """The part of a page about one method."""
    title = signature_of(f"{class_name}.{name}", value)
    return f"### {class_name}.{name}\n\n```python\n{title}\n```\n\n{inspect.getdoc(value)}\n"


def page(name):
    """A module's page and the names that lack a docstring."""
    module = importlib.import_module(name)
    sections, bare = [], []
    for member in public_names(module):
        text = section(member, member_of(module, member))
        sections.append(text) if text else bare.append(member)
    head = f"# {name}\n\n{inspect.getdoc(module) or ''}\n"
    tail = f"Without a description: {', '.join(f'`{n}`' for n in bare)}\n" if bare else ""
    return "\n".join([head, *sections, tail]), len(sections), bare


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=BUILD / "docs")
    options = parser.parse_args()
    try:
        names = public_modules()
    except ImportError as error:
        raise Failure(f"{PACKAGE} cannot be imported by {sys.executable}: {error}") from None
    options.folder.mkdir(parents=True, exist_ok=True)
    index, described, bare = [f"# Reference of {PACKAGE}\n"], 0, 0
    for name in names:
        text, count, without = page(name)
        (options.folder / f"{name}.md").write_text(text, encoding="utf-8")
        index.append(f"- [{name}]({name}.md): {count} names")
        described, bare = described + count, bare + len(without)
    (options.folder / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    say(f"{len(names)} pages in {shown(options.folder)}: {described} names described, {bare} not")
    return 0


if __name__ == "__main__":
    run_main(main)
