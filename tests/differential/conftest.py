"""The differential suites need PyTorch; without it they are skipped as a whole."""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="every dtype of the table of samples")


@pytest.fixture(scope="session")
def full(request):
    """Whether the whole table was asked for, instead of the minutes' worth."""
    return request.config.getoption("--full")


def pytest_terminal_summary(terminalreporter):
    if collect_ignore_glob:
        terminalreporter.write_line("tests/differential: PyTorch is not installed, nothing was run")
