"""Tests of compiled functions put off calls of every size, unless they ask otherwise."""

import pytest
from facula import _C


@pytest.fixture(autouse=True)
def deferring_all_sizes():
    before = _C._set_least_deferred(0)
    yield
    _C._set_least_deferred(before)
