"""What was recorded while a program ran: events, sums over them, and the table of both."""

from __future__ import annotations

import json
import os
from collections import defaultdict

from facula.autograd._profiler_enums import DeviceType

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class Interval:
    """A span of time, in microseconds."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """How long it is."""
        return self.end - self.start


def _format_time(time_us):
    """Microseconds as text.

    Example:
        >>> _format_time(2386.0), _format_time(230.674)
        ('2.386ms', '230.674us')
    """
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    return f"{time_us / 1e3:.3f}ms" if time_us >= 1e3 else f"{time_us:.3f}us"


def _format_memory(nbytes):
    for size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _format_time_share(time_us, total_time_us):
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


class _Times:
    """The names of times that events and their sums have."""

    @property
    def cpu_time(self):
        """Microseconds for each call."""
        return 0.0 if not self.count else self.cpu_time_total / self.count

    @property
    def cpu_time_str(self):
        """`cpu_time` as text."""
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self):
        """`cpu_time_total` as text."""
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self):
        """`self_cpu_time_total` as text."""
        return _format_time(self.self_cpu_time_total)

    # There is no device beside the CPU whose work is timed.
    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    use_device = None
    is_async = is_remote = is_legacy = False
    node_id = -1


class FunctionEvent(_Times):
    """One call of an operator, or one block that `record_function` names.

    Args:
        id (int): its number.
        name (str): `aten::mm`, or the block's name.
        thread (int): the thread's number.
        start_us, end_us (float): when, in microseconds.
    """

    def __init__(self, id, name, thread, start_us, end_us, **facts):
        self.id, self.name, self.key, self.thread = id, name, name, thread
        self.time_range = Interval(start_us, end_us)
        self.count = 1
        self.input_shapes = facts.get("input_shapes", [])
        self.stack = facts.get("stack", [])
        self.flops = facts.get("flops", 0)
        self.self_cpu_memory_usage = facts.get("memory", 0)
        self.is_user_annotation = facts.get("is_user_annotation", False)
        self.overload_name = facts.get("overload_name", "")
        self.cpu_children, self.cpu_parent, self.kernels = [], None, []
        self.device_type, self.sequence_nr, self.scope = DeviceType.CPU, -1, 0

    @property
    def trace_name(self):
        """The name in a trace."""
        return self.name

    @property
    def cpu_time_total(self):
        """Microseconds, with what it called."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        """Microseconds, without what it called; 0 for what ran beside the thread."""
        if self.is_async:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self):
        """Bytes allocated less those freed, with what it called."""
        return self.self_cpu_memory_usage + sum(c.cpu_memory_usage for c in self.cpu_children)

    def append_cpu_child(self, child):
        """Note a call that this one made."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} "
            f"end_us={self.time_range.end:.3f} cpu_children={[c.id for c in self.cpu_children]} "
            f"thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(_Times):
    """The sum of calls with one key."""

    def __init__(self):
        self.key, self.count = None, 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.input_shapes, self.stack, self.is_user_annotation = None, [], False
        self.cpu_children, self.cpu_parent, self.overload_name = None, None, ""
        self.device_type, self.scope = DeviceType.CPU, 0

    def add(self, other):
        """Add an event, or another sum; returns this one."""
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.is_user_annotation = other.is_user_annotation
            self.overload_name = other.overload_name
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time=0.000us cuda_time=0.000us "
            f"input_shapes={self.input_shapes or ''} cpu_memory_usage={self.cpu_memory_usage} "
            "cuda_memory_usage=0>"
        )


