"""Docstrings of the house as Markdown: their sections become lists and blocks of code."""

import re
import textwrap

LISTS = {"Args", "Arguments", "Keyword Args", "Attributes", "Raises", "Warns", "Yields"}
CODE = {"Example", "Examples"}
TEXTS = {"Returns", "Return", "Shape", "Note", "Notes", "Source", "References", "See also"}
_SECTION = re.compile(rf"^({'|'.join(sorted(LISTS | CODE | TEXTS))}):[ ]*(.*)$")
_ENTRY = re.compile(r"^([\w*.`\[\], ]+?)(?: \((.+?)\))?: (.*)$", re.DOTALL)
_SPANS = re.compile(r"(`[^`\n]+`)")


def prose(text):
    """Running text in Markdown: what is no code keeps its stars, underscores and brackets."""
    parts = _SPANS.split(" ".join(text.split()))
    return "".join(
        part
        if part.startswith("`") and len(part) > 1
        else re.sub(r"([\\*_<>\[\]#|$~`{}])", r"\\\1", part)
        for part in parts
    )


def code(lines):
    """A block of code: a session of Python or of a shell where it has their prompts."""
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    language = "pycon" if ">>> " in text else "console" if text.startswith("$ ") else "python"
    return f"```{language}\n{text}\n```" if text.strip() else ""


def paragraphs(lines):
    """Markdown of text without sections: paragraphs, lists, and blocks of prompts or of code."""
    blocks, found = [], []
    for line in [*lines, ""]:
        if line.strip():
            found.append(line)
        elif found:
            blocks.append(found)
            found = []
    return "\n\n".join(_block(block) for block in blocks)


def _block(lines):
    text = textwrap.dedent("\n".join(lines)).splitlines()
    if text[0].startswith(">>>"):
        return code(text)
    if all(line.startswith("    ") for line in lines):
        return code(text)
    return prose(" ".join(text))


def entries(lines):
    """The entries of a section: each begins at the least indentation and may go on below."""
    found = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if line.strip() and not line.startswith(" "):
            found.append([line])
        elif line.strip() and found:
            found[-1].append(line)
    return [" ".join(part.strip() for part in entry) for entry in found]


def entry(text):
    """One argument or exception as an item of a list."""
    parts = _ENTRY.match(text)
    if not parts:
        return f"- {prose(text)}"
    name, kind, about = parts.groups()
    return f"- **{prose(name)}**{f' ({prose(kind)})' if kind else ''}: {prose(about)}"


def section(name, first, lines):
    """Markdown of a section: its name, what stands beside it, and the lines below."""
    if name in CODE:
        return f"**{name}:**\n\n{code([first, *lines])}"
    if name in LISTS and not first:
        return f"**{name}:**\n\n" + "\n".join(entry(text) for text in entries(lines))
    return f"**{name}:** {prose(' '.join([first, *lines]))}"


def markdown(doc):
    """A docstring in Markdown.

    Args:
        doc (str): the text as `inspect.getdoc` gives it, with sections as `Args:` and `Example:`.

    Returns:
        str: the same in Markdown.
    """
    parts, name, first, lines = [], None, "", []
    for line in [*doc.splitlines(), None]:
        begins = line is not None and _SECTION.match(line)
        ends = name and line and not line.startswith(" ")
        if line is None or begins or ends:
            parts.append(section(name, first, lines) if name else paragraphs(lines))
            name, first, lines = None, "", []
        if begins:
            name, first = begins.groups()
        elif line is not None:
            lines.append(line)
    return "\n\n".join(part for part in parts if part)
