#!/usr/bin/env python3
"""Trains a variational autoencoder on handwritten digits and draws digits that nobody wrote.

    python -m facula run examples/vae.py [--steps 1500] [--resume]

The method: Kingma and Welling, Auto-Encoding Variational Bayes, 2013.
"""

import sys

import torch
from digit_images import load_digits
from torch import nn
from torch.nn import functional
from training import Training, argument_parser, begin, positive


class VAE(nn.Module):
    """An encoder to means and variances of a code, and a decoder back to pixels' logits."""

    def __init__(self, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, images):
        """Logits (N, 64) of the pixels, and the codes' means and logarithms of variances."""
        mean, log_variance = self.encoder(images).chunk(2, -1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(code), mean, log_variance


def loss_of(model, images):
    """Minus the evidence's lower bound, in nats an image."""
    logits, mean, log_variance = model(images)
    pixels = functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
    return (pixels + divergence) / len(images)


@torch.no_grad()
def draw_digits(figure, model, images, code, columns=12):
    """Digits and what the model makes of them, then digits of codes drawn at random."""
    rebuilt = model(images[:columns])[0].sigmoid()
    made = model.decoder(torch.randn(3 * columns, code)).sigmoid()
    rows = torch.cat([images[:columns], rebuilt, made]).view(-1, 8, 8).tolist()
    for cell, picture in zip(figure.subplots(5, columns).flat, rows, strict=True):
        cell.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        cell.set_axis_off()
    figure.suptitle("digits, the same through the code, and three rows of new ones")


def main(arguments=None):
    """Trains, writes a checkpoint and a picture, and prints the bound on digits held out."""
    parser = argument_parser("vae", __doc__, steps=1500, lr=2e-3, batch_size=64)
    parser.add_argument("--code", type=positive(int), default=8, help="numbers in a code")
    options = parser.parse_args(arguments)
    begin(options)
    images, _ = load_digits()
    training_set, test_set = images[:1500], images[1500:]
    model = VAE(options.code)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    training = Training(options, model=model, optimizer=optimizer)
    for _ in training.steps():
        batch = training_set[torch.randint(len(training_set), (options.batch_size,))]
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        training.record(loss.item())
    with torch.no_grad():
        print(f"test loss {loss_of(model, test_set).item():.3f} nats a digit")
    training.finish(lambda figure: draw_digits(figure, model, test_set, options.code))
    return 0


if __name__ == "__main__":
    sys.exit(main())
