"""Tables of measurements: a row for each sub-label, a column for each description."""

from __future__ import annotations

import enum

from facula.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


class Colorize(enum.Enum):
    """What good and bad times are told by: colours are not drawn."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements side by side.

    Args:
        results (list of Measurement): what is shown.

    Example:
        >>> from facula.utils.benchmark import Timer
        >>> m = Timer("1 + 1", label="sums", sub_label="ints", description="time").timeit(100)
        >>> str(Compare([m])).splitlines()[1].split()
        ['|', 'time']
    """

    def __init__(self, results):
        self._results, self._trim = [], False
        self.extend_results(results)

    def extend_results(self, results):
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only the digits that the spread lets stand."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Nothing: colours are not drawn."""

    def highlight_warnings(self):
        """Nothing: colours are not drawn."""

    def print(self):
        """Print the tables."""
        print(str(self))

    def __str__(self):
        results = Measurement.merge(self._results)
        labels = ordered_unique(m.task_spec.label for m in results)
        return "\n".join(
            self._table(label, [m for m in results if m.task_spec.label == label])
            for label in labels
        )

    def _table(self, label, results):
        unit, size = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.task_spec.description or "" for m in results)
        names = ordered_unique(m.as_row_name for m in results)
        lines = [("", columns)]
        for threads in ordered_unique(m.task_spec.num_threads for m in results):
            lines.append((f"{threads} threads: ", None))
            for name in names:
                cells = {
                    m.task_spec.description or "": self._cell(m, size)
                    for m in results
                    if m.as_row_name == name and m.task_spec.num_threads == threads
                }
                if cells:
                    lines.append((f"      {name}", [cells.get(c, "") for c in columns]))
        body = _drawn(lines, len(columns))
        title = f" {label or ''} ".center(len(body[0]) - 2, "-")
        last = f"Times are in {unit_to_english(unit)}s ({unit})."
        return "\n".join([f"[{title}]", *body, "", last, ""])

    def _cell(self, measurement, size):
        time = measurement.median / size
        if self._trim:
            time = trim_sigfig(time, measurement.significant_figures)
        return f"{time:.1f}"


def _drawn(lines, count):
    """Lines of a name and cells as texts; a line without cells is a rule."""
    first = max(len(name) for name, _ in lines)
    widths = [max(len(cells[i]) for _, cells in lines if cells is not None) for i in range(count)]
    total = first + sum(width + 5 for width in widths)
    found = []
    for name, cells in lines:
        if cells is None:
            found.append(name.ljust(total, "-"))
        else:
            row = (f"  |  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            found.append(name.ljust(first) + "".join(row))
    return found
