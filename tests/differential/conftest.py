"""The differential suites need PyTorch; without it they are skipped as a whole."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if collect_ignore_glob:
        terminalreporter.write_line("tests/differential: PyTorch is not installed, nothing was run")
