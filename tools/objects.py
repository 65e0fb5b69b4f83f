"""The object files of a build: their sources, their instruction sets, their symbols."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

from console import BUILD, Failure, shown

# Compiler options that allow instructions beyond the baseline (x86-64-v2).
NEWER = re.compile(r"-m(avx|fma|f16c|bmi|amx|arch=(native|haswell|skylake|x86-64-v[34]))")


class Object(NamedTuple):
    """One object file of the library or the extension."""

    path: Path
    source: Path
    is_baseline: bool


def output_of(command):
    """A tool's output; raises Failure with its complaint."""
    try:
        run = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        raise Failure(f"cannot start {command[0]}: {error.strerror}") from None
    if run.returncode:
        raise Failure(f"{command[0]} failed: {run.stderr.strip()[-300:]}")
    return run.stdout


def library_objects(kind="release"):
    """Objects of the library and the extension of a build, tests left out."""
    database = BUILD / kind / "compile_commands.json"
    if not database.exists():
        raise Failure(f"there is no {shown(database)}; run `make build` first")
    found = []
    for entry in json.loads(database.read_text(encoding="utf-8")):
        words = shlex.split(entry.get("command", "")) or entry["arguments"]
        output = entry.get("output") or words[words.index("-o") + 1]
        path = Path(entry["directory"], output)
        is_object = path.suffix == ".o"  # and no precompiled header
        if (
            is_object
            and path.exists()
            and "tests" not in path.parts
            and "facula_tests" not in output
        ):
            newer = any(NEWER.match(word) for word in words)
            found.append(Object(path, Path(entry["file"]), not newer))
    if not found:
        raise Failure(f"the {kind} build has no object files; run `make build` first")
    return found


def sections(path):
    """Sizes of an object file: (code and constants, data, zero-initialised)."""
    line = output_of(["size", path]).splitlines()[1]
    return tuple(int(word) for word in line.split()[:3])
