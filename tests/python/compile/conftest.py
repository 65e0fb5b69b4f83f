"""Tests of compiled functions put off calls of every size, unless they ask otherwise."""

import os
import sys

import pytest
from facula import _C

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(autouse=True)
def deferring_all_sizes():
    before = _C._set_least_deferred(0)
    yield
    _C._set_least_deferred(before)
