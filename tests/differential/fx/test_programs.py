"""Traced programs: code, printed graphs, nodes, results and errors are PyTorch's."""

import copy
import pickle
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fx_in_both import load, normal, outcome, plain, texts  # noqa: E402

OURS, THEIRS = load("programs")
CASES = list(zip(OURS.CASES, THEIRS.CASES, strict=True))
NAMES = [OURS.name_of(case) for case, _ in CASES]


def shown(module, programs, case):
    """A traced program's texts, its results, and those of its copies."""
    if isinstance(module, tuple):
        return module
    found = {"itself": texts(module)}
    if not case.is_copied:
        return found
    for name, make in {
        "copy": copy.deepcopy,
        "pickle": _pickled,
        "again": programs.fx.symbolic_trace,
    }.items():
        made = outcome(make, module)
        found[name] = made if isinstance(made, tuple) else made.code
    if case.inputs is not None:
        inputs = copy.deepcopy(case.inputs)
        found["result"] = plain(outcome(module, *inputs))
        runs = {"interpreter": programs.fx.Interpreter(module).run}
        runs["transformer"] = lambda *a: programs.fx.Transformer(module).transform()(*a)
        for name, run in runs.items():
            found[name] = plain(outcome(run, *copy.deepcopy(case.inputs)))
    return found


def _pickled(module):
    return pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("ours, theirs", CASES, ids=NAMES)
def test_a_traced_program_reads_and_runs_as_pytorch_s(ours, theirs):
    mine, other = outcome(OURS.trace, ours), outcome(THEIRS.trace, theirs)
    if isinstance(mine, tuple) or isinstance(other, tuple):
        assert mine == other
        return
    mine, other = shown(mine, OURS, ours), shown(other, THEIRS, theirs)
    assert mine["itself"] == other["itself"]
    assert _normal(mine) == _normal(other)


def _normal(found):
    return {k: normal(v) if isinstance(v, str) else v for k, v in found.items() if k != "itself"}
