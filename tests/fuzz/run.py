"""Runs all fuzzers, one after the other, with a fresh seed that is printed.

python tests/fuzz/run.py --seconds 3600 [--seed S]
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SHARES = {"calls.py": 0.5, "programs.py": 0.3, "files.py": 0.2}


def main():
    """The command line; 1 when any fuzzer found something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, help="repeats a run")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    failed = []
    there = {name: share for name, share in SHARES.items() if (FOLDER / name).exists()}
    for name, share in there.items():
        print(f"\n== {name}", flush=True)
        seconds = str(options.seconds * share)
        command = [sys.executable, str(FOLDER / name), "--seconds", seconds, "--seed", str(seed)]
        if subprocess.run(command).returncode != 0:
            failed.append(name)
    print(f"\nfindings in: {', '.join(failed)}" if failed else "\nno findings", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
