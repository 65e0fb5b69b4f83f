"""Every operator of the table in every dtype gives values that it set, or raises."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import facula
import pytest
from samples import load_ops
from unset_memory import runs_differ

WALK = Path(__file__).parents[1] / "all_dtypes.py"
FAMILIES = sorted({op.family for op in load_ops() if op.samples})


@cache
def walked(family, samples):
    """What all_dtypes.py prints for a family; in a process of its own, for it may crash."""
    root = str(Path(facula.__file__).parents[1])
    path = os.pathsep.join([root, str(WALK.parent)])
    env = {**os.environ, "PYTHONPATH": path, "FACULA_FENCED_ALLOCATOR": "1"}
    command = [sys.executable, str(WALK), "--family", family, "--samples", str(samples)]
    process = subprocess.run(command, env=env, capture_output=True, text=True)
    assert process.returncode == 0, f"{family}: {process.returncode} {process.stderr[-500:]}"
    return json.loads(process.stdout)


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_set(family, full):
    found = walked(family, 100 if full else 2)
    unset = [f"{name}: {what}" for name, facts in found for what in facts["unset"]]
    assert not unset, "\n".join(unset)


@pytest.mark.parametrize("family", FAMILIES)
def test_dtypes_of_the_table_run(family, full):
    """What the table of samples names as an operator's dtypes, its first sample runs with."""
    rows = [op for op in load_ops() if op.samples and op.family == family]
    for op, (name, facts) in zip(rows, walked(family, 100 if full else 2), strict=True):
        named = {d for d in op.dtype_names() if 0 in dict(op.numbered_samples(d))}
        assert not named - set(facts["dtypes"]), name


REAL = [facula.float8_e5m2, facula.float8_e4m3fn]
ODD = [*REAL, facula.complex32]
NN = facula.nn.functional
# What was a dtype that the kernel's dispatch let fall through.
FELL_THROUGH = {
    "mean": (lambda d: facula.ones(300).to(d).mean(), ODD),
    "mean to a dtype": (lambda d: facula.ones(300).mean(dtype=d), REAL),
    "var": (lambda d: facula.ones(300).to(d).var(), ODD),
    "std_mean": (lambda d: facula.std_mean(facula.ones(300).to(d)), ODD),
    "norm": (lambda d: facula.linalg.vector_norm(facula.ones(300).to(d)), ODD),
    "adaptive_avg_pool2d": (
        lambda d: NN.adaptive_avg_pool2d(facula.ones(1, 2, 4, 4).to(d), 1),
        ODD,
    ),
    "sort": (lambda d: facula.ones(300).to(d).sort(), REAL),
    "argsort": (lambda d: facula.ones(300).to(d).argsort(), REAL),
    "msort": (lambda d: facula.ones(300).to(d).msort(), REAL),
    "nansum": (lambda d: facula.ones(300).to(d).nansum(), REAL),
    "frexp": (lambda d: facula.ones(300).to(d).frexp(), REAL),
    "embedding_bag": (
        lambda d: NN.embedding_bag(facula.tensor([[0, 1]]), facula.ones(3, 4).to(d)),
        REAL,
    ),
    "attention": (
        lambda d: NN.scaled_dot_product_attention(*[facula.ones(1, 2, 4, 8).to(d)] * 3),
        REAL,
    ),
}


CALLS = [(n, str(d).rpartition(".")[2]) for n, (_, found) in FELL_THROUGH.items() for d in found]


@pytest.mark.parametrize(("name", "dtype"), CALLS)
def test_a_dtype_that_a_kernel_lacks(name, dtype):
    """PyTorch's exception, or values that do not depend on memory."""
    call, _ = FELL_THROUGH[name]
    wanted = getattr(facula, dtype)
    try:
        call(wanted)
    except (NotImplementedError, RuntimeError, TypeError):
        return
    assert runs_differ(lambda: call(wanted)) is None


def test_error_names_kernel_and_dtype():
    with pytest.raises(NotImplementedError, match="\"sort_cpu\" not implemented for 'Float8_e5m2'"):
        facula.ones(300).to(facula.float8_e5m2).argsort()
