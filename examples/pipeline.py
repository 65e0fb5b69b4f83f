#!/usr/bin/env python3
"""Trains a network on handwritten digits, whose layers are spread over the ranks of a pipeline.

    python -m facula run -m torch.distributed.run --nproc-per-node 2 examples/pipeline.py

A batch goes through the ranks in microbatches, so that all of them have something to do. With
`--copies 2` there are two such pipelines, each of which takes half of the rows; `--sharded` has
the ranks of one stage keep a part of its parameters each (fully_shard). The curve is that of one
process (`--schedule none`) but for rounding, whatever the schedule.
"""

import argparse
import json

import torch
import torch.distributed as dist
from digit_images import load_digits
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

TWO_STAGES = {"ZBVZeroBubble", "DualPipeV"}  # which go to the last rank and back


def options_of(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", default="1F1B", help="none, GPipe, Interleaved1F1B, ...")
    parser.add_argument("--stages-per-rank", type=int, default=1)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--copies", type=int, default=1, help="pipelines beside each other")
    parser.add_argument("--sharded", action="store_true", help="shards in place of copies")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=8)
    return parser.parse_args(arguments)


class Layer(nn.Module):
    """A residual layer."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + functional.gelu(self.linear(self.norm(x)))


def parts_of(options, stages):
    """The network as a list of `stages` modules; the same at all ranks."""
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(64, options.width)]
    layers += [Layer(options.width) for _ in range(options.layers)]
    layers += [nn.LayerNorm(options.width), nn.Linear(options.width, 10)]
    bounds = [len(layers) * i // stages for i in range(stages + 1)]
    return [nn.Sequential(*layers[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]


def data_parallel(options, module, mesh):
    """A stage's module, whose gradients are averaged over the pipelines."""
    if options.copies == 1:
        return module
    if options.sharded:
        return fully_shard(module, mesh=mesh)
    return DistributedDataParallel(module, process_group=mesh.get_group())


def make_schedule(options, mesh):
    """The schedule of this rank, and its stages."""
    group, data = mesh["pipeline"].get_group(), mesh["data"]
    rank, ranks = mesh.get_local_rank("pipeline"), mesh["pipeline"].size()
    kind = get_schedule_class(options.schedule)
    if options.schedule in TWO_STAGES:
        stages, mine = 2 * ranks, [rank, 2 * ranks - 1 - rank]
    else:
        local = 1 if issubclass(kind, PipelineScheduleSingle) else options.stages_per_rank
        stages, mine = local * ranks, [rank + ranks * i for i in range(local)]
    parts = parts_of(options, stages)
    cpu = torch.device("cpu")
    made = [
        PipelineStage(data_parallel(options, parts[i], data), i, stages, cpu, group=group)
        for i in mine
    ]
    first = made[0] if issubclass(kind, PipelineScheduleSingle) else made
    schedule = kind(first, options.microbatches, loss_fn=functional.cross_entropy)
    return schedule, made


def mean_of(losses, data):
    """The mean of the losses of microbatches, over all pipelines; a number."""
    mean = torch.stack(losses).detach().mean()
    if data is not None:
        dist.all_reduce(mean, group=data.get_group())
        mean /= data.size()
    return mean.item()


def train_alone(options):
    """Train in one process; returns the loss of each step."""
    images, labels = load_digits()
    (whole,) = parts_of(options, 1)
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1)
    losses = []
    for step in range(options.steps):
        places = (step * options.batch_size + torch.arange(options.batch_size)) % len(labels)
        loss = functional.cross_entropy(whole(images[places]), labels[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(options, mesh):
    """Train this rank's stages; returns the loss of each step, if the last stage is among them."""
    images, labels = load_digits()
    schedule, stages = make_schedule(options, mesh)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    first, last = (any(getattr(s, end) for s in stages) for end in ("is_first", "is_last"))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for step in range(options.steps):
        places = (step * options.batch_size + torch.arange(options.batch_size)) % len(labels)
        places = places.chunk(options.copies)[mesh.get_local_rank("data")]
        optimizer.zero_grad()
        of_step = []
        inputs = (images[places],) if first else ()
        schedule.step(*inputs, target=labels[places] if last else None, losses=of_step)
        optimizer.step()
        if last:
            losses.append(mean_of(of_step, mesh["data"] if options.copies > 1 else None))
    return losses


def main():
    """Train, and print the loss of each step at the rank of the last stage."""
    options = options_of()
    if options.schedule == "none":
        print(json.dumps({"losses": train_alone(options)}), flush=True)
        return
    dist.init_process_group("gloo")
    shape = (dist.get_world_size() // options.copies, options.copies)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("pipeline", "data"))
    losses = train(options, mesh)
    if losses and mesh.get_local_rank("data") == 0:
        print(json.dumps({"losses": losses}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
