#!/usr/bin/env python3
"""Trains the digits or the character GPT on several ranks: copies of the model, or shards of it.

    python -m facula run -m torch.distributed.run --nproc-per-node 2 examples/sharded.py gpt

Each rank takes its part of every batch, so that the curve is that of one process with the whole
batch (`--mode one`), but for rounding. `--mode` is `ddp` (DistributedDataParallel), `fsdp`
(fully_shard), or `2d` (tensor parallel by pairs of ranks, fully_shard over the pairs).
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from digit_images import load_digits
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


def options_of(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["digits", "gpt"])
    parser.add_argument("--mode", choices=["one", "ddp", "fsdp", "2d"], default="fsdp")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16, help="of all ranks together")
    parser.add_argument("--width", type=int, default=128, help="of the GPT")
    parser.add_argument("--layers", type=int, default=4, help="of the GPT")
    parser.add_argument("--length", type=int, default=64, help="characters that the GPT sees")
    return parser.parse_args(arguments)


def digits_program(options):
    """A model, and a function that gives the inputs and targets of a step."""
    images, labels = load_digits()
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )

    def batch(step):
        places = torch.arange(step, step + options.batch_size) % len(labels)
        return images[places].view(-1, 8, 8), labels[places]

    return model, batch


def gpt_program(options):
    """A model, and a function that gives the inputs and targets of a step."""
    from char_gpt import GPT, Text

    text = Text()
    heads = max(1, options.width // 32)
    model = GPT(
        len(text.characters), options.length, options.layers, heads, options.width, dropout=0.0
    )

    def batch(step):
        starts = torch.arange(options.batch_size)[:, None] * 997 + step * 31
        places = (starts + torch.arange(options.length)) % (len(text.training) - 1)
        return text.training[places], text.training[places + 1]

    return model, batch


def blocks_of(model):
    """The parts whose parameters are gathered one after the other."""
    return [m for m in model.modules() if type(m).__name__ in ("Block", "Linear", "Conv2d")]


def outermost(parts):
    """Those that are not within another of them."""
    inner = {n for m in parts for n in m.modules() if n is not m}
    return [m for m in parts if m not in inner]


def pairs_of_layers(model):
    """The plan of tensor parallelism: layers with cut outputs, before layers with cut inputs."""
    if hasattr(model, "blocks"):
        first, second = "blocks.*.feed_forward.1", "blocks.*.feed_forward.3"
    else:
        first, second = "5", "7"
    return {first: ColwiseParallel(), second: RowwiseParallel()}


def distribute(model, mode):
    """The model as the mode wants it, and (which part of a batch this rank takes, of how many)."""
    if mode == "one":
        return model, 0, 1
    rank, size = dist.get_rank(), dist.get_world_size()
    if mode == "ddp":
        return DistributedDataParallel(model), rank, size
    mesh = init_device_mesh("cpu", (size,))
    if mode == "2d":
        grid = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
        parallelize_module(model, grid["tensor"], pairs_of_layers(model))
        mesh, rank, size = grid["data"], rank // 2, size // 2
    for part in outermost(blocks_of(model)):
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh), rank, size


def clip_gradients(parameters, most):
    """`clip_grad_norm_` for gradients on several meshes, whose norms meet as plain numbers."""
    parts = {}
    for p in parameters:
        parts.setdefault(getattr(p, "device_mesh", None), []).append(p)
    norms = [nn.utils.get_total_norm([p.grad for p in part]) for part in parts.values()]
    norms = [norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]
    total = torch.stack(norms).norm()
    for part in parts.values():
        nn.utils.clip_grads_with_norm_(part, most, total)


def status_bytes(key):
    """A figure of /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(key + ":"))
    return int(line.split()[1]) * 1024


def main(arguments=None):
    """Trains; rank 0 prints the losses of whole batches and the peak memory as JSON."""
    options = options_of(arguments)
    torch.manual_seed(0)
    if options.mode != "one":
        dist.init_process_group("gloo")
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // dist.get_world_size()))
    before = status_bytes("VmRSS")
    model, batch = (digits_program if options.what == "digits" else gpt_program)(options)
    model, part, parts = distribute(model, options.mode)
    # Where parameters lie on several meshes, PyTorch takes them one by one alone.
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, foreach=False)
    losses = []
    for step in range(options.steps):
        inputs, targets = (t.chunk(parts)[part] for t in batch(step))
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        whole = loss.detach().clone()
        if options.mode != "one":
            dist.all_reduce(whole)
            whole /= dist.get_world_size()
        losses.append(whole.item())
    peak = status_bytes("VmHWM") - before
    if options.mode == "one" or dist.get_rank() == 0:
        print(json.dumps({"losses": losses, "peak": peak}), flush=True)
    if options.mode != "one":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
