#!/usr/bin/env python3
"""Fine-tunes a GPT-2 of `transformers`, which has read Python's manual, to write Python.

    python -m facula run examples/finetune_gpt2.py [--steps 200] [--resume]

No weights are downloaded (pip install transformers). A small model is made from a configuration,
one token a byte, and learns the manual; it is kept as `transformers` keeps models, read back from
there, and fine-tuned on source code of the standard library.
"""

import argparse
import importlib
import inspect
import sys
from pydoc_data.topics import topics

import torch
from training import Training, argument_parser, begin, positive
from transformers import GPT2Config, GPT2LMHeadModel

# Modules whose source is the text to fine-tune on; the last one is held out.
MODULES = "argparse calendar cmd configparser csv difflib fractions gettext shlex textwrap".split()


def as_tokens(text):
    """The bytes of a text as token numbers (N,)."""
    return torch.tensor(list(text.encode()))


def read_code(names):
    """The source of modules of the standard library, one after another."""
    return "\n".join(inspect.getsource(importlib.import_module(name)) for name in names)


def draw_batch(tokens, batch_size, length):
    """Pieces (N, L) of a text, from places at random."""
    starts = torch.randint(len(tokens) - length, (batch_size, 1))
    return tokens[starts + torch.arange(length)]


def make_model(length):
    """A small GPT-2 with random weights."""
    config = GPT2Config(
        vocab_size=256,
        n_positions=length,
        n_embd=128,
        n_layer=3,
        n_head=4,
        bos_token_id=10,
        eos_token_id=10,
    )
    return GPT2LMHeadModel(config)


def next_byte_loss(model, tokens):
    """The mean cross-entropy of each byte after those before it.

    In the model's precision: `model(..., labels=...)` rounds the logits to float32 first.
    """
    logits = model(input_ids=tokens).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train(model, tokens, options, lr):
    """Trains a model on a text; returns the Training when it is done."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    training = Training(options, model=model, optimizer=optimizer)
    model.train()
    for _ in training.steps():
        batch = draw_batch(tokens, options.batch_size, options.length)
        loss = next_byte_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        training.record(loss.item())
    return training


def pretrained(options):
    """The folder of a model that has learned the manual, made there unless it exists."""
    folder = options.out_dir / "base"
    if not (folder / "config.json").exists():
        changes = {"steps": options.base_steps, "out_dir": folder, "resume": False}
        model = make_model(options.length)
        manual = as_tokens("\n".join(topics[name] for name in sorted(topics)))
        train(model, manual, argparse.Namespace(**{**vars(options), **changes}), options.base_lr)
        model.save_pretrained(folder)
    return folder


@torch.no_grad()
def loss_on(model, tokens, length):
    """The mean cross-entropy of a text's first pieces, in nats a byte."""
    model.eval()
    pieces = tokens[: len(tokens) // length * length].view(-1, length)[:64]
    return next_byte_loss(model, pieces).item()


def write(model, start, count):
    """What the model writes after a text, the likeliest byte each time."""
    tokens = as_tokens(start)[None]
    made = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return bytes(made[0].tolist()).decode(errors="replace")


def main(arguments=None):
    """Trains, fine-tunes, and prints the loss on source code before and after."""
    parser = argument_parser("finetune_gpt2", __doc__, steps=200, lr=1e-3, batch_size=16)
    parser.add_argument("--base-steps", type=positive(int), default=200, help="on the manual")
    parser.add_argument("--base-lr", type=positive(float), default=2e-3, help="on the manual")
    parser.add_argument("--length", type=positive(int), default=64, help="bytes seen at once (64)")
    parser.add_argument("--write", type=int, default=40, help="bytes to write (40)")
    options = parser.parse_args(arguments)
    begin(options)
    model = GPT2LMHeadModel.from_pretrained(pretrained(options))
    code, test = as_tokens(read_code(MODULES[:-1])), as_tokens(read_code(MODULES[-1:]))
    before = loss_on(model, test, options.length)
    begin(options)  # the same draws, whether the model of the manual was there already or not
    training = train(model, code, options, options.lr)
    training.finish()
    model.save_pretrained(options.out_dir / "model")
    print(write(model.eval(), "def ", min(options.write, options.length - 4)))
    after = loss_on(model, test, options.length)
    print(f"loss on code {before:.4f} before, {after:.4f} after fine-tuning, in nats a byte")
    return 0


if __name__ == "__main__":
    sys.exit(main())
