"""Options of the Python suites."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="every dtype, layout and second derivative of the table of samples",
    )
    parser.addoption(
        "--compiled",
        action="store_true",
        help="run each test's body as a compiled function",
    )


@pytest.fixture(scope="session")
def full(request):
    """Whether the whole table was asked for, instead of the minutes' worth."""
    return request.config.getoption("--full")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "eager(reason): a test of what compiled functions do otherwise, by design"
    )


def pytest_collection_modifyitems(config, items):
    """With `--compiled`, tests of compiled functions and of eager ones alone are left out."""
    if not config.getoption("--compiled"):
        return
    for item in items:
        mark = item.get_closest_marker("eager")
        if mark or "/compile/" in str(item.path):
            reason = mark.args[0] if mark else "it compiles by itself"
            item.add_marker(pytest.mark.skip(reason=f"compiled: {reason}"))


def pytest_pyfunc_call(pyfuncitem):
    """With `--compiled`, each test's body runs as a compiled function."""
    if not pyfuncitem.config.getoption("--compiled"):
        return
    from facula import _C

    _C._set_least_deferred(0)  # small calls wait, too
    body = pyfuncitem.obj
    pyfuncitem.obj = lambda *args, **kwargs: _C._recorded(body, *args, **kwargs)
