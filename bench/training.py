"""What training costs: whole steps of small and middling models, and an epoch of digits."""

import importlib.util
import sys
from pathlib import Path

from bench import models
from bench.harness import Case

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits.py"


def training_step(m, model, optimizer, x, y):
    """One step of training as a function without arguments."""
    loss_function = m.nn.CrossEntropyLoss()

    def run():
        optimizer.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()

    return run


def mlp_step(make_optimizer, width, batch):
    """A case maker: a network of two layers, one step."""

    def make(m):
        m.manual_seed(0)
        model = m.nn.Sequential(m.nn.Linear(width, width), m.nn.ReLU(), m.nn.Linear(width, 4))
        x, y = m.randn(batch, width), m.zeros(batch, dtype=m.int64)
        return training_step(m, model, make_optimizer(m, model.parameters()), x, y)

    return make


def adam(m, parameters):
    return m.optim.Adam(parameters, lr=1e-3)


def sgd(m, parameters):
    return m.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def load_example(module_name):
    """The digits example as a module whose `facula` is the named module."""
    name = f"bench_digits_{module_name}"
    source = DIGITS.read_text(encoding="utf-8")
    source = source.replace("import facula\n", f"import {module_name} as facula\n")
    source = source.replace("from facula", f"from {module_name}")
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(DIGITS))
    example = importlib.util.module_from_spec(spec)
    example.__file__ = str(DIGITS)
    sys.modules[name] = example
    exec(compile(source, str(DIGITS), "exec"), vars(example))
    return example


def digits_epoch(m):
    example = load_example(m.__name__)
    m.manual_seed(0)
    data, _ = example.split_fifth(*example.load_digits())
    model = example.make_model()
    return lambda: example.train(model, data, epochs=1)


def model_step(build, dtype):
    """A case maker: one step of a model of bench.models, in float32 or under autocast."""

    def make(m):
        m.manual_seed(0)
        model, loss = build(m)
        optimizer = m.optim.AdamW(model.parameters(), lr=1e-3)

        def run():
            optimizer.zero_grad()
            with m.autocast("cpu", m.bfloat16, enabled=dtype == "bf16"):
                value = loss(model)
            value.backward()
            optimizer.step()

        return run

    return make


CASES = [
    Case("MLP 4-4-4, batch 4, Adam", mlp_step(adam, 4, 4), family="small"),
    Case("MLP 4-4-4, batch 4, SGD", mlp_step(sgd, 4, 4), family="small"),
    Case("MLP 64-64-4, batch 32, Adam", mlp_step(adam, 64, 32), family="small"),
    Case("digits, one epoch", digits_epoch, rounds=7, family="small"),
] + [
    Case(f"{name}, {dtype}", model_step(build, dtype), rounds=5, family=f"models, {dtype}")
    for dtype in ("f32", "bf16")
    for name, build in models.MODELS.items()
]