class EventList(list):
    """Events, or sums of them.

    Args:
        profile_memory, with_flops (bool): whether the table has these columns.
    """

    def __init__(self, *args, **kwargs):
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        kwargs.pop("use_device", None)
        super().__init__(*args, **kwargs)

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        """Microseconds of all events, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False
    ):
        """Sums of events with the same name, as an EventList.

        Args:
            group_by_input_shapes (bool): and the same shapes.
            group_by_stack_n (int): and the same upper lines of the stack.
            group_by_overload_name (bool): and the same overload.
        """
        sums = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.is_user_annotation]
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n:
                key.append(tuple(event.stack[:group_by_stack_n]))
            if group_by_overload_name:
                key.append(event.overload_name)
            sums[tuple(key)].add(event)
        for total in sums.values():
            if not group_by_input_shapes:
                total.input_shapes = ""
            total.stack = total.stack[:group_by_stack_n] if group_by_stack_n else []
        return EventList(
            sums.values(), profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def total_average(self):
        """The sum of all, as a FunctionEventAvg with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """All as a table (str).

        Args:
            sort_by (str): the attribute to sort by, the largest first: `cpu_time_total`,
                `self_cpu_time_total`, `cpu_memory_usage`, `count` ...
            row_limit (int): how many rows; -1 for all.
            header (str): a line above.
            top_level_events_only (bool): leave out what others called.

        Raises:
            AttributeError: events have no such attribute.
        """
        rows = list(self)
        if top_level_events_only:
            rows = [row for row in rows if row.cpu_parent is None]
        if sort_by is not None:
            name = sort_by.replace("cuda", "device")
            rows.sort(key=lambda row: getattr(row, name), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        total = self.self_cpu_time_total
        columns = self._columns(rows, total, max_name_column_width, max_shapes_column_width)
        return _drawn(columns, header, f"Self CPU time total: {_format_time(total)}")

    def _columns(self, rows, total, name_width, shapes_width):
        """The columns of the table: a title, the texts, and whether they are wide."""
        columns = [
            ("Name", [_shortened(row.key, name_width) for row in rows], name_width),
            ("Self CPU %", [_format_time_share(r.self_cpu_time_total, total) for r in rows], 0),
            ("Self CPU", [row.self_cpu_time_total_str for row in rows], 0),
            ("CPU total %", [_format_time_share(row.cpu_time_total, total) for row in rows], 0),
            ("CPU total", [row.cpu_time_total_str for row in rows], 0),
            ("CPU time avg", [row.cpu_time_str for row in rows], 0),
        ]
        if self._profile_memory:
            columns += [
                ("CPU Mem", [_format_memory(row.cpu_memory_usage) for row in rows], 0),
                ("Self CPU Mem", [_format_memory(row.self_cpu_memory_usage) for row in rows], 0),
            ]
        columns.append(("# of Calls", [str(row.count) for row in rows], 0))
        if any(row.input_shapes for row in rows):
            shapes = [_shortened(str(row.input_shapes), shapes_width) for row in rows]
            columns.append(("Input Shapes", shapes, shapes_width))
        if any(row.stack for row in rows):
            stacks = [_shortened(row.stack[0] if row.stack else "", 75) for row in rows]
            columns.append(("Source Location", stacks, 75))
        if self._with_flops:
            flops = [f"{row.flops:.3f}" if row.flops else "--" for row in rows]
            columns.append(("Total FLOPs", flops, 0))
        return columns

    # --- files

    def export_chrome_trace(self, path):
        """Write the events to a file that chrome://tracing and Perfetto read."""
        events = [_trace_event(event) for event in self]
        tracks = {e.thread: e.track_name for e in self if e.is_async}
        for track, name in tracks.items():
            events.append(
                {
                    "ph": "M",
                    "name": "thread_name",
                    "pid": os.getpid(),
                    "tid": track,
                    "args": {"name": name},
                }
            )
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)

    def export_stacks(self, path, metric):
        """Write stacks with a figure each, as flame graphs are made from.

        Args:
            path (str): the file.
            metric (str): "self_cpu_time_total".
        """
        supported = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total")
        if metric not in supported:
            raise ValueError(f"metric should be one of: {list(supported)}")
        with open(path, "w") as file:
            for event in self:
                if event.stack and int(getattr(event, metric)) > 0:
                    names = ";".join(line.replace(" ", "_") for line in reversed(event.stack))
                    file.write(f"{names} {int(getattr(event, metric))}\n")


def _trace_event(event):
    category = "user_annotation" if event.is_user_annotation else "cpu_op"
    return {
        "ph": "X",
        "cat": "collective" if event.is_async else category,
        "name": event.name,
        "pid": os.getpid(),
        "tid": event.thread,
        "ts": event.time_range.start,
        "dur": event.cpu_time_total,
        "args": {
            "External id": event.id,
            "Input Dims": event.input_shapes,
            **(event.trace_args() if event.is_async else {}),
        },
    }


def _shortened(text, width):
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def _drawn(columns, header, last):
    """Columns of texts as lines, each column right-aligned in its width."""
    widths = []
    for _, texts, limit in columns:
        longest = max((len(text) for text in texts), default=0)
        widths.append(max(longest + 4, 12) if limit else max(12, longest + 2))
    rule = "  ".join("-" * width for width in widths) + "  "

    def line(texts):
        return "  ".join(text.rjust(w) for text, w in zip(texts, widths, strict=True)) + "  "

    rows = zip(*(texts for _, texts, _ in columns), strict=True)
    lines = [rule] if header is None else [header, rule]
    lines += [line([title for title, _, _ in columns]), rule, *(line(row) for row in rows), rule]
    return "\n".join([*lines, last, ""])
