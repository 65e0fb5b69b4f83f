"""What a process tells those who look at it: its program, its steps, how far its loops are."""

from __future__ import annotations

import os
import sys
import threading
import time

from facula import _C

# Seconds between two looks at the other ranks: on a terminal, and where lines stay.
_SOON, _LATER = 0.2, 10.0


def _job():
    """What the ranks of one program on this machine have in common."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if address and port:
        return f"{os.environ.get('TORCHELASTIC_RUN_ID', '')}@{address}:{port}"
    return f"children of {os.getppid()}"


_counting = threading.Lock()  # taken for good by the first rank of the process


def note_process():
    """Name the program of this process, and count the steps of its optimizers from here on."""
    _C._distributed.set_job(_job())
    if not _counting.acquire(blocking=False):
        return
    from facula.optim.optimizer import register_optimizer_step_post_hook

    count = _C._distributed.count_step
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: count())


class progress:
    """Goes through an iterable and shows how far all ranks of this machine are, in one line.

    The rank with LOCAL_RANK 0 (or the only one) draws it on stderr: again and again on a terminal,
    else now and then a new line. The others only tell how far they are.

    Args:
        iterable: what is gone through.
        desc (str): what stands before the figures.
        total (int): how many rounds there are; `len(iterable)` where it has a length.
        file: where the line goes.

    Example:
        >>> import io
        >>> text = io.StringIO()
        >>> list(facula.distributed.progress([5, 6], "epoch 1", file=text))
        [5, 6]
        >>> text.getvalue().startswith("epoch 1: 2/2")
        True
    """

    def __init__(self, iterable, desc="", total=None, file=None):
        self._iterable, self._desc = iterable, desc
        self._total = total if total is not None else _length(iterable)
        self._file = file if file is not None else sys.stderr
        self._draws = os.environ.get("LOCAL_RANK", "0") == "0"

    def __len__(self):
        if self._total < 0:
            raise TypeError("progress: expected total or an iterable with a length for len()")
        return self._total

    def __iter__(self):
        tell, done, items = _C._distributed.set_progress, 0, iter(self._iterable)
        terminal = self._draws and self._file.isatty()
        pause = _SOON if terminal else _LATER
        self._began = time.monotonic()
        look_at = self._began + pause
        tell(0, self._total)
        try:
            for item in items:
                yield item
                done += 1
                tell(done, self._total)
                if self._draws and time.monotonic() > look_at:
                    self._draw(done, terminal)
                    look_at = time.monotonic() + pause
        finally:
            if self._draws:
                self._draw(done, terminal, last=True)
            tell(0, 0)

    def _draw(self, done, terminal, last=False):
        start, end = ("\r\033[K", "\n" if last else "") if terminal else ("", "\n")
        self._file.write(f"{start}{self._line(done)}{end}")
        self._file.flush()

    def _line(self, done):
        speed = done / max(1e-9, time.monotonic() - self._began)
        text = f"{self._desc}: " if self._desc else ""
        text += f"{done}/{self._total if self._total >= 0 else '?'}, {speed:.1f}/s"
        others = _others()
        if others:
            behind = min(others, key=lambda p: p.done)
            if behind.done < done:
                text += f"; {_rank_of(behind)} at {behind.done}"
            ahead = max(others, key=lambda p: p.done)
            if ahead.done > done:
                text += f"; {_rank_of(ahead)} at {ahead.done}"
        return text


def _length(iterable):
    try:
        return len(iterable)
    except TypeError:
        return -1


def _others():
    """The other processes of this program that go through a loop."""
    from facula.distributed.flight_recorder import find

    job = _job()
    return [p for p in find() if p.job == job and p.pid != os.getpid() and p.total]


def _rank_of(process):
    return f"rank {process.calls[0].rank}" if process.calls else f"process {process.pid}"
