"""Reads damaged checkpoints: zip, legacy pickles, tar, safetensors, NumPy's files.

    python tests/fuzz/files.py --seconds 60 [--seed 1] [--case 17] [--save build/fuzz]

Each case is a whole file with some changes, made from the seed and the case's number alone. Reading
it may give an object or raise an error that says what is wrong. Anything else is a finding: a
crash, a hang, memory beyond the limit, an error of another class. A finding is saved as a file,
with the command that repeats it. Ends with status 1 if there was one; the last line counts.
"""

import argparse
import importlib
import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from old_files import example_tar, with_views  # noqa: E402

MEMORY = 3 << 30  # address space of a reader: some libraries, and far more than the files are
PATIENCE = 60  # seconds without a new case after which a reader hangs
BATCH = 400
SOUND_ERRORS = {"RuntimeError", "ValueError", "EOFError", "UnpicklingError", "NotImplementedError"}
NUMBERS = [0, 1, 2, 0x7F, 0x80, 0xFF, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62]
NUMBERS += [2**63 - 1, 2**63, 2**64 - 1]


# --- whole files, by kind


def sample_objects():
    """What checkpoints hold, in small."""
    import facula as m

    weights = {f"layer.{i}.weight": m.arange(6.0).reshape(2, 3) for i in range(3)}
    shared = m.arange(8)
    types = [m.float64, m.float16, m.bfloat16, m.uint8, m.bool, m.complex64, m.int32]
    return [
        weights,
        {"views": [shared[:4], shared[4:], shared.view(2, 4).t()], "epoch": 3, "name": "x" * 40},
        {str(t): m.ones(3, dtype=t) for t in types},
        {"parameter": m.nn.Parameter(m.ones(2)), "rates": (0.1, 1e-3), "sizes": m.Size([2, 3])},
        [None, True, 2**70, 1.5, b"bytes", {1, 2}, frozenset({3}), m.float32, m.device("cpu")],
    ]


def _saved(obj, **options):
    import facula as m

    file = io.BytesIO()
    m.save(obj, file, **options)
    return file.getvalue()


def _deflated(data):
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
    return packed.getvalue()


def _safetensors(obj):
    from facula.serialization import safetensors

    file = io.BytesIO()
    safetensors.save_file(obj, file, {"format": "pt"})
    return file.getvalue()


def _numpy_files():
    import facula as m
    from facula.serialization import npy

    tensors = {"a": m.arange(6.0).reshape(2, 3), "b/c": m.arange(3), "d": m.ones(40).bool()}
    for compress in (False, True):
        file = io.BytesIO()
        npy.save_npz(tensors, file, compress=compress)
        yield "npz", file.getvalue()
    for tensor in tensors.values():
        file = io.BytesIO()
        npy.save_npy(tensor, file)
        yield "npy", file.getvalue()


def whole_files():
    """Lists of (kind, bytes)."""
    found = []
    for obj in sample_objects():
        archive = _saved(obj)
        legacy = _saved(obj, _use_new_zipfile_serialization=False)
        found += [("zip", archive), ("zip", _deflated(archive)), ("legacy", legacy)]
    found += [("tar", example_tar()), ("legacy", with_views())]
    found += [("safetensors", _safetensors(obj)) for obj in sample_objects()[:3:2]]
    return [*found, *_numpy_files()]


# --- changes


def _put(data, at, piece):
    return data[:at] + piece + data[at + len(piece) :]


def _any_number(rng):
    number = rng.choice(NUMBERS) + rng.choice([-1, 0, 0, 1])
    size = rng.choice([1, 2, 4, 8])
    return (number % (1 << 8 * size)).to_bytes(size, rng.choice(["little", "big"]))


def change_bytes(rng, data, others):
    """One change anywhere: bits, numbers, pieces left out, repeated or taken from another file."""
    if not data:
        return data
    at = rng.randrange(len(data))
    length = min(rng.choice([1, 2, 8, 30, 200]), len(data) - at)
    kind = rng.randrange(8)
    if kind == 0:
        return _put(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))
    if kind == 1:
        return _put(data, at, bytes([rng.randrange(256)]))
    if kind == 2:
        return _put(data, at, _any_number(rng))
    if kind == 3:
        return data[:at] + data[at + length :]
    if kind == 4:
        return data[:at] + data[at : at + length] * rng.choice([2, 3, 100]) + data[at + length :]
    if kind == 5:
        return data[:at]
    other = rng.choice(others)
    start = rng.randrange(len(other))
    return data[:at] + other[start : start + length] + data[at + (kind == 6) * length :]


OPCODES = b"(.012FIJKLMNPQRSTUVXabcdeghijlopqrstu})]BC\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8b\x8c"
OPCODES += b"\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98"


def change_pickle(rng, data):
    """Opcodes of a pickle put in, left out or repeated."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        piece = bytes(rng.choice(OPCODES) for _ in range(rng.choice([1, 1, 2, 4])))
        piece *= rng.choice([1, 1, 1, 2, 1000])
        data = data[:at] + piece + data[at + rng.randrange(3) :]
    return data


def change_archive(rng, data, others):
    """A whole archive with one record changed: its checksums and directory are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        names = old.namelist()
        pickles = [name for name in names if name.endswith(".pkl")]
        chosen = rng.choice(pickles if pickles and rng.random() < 0.8 else names)
        for info in old.infolist():
            content = old.read(info.filename)
            if info.filename == chosen:
                is_pickle = chosen in pickles and rng.random() < 0.6
                content = (
                    change_pickle(rng, content) if is_pickle else change_bytes(rng, content, others)
                )
            if not (info.filename == chosen and rng.random() < 0.05):
                new.writestr(info.filename, content, info.compress_type)
    return made.getvalue()


