"""One program in two processes, with PyTorch's Gloo and with facula: values and error classes."""

import json
import os
import subprocess
import sys

import facula
import pytest
import torch
from leaving_ranks import LEAVE

PROGRAM = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
T = importlib.import_module(sys.argv[1])
dist = importlib.import_module(sys.argv[1] + ".distributed")
rank = int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=2)

def values():
    for dtype in (T.bool, T.uint8, T.int32, T.int64, T.float16, T.bfloat16, T.float64, T.complex64):
        x = (T.arange(6) + rank).to(dtype)
        dist.all_reduce(x)
        yield x
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        x = T.arange(6.0).view(2, 3).t() * (rank + 1) - 2
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        yield x
    for op in ("BAND", "BOR", "BXOR"):
        x = T.arange(6) * (rank + 3)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        yield x
    x = T.arange(4.0) + 10 * rank
    parts = [T.zeros(4) for _ in range(2)]
    dist.all_gather(parts, x)
    yield T.cat(parts)
    y = x.clone()
    dist.broadcast(y, 1)
    yield y
    out = T.zeros(4)
    dist.all_to_all_single(out, x, [1, 3] if rank == 0 else [3, 1], [1, 3] if rank == 0 else [3, 1])
    yield out
    share = T.zeros(2)
    dist.reduce_scatter_tensor(share, x)
    yield share
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    yield T.tensor([o["rank"] for o in objects])
    work = dist.all_reduce(x, async_op=True)
    yield T.tensor([work.wait(), work.is_completed(), work.is_success()])
    yield work.get_future().wait()[0]

WRONG = [
    lambda: dist.all_reduce([T.ones(2)]),
    lambda: dist.all_reduce(T.ones(2), dist.ReduceOp.BAND),
    lambda: dist.all_reduce(T.ones(2, dtype=T.complex64), dist.ReduceOp.MAX),
    lambda: dist.all_gather([T.zeros(2)] * 3, T.ones(2)),
    lambda: dist.all_gather([T.zeros(3)] * 2, T.ones(2)),
    lambda: dist.all_gather_into_tensor(T.zeros(5), T.ones(2)),
    lambda: dist.all_to_all_single(T.zeros(4), T.ones(4), [1, 1], [2, 2]),
    lambda: dist.all_to_all_single(T.zeros(5), T.ones(5)),
    lambda: dist.reduce(T.ones(2), 5),
    lambda: dist.broadcast(T.ones(2), 5),
    lambda: dist.send(T.ones(2), rank),
    lambda: dist.batch_isend_irecv([]),
    lambda: dist.new_group([0, 9]),
    lambda: dist.init_process_group("gloo"),
    lambda: dist.all_reduce_coalesced([T.ones(2), T.ones(2).int()]),
    lambda: dist.get_group_rank(dist.new_group([0, 1]), 7),
]

def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None

found = [[str(t.dtype).split(".")[-1], list(t.shape), str(t.tolist())] for t in values()]
errors = [error_of(call) for call in WRONG]
dist.barrier()  # nobody leaves while another still connects the last group
print(json.dumps([found, errors]))
"""


def results(module, folder):
    place = os.path.dirname(os.path.dirname(module.__file__))
    env = {**os.environ, "PYTHONPATH": place}
    program = [sys.executable, "-c", PROGRAM + LEAVE, module.__name__]
    processes = [
        subprocess.Popen(
            [*program, str(r), f"{folder}/{module.__name__}"],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        for r in range(2)
    ]
    return [json.loads(p.communicate(timeout=300)[0]) for p in processes]


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="PyTorch without Gloo")
def test_values_and_error_classes_are_those_of_gloo(tmp_path):
    ours, theirs = results(facula, tmp_path), results(torch, tmp_path)
    for mine, wanted in zip(ours, theirs, strict=False):
        assert mine[0] == wanted[0]
        assert mine[1] == wanted[1]
