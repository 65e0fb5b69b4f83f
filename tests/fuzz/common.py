"""What the fuzzers share: a case is a short program, run twice in a worker process.

A case is a list of lines of Python. A line that raises is passed over (that is an answer, unless
the exception shows the insides of the library); a line that ends the process, hangs, or leaves a
tensor that depends on what memory held before, is a finding. Cases depend on the seed and their
number alone. Findings are made smaller and printed so that they can be pasted.
"""

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS / "python", TESTS / "fuzz"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import bad_calls  # noqa: E402
import facula  # noqa: E402
import unset_memory  # noqa: E402

CPU_SECONDS = 60  # of one case: 25 million elements at -O0 between fences, beside other processes
REAL_SECONDS = 180  # without a step forward a worker waits for something that never comes
SHRINKING_SECONDS = 60
HEAD = [
    "import facula",
    "from math import inf, nan",
    "import copy, pickle, threading, weakref, gc, io",
    "import facula.nn.functional as F",
]
THREADS = "# threads"  # a program with this line has no one result


class Skip(Exception):
    """A case that cannot be written down, or has no meaning."""


# --- values as source


def source_of(value, depth=0):
    """A Python expression that makes a value like this one."""
    if isinstance(value, facula.Tensor):
        return _source_of_tensor(value)
    if value is None or value is ... or isinstance(value, (bool, int, str, bytes, complex)):
        return "..." if value is ... else repr(value)
    if isinstance(value, float):
        return repr(value)  # nan and inf are names in HEAD
    if depth > 5:
        raise Skip
    if isinstance(value, facula.Size):
        return f"facula.Size({list(value)})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(source_of(v, depth + 1) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {source_of(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, (slice, range)):
        return repr(value)
    return _source_of_object(value)


def _source_of_object(value):
    if isinstance(value, type) and value.__module__ == "builtins":
        return value.__name__
    if isinstance(value, facula.Generator):
        return "facula.Generator()"
    if isinstance(value, facula.device):
        return f"facula.device({str(value)!r})"
    text = str(value)
    if text.startswith("torch.") and re.fullmatch(r"torch\.\w+", text):
        return text.replace("torch.", "facula.")
    if type(value) is object:
        return "object()"
    if callable(value) and getattr(value, "__name__", "") == "<lambda>":
        return "(lambda: facula.ones(2))"
    raise Skip


def _source_of_tensor(t):
    if type(t) not in (facula.Tensor, facula.nn.Parameter):
        raise Skip
    grad = ".requires_grad_()" if t.requires_grad else ""
    dtype = str(t.dtype).replace("torch.", "facula.")
    sizes, strides = list(t.shape), list(t.stride())
    if t.is_meta:
        return f'facula.empty_strided({sizes}, {strides}, dtype={dtype}, device="meta"){grad}'
    bits = ".conj()" if t.is_conj() else ""
    with facula.no_grad():
        plain = t.detach().conj() if bits else t.detach()
        count = t.untyped_storage().nbytes() // max(t.element_size(), 1)
        if count > 2048:
            raise Skip
        memory = plain.as_strided((count,), (1,), 0)
        values = memory.to(_listed_as(t.dtype)).tolist()
    base = _source_of_memory(values, dtype)
    whole = [count] == sizes and strides == [1] and t.storage_offset() == 0
    view = "" if whole else f".as_strided({sizes}, {strides}, {t.storage_offset()})"
    return f"{base}{grad}{view}{bits}"


def _listed_as(dtype):
    return facula.complex64 if dtype == facula.complex32 else dtype


def _source_of_memory(values, dtype):
    if values and all(v == values[0] for v in values):
        return f"facula.full(({len(values)},), {values[0]!r}).to({dtype})"
    if len(values) > 12 and all(isinstance(v, float) and math.isfinite(v) for v in values):
        # Many numbers say no more than their range.
        low, high = round(min(values), 3), round(max(values), 3)
        return f"facula.linspace({low}, {high}, {len(values)}).to({dtype})"
    return f"facula.tensor({values!r}).to({dtype})"


# --- running one case


def _namespace():
    space = {}
    exec("\n".join(HEAD), space)
    return space


