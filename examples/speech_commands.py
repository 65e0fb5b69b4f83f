#!/usr/bin/env python3
"""Trains a convolutional network on spoken commands, which a synthesiser speaks.

    python -m facula run examples/speech_commands.py [--steps 300] [--resume]

espeak-ng speaks each word in many voices, at several speeds (Debian: apt-get install espeak-ng);
two voices are held out for the test. The network hears the wave itself: Dai and others, Very deep
convolutional neural networks for raw waveforms, 2016, with fewer layers.
"""

import array
import io
import itertools
import shutil
import subprocess
import sys
import wave

import torch
from torch import nn
from torch.nn import functional
from training import Training, argument_parser, begin

WORDS = "yes no up down left right on off stop go".split()
SPEEDS = (130, 160, 190)
VOICES = (
    "en-us en-gb en-us+m2 en-gb+m4 en-us+m6 en-us+f2 en-gb+f4 en-us+f5 en-gb+m3 en-gb+f1".split()
)
HELD_OUT = 2
RATE = 7350
LENGTH = 6144


def speak(word, voice, speed):
    """What espeak-ng says, as samples in [-1, 1] at a third of its 22,050 a second."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "--stdout", word]
    spoken = subprocess.run(command, capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(spoken)) as file:
        if (file.getframerate(), file.getsampwidth()) != (3 * RATE, 2):
            raise SystemExit(
                f"espeak-ng: expected 16 bits at {3 * RATE} Hz; got {file.getparams()}"
            )
        # The length in the header of a stream is not known yet when it is written.
        samples = array.array("h", file.readframes(file.getnframes()))
    sound = torch.tensor(samples.tolist()) / 32768
    # The mean of three neighbours keeps most of what is above half the new rate out.
    return functional.avg_pool1d(sound[None], 3)[0]


def load_sounds(words, voices):
    """Every word in every voice at every speed: sounds (N, 1, 6144) and labels (N,)."""
    sounds, labels = [], []
    for (label, word), voice, speed in itertools.product(enumerate(words), voices, SPEEDS):
        sound = speak(word, voice, speed)[:LENGTH]
        sounds.append(functional.pad(sound, (0, LENGTH - len(sound))))
        labels.append(label)
    return torch.stack(sounds)[:, None], torch.tensor(labels)


def draw_batch(sounds, labels, count, shift=600, noise=0.005):
    """Sounds at random, each moved in time and with some noise, and their labels."""
    chosen = torch.randint(len(labels), (count,))
    moves = torch.randint(shift, (count, 1))
    places = (torch.arange(LENGTH) - moves) % LENGTH
    moved = sounds[chosen].squeeze(1).gather(1, places)[:, None]
    return moved + noise * torch.randn_like(moved), labels[chosen]


def make_model(words, width=24):
    """A network of one-dimensional convolutions: sounds (N, 1, L) to logits (N, words)."""
    layers = []
    for inputs, outputs, side, stride in (
        (1, width, 80, 8),
        (width, width, 3, 1),
        (width, 2 * width, 3, 1),
        (2 * width, 4 * width, 3, 1),
    ):
        layers += [
            nn.Conv1d(inputs, outputs, side, stride),
            nn.BatchNorm1d(outputs),
            nn.ReLU(),
            nn.MaxPool1d(4),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4 * width, words)
    )


@torch.no_grad()
def predict(model, sounds):
    """The label that the model gives to each sound."""
    model.eval()
    return model(sounds).argmax(1)


def draw_confusion(figure, words, guesses, labels):
    """How often each word was taken for each, and one of the waves."""
    table = torch.zeros(len(words), len(words))
    table.index_put_((labels, guesses), torch.ones(len(labels)), accumulate=True)
    axes = figure.subplots()
    axes.imshow(table.tolist(), cmap="Blues")
    axes.set_xticks(range(len(words)), words)
    axes.set_yticks(range(len(words)), words)
    axes.set(xlabel="heard", ylabel="said", title="voices held out")
    for said, row in enumerate(table.int().tolist()):
        for heard, count in enumerate(row):
            axes.text(heard, said, count or "", ha="center", va="center", fontsize=8)


def main(arguments=None):
    """Trains, writes a checkpoint and a picture, and prints the accuracy on voices held out."""
    parser = argument_parser("speech_commands", __doc__, steps=300, lr=5e-3, batch_size=32)
    parser.add_argument(
        "--words", type=int, default=len(WORDS), choices=range(2, len(WORDS) + 1), metavar="N"
    )
    parser.add_argument(
        "--voices", type=int, default=len(VOICES), choices=range(3, len(VOICES) + 1), metavar="N"
    )
    options = parser.parse_args(arguments)
    if not shutil.which("espeak-ng"):
        sys.exit("speech_commands: espeak-ng is not installed: apt-get install espeak-ng")
    begin(options)
    words, voices = WORDS[: options.words], VOICES[: options.voices]
    sounds, labels = load_sounds(words, voices[:-HELD_OUT])
    model = make_model(len(words))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    training = Training(options, model=model, optimizer=optimizer, schedule=schedule)
    model.train()
    for _ in training.steps():
        batch, expected = draw_batch(sounds, labels, options.batch_size)
        loss = functional.cross_entropy(model(batch), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        training.record(loss.item())
    test_sounds, test_labels = load_sounds(words, voices[-HELD_OUT:])
    guesses = predict(model, test_sounds)
    right = (guesses == test_labels).float().mean().item()
    print(f"test accuracy {right:.2%} on {len(test_labels)} sounds of voices held out")
    training.finish(lambda figure: draw_confusion(figure, words, guesses, test_labels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
