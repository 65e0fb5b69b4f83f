"""Assertions in tensor code, dispatch keys, indexing under `vmap`: as PyTorch has them."""

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
from same_program import outcome, programs  # noqa: E402

KINDS = "_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented"


def messages(t):
    return None, "text", lambda: "made", lambda: 3


def program_conditions(t):
    found = []
    for kind in KINDS:
        for cond in (True, False, 1, t.tensor(False)):
            for message in messages(t):
                found.append(outcome(lambda _: getattr(t, kind)(cond, message), t))  # noqa: B023
    return found


def program_tensors_of_conditions(t):
    conds = t.tensor([True, True]), t.tensor([True, False]), t.ones(2), True
    return [
        [outcome(lambda _: t._check_tensor_all(cond, m), t) for m in messages(t)]  # noqa: B023
        for cond in conds
    ]


def program_sizes(t):
    cases = (3, None), (-1, None), (3, 2), (3, 3)
    return [outcome(lambda _: t._check_is_size(i, max=most), t) for i, most in cases]  # noqa: B023


def program_an_error_class_of_one_s_own(t):
    return [
        outcome(lambda _: t._check_with(KeyError, False, lambda: "why"), t),
        outcome(lambda _: t._check_tensor_all_with(KeyError, t.tensor(False), "why"), t),
    ]


def program_low_rank_arguments(t):
    x = t.ones(3, 4)
    return [
        outcome(lambda _: t.pca_lowrank(x, q=5), t),
        outcome(lambda _: t.pca_lowrank(x, q=2, niter=-1), t),
    ]


PROGRAMS = programs(globals())


@pytest.mark.parametrize("name", PROGRAMS)
def test_checks_agree(name):
    assert outcome(PROGRAMS[name], facula) == outcome(PROGRAMS[name], torch)


def test_indexing_without_numbers_is_what_indexing_is():
    program = """
        import torch
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        x = torch.arange(6.0).reshape(2, 3)
        mask = lambda i, j: x[i, j] > 2
        rows = torch.vmap(torch.vmap(mask, (None, 0)), (0, None))
        with TransformGetItemToIndex():
            print(rows(torch.arange(2), torch.arange(3)), x[torch.tensor(1)], x[0])
        """
    assert both(program)


def test_dispatch_keys_and_sets():
    program = """
        import torch
        key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
        some = keys(key.CPU) | keys(key.AutogradCPU) | keys(key.AutocastCPU) | keys(key.Conjugate)
        print(some, some.add(key.Python), some.remove(key.CPU), some == keys(key.CPU), keys(key(0)))
        print(some.has(key.CUDA), some.has(key.CPU), some & keys(key.CPU))
        print(some.highestPriorityTypeId())
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            with torch._C._ExcludeDispatchKeyGuard(keys(key.AutocastCPU)):
                print((x @ x).dtype)
            print((x @ x).dtype)
        """
    assert both(program)


def both(program):
    """Whether a program prints the same with PyTorch and with facula; its text."""
    outputs = [
        subprocess.run(
            [sys.executable, *command, "-c", textwrap.dedent(program)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        for command in ((), ("-m", "facula", "run"))
    ]
    assert outputs[0] == outputs[1]
    return outputs[0]
