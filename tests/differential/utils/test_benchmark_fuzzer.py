"""Draws of utils.benchmark's Fuzzer: PyTorch's, from the same seed."""

import facula
import facula.utils.benchmark as ours
import pytest
import torch
import torch.utils.benchmark as theirs


def draws(library, module):
    """Parameters and geometries of some draws."""
    parameter, tensor = module.FuzzedParameter, module.FuzzedTensor
    fuzzer = module.Fuzzer(
        parameters=[
            parameter("rows", 1, 64, "loguniform"),
            [parameter("columns", 1, 64, "uniform"), parameter("step", 1, 3, "uniform")],
            parameter("share", 0.5, 9.5, "uniform"),
        ],
        tensors=[
            tensor("x", ("rows", "columns"), min_elements=40, max_elements=1024),
            tensor("y", ("rows", 3), steps=("step", 2), dtype=library.int32),
        ],
        constraints=[lambda params: params["rows"] != params["columns"]],
        seed=4,
    )
    found = []
    for tensors, properties, parameters in fuzzer.take(12):
        shown = [(tuple(t.shape), t.stride()) for t in tensors.values()]
        known = [
            {k: list(v) if k == "order" else v for k, v in p.items() if k != "dtype"}
            for p in properties.values()
        ]
        found.append((shown, known, parameters))
    return found, fuzzer.rejection_rate


def test_draws_are_the_same():
    assert draws(facula, ours) == draws(torch, theirs)


COUNTS = [(12, "a"), (3, "/x/build/aten/b.cpp:at::b(int) [/lib/libtorch.so]"), (-1, "c" * 90)]


def counts(module, pairs, inclusive=False):
    return module.FunctionCounts(tuple(module.FunctionCount(*p) for p in pairs), inclusive)


@pytest.mark.parametrize("pairs", [COUNTS, COUNTS[:1], [(n, f"f{n}") for n in range(30, 0, -1)]])
@pytest.mark.parametrize("inclusive", [False, True])
def test_counts_are_shown_and_added_the_same(pairs, inclusive):
    shown = []
    for module in (ours, theirs):
        c = counts(module, pairs, inclusive)
        sums = [
            [tuple(one) for one in each._data] for each in (c + c, c - c, c.transform(str.upper))
        ]
        shown.append((repr(c).split("\n")[1:], c.sum(), len(c), sums, len(c[:2])))
    assert shown[0] == shown[1]


def test_statistics_are_standardized_the_same():
    found = []
    for module in (ours, theirs):
        task = module.TaskSpec("x + 1", "for i in range(2):\n  x = i\n")
        stats = [counts(module, COUNTS, inclusive) for inclusive in (True, False) * 2]
        both = module.CallgrindStats(task, 10, True, *stats, None)
        plain = [tuple(one) for one in both.as_standardized().stats()._data]
        found.append((plain, both.counts(), both.delta(both)._data, task.setup_str()))
        plain_task = module.CallgrindStats(module.TaskSpec("x", "pass"), 10, True, *stats, None)
        found[-1] += (repr(plain_task).split("\n")[1:],)
    assert found[0] == found[1]