def run_lines(lines, fault):
    """Runs the lines of a program; gives its variables. fault(text) is told of improper errors."""
    space = _namespace()
    known = set(space)
    for line in lines:
        try:
            exec(line, space)
        except Exception as error:
            if isinstance(error, SystemError) or bad_calls.INTERNAL.search(str(error)):
                fault(f"{type(error).__name__}: {error}")
            # What a failed call was to write to may be half done: an out= that has grown.
            known.update(re.findall(r"\w+", line))
    # Python puts names of its own beside them, such as the warnings that were shown.
    found = {k: v for k, v in space.items() if k not in known and not k.startswith("__")}
    # Functions that tensors keep, as hooks for saved ones, refer to it and it to the tensors: a
    # circle of up to gigabytes, which the collector cannot find (nor with PyTorch).
    space.clear()
    return found


def check_case(lines):
    """Runs a case over memory of two fillings; what is wrong, or None."""
    faults, seen = [], []
    alone = THREADS not in lines
    for byte in unset_memory.FILLS:
        facula.manual_seed(0)
        facula.set_grad_enabled(True)
        unset_memory.fill_free_memory(byte)
        space = run_lines(lines, faults.append)
        if faults:
            return f"fault: {faults[0]}"[:300]
        marks = {k: unset_memory.fingerprint(v) for k, v in space.items()}
        seen.append(marks)
        del space
    text = "\n".join(lines)
    if not alone or any(unset_memory.LEAVES_UNSET.search(m) for m in _names_in(text)):
        return None
    for name in seen[0]:
        if seen[0][name] != seen[1].get(name):
            return f"unset memory in {name}"
    return None


def _names_in(text):
    return [n.rstrip("(") for n in re.findall(r"[\w.]+\(", text)]


def _begin_worker():
    import gc
    import warnings

    warnings.simplefilter("ignore")
    facula.set_num_threads(2)
    os.chdir(tempfile.mkdtemp())  # some functions write files of any name
    bad_calls.limit_memory()
    gc.disable()


def _timed_check(lines):
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        return check_case(lines)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _worker(make, options):
    """Runs cases from a number on until the time is up; prints findings as lines of JSON."""
    import gc

    _begin_worker()
    end = time.monotonic() + options.seconds
    progress = os.open(options.progress, os.O_WRONLY | os.O_CREAT)
    number = options.start
    while time.monotonic() < end:
        os.pwrite(progress, b"%-20d" % number, 0)
        lines = _lines_of(make, options.seed, number)
        what = _timed_check(lines) if lines else None
        if what:
            print(json.dumps([number, what]), flush=True)
        if number % 100 == 0:
            gc.collect()
        number += 1
    print(json.dumps(["done", number]), flush=True)


def _lines_of(make, seed, number):
    try:
        return make(random.Random(f"{seed}.{number}"))
    except Skip:
        return None


def _replay(path):
    """Runs one case from a file; prints what is wrong."""
    _begin_worker()
    print(_timed_check(json.loads(Path(path).read_text())) or "ok", flush=True)


# --- the process that looks on


def _environment():
    root = str(Path(facula.__file__).parents[1])
    path = os.pathsep.join([root, str(TESTS / "python"), str(TESTS / "fuzz")])
    return {**os.environ, "PYTHONPATH": path, "FACULA_FENCED_ALLOCATOR": "1"}


def _ending(code, stderr):
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return "hang"
    lines = [line for line in stderr.splitlines() if line.strip()]
    text = " ".join(lines[-2:])[-200:]
    return f"process ended with {code} {text}".strip()


def _run(command, seconds):
    """(exit status, stdout, stderr) of a process; -SIGALRM where it had to be stopped."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        process = subprocess.Popen(command, env=_environment(), stdout=out, stderr=err)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = -signal.SIGALRM
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def outcome_of(lines):
    """What becomes of a case in a process of its own: "ok" or a finding."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(lines, file)
        file.flush()
        command = [sys.executable, str(Path(__file__)), "--replay", file.name]
        code, out, err = _run(command, REAL_SECONDS)
    if code != 0:
        return _ending(code, err)
    return out.strip().splitlines()[-1] if out.strip() else "ok"


