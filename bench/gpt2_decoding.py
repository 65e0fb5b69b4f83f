"""GPT-2 of `transformers`, decoding token by token: a program for PyTorch and for facula as torch.

`python -m bench.gpt2_decoding`, or `python -m facula run -m bench.gpt2_decoding`, prints a line of
JSON: milliseconds a token, eager and compiled, and of the first compiled token. The suite `compile`
runs both in turns.
"""

import json
import statistics
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

TOKENS = 48


def decode(step, tokens=TOKENS):
    """Milliseconds of each token, greedily, with the cache of keys and values."""
    ids, past, times = torch.zeros(1, 1, dtype=torch.int64), None, []
    for _ in range(tokens):
        began = time.perf_counter()
        with torch.no_grad():
            out = step(input_ids=ids, past_key_values=past, use_cache=True)
        ids, past = out.logits[:, -1:].argmax(-1), out.past_key_values
        int(ids)
        times.append((time.perf_counter() - began) * 1e3)
    return times


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    config = GPT2Config(n_layer=6, n_head=8, n_embd=512, vocab_size=8000, n_positions=256)
    config.bos_token_id = config.eos_token_id = 0
    model = GPT2LMHeadModel(config).eval()
    decode(model, 8)
    eager = decode(model)
    step = torch.compile(model)
    first = decode(step, 1)[0]
    decode(step)  # every length once
    compiled = decode(step)
    found = {
        "eager": statistics.median(eager),
        "compiled": statistics.median(compiled),
        "first": first,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
