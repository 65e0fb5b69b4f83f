#!/usr/bin/env python3
"""Checks a commit's message: a subject of up to 72 characters, an empty line, a body that says why.

python tools/check_message.py FILE      # as a commit-msg hook calls it
"""

import sys
from pathlib import Path

MOST = 72


def faults(message):
    """What is wrong with a message, as a list of texts; merges and fixups pass."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "fixup! ", "squash! ", "Revert ")):
        return []
    found = []
    if not subject:
        found.append("expected a subject on the first line; got an empty one")
    if len(subject) > MOST:
        found.append(f"expected a subject of up to {MOST} characters; got {len(subject)}")
    if subject.endswith("."):
        found.append("expected a subject without a full stop")
    if len(lines) > 1 and lines[1]:
        found.append("expected an empty line after the subject")
    if not any(line.strip() for line in lines[2:]):
        found.append("expected a body that says why")
    return found


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = faults(Path(sys.argv[1]).read_text())
    for fault in found:
        print(f"commit message: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
