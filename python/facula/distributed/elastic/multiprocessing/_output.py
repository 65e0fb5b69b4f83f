"""The output of ranks: to the console in whole lines with a prefix, and to files."""

from __future__ import annotations

import os
import sys
import threading

_console = threading.Lock()


class LinePump(threading.Thread):
    """Copies a pipe to a file and to the console, line by line.

    Args:
        source (int): the descriptor to read, which is closed at the end.
        path (str): a file for the lines, or None.
        console (file): a text stream, or None.
        prefix (str): what each line on the console begins with.
        copies (list): (path, list of words): files for the lines that have one of the words.
    """

    def __init__(self, source, path, console, prefix, copies=()):
        super().__init__(daemon=True)
        self._source, self._console, self._prefix = source, console, prefix
        self._file = open(path, "ab", buffering=0) if path else None
        self._copies = [(open(p, "ab", buffering=0), words) for p, words in copies]
        self.start()

    def run(self):
        """Until all writers have closed the pipe."""
        with os.fdopen(self._source, "rb", buffering=65536) as pipe:
            for line in iter(pipe.readline, b""):
                self._write(line)
        for file in [self._file, *(f for f, _ in self._copies)]:
            if file is not None:
                file.close()

    def _write(self, line):
        if self._file is not None:
            self._file.write(line)
        for file, words in self._copies:
            if any(word.encode() in line for word in words):
                file.write(self._prefix.encode() + line)
        if self._console is None:
            return
        text = self._prefix + line.decode(errors="replace")
        if not text.endswith("\n"):
            text += "\n"  # the next line is another rank's
        with _console:
            self._console.write(text)
            self._console.flush()


def console_of(name):
    """The console stream for "stdout" or "stderr"."""
    return sys.stdout if name == "stdout" else sys.stderr
