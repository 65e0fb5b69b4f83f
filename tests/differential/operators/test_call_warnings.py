"""Calls that warn: which of them, and whether once in a process or each time."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

# What a fresh process runs: every call twice, and how many warnings each gave.
PROGRAM = """
import importlib, json, sys, warnings
m = importlib.import_module(sys.argv[1])
x, bytes_ = m.ones(3, 3), m.ones(3, dtype=m.uint8)
grid, row = m.arange(6.0).reshape(2, 3), m.arange(3.0)
calls = {
    "T of a matrix": lambda: x.T,
    "T of a vector": lambda: row.T,
    "range": lambda: m.range(0, 3),
    "arange": lambda: m.arange(3),
    "where of bools": lambda: m.where(row > 0, row, row),
    "where of bytes": lambda: m.where(bytes_, row, row),
    "cross without dim": lambda: m.cross(row, row),
    "cross": lambda: m.cross(row, row, dim=0),
    "chain_matmul": lambda: m.chain_matmul(x, x),
    "lu_solve": lambda: m.lu_solve(x, *m.linalg.lu_factor(m.eye(3))),
    "nuclear_norm": lambda: m.nuclear_norm(x),
    "frobenius_norm": lambda: m.frobenius_norm(x, (0, 1)),
    "triangular_solve": lambda: m.triangular_solve(x, m.eye(3)),
    "searchsorted": lambda: m.searchsorted(row, row),
    "searchsorted in gaps": lambda: m.searchsorted(m.arange(6.0)[::2], row),
    "searchsorted of gaps": lambda: m.searchsorted(row, m.arange(6.0)[::2]),
    "var": lambda: m.var(row),
    "var of one": lambda: m.var(row[:1]),
    "std of one": lambda: m.std(grid[:1], 0),
    "var_mean of one": lambda: m.var_mean(grid[:1], 0),
    "var of none": lambda: m.var(m.ones(0)),
    "var of one without correction": lambda: m.var(row[:1], correction=0),
    "cov": lambda: m.cov(grid),
    "cov of one": lambda: m.cov(grid[:, :1]),
}
counts = {}
for name, call in calls.items():
    counts[name] = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        counts[name].append(len(told))
print(json.dumps(counts))
"""


def _warnings_in(library):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, library]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_calls_warn_as_often_as_pytorch_does():
    ours, theirs = _warnings_in("facula"), _warnings_in("torch")
    assert any(map(any, theirs.values()))
    assert ours == theirs