def _kind(outcome):
    return re.split(r"[ :]", outcome)[0]


def shrink(lines, outcome, simpler=None):
    """Fewer and simpler lines with the same kind of outcome."""
    end = time.monotonic() + SHRINKING_SECONDS
    if _kind(outcome_of(lines)) != _kind(outcome):
        return lines  # it needs what went before
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for candidate in _smaller(lines, simpler):
            if time.monotonic() > end:
                break
            if _kind(outcome_of(candidate)) == _kind(outcome):
                lines, changed = candidate, True
                break
    return lines


def _smaller(lines, simpler):
    for k in reversed(range(len(lines))):
        if len(lines) > 1:
            yield lines[:k] + lines[k + 1 :]
    if simpler:
        for k, line in enumerate(lines):
            for other in simpler(line):
                yield [*lines[:k], other, *lines[k + 1 :]]


def asks_for_much(lines):
    """Whether a number in the program is work for longer than the alarm waits."""
    text = "\n".join(lines)
    # A view of one element may have any size, and then every element is gone through.
    expanded = any(view in text for view in ("expand", "as_strided", "broadcast_to"))
    # A recurrence takes a step for each degree, and -1 in an unsigned dtype is four billion.
    if "_polynomial_" in text and ".to(facula.uint" in text:
        return True
    large = any(int(n) > 2**30 for n in re.findall(r"(?<![\w.])\d+(?![\w.])", text))
    return (expanded and large) or bad_calls.asks_for_much(text)


class Campaign:
    """Cases of one fuzzer until the time is up."""

    def __init__(self, script, make, simpler, options):
        self.script, self.make, self.simpler = script, make, simpler
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.cases = 0
        self.findings = []

    def run(self):
        """Starts workers, one after the other, and collects what they find."""
        with tempfile.TemporaryDirectory() as folder:
            progress, start = Path(folder) / "progress", self.options.start
            while (left := self.end - time.monotonic()) > 0:
                start = self._run_worker(progress, start, left)
        self.cases = start - self.options.start
        for lines, outcome in self.findings:
            print(f"\n# {outcome}", *HEAD, *lines, sep="\n", flush=True)
        print(f"{self.cases} cases, {len(self.findings)} findings", flush=True)
        return 1 if self.findings else 0

    def _run_worker(self, progress, start, left):
        command = [sys.executable, self.script, "--worker", "--seed", str(self.options.seed)]
        command += ["--start", str(start), "--seconds", str(left), "--progress", str(progress)]
        command += ["--only", self.options.only]
        progress.write_text(str(start))
        code, out, err = _run(command, left + REAL_SECONDS)
        answers = [json.loads(line) for line in out.splitlines() if line.startswith("[")]
        for number, what in answers:
            if number != "done":
                self._note(number, what)
        if answers and answers[-1][0] == "done":
            return answers[-1][1]
        if code == 1:
            raise RuntimeError(f"the worker failed, not a case: {err}")
        number = int(progress.read_text())
        self._note(number, _ending(code, err))
        return number + 1

    def _note(self, number, what):
        lines = _lines_of(self.make, self.options.seed, number)
        if lines is None or (what == "hang" and asks_for_much(lines)):
            return
        print(f"case {number}: {what}", flush=True)
        small = shrink(lines, what, self.simpler)
        if all(small != known for known, _ in self.findings):
            self.findings.append((small, what))


def main(doc, script, make, simpler=None, restrict=None):
    """The command line of a fuzzer; restrict(regex) leaves it with what the names match."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="repeats a run; a fresh one is drawn and printed")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", default="", help="a regular expression for names of operators")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--show", type=int, help="print one case and end")
    options = parser.parse_args()
    if restrict and options.only:
        restrict(options.only)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**9)
    if options.show is not None:
        print("\n".join([*HEAD, *(_lines_of(make, options.seed, options.show) or [])]))
        return 0
    if options.worker:
        _worker(make, options)
        return 0
    print(f"seed {options.seed}", flush=True)
    return Campaign(script, make, simpler, options).run()


if __name__ == "__main__":
    _replay(sys.argv[2])
