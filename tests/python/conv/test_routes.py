"""Routes of convolutions: which is taken, that FACULA_CONV forces one, and that all agree."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import facula as fl

image, weight, options = {case}
x = fl.from_numpy(np.random.default_rng(0).standard_normal(image)).to(fl.{dtype})
w = fl.from_numpy(np.random.default_rng(1).standard_normal(weight)).to(fl.{dtype})
x.requires_grad_()
w.requires_grad_()
y = fl.nn.functional.conv2d(x, w, **options)
y.backward(fl.ones_like(y) * 0.5)
for t in (y, x.grad, w.grad):
    t = t.detach().double()
    print(repr(float(t.sum())), repr(float((t * t).sum())))
"""

PLAIN = ((2, 16, 9, 10), (16, 16, 3, 3), {"padding": 1})
WIDE = ((2, 32, 16, 16), (32, 32, 3, 3), {"padding": 1})
POINTWISE = ((2, 32, 8, 8), (32, 32, 1, 1), {})
DEPTHWISE = ((2, 16, 9, 10), (16, 1, 3, 3), {"padding": 1, "groups": 16})
PASSES = ("forward", "input gradient", "weight gradient")


def run(case, route="", dtype="float32"):
    """What the program prints, and the route of each pass that it names."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(case=case, dtype=dtype)],
        env=os.environ | {"FACULA_DEBUG": "3", "FACULA_CONV": route},
        capture_output=True,
        text=True,
        check=False,
    )
    routes = {}
    for line in done.stderr.splitlines():
        _, found, rest = line.partition("convolution, ")
        if found:
            name, _, taken = rest.partition(": ")
            routes.setdefault(name, taken.split()[0])
    numbers = [float(word) for word in done.stdout.split()]
    return done, routes, numbers


@pytest.mark.parametrize(
    ("case", "dtype", "route"),
    [
        (WIDE, "float32", "winograd"),
        (POINTWISE, "float32", "im2col"),
        (DEPTHWISE, "float32", "depthwise_planes"),
        (PLAIN, "float64", "planes"),
    ],
    ids=["winograd", "im2col", "depthwise_planes", "planes"],
)
def test_route_by_shape(case, dtype, route):
    _, routes, _ = run(case, dtype=dtype)
    assert routes["forward"] == route
    assert sorted(routes) == sorted(PASSES)


@pytest.mark.parametrize("route", ["winograd", "im2col", "channels", "planes"])
def test_forced_route_gives_the_same_numbers(route):
    _, _, expected = run(WIDE, dtype="float64")
    done, routes, numbers = run(WIDE, route)
    assert done.returncode == 0, done.stderr
    passes = {"channels": PASSES[2:], "im2col": PASSES[:2]}.get(route, PASSES)
    assert all(routes[p] == route for p in passes)
    assert len(expected) == 6
    assert numbers == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("route", ["depthwise", "depthwise_planes", "planes", "im2col"])
def test_forced_route_of_depthwise_convolutions(route):
    _, _, expected = run(DEPTHWISE, dtype="float64")
    done, routes, numbers = run(DEPTHWISE, route)
    assert done.returncode == 0, done.stderr
    assert routes["forward"] == route
    assert numbers == pytest.approx(expected, rel=1e-3)


def test_impossible_route_falls_back():
    _, routes, _ = run(PLAIN, "depthwise")
    assert "depthwise" not in routes.values()


def test_unknown_route_raises():
    done, _, _ = run(PLAIN, "fft")
    assert done.returncode != 0
    assert "RuntimeError: FACULA_CONV: expected one of depthwise_planes" in done.stderr
