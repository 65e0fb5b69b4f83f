"""facula.optim against torch.optim: same numbers, state and schedules."""

import pytest

torch = pytest.importorskip("torch")
import facula  # noqa: E402

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"t0": 2, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"maximize": True}),
]


def _run(lib, name, kw, start, steps=8):
    params = [lib.from_numpy(s.copy()).requires_grad_() for s in start]
    optimizer = getattr(lib.optim, name)(params, **kw)
    for i in range(steps):
        optimizer.zero_grad()
        sum(((p * (i % 3 - 0.5)) ** 2 + p * p * p).sum() for p in params).backward()
        optimizer.step()
    return params, optimizer


def _check_values(ours, theirs, truth):
    """Near PyTorch's; or as near to the same run in float64 as PyTorch's are.

    One gradient cancels with its weight decay to zero. What is left is rounding alone, which
    dividing by its own size makes a step.
    """
    near = abs(ours - theirs) <= 1e-6 + 2e-5 * abs(theirs)
    as_good = abs(ours - truth) <= abs(theirs - truth)
    assert (near | as_good).all()


@pytest.mark.parametrize("name, kw", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizer_agrees(name, kw, dtype):
    start = [
        torch.linspace(-1, 1, 6).reshape(2, 3).numpy().astype(dtype),
        torch.linspace(0.1, 2, 4).numpy().astype(dtype),
    ]
    ours, our_opt = _run(facula, name, kw, start)
    theirs, their_opt = _run(torch, name, kw, start)
    exact, _ = _run(torch, name, kw, [s.astype("float64") for s in start])
    for a, b, truth in zip(ours, theirs, exact, strict=True):
        _check_values(*(t.detach().numpy() for t in (a, b, truth)))
    got, expected = our_opt.state_dict(), their_opt.state_dict()
    assert got["param_groups"] == expected["param_groups"]
    assert {k: list(v) for k, v in got["state"].items()} == {
        k: list(v) for k, v in expected["state"].items()
    }
    assert repr(our_opt) == repr(their_opt)


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9),
    "step": lambda s, o: s.StepLR(o, 4),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 3, 9]),
    "constant": lambda s, o: s.ConstantLR(o),
    "linear": lambda s, o: s.LinearLR(o, total_iters=7),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 6, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, 6, mode="triangular2"),
    "onecycle": lambda s, o: s.OneCycleLR(o, 0.2, total_steps=25),
    "threephase": lambda s, o: s.OneCycleLR(
        o, 0.2, total_steps=25, three_phase=True, anneal_strategy="linear"
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]),
    "averaging": lambda s, o: s.SWALR(o, [0.01, 0.3], 7),
    "averaging linearly": lambda s, o: s.SWALR(o, 0.02, 5, "linear"),
    "averaging at once": lambda s, o: s.SWALR(o, 0.02, 0),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o), s.StepLR(o, 2), s.CosineAnnealingLR(o, 4)], [5, 11]
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_agrees(name):
    import facula.optim.lr_scheduler as ours

    def run(lib, schedules):
        params = [lib.ones(1).requires_grad_() for _ in range(2)]
        groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}]
        optimizer = lib.optim.SGD(groups, lr=0.1, momentum=0.9)
        if "averaging" in name:
            schedules = lib.optim.swa_utils
        schedule = SCHEDULES[name](schedules, optimizer)
        rows = []
        for _ in range(23):
            rows += [value for g in optimizer.param_groups for value in (g["lr"], g["momentum"])]
            optimizer.step()
            schedule.step()
        return rows + list(schedule.get_last_lr()), sorted(schedule.state_dict())

    got, keys = run(facula, ours)
    expected, their_keys = run(torch, torch.optim.lr_scheduler)
    assert got == pytest.approx(expected, rel=1e-9)
    assert keys == their_keys
