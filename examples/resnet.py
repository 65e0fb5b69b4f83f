#!/usr/bin/env python3
"""Trains a residual network to tell from which photograph a small piece of it comes.

    python -m facula run examples/resnet.py [--steps 300] [--resume]

The photographs are those that scikit-image carries (pip install scikit-image). Pieces to learn from
come from the left three quarters of each, those to test with from the right quarter. The network:
He and others, Deep residual learning for image recognition, 2015, in its form for small pictures.
"""

import sys

import torch
from torch import nn
from torch.nn import functional
from training import Training, argument_parser, begin, positive

NAMES = (
    "astronaut brick camera chelsea coffee coins grass gravel hubble_deep_field "
    "immunohistochemistry moon rocket"
).split()
ROWS, COLUMNS, SIDE = 300, 384, 32


def load_photographs():
    """The photographs' middles in grey, (12, 300, 384), each of mean 0 and deviation 1."""
    from skimage import color, data

    found = []
    for name in NAMES:
        picture = getattr(data, name)()
        grey = color.rgb2gray(picture) if picture.ndim == 3 else picture / 255
        top, left = ((a - b) // 2 for a, b in zip(grey.shape, (ROWS, COLUMNS), strict=True))
        found.append(torch.tensor(grey[top : top + ROWS, left : left + COLUMNS].tolist()))
    pictures = torch.stack(found)
    deviation, mean = torch.std_mean(pictures, (1, 2), keepdim=True)
    return (pictures - mean) / deviation


def cut(pictures, labels, rows, columns):
    """The pieces (N, 1, 32, 32) at these places of the photographs with these labels."""
    steps = torch.arange(SIDE)
    rows = rows[:, None, None] + steps[:, None]
    columns = columns[:, None, None] + steps
    return pictures[labels[:, None, None], rows, columns].unsqueeze(1)


def draw_batch(pictures, count):
    """Pieces at random places, half of them mirrored, and their labels."""
    labels = torch.randint(len(pictures), (count,))
    rows = torch.randint(pictures.shape[1] - SIDE + 1, (count,))
    columns = torch.randint(pictures.shape[2] - SIDE + 1, (count,))
    pieces = cut(pictures, labels, rows, columns)
    mirrored = torch.rand(count, 1, 1, 1) < 0.5
    return torch.where(mirrored, pieces.flip(-1), pieces), labels


def all_pieces(pictures):
    """The pieces that lie side by side in the photographs, and their labels."""
    kinds, rows, columns = (
        torch.arange(0, n - s + 1, s) for n, s in zip(pictures.shape, (1, SIDE, SIDE), strict=True)
    )
    labels, rows, columns = (
        t.flatten() for t in torch.meshgrid(kinds, rows, columns, indexing="ij")
    )
    return cut(pictures, labels, rows, columns), labels


def convolution(inputs, outputs, side, stride=1):
    """A convolution whose result is normalised over the batch."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Residual(nn.Module):
    """Two convolutions, whose result is added to what came in."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.second = convolution(outputs, outputs, 3)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def make_model(blocks, width, classes):
    """A residual network: (N, 1, 32, 32) to logits (N, classes), of 6 * blocks + 2 layers."""
    layers = [convolution(1, width, 3), nn.ReLU()]
    inputs = width
    for stage in range(3):
        outputs = width * 2**stage
        for block in range(blocks):
            layers.append(Residual(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


@torch.no_grad()
def predict(model, pieces):
    """The label that the model gives to each piece."""
    model.eval()
    return torch.cat([model(part).argmax(1) for part in pieces.split(128)])


def draw_pieces(figure, pieces, guesses, labels, rows=4, columns=16):
    """Some test pieces with what the model says of them, mistakes in red."""
    chosen = torch.linspace(0, len(labels) - 1, rows * columns).long().tolist()
    for cell, i in zip(figure.subplots(rows, columns).flat, chosen, strict=True):
        cell.imshow(pieces[i, 0].tolist(), cmap="gray")
        right = guesses[i] == labels[i]
        cell.set_title(NAMES[guesses[i]][:9], fontsize=7, color="black" if right else "red", pad=1)
        cell.set_axis_off()


def main(arguments=None):
    """Trains, writes a checkpoint and a picture, and prints the accuracy on the pieces held out."""
    parser = argument_parser("resnet", __doc__, steps=300, lr=0.05, batch_size=64)
    parser.add_argument("--blocks", type=positive(int), default=1, help="residual blocks a stage")
    parser.add_argument("--width", type=positive(int), default=16, help="channels of stage 1")
    options = parser.parse_args(arguments)
    begin(options)
    pictures = load_photographs()
    border = COLUMNS * 3 // 4
    model = make_model(options.blocks, options.width, len(NAMES))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    training = Training(options, model=model, optimizer=optimizer, schedule=schedule)
    model.train()
    for _ in training.steps():
        pieces, labels = draw_batch(pictures[..., :border], options.batch_size)
        loss = functional.cross_entropy(model(pieces), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        training.record(loss.item())
    pieces, labels = all_pieces(pictures[..., border:])
    guesses = predict(model, pieces)
    right = (guesses == labels).float().mean().item()
    print(f"test accuracy {right:.2%} on {len(labels)} pieces of {len(NAMES)} photographs")
    training.finish(lambda figure: draw_pieces(figure, pieces, guesses, labels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
