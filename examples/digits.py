#!/usr/bin/env python3
"""Trains a small convolutional network on handwritten digits: 98 % and more in some seconds.

    python examples/digits.py [--epochs 20] [--seed 0] [--out-dir digits-out]

The program is plain PyTorch style: with `import torch as facula` in the place of `import facula`
it runs unchanged on PyTorch, and gives the same loss curve for the same seed.
"""

import argparse
import gzip
import sys
import time
from pathlib import Path

import facula
from facula import nn
from facula.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).resolve().parent / "data" / "digits.csv.gz"


def load_digits(path=DATA):
    """Reads the data set: images (1797, 1, 8, 8) in [0, 1] as float32, labels (1797,) as int64."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = [[int(value) for value in line.split(",")] for line in file]
    table = facula.tensor(rows)
    images = table[:, :64].reshape(-1, 1, 8, 8).to(facula.float32) / 16
    return images, table[:, 64]


def split_fifth(images, labels):
    """Holds out every fifth image: (training set, test set)."""
    index = facula.arange(len(labels))
    held_out = index % 5 == 0
    train = TensorDataset(images[~held_out], labels[~held_out])
    return train, TensorDataset(images[held_out], labels[held_out])


def make_model():
    """The network: images (N, 1, 8, 8) to ten logits (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(model, data, epochs, batch_size=32, lr=4e-3, on_step=None):
    """Trains with Adam and a falling learning rate; returns the loss of every step.

    `on_step(epoch, images, loss, accuracy)` is called after each step, for progress.
    """
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    loss_function = nn.CrossEntropyLoss()
    optimizer = facula.optim.Adam(model.parameters(), lr=lr)
    schedule = facula.optim.lr_scheduler.StepLR(optimizer, step_size=max(1, epochs // 3), gamma=0.4)
    losses = []
    model.train()
    for epoch in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            logits = model(images)
            loss = loss_function(logits, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if on_step:
                accuracy = (logits.argmax(1) == labels).float().mean().item()
                on_step(epoch, len(labels), losses[-1], accuracy)
        schedule.step()
    return losses


def predict(model, data):
    """Labels that the model gives to a data set, (N,) int64."""
    model.eval()
    with facula.no_grad():
        return model(data.tensors[0]).argmax(1)


def accuracy_of(model, data):
    """The share of a data set that the model labels rightly."""
    return (predict(model, data) == data.tensors[1]).float().mean().item()


def loss_curve(epochs=1, seed=0, batch_size=32, lr=4e-3):
    """The losses of a training run from a seed; what a comparison of two frameworks needs."""
    facula.manual_seed(seed)
    training_set, _ = split_fifth(*load_digits())
    return train(make_model(), training_set, epochs, batch_size, lr)


def train_with_bar(model, data, options):
    """`train` with a progress bar: loss, accuracy and images a second."""
    if options.quiet:
        return train(model, data, options.epochs, options.batch_size, options.lr)
    from tqdm import tqdm

    total = options.epochs * len(data)
    with tqdm(total=total, unit=" images", mininterval=0.2) as bar:

        def on_step(epoch, images, loss, accuracy):
            bar.set_description(f"epoch {epoch + 1}/{options.epochs}", refresh=False)
            bar.set_postfix(loss=f"{loss:.3f}", accuracy=f"{accuracy:.1%}", refresh=False)
            bar.update(images)

        return train(model, data, options.epochs, options.batch_size, options.lr, on_step)


def save_picture(path, losses, model, data, columns=16, rows=8):
    """Writes a PNG: the loss curve, and test images with predictions, mistakes first and in red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    images, labels = data.tensors[0].tolist(), data.tensors[1].tolist()
    guesses = predict(model, data).tolist()
    order = sorted(range(len(labels)), key=lambda i: guesses[i] == labels[i])[: columns * rows]
    figure = pyplot.figure(figsize=(12, 9), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 2])
    axes = top.subplots()
    axes.semilogy(losses, linewidth=1)
    axes.set(xlabel="step", ylabel="cross-entropy (training batch)", title="Loss")
    mistakes = sum(g != label for g, label in zip(guesses, labels, strict=True))
    bottom.suptitle(f"{len(labels)} test images, {mistakes} mistakes (red: prediction, true digit)")
    grid = bottom.subplots(rows, columns)
    for cell, i in zip(grid.flat, order, strict=False):
        right = guesses[i] == labels[i]
        cell.imshow(images[i][0], cmap="gray_r", vmin=0, vmax=1)
        cell.set_title(
            str(guesses[i]) if right else f"{guesses[i]}, {labels[i]}",
            fontsize=8,
            color="black" if right else "red",
            pad=1,
        )
    for cell in grid.flat:
        cell.set_axis_off()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def positive(kind):
    """A type for argparse: a number of this kind above zero."""

    def parse(text):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def parse_arguments(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=positive(int), default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-size", type=positive(int), default=32)
    parser.add_argument("--lr", type=positive(float), default=4e-3, help="learning rate")
    parser.add_argument(
        "--out-dir",
        type=Path,
        default=Path("digits-out"),
        help="folder for the checkpoint and the picture",
    )
    parser.add_argument("--no-plot", action="store_true", help="write no picture")
    parser.add_argument("--quiet", action="store_true", help="print only the result")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Trains, saves, reads back, draws; the exit status is 0 when the checkpoint is as good."""
    options = parse_arguments(arguments)
    try:
        options.out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"digits: cannot make {options.out_dir}: {error.strerror}", file=sys.stderr)
        return 1
    facula.manual_seed(options.seed)
    training_set, test_set = split_fifth(*load_digits())
    model = make_model()
    began = time.perf_counter()
    losses = train_with_bar(model, training_set, options)
    seconds = time.perf_counter() - began
    accuracy = accuracy_of(model, test_set)
    print(
        f"test accuracy {accuracy:.2%} on {len(test_set)} images, trained in {seconds:.1f} s "
        f"({options.epochs * len(training_set) / seconds:,.0f} images/s)"
    )

    checkpoint = options.out_dir / "digits.pt"
    facula.save(model.state_dict(), checkpoint)
    copy = make_model()
    copy.load_state_dict(facula.load(checkpoint))
    again = accuracy_of(copy, test_set)
    if again != accuracy:
        print(f"digits: the checkpoint gives {again:.2%}, not {accuracy:.2%}", file=sys.stderr)
        return 1
    if not options.quiet:
        print(f"checkpoint {checkpoint}: read back, same accuracy")
    if not options.no_plot:
        picture = options.out_dir / "digits.png"
        save_picture(picture, losses, model, test_set)
        if not options.quiet:
            print(f"picture {picture}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as error:
        sys.exit(
            f"digits: {error.name} is not installed: pip install tqdm matplotlib, "
            "or use --quiet --no-plot"
        )
