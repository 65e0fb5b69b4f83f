#!/usr/bin/env python3
"""Trains a network on handwritten digits, whose layers are spread over the ranks of a pipeline.

    python -m facula run -m torch.distributed.run --nproc-per-node 2 examples/pipeline.py

A batch goes through the ranks in microbatches, so that all of them have something to do. The curve
is that of one process (`--schedule none`) but for rounding, whatever the schedule.
"""

import argparse
import gzip
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
from torch.nn import functional

TWO_STAGES = {"ZBVZeroBubble", "DualPipeV"}  # which go to the last rank and back


DATA = Path(__file__).resolve().parent / "data" / "digits.csv.gz"


def load_digits():
    """Images (1797, 64) of 8 by 8 pixels, in [0, 1], and the digits."""
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        rows = torch.tensor([[int(value) for value in line.split(",")] for line in file])
    return rows[:, :64] / 16, rows[:, 64]


def options_of(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", default="1F1B", help="none, GPipe, Interleaved1F1B, ...")
    parser.add_argument("--stages-per-rank", type=int, default=1)
    parser.add_argument("--microbatches", type=int, default=4)
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


def make_schedule(options, rank, ranks):
    """The schedule of this rank, and its stages."""
    kind = get_schedule_class(options.schedule)
    if options.schedule in TWO_STAGES:
        stages, mine = 2 * ranks, [rank, 2 * ranks - 1 - rank]
    else:
        local = 1 if issubclass(kind, PipelineScheduleSingle) else options.stages_per_rank
        stages, mine = local * ranks, [rank + ranks * i for i in range(local)]
    parts = parts_of(options, stages)
    made = [PipelineStage(parts[i], i, stages, torch.device("cpu")) for i in mine]
    first = made[0] if issubclass(kind, PipelineScheduleSingle) else made
    schedule = kind(first, options.microbatches, loss_fn=functional.cross_entropy)
    return schedule, made


def main():
    """Train, and print the loss of each step at the rank of the last stage."""
    options = options_of()
    images, labels = load_digits()
    alone = options.schedule == "none"
    if alone:
        (whole,) = parts_of(options, 1)
        parameters = list(whole.parameters())
        first = last = True
    else:
        dist.init_process_group("gloo")
        rank, ranks = dist.get_rank(), dist.get_world_size()
        schedule, stages = make_schedule(options, rank, ranks)
        parameters = [p for stage in stages for p in stage.submod.parameters()]
        first, last = (any(getattr(s, end) for s in stages) for end in ("is_first", "is_last"))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for step in range(options.steps):
        places = (step * options.batch_size + torch.arange(options.batch_size)) % len(labels)
        optimizer.zero_grad()
        if alone:
            loss = functional.cross_entropy(whole(images[places]), labels[places])
            loss.backward()
            of_step = [loss]
        else:
            of_step = []
            inputs = (images[places],) if first else ()
            schedule.step(*inputs, target=labels[places] if last else None, losses=of_step)
        optimizer.step()
        if last:
            losses.append(sum(loss.item() for loss in of_step) / len(of_step))
    if last:
        print(json.dumps({"losses": losses}), flush=True)
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
