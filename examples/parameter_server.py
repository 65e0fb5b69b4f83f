#!/usr/bin/env python3
"""Trains a network on handwritten digits whose first layers a parameter server holds.

    python -m facula run -m torch.distributed.run --nproc-per-node 3 examples/parameter_server.py

Rank 0 is the server; the other ranks train, each on images of its own, without waiting for each
other (`--in-turn` makes them: the losses are then the same at each run). The last layer is each
trainer's own. Gradients pass through the calls of the server's module, and the optimizer steps its
parameters where they are.

The method: Li et al., Scaling Distributed Machine Learning with the Parameter Server, 2014.
"""

import argparse
import json
import os
import threading

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from digit_images import load_digits
from torch import nn
from torch.distributed.optim import DistributedOptimizer
from torch.nn import functional


class Server:
    """Holds the shared layers, and counts the steps."""

    def __init__(self, width):
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU())
        self.steps, self.turn = {}, threading.Condition()

    def forward(self, images):
        """Features (N, width) of images."""
        return self.layers(images)

    def parameters(self):
        """References to the parameters, for an optimizer elsewhere."""
        return [rpc.RRef(p) for p in self.layers.parameters()]

    def wait_for_turn(self, trainer, step):
        """Wait until all trainers have done the step before, and those before it this one."""
        with self.turn:
            self.turn.wait_for(
                lambda: all(done >= step + (other < trainer) for other, done in self.steps.items())
            )

    def done(self, trainer, step):
        """A trainer has done some steps."""
        with self.turn:
            self.steps[trainer] = step
            self.turn.notify_all()


def options_of(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--in-turn", action="store_true", help="trainers take turns")
    return parser.parse_args(arguments)


def train(options, server, trainer, trainers):
    """Train the shared layers and one of this rank; returns the losses."""
    images, labels = load_digits()
    images, labels = images[trainer::trainers], labels[trainer::trainers]
    torch.manual_seed(1)
    last = nn.Linear(options.width, 10)
    parameters = server.rpc_sync().parameters() + [rpc.RRef(p) for p in last.parameters()]
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.5)
    losses = []
    for step in range(options.steps):
        if options.in_turn:
            server.rpc_sync().wait_for_turn(trainer, step)
        places = (step * options.batch_size + torch.arange(options.batch_size)) % len(labels)
        with dist_autograd.context() as context:
            features = server.rpc_sync().forward(images[places])
            loss = functional.cross_entropy(last(features), labels[places])
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        losses.append(loss.item())
        server.rpc_sync().done(trainer, step + 1)
    return losses


def main():
    """Be the server or a trainer, as the rank says."""
    options = options_of()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc("server" if rank == 0 else f"trainer{rank}", rank=rank, world_size=ranks)
    if rank == 0:
        server = rpc.RRef(Server(options.width))
        for trainer in range(ranks - 1):
            server.local_value().steps[trainer] = 0
        runs = [
            rpc.rpc_async(f"trainer{r}", train, args=(options, server, r - 1, ranks - 1), timeout=0)
            for r in range(1, ranks)
        ]
        for trainer, run in enumerate(runs):
            print(json.dumps({"trainer": trainer, "losses": run.wait()}), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
