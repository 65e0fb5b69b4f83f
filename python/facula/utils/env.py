"""The switches that facula reads from the environment, in one table.

Example:
    $ python -m facula.utils.env
"""

from __future__ import annotations

from typing import NamedTuple

from facula import _C

__all__ = ["Switch", "switches", "table"]


class Switch(NamedTuple):
    """One switch: its name, another name that is heeded too, what may be given, and what is."""

    name: str
    also: str
    values: str
    meaning: str
    value: str | None


def switches():
    """All switches of this build, as a list of Switch."""
    return [Switch(*row) for row in _C._environment_switches()]


def table():
    """The switches as text: name, present value, what may be given and what it does.

    Example:
        >>> print(facula.utils.env.table())  # doctest: +SKIP
    """
    lines = []
    for s in switches():
        also = f" (or {s.also})" if s.also else ""
        lines.append(f"{s.name}{also} = {'not set' if s.value is None else s.value}")
        lines.append(f"    {s.values}: {s.meaning}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
