"""100 steps of every optimizer with its main options, beside PyTorch's.

The two are equal up to rounding: in float64 to 1e-9 of the value, L-BFGS to 1e-8. (Not to the
bit: PyTorch's own three ways through an optimizer, loop, foreach and fused, differ by as much.)
"""

import pytest

torch = pytest.importorskip("torch")
import facula  # noqa: E402

STEPS = 100
ADAM = [
    {},
    {"weight_decay": 0.1},
    {"amsgrad": True},
    {"maximize": True},
    {"fused": True},
    {"foreach": True},
    {"foreach": False, "betas": (0.8, 0.9), "eps": 1e-6},
]
CASES = {
    "SGD": [
        {"lr": 0.01},
        {"lr": 0.01, "momentum": 0.9},
        {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"lr": 0.01, "momentum": 0.9, "dampening": 0.5, "foreach": True},
        {"lr": 1e-4, "maximize": True},
        {"lr": 0.01, "momentum": 0.5, "fused": True},
    ],
    "Adam": [*ADAM, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "AdamW": ADAM,
    "NAdam": [
        {},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "foreach": True},
        {"maximize": True, "momentum_decay": 0.01},
    ],
    "RAdam": [
        {},
        {"weight_decay": 0.1, "foreach": True},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
        {"maximize": True},
    ],
    "Adamax": [{}, {"weight_decay": 0.1}, {"maximize": True, "foreach": True}],
    "Adagrad": [
        {},
        {"lr_decay": 0.1, "weight_decay": 0.1},
        {"initial_accumulator_value": 0.5, "maximize": True, "foreach": True},
        {"fused": True},
    ],
    "Adadelta": [{}, {"weight_decay": 0.1, "foreach": True}, {"maximize": True, "rho": 0.5}],
    "RMSprop": [
        {},
        {"momentum": 0.9},
        {"centered": True, "foreach": True},
        {"momentum": 0.5, "centered": True, "weight_decay": 0.1},
        {"maximize": True},
    ],
    "Rprop": [{}, {"etas": (0.4, 1.3), "foreach": True}, {"maximize": True}],
    "ASGD": [{}, {"t0": 20, "lambd": 1e-2}, {"weight_decay": 0.1, "foreach": False}],
    "Adafactor": [
        {},
        {"weight_decay": 0.1, "d": 2.0},
        {"eps": (1e-20, 1e-2), "beta2_decay": -0.5, "foreach": True},
        {"maximize": True},
    ],
    "LBFGS": [
        {"lr": 0.2, "max_iter": 2},
        {"line_search_fn": "strong_wolfe", "max_iter": 2},
        {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 2, "lr": 0.01},
        {"maximize": True, "max_iter": 2, "lr": 0.1},
    ],
}
START = ([[0.9, -0.4, 0.3], [-1.2, 0.7, 0.1]], [0.5, -0.8, 1.1, 0.2], 0.6)


def _loss(lib, params, sign):
    """Smooth, not convex, and without a minimum at zero, where relative errors mean nothing."""
    matrix, vector, scalar = params
    curved = (matrix.sin() * vector[:3]).square().sum() + (vector - 1).square().sum()
    coupled = (matrix.sum(0) * scalar.exp()).cos().sum() + scalar.square()
    return sign * (curved + coupled)


def _convex_loss(lib, params, sign):
    """For L-BFGS, which in a valley doubles its rounding errors with every step."""
    pulls = sum((p.square().square() / 4 + p.square() - p).sum() for p in params)
    return sign * (pulls + 0.1 * sum(p.sum() for p in params).square())


def _run(lib, name, options, dtype="float64", steps=STEPS, start=START):
    params = [lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True) for values in start]
    optimizer = getattr(lib.optim, name)(params, **options)
    sign = -1.0 if options.get("maximize") else 1.0

    def closure():
        optimizer.zero_grad()
        loss = (_convex_loss if name == "LBFGS" else _loss)(lib, params, sign)
        loss.backward()
        return loss.detach()

    losses = [float(optimizer.step(closure)) for _ in range(steps)]
    values = [v for p in params for v in p.detach().reshape(-1).tolist()]
    return losses, values, optimizer


def _flat_cases():
    return [
        pytest.param(name, options, id=f"{name}-{'-'.join(f'{k}={options[k]}' for k in options)}")
        for name, table in CASES.items()
        for options in table
    ]


@pytest.mark.parametrize("name, options", _flat_cases())
def test_trajectory_is_pytorchs(name, options):
    losses, values, ours = _run(facula, name, options)
    their_losses, their_values, theirs = _run(torch, name, options)
    tolerance = 1e-8 if name == "LBFGS" else 1e-9
    assert losses == pytest.approx(their_losses, rel=tolerance, abs=1e-9)
    # Near its minimum a loss that has settled to 1e-9 leaves parameters free to 1e-4.
    slack = 1e-4 if name == "LBFGS" else 1e-9
    assert values == pytest.approx(their_values, rel=slack, abs=slack)
    assert repr(ours) == repr(theirs)
    got, expected = ours.state_dict(), theirs.state_dict()
    assert got["param_groups"] == expected["param_groups"]
    assert {k: sorted(v) for k, v in got["state"].items()} == {
        k: sorted(v) for k, v in expected["state"].items()
    }