def _change_json(rng, value):
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        copy = {**value, key: _change_json(rng, value[key])}
        if rng.random() < 0.1:
            copy[rng.choice(["dtype", "shape", "x"])] = copy.pop(key)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.8:
        copy = list(value)
        at = rng.randrange(len(copy))
        copy[at : at + 1] = [_change_json(rng, copy[at])] * rng.choice([0, 1, 1, 1, 2, 1000])
        return copy
    words = ["F32", "U8", "F9", "", None, True, 1.5, [], {}, -1]
    return rng.choice([*words, *NUMBERS, 10**40])


def change_header(rng, data):
    """A safetensors file whose header says something else."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    for _ in range(rng.choice([1, 1, 2, 3])):
        header = _change_json(rng, header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def case_of(seed, number, files):
    """Kind and bytes of a case."""
    rng = random.Random(f"{seed}:{number}")
    kind, data = rng.choice(files)
    others = [content for _, content in files]
    style = rng.random()
    if kind in ("zip", "npz") and style < 0.6:
        data = change_archive(rng, data, others)
    elif kind == "safetensors" and style < 0.6:
        data = change_header(rng, data)
    elif kind == "legacy" and style < 0.4:
        data = change_pickle(rng, data)
    else:
        for _ in range(rng.choice([1, 1, 2, 4])):
            data = change_bytes(rng, data, others)
    return kind, data


# --- the reader, a process with limits


def _touch(value, depth=0):
    import facula as m

    if isinstance(value, m.Tensor):
        if value.numel() < 100_000 and value.layout == m.strided and not value.is_meta:
            value.detach().clone()
            repr(value)
    elif isinstance(value, dict) and depth < 20:
        for part in list(value.values())[:100]:
            _touch(part, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 20:
        for part in list(value)[:100]:
            _touch(part, depth + 1)


def load(kind, data):
    """Reads a case in the way of its kind, and looks at what came out."""
    import facula as m
    from facula.serialization import npy, safetensors

    if kind in ("npy", "npz"):
        return _touch(getattr(npy, f"load_{kind}")(io.BytesIO(data)))
    if kind == "safetensors":
        return _touch(safetensors.load_file(io.BytesIO(data)))
    return _touch(m.load(io.BytesIO(data), weights_only=True))


def read_cases(target, seed, first, last):
    """The reader: says on stdout which case it reads and how that ended."""
    if "ASAN_OPTIONS" not in os.environ:  # the sanitizer reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    module, _, function = target.rpartition(":")
    read = getattr(importlib.import_module(module), function) if module else load
    files = whole_files()
    for number in range(first, last):
        print("case", number, flush=True)
        kind, data = case_of(seed, number, files)
        try:
            read(kind, data)
        except Exception as error:
            if type(error).__name__ not in SOUND_ERRORS:
                print("finding", number, f"{type(error).__name__}: {error}"[:300], flush=True)
    print("end", flush=True)


class Reader:
    """A process that reads cases, watched."""

    def __init__(self, options, first, last):
        self.at, self.ended, self.findings = first, False, []
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--target", options.target, "--seed", str(options.seed)]
            + ["--read", str(first), str(last)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def watch(self, end):
        """Follows it to its end; returns what stopped it, or None."""
        os.set_blocking(self._process.stdout.fileno(), False)
        last_word, rest = time.monotonic(), b""
        while True:
            piece = self._process.stdout.read() or b""
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._take(line.decode("utf-8", "replace"))
            now = time.monotonic()
            last_word = now if lines else last_word
            stop = now > end or now - last_word > PATIENCE
            if stop or (not piece and self._process.poll() is not None):
                break
            time.sleep(0.02)
        if self._process.poll() is None:
            self._process.kill()
        errors = self._process.communicate()[1].decode("utf-8", "replace")
        if self.ended or time.monotonic() > end and not now - last_word > PATIENCE:
            return None
        if now - last_word > PATIENCE:
            return f"no end after {PATIENCE} s"
        return f"exit status {self._process.returncode}: {errors[-300:]}"

    def _take(self, line):
        word, _, rest = line.partition(" ")
        if word == "case":
            self.at = int(rest)
        elif word == "finding":
            number, _, text = rest.partition(" ")
            self.findings.append((int(number), text))
        self.ended = self.ended or word == "end"


# --- the run


def report(options, number, text, files):
    """Saves a finding and says how to repeat it."""
    folder = Path(options.save)
    folder.mkdir(parents=True, exist_ok=True)
    kind, data = case_of(options.seed, number, files)
    path = folder / f"files-{options.seed}-{number}.{kind}"
    path.write_bytes(data)
    print(f"FINDING in {kind}, case {number}: {text}", flush=True)
    print(f"  saved as {path}")
    print(f"  repeat: python tests/fuzz/files.py --seed {options.seed} --case {number}", flush=True)


def main():
    """Runs cases until the time or their number is over; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--case", type=int, default=None, help="this one alone")
    parser.add_argument("--save", default="build/fuzz", help="the folder of findings")
    parser.add_argument("--target", default="", help="module:function in place of the loaders")
    parser.add_argument("--read", type=int, nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_cases(options.target, options.seed, *options.read)
        return 0
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {options.seed}", flush=True)
    files = whole_files()
    first = options.case or 0
    stop = first + 1 if options.case is not None else options.cases
    end = time.monotonic() + options.seconds
    number, found = first, 0
    while number < stop and time.monotonic() < end:
        reader = Reader(options, number, min(number + BATCH, stop))
        reason = reader.watch(end)
        findings = reader.findings + ([(reader.at, reason)] if reason else [])
        for at, text in findings:
            report(options, at, text, files)
        found += len(findings)
        number = reader.at + 1
    print(f"{number - first} cases, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
