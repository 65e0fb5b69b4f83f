#!/usr/bin/env python3
"""Writes the reference: one Markdown page for each public module, from signatures and docstrings.

    python tools/reference.py build/docs/reference

Names without a docstring are counted and listed at the end of a page, so that they are seen.
"""

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
import types
from pathlib import Path

import docstrings
from console import BUILD, Failure, run_main, say, shown

PACKAGE = "facula"


def public_modules():
    """The package and its public submodules, by name."""
    root = importlib.import_module(PACKAGE)
    found = [PACKAGE]
    for info in pkgutil.walk_packages(root.__path__, f"{PACKAGE}."):
        parts = info.name.split(".")
        # The C++ libraries look like extension modules, and are none.
        if not any(part.startswith(("_", f"lib{PACKAGE}")) for part in parts):
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
    return [n for n in sorted(names) if is_ours(member_of(module, n))]


def is_ours(value):
    """Whether a value belongs to the package: no module, and no function or class of another's."""
    home = getattr(value, "__module__", None)
    # Classes of the compiled core give PyTorch's name as their home; plain values have none.
    known = not isinstance(home, str) or home.split(".")[0] in (PACKAGE, "torch", "builtins", "_C")
    return known and not isinstance(value, types.ModuleType)


def signature_of(value):
    """The arguments that Python knows of; `(...)` for another callable, "" for the rest."""
    try:
        # Defaults that have no text of their own (functions, sentinels) would show an address.
        return re.sub(r"<([\w.]+)[^<>]*>", r"\1", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)" if callable(value) else ""


def entry(kind, name, value, members=""):
    """One described name as an object of the site's Python domain."""
    body = "\n\n".join(filter(None, [docstrings.markdown(inspect.getdoc(value)), members]))
    # An outer fence has more colons than those within it.
    fence = "::::" if members else ":::"
    return f"{fence}{{py:{kind}}} {name}{signature_of(value)}\n\n{body}\n{fence}\n"


def own_doc(value):
    """A docstring that is the thing's own and not that of its class; "" where there is none."""
    doc = inspect.getdoc(value) or ""
    return "" if doc == inspect.getdoc(type(value)) else doc


def section(name, value):
    """The part of a page about one name; None when there is no docstring of its own."""
    if not own_doc(value):
        return None
    if not inspect.isclass(value):
        return entry("function" if callable(value) else "data", name, value)
    methods = [entry("method", n, m) for n, m in vars(value).items() if is_method(n, m)]
    return entry("class", name, value, "\n".join(methods))


def is_method(name, value):
    """Whether a member of a class belongs on its page."""
    return not name.startswith("_") and callable(value) and bool(inspect.getdoc(value))


def page(name, homes):
    """A module's page.

    Args:
        name (str): the module's name.
        homes (dict): by identity, the module that describes a thing already, and the thing;
            gets this module's.

    Returns:
        The page, the number of names it describes, and those that lack a docstring.
    """
    module = importlib.import_module(name)
    sections, bare, elsewhere = [], [], {}
    for member in public_names(module):
        value = member_of(module, member)
        # The thing is kept beside its home: an identity may be given again when a thing is gone.
        home = homes.setdefault(id(value), (name, value))[0] if own_doc(value) else name
        if home != name:
            elsewhere.setdefault(home, []).append(member)
        elif text := section(member, value):
            sections.append(text)
        else:
            bare.append(member)
    about = docstrings.markdown(inspect.getdoc(module) or "")
    # The list of modules leads to a page, not the site's menu, which would have 250 lines.
    head = f"---\norphan: true\n---\n\n# {name}\n\n{about}\n"
    current = f"```{{py:currentmodule}} {name}\n```\n"
    others = [f"Described in [{h}]({h}.md): {quoted(n)}\n" for h, n in elsewhere.items()]
    tail = [f"Without a description: {quoted(bare)}\n"] if bare else []
    return "\n".join([head, current, *sections, *others, *tail]), len(sections), bare


def quoted(names):
    """Names in a row, each as code."""
    return ", ".join(f"`{name}`" for name in names)


def write(folder):
    """Writes all pages and their list; returns the numbers of pages, described and other names."""
    try:
        names = public_modules()
    except ImportError as error:
        raise Failure(f"{PACKAGE} cannot be imported by {sys.executable}: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    rows, homes, described, bare = [], {}, 0, 0
    # What several modules have is described where its name is shortest.
    for name in sorted(names, key=lambda name: (name.count("."), name)):
        text, count, without = page(name, homes)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        rows.append(f"| [{name}]({name}.md) | {count or ''} |")
        described, bare = described + count, bare + len(without)
    head = ["# Reference", "", "Every public module, from its docstrings.", ""]
    lines = [*head, "| module | names |", "|---|---|", *sorted(rows), ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")
    return len(names), described, bare


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=BUILD / "docs" / "reference")
    folder = parser.parse_args().folder
    pages, described, bare = write(folder)
    say(f"{pages} pages in {shown(folder)}: {described} names described, {bare} not")
    return 0


if __name__ == "__main__":
    run_main(main)
