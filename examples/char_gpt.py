#!/usr/bin/env python3
"""Trains a character-level GPT on Python's own manual, and lets it write.

    python -m facula run examples/char_gpt.py [--steps 400] [--resume]

The text is that of `help()`: the standard library carries it as `pydoc_data.topics`.
"""

import sys
from pydoc_data.topics import topics

import torch
from torch import nn
from torch.nn import functional
from training import Training, argument_parser, begin, positive


class Text:
    """The manual as numbers of characters: 9/10 to learn from, the rest to test with."""

    def __init__(self):
        text = "\n".join(topics[name] for name in sorted(topics))
        self.characters = sorted(set(text))
        number = {character: i for i, character in enumerate(self.characters)}
        numbers = torch.tensor([number[character] for character in text])
        end = len(numbers) * 9 // 10
        self.training, self.test = numbers[:end], numbers[end:]

    def read(self, numbers):
        """The string of a list of numbers."""
        return "".join(self.characters[i] for i in numbers)


def draw_batch(numbers, batch_size, length):
    """Pieces of a text and the characters that follow each of theirs: two (N, L) of int64."""
    starts = torch.randint(len(numbers) - length, (batch_size, 1))
    places = starts + torch.arange(length)
    return numbers[places], numbers[places + 1]


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each added to its input (N, L, W)."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm = nn.LayerNorm(width)
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.from_heads = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def attend(self, x):
        """What each place of (N, L, W) takes from those up to it."""
        n, length, width = x.shape
        qkv = self.to_qkv(x).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.from_heads(found.transpose(1, 2).reshape(n, length, width))

    def forward(self, x):
        x = x + functional.dropout(self.attend(self.norm(x)), self.dropout, self.training)
        return x + self.feed_forward(x)


class GPT(nn.Module):
    """A language model: numbers of characters (N, L) to logits of the next ones (N, L, V)."""

    def __init__(self, characters, length, layers=4, heads=4, width=128, dropout=0.1):
        super().__init__()
        self.length = length
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        nn.init.normal_(self.characters.weight, std=0.02)

    def forward(self, numbers):
        x = self.characters(numbers) + self.places[: numbers.shape[1]]
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, count, temperature=0.8):
        """Numbers of `count` characters, each drawn by the model from those before it."""
        self.eval()
        numbers = torch.zeros(1, 1, dtype=torch.int64)
        for _ in range(count):
            logits = self(numbers[:, -self.length :])[:, -1] / temperature
            following = torch.multinomial(logits.softmax(-1), 1)
            numbers = torch.cat([numbers, following], 1)
        return numbers[0, 1:].tolist()


def loss_of(model, numbers, batch_size):
    """The cross-entropy of a batch, in nats a character."""
    pieces, following = draw_batch(numbers, batch_size, model.length)
    return functional.cross_entropy(model(pieces).flatten(0, 1), following.flatten())


@torch.no_grad()
def test_loss(model, numbers, batches=8):
    """The mean cross-entropy of some batches of a text that was not trained on."""
    model.eval()
    return sum(loss_of(model, numbers, 16).item() for _ in range(batches)) / batches


def main(arguments=None):
    """Trains, writes a checkpoint and a picture, and prints what the model writes."""
    parser = argument_parser("char_gpt", __doc__, steps=400, lr=2e-3, batch_size=16)
    parser.add_argument("--length", type=positive(int), default=64, help="characters seen at once")
    parser.add_argument("--write", type=positive(int), default=300, help="characters to write")
    options = parser.parse_args(arguments)
    begin(options)
    text = Text()
    model = GPT(len(text.characters), options.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.1)
    training = Training(options, model=model, optimizer=optimizer)
    model.train()
    for _ in training.steps():
        loss = loss_of(model, text.training, options.batch_size)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        training.record(loss.item())
    training.finish()
    print(text.read(model.write(options.write)))
    print(f"test loss {test_loss(model, text.test):.4f} nats a character")
    return 0


if __name__ == "__main__":
    sys.exit(main())
