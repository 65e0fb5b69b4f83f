"""The reference pages: docstrings become Markdown, and the examples on all pages are right."""

import doctest
import importlib
import inspect
import sys
from pathlib import Path

import facula
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import docstrings  # noqa: E402
import reference  # noqa: E402

DOC = """Does something with *all* of x_i.

    It goes on, with `code_of(*args)`.

    Args:
        first, second (Tensor): what is
            joined.
        plain: more: of it
    Returns:
        Tensor: the result.

    Raises:
        ValueError: for nothing.

    Example:
        >>> 1 + 1
        2
    """
MARKDOWN = """Does something with \\*all\\* of x\\_i.

It goes on, with `code_of(*args)`.

**Args:**

- **first, second** (Tensor): what is joined.
- **plain**: more: of it

**Returns:** Tensor: the result.

**Raises:**

- **ValueError**: for nothing.

**Example:**

```pycon
>>> 1 + 1
2
```"""


def described(name):
    """The names of a page with docstrings of their own: functions, classes and their methods."""
    module = importlib.import_module(name)
    for member in reference.public_names(module):
        value = reference.member_of(module, member)
        yield member, value
        if inspect.isclass(value):
            for n, m in vars(value).items():
                if reference.is_method(n, m):
                    yield f"{member}.{n}", m


def examples():
    """The examples of all pages, each once: name of the page, name of the thing, docstring."""
    seen = set()
    for page in reference.public_modules():
        for name, value in described(page):
            text = reference.own_doc(value)
            if ">>>" in text and text not in seen:
                seen.add(text)
                yield f"{page}.{name}", value, text


@pytest.fixture
def untouched(tmp_path, monkeypatch):
    """A folder, a seed and print options of the example's own."""
    monkeypatch.chdir(tmp_path)
    facula.set_printoptions(profile="default")
    with facula.random.fork_rng():
        facula.manual_seed(0)
        yield
    facula.set_printoptions(profile="default")


@pytest.mark.parametrize("value, text", [pytest.param(v, t, id=n) for n, v, t in examples()])
def test_examples_of_the_reference_give_what_they_say(value, text, untouched):
    home = sys.modules.get(getattr(value, "__module__", None), facula)
    names = {**vars(home), "facula": facula}
    test = doctest.DocTestParser().get_doctest(text, names, "example", None, 0)
    printed = []
    failed = (
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=printed.append).failed
    )
    assert not failed, "".join(printed)


def test_sections_become_lists_and_code():
    assert docstrings.markdown(inspect.cleandoc(DOC)) == MARKDOWN


@pytest.mark.parametrize(
    "text, expected",
    [
        ("One line.", "One line."),
        ("See <this> [that].", "See \\<this\\> \\[that\\]."),
        ("Example:\n    x = 1", "**Example:**\n\n```python\nx = 1\n```"),
        ("Runs\n\n    $ true", "Runs\n\n```console\n$ true\n```"),
        ("Returns: a Tensor.", "**Returns:** a Tensor."),
        ("First.\n\n>>> 1\n1\n\nLast.", "First.\n\n```pycon\n>>> 1\n1\n```\n\nLast."),
    ],
)
def test_docstrings_become_markdown(text, expected):
    assert docstrings.markdown(text) == expected


def test_every_page_is_made_and_described(tmp_path):
    pages, names, bare = reference.write(tmp_path)
    made = {path.stem for path in tmp_path.glob("*.md")}
    assert made == {*reference.public_modules(), "index"} and len(made) == pages + 1
    assert names > 2000 and bare < names / 5
    assert "{py:class} Linear(in_features" in (tmp_path / "facula.nn.md").read_text()