@pytest.mark.parametrize("name", [name for name in CASES if name != "LBFGS"])
def test_float32_trajectory_stays_near(name):
    """To 1e-3 after 100 steps; rounding grows with the number of steps."""
    options = CASES[name][0]
    got, expected = (_run(lib, name, options, "float32")[1] for lib in (facula, torch))
    assert got == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nesterov": False, "momentum": 0.8},
        {"adjust_lr_fn": "match_rms_adamw", "lr": 0.01},
        {"adjust_lr_fn": "spectral_unclamped"},
    ],
)
def test_muon_trajectory(options):
    """Muon's iteration runs in bfloat16, of 3 digits, so that 100 steps agree to 2."""
    matrices = ([[0.9, -0.4, 0.3], [-1.2, 0.7, 0.1]], [[0.5, -0.8], [1.1, 0.2], [0.3, 0.4]])

    def run(lib):
        params = [lib.tensor(values, requires_grad=True) for values in matrices]
        optimizer = lib.optim.Muon(params, **options)
        for _ in range(STEPS):
            optimizer.zero_grad()
            ((params[0] @ params[1]).sin() - 0.5).square().sum().backward()
            optimizer.step()
        return [v for p in params for v in p.detach().reshape(-1).tolist()], optimizer

    got, ours = run(facula)
    expected, theirs = run(torch)
    assert got == pytest.approx(expected, abs=1e-2)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", CASES)
def test_training_goes_on_from_the_other_librarys_state(name, tmp_path):
    """A checkpoint of 20 steps written by one is read by the other, both ways."""
    options = CASES[name][1]
    _, middle, optimizer = _run(torch, name, options, steps=20)
    shapes = [torch.tensor(values).shape for values in START]

    def start():
        parts = torch.tensor(middle, dtype=torch.float64).split([s.numel() for s in shapes])
        return [part.reshape(shape).tolist() for part, shape in zip(parts, shapes, strict=True)]

    def go_on(lib, state_file):
        params = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in start()]
        other = getattr(lib.optim, name)(params, **options)
        other.load_state_dict(lib.load(state_file))

        def closure():
            other.zero_grad()
            loss = _loss(lib, params, 1.0)
            loss.backward()
            return loss

        for _ in range(10):
            other.step(closure)
        return [v for p in params for v in p.detach().reshape(-1).tolist()], other

    file = tmp_path / "theirs.pt"
    torch.save(optimizer.state_dict(), file)
    expected, _ = go_on(torch, file)
    got, ours = go_on(facula, file)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)
    facula.save(ours.state_dict(), tmp_path / "ours.pt")
    _, theirs = go_on(torch, tmp_path / "ours.pt")
    assert theirs.state_dict()["param_groups"] == ours.state_dict()["param_groups"]


@pytest.mark.parametrize("name", [n for n in CASES if n != "LBFGS"])
def test_functional_form(name):
    """`optim.functional` moves lists as the optimizer moves its parameters."""
    import importlib
    import inspect

    module = {"Adafactor": "_adafactor"}.get(name, name.lower())
    theirs = getattr(importlib.import_module(f"torch.optim.{module}"), name.lower())
    ours = getattr(facula.optim.functional, name.lower())
    plain = [p.replace(annotation=p.empty) for p in inspect.signature(theirs).parameters.values()]
    assert list(inspect.signature(ours).parameters.values()) == plain
    options = dict(CASES[name][1])
    _, _, stepped = _run(facula, name, options, steps=3)
    _, _, expected = _run(facula, name, options, steps=4)
    group = stepped.param_groups[0]
    params = group["params"]
    loss = _loss(facula, params, 1.0)
    grads = facula.autograd.grad(loss, params)
    form = facula.optim.functional._FORMS[name.lower()]
    lists = {
        parameter: [stepped.state[p].get(entry) for p in params]
        for parameter, entry in (pair.split("=") for pair in form.lists.split())
    }
    lists = {k: v if any(x is not None for x in v) else [] for k, v in lists.items()}
    if name in ("Adafactor", "SGD"):
        lists = {k: v or [None] * len(params) for k, v in lists.items()}
    settings = {k: v for k, v in group.items() if k != "params"}
    settings |= dict(zip(("beta1", "beta2"), group.get("betas", ()), strict=False))
    if isinstance(group.get("eps"), tuple):
        settings |= dict(zip(("eps1", "eps2"), group["eps"], strict=True))
    if name == "Rprop":
        settings |= dict(zip(("etaminus", "etaplus"), group["etas"], strict=True))
        settings |= dict(zip(("step_size_min", "step_size_max"), group["step_sizes"], strict=True))
    names = inspect.signature(ours).parameters.keys() - lists.keys()
    ours(params, list(grads), *lists.values(), **{k: settings[k] for k in settings if k in names})
    for got, want in zip(params, expected.param_groups[0]["params"], strict=True):
        assert facula.allclose(got, want, rtol=1e-12, atol=0)
