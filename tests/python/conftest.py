"""Options of the Python suites."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="every dtype, layout and second derivative of the table of samples",
    )


@pytest.fixture(scope="session")
def full(request):
    """Whether the whole table was asked for, instead of the minutes' worth."""
    return request.config.getoption("--full")
