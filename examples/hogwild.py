#!/usr/bin/env python3
"""Trains a network on handwritten digits by processes that share its parameters, without locks.

    python -m facula run examples/hogwild.py [--processes 2] [--steps 200]

The parameters lie in shared memory. Each process takes batches of its own images and steps as if it
were alone; now and then a step of another one is overwritten, which training forgives.

The method: Niu et al., Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient
Descent, 2011.
"""

import argparse
import json

import torch
import torch.multiprocessing as mp
from digit_images import load_digits
from torch import nn
from torch.nn import functional


def options_of(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200, help="of each process")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def make_model():
    """The network: images (N, 64) to ten logits (N, 10)."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def split_fifth(images, labels):
    """Holds out every fifth image: (training set, test set)."""
    held_out = torch.arange(len(labels)) % 5 == 0
    return (images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])


def train(number, options, model, losses):
    """Train the shared model; `losses[number]` gets the loss of each step."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed + 1 + number)
    (images, labels), _ = split_fifth(*load_digits())
    images, labels = images[number :: options.processes], labels[number :: options.processes]
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for step in range(options.steps):
        places = torch.randint(len(labels), (options.batch_size,))
        loss = functional.cross_entropy(model(images[places]), labels[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[number, step] = loss.item()


@torch.no_grad()
def accuracy_of(model):
    """The share of the test images that the model labels rightly."""
    _, (images, labels) = split_fifth(*load_digits())
    return (model(images).argmax(1) == labels).float().mean().item()


def main():
    """Train in several processes, and print the losses of each and the accuracy as JSON."""
    options = options_of()
    torch.manual_seed(options.seed)
    model = make_model().share_memory()
    losses = torch.zeros(options.processes, options.steps).share_memory_()
    before = accuracy_of(model)
    mp.spawn(train, args=(options, model, losses), nprocs=options.processes)
    after = accuracy_of(model)
    print(json.dumps({"losses": losses.tolist(), "before": before, "after": after}))


if __name__ == "__main__":
    main()
