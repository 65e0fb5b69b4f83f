"""Assertions in tensor code, dispatch keys, indexing under `vmap`: as PyTorch has them."""

import io
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


def told(t, message, check, *args, **kwargs):
    """The outcome of a check; without a message of the caller its class: the words are our own."""
    found = outcome(lambda _: check(*args, message, **kwargs), t)
    return found if message is not None else found.split(":")[0]


def program_conditions(t):
    return [
        told(t, message, getattr(t, kind), cond)
        for kind in KINDS
        for cond in (True, False, 1, t.tensor(False))
        for message in messages(t)
    ]


def program_tensors_of_conditions(t):
    conds = t.tensor([True, True]), t.tensor([True, False]), t.ones(2), True
    return [[told(t, m, t._check_tensor_all, cond) for m in messages(t)] for cond in conds]


def program_sizes(t):
    cases = (3, None), (-1, None), (3, 2), (3, 3)
    return [told(t, None, t._check_is_size, i, max=most) for i, most in cases]


def program_an_error_class_of_one_s_own(t):
    return [
        outcome(lambda _: t._check_with(KeyError, False, lambda: "why"), t),
        outcome(lambda _: t._check_tensor_all_with(KeyError, t.tensor(False), "why"), t),
    ]


def program_asynchronous_assertions(t):
    values = t.tensor(False), t.tensor(1), t.tensor([True, True]), t.ones(0)
    return [
        [outcome(lambda _: t._assert_async(v, *text), t) for text in ((), ("why",), ("",))]  # noqa: B023
        for v in values
    ]


def program_operators_that_are_written_in_python(t):
    aten, x = t.ops.aten, t.arange(4.0).reshape(2, 2)
    return (
        aten._sparse_addmm(x, x, x, beta=2),
        (aten._is_all_true(x > 0), aten._is_any_true(x > 0), t._is_all_true(x >= 0)),
        (aten._shape_as_tensor(x), t._shape_as_tensor(x).dtype),
        outcome(lambda _: aten._assert_async.msg(t.tensor(False), "why"), t),
        [str(getattr(aten, n).default._schema) for n in ("_pin_memory", "_sparse_addmm")],
        str(aten._sparse_mm_reduce_impl.default._schema),
        hasattr(aten, "_no_such_operator"),
    )


def program_records_of_a_file(t):
    file = io.BytesIO()
    t.save({"a": t.arange(3.0)}, file)
    file.seek(0)
    reader = t._C.PyTorchFileReader(file) if t is torch else t.PyTorchFileReader(file)
    part = reader.get_storage_from_record("data/0", 3, t.float32)
    return (
        sorted(reader.get_all_records()),
        (reader.get_record_size("data/0"), len(reader.get_record("data/0"))),
        (reader.has_record("data.pkl"), reader.has_record("none")),
        (part.shape, part.dtype, t.tensor(part.untyped_storage().tolist())),
        outcome(lambda _: reader.get_record("none"), t).partition(":")[0],
    )


def program_placements_of_distributed_tensors(t):
    __import__(f"{t.__name__}.distributed.tensor")
    d = t.distributed.tensor
    places = d.Shard(1), d.Replicate(), d.Partial(), d.Partial("avg")
    return (
        [
            (repr(p), str(p), p.is_shard(), p.is_shard(1), p.is_replicate(), p.is_partial())
            for p in places
        ],
        d.Shard(1) == d.Shard(1),
        d.Shard(0) == d.Shard(1),
        d.Replicate() == d.Replicate(),
    )


def program_names_in_the_dictionary_of_distributions(t):
    __import__(f"{t.__name__}.distributions")
    d = t.distributions
    names = vars(d)
    return sorted(
        n for n in names if isinstance(names[n], type)
    ), d.transforms._InverseTransform.__name__


def program_texts_of_values(t):
    text = t._tensor_str
    x = t.arange(30.0)
    return (
        text._tensor_str(x, 5),
        text._str(x, tensor_contents="..."),
        text._add_suffixes("tensor([1]", ["size=(3,)", "dtype=x"], 3, False),
    )


def program_lists_by_device_and_dtype(t):
    __import__(f"{t.__name__}.utils._foreach_utils")
    group = t.utils._foreach_utils._group_tensors_by_device_and_dtype
    a, b = t.ones(1), t.ones(2).double()
    calls = ([[a, b, a]], True), ([[a, b, a], [b, None, a]], True), ([[a, b]], False)
    found = [group(*call) for call in calls]
    device = t.device("cpu")
    return [sorted(map(str, g.items())) for g in found], [
        t.utils._foreach_utils._has_foreach_support([a, t.nn.Parameter(a)], device),
        t.utils._foreach_utils._has_foreach_support([a, None], device),
        t.utils._foreach_utils._get_fused_kernels_supported_devices(),
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
