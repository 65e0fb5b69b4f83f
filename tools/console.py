"""What the build tools share: paths, progress lines, running commands, clear failures."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

ERROR_LINE = re.compile(
    r"^(?!ninja: ).*(?<!-W)\b(fatal error|error|undefined (reference|symbol)|Killed)\b[: ]"
    r"|multiple definition of|^(CMake Error|ERROR|E: )|No space left|internal compiler error"
)


class Failure(Exception):
    """An expected failure: its text is all that the user needs to see."""


def run_main(main):
    """Calls `main()`; an expected failure becomes one message and exit status 1, no traceback."""
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"facula: {failure}", file=sys.stderr, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        print("facula: interrupted", file=sys.stderr, flush=True)
        sys.exit(130)


def say(text):
    """Prints one line of progress at once."""
    print(f"facula: {text}", flush=True)


def fingerprint(*parts):
    """A short hash of texts and of the contents of paths, for stamp files."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def first_error(text, context=6):
    """The first error in a log with the lines after it, or the log's end where none is seen."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if ERROR_LINE.search(line):
            return "\n".join(lines[number : number + context])
    return "\n".join(lines[-context * 2 :])


def shown(path):
    """A path as the user would type it."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


class StepLine:
    """Shows `[done/total]`: rewritten in place on a terminal, else one line in ten seconds."""

    def __init__(self, what):
        self.what = what
        self.began = self.last = time.monotonic()
        self.is_terminal = sys.stdout.isatty()
        self.done = 0

    def show(self, done, total, detail):
        """Takes the newest state; prints it when it is time to."""
        self.done = done
        now = time.monotonic()
        if now - self.last < (0.1 if self.is_terminal else 10.0) and done != total:
            return
        self.last = now
        text = (
            f"{self.what}: {done}/{total} ({100 * done // max(total, 1)} %, {self.seconds():.0f} s)"
        )
        if self.is_terminal:
            print(f"\r\033[K{text} {detail}"[:120], end="", flush=True)
        else:
            print(text, flush=True)

    def seconds(self):
        """Seconds since the start."""
        return time.monotonic() - self.began

    def close(self):
        """Leaves the terminal's line clean."""
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)


STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")


def run_logged(command, log, what, env=None, on_step=None):
    """Runs a command with its output in the file `log`.

    `on_step(done, total, detail)` gets Ninja's steps. Raises Failure with the first error when
    the command fails; returns the whole output otherwise.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    try:
        process = subprocess.Popen(
            [str(c) for c in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise Failure(f"{what}: cannot start {command[0]}: {error.strerror}") from None
    with process, open(log, "w", encoding="utf-8") as file:
        for line in process.stdout:
            file.write(line)
            lines.append(line)
            step = STEP.match(line) if on_step else None
            if step:
                on_step(int(step[1]), int(step[2]), step[3])
    output = "".join(lines)
    if process.returncode:
        raise Failure(f"{what} failed:\n{first_error(output)}\n(the whole log: {shown(log)})")
    return output


def job_count():
    """How many compilers or tests run at once: $JOBS, else all CPUs, at most one for 1.5 GB."""
    asked = os.environ.get("JOBS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), int(memory // (1.5 * 2**30))))
