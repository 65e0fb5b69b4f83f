"""Peak memory of a rank that trains the character GPT: one process, copies, shards.

    python -m bench.sharded_memory [--width 512] [--layers 6] [--batch-size 8]

Prints a table of what the peak resident memory of rank 0 is above that before the model was made.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "examples" / "sharded.py"
CASES = [("one", 1), ("ddp", 2), ("fsdp", 2), ("fsdp", 4)]


def peak_of(mode, size, options):
    """Bytes of rank 0."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    command = [
        sys.executable,
        *("-m", "facula", "run"),
        *(launcher if mode != "one" else ()),
        *(PROGRAM, "gpt", "--mode", mode, *options),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])["peak"]


def main(arguments=None):
    """Measures all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"width": 512, "layers": 6, "batch-size": 8, "steps": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args(arguments))
    words = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    first = None
    print("mode   ranks   MB a rank   of one process")
    for mode, size in CASES:
        peak = peak_of(mode, size, words)
        first = first or peak
        print(f"{mode:<6} {size:5} {peak / 1e6:11.0f} {peak / first:16.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
