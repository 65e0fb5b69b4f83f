"""L-BFGS, Adafactor, Muon, SparseAdam: what they do by hand, and what they refuse."""

import facula
import pytest
from facula import optim
from facula.optim.sparse_adam import update_rows


def _param(*shape, value=1.0):
    return facula.full(shape, value).requires_grad_()


def _closure(opt, loss):
    def closure():
        opt.zero_grad()
        value = loss()
        value.backward()
        return value

    return closure


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_solves_a_quadratic(search):
    x = facula.tensor([3.0, -2.0], dtype=facula.float64, requires_grad=True)
    scale = facula.tensor([1.0, 10.0], dtype=facula.float64)
    opt = optim.LBFGS([x], lr=1, max_iter=50, line_search_fn=search)
    first = opt.step(_closure(opt, lambda: (scale * (x - 1) ** 2).sum()))
    assert first.item() == 94.0
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


def test_lbfgs_moves_complex_parameters():
    z = facula.tensor([1 + 2j, -1j], requires_grad=True)
    opt = optim.LBFGS([z], line_search_fn="strong_wolfe")
    for _ in range(3):
        opt.step(_closure(opt, lambda: (z - (2 - 1j)).abs().square().sum()))
    assert facula.allclose(z, facula.full((2,), 2 - 1j, dtype=z.dtype), atol=1e-4)


def test_lbfgs_stops_at_its_budget_of_evaluations():
    x, calls = _param(2, value=5.0), []
    opt = optim.LBFGS([x], lr=1e-3, max_iter=100, max_eval=7)
    closure = _closure(opt, lambda: (x**4).sum())
    opt.step(lambda: (calls.append(1), closure())[1])
    assert len(calls) == 7


def test_adafactor_keeps_rows_and_columns_of_matrices():
    w, b = _param(4, 3), _param(3)
    opt = optim.Adafactor([w, b])
    (w.sum() + b.sum()).backward()
    opt.step()
    assert opt.state[w]["row_var"].shape == (4, 1) and opt.state[w]["col_var"].shape == (1, 3)
    assert opt.state[b]["variance"].shape == (3,)


def test_muon_steps_are_orthogonal():
    w = facula.eye(3).requires_grad_()
    before = w.detach().clone()
    opt = optim.Muon([w], lr=1.0, weight_decay=0.0)
    w.grad = facula.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 2.0]])
    opt.step()
    step = before - w.detach()
    # Newton-Schulz with these coefficients leaves singular values in [0.7, 1.2].
    gram = step.T @ step
    assert (gram - facula.eye(3)).abs().max() < 0.6


def test_sparse_adam_moves_only_the_rows_of_the_gradient():
    p = facula.ones(3, 2)
    state = {"step": 1, "exp_avg": facula.zeros(3, 2), "exp_avg_sq": facula.zeros(3, 2)}
    group = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}
    update_rows(group, p, (facula.tensor([1]),), facula.tensor([[2.0, -3.0]]), state)
    assert p[[0, 2]].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert p[1].tolist() == pytest.approx([0.9, 1.1])
    assert state["exp_avg"][1].tolist() == pytest.approx([0.2, -0.3])


def _stepped(make):
    p = _param(2, 2)
    p.grad = facula.ones(2, 2)
    make(p).step()


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": [_param(1)]}]), ValueError),
        (lambda p: optim.Muon([_param(3)]), ValueError),
        (lambda p: optim.Muon([p], adjust_lr_fn="other"), ValueError),
        (lambda p: optim.Muon([p], momentum=-1.0), ValueError),
        (lambda p: optim.Muon([p], ns_steps=100), ValueError),
        (lambda p: optim.Adafactor([p], d=0.5), ValueError),
        (lambda p: optim.Adafactor([p], beta2_decay=0.5), ValueError),
        (lambda p: optim.Adafactor([p], eps=(-1.0, 1.0)), ValueError),
        (lambda p: optim.Adafactor([facula.ones(2, dtype=facula.complex64)]), None),
        (lambda p: optim.ASGD([p], lambd=-0.5), ValueError),
        (lambda p: optim.SparseAdam([p], lr=0.0), ValueError),
        (lambda p: optim.SparseAdam([p.cfloat()]), ValueError),
        (lambda p: optim.SparseAdam([p]), RuntimeError),
        (lambda p: optim.Adam([p], capturable=True), AssertionError),
        (lambda p: optim.RMSprop([p], capturable=True), AssertionError),
        (lambda p: optim.Adagrad([p], foreach=True, differentiable=True), AssertionError),
        (lambda p: optim.Adam([p], betas=(facula.tensor(0.9), 0.9)), ValueError),
        (lambda p: optim.SGD([p], fused=True, foreach=True), RuntimeError),
    ],
)
def test_bad_settings_raise(make, error):
    if error is None:
        _stepped(make)
        return
    with pytest.raises(error):
        _stepped(make)


def test_lbfgs_refuses_another_line_search():
    x = _param(2)
    opt = optim.LBFGS([x], line_search_fn="armijo")
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        opt.step(_closure(opt, lambda: (x * x).sum()))


def test_a_set_of_parameters_is_warned_of():
    with pytest.warns(FutureWarning, match="order"):
        optim.SGD({_param(1)}, lr=0.1)
    with pytest.raises(TypeError, match="order"):
        optim.SGD([{"params": {_param(1)}}], lr=0.1)


def test_state_dict_hooks_run_in_order_and_may_replace():
    opt, seen = optim.SGD([_param(1)], lr=0.1), []
    opt.register_state_dict_pre_hook(lambda o: seen.append("before"))
    opt.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    opt.register_state_dict_post_hook(lambda o, s: seen.append("first"), prepend=True)
    opt.register_load_state_dict_pre_hook(lambda o, s: {k: v for k, v in s.items() if k != "extra"})
    opt.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = opt.state_dict()
    assert state["extra"] == 1
    opt.load_state_dict(state)
    assert seen == ["before", "first", "loaded"]


def test_global_step_hooks():
    from facula.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    seen = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: seen.append("pre")),
        register_optimizer_step_post_hook(lambda o, a, k: seen.append("post")),
    ]
    optim.SGD([_param(1)]).step()
    for handle in handles:
        handle.remove()
    optim.SGD([_param(1)]).step()
    assert seen == ["pre", "post"]


def test_a_swapped_in_optimizer_leaves_the_live_one_alone():
    w = _param(1)
    opt = optim.Adam([w], lr=1.0)
    w.grad = facula.ones(1)
    opt.step()
    saved = {"state": {0: {k: v.clone() for k, v in opt.state[w].items()}}}
    saved["param_groups"] = [{**opt.state_dict()["param_groups"][0], "lr": 5.0}]
    other = facula.zeros(1)
    other.grad = facula.ones(1)
    with optim.swap_in_optimizer_params_and_state(opt, {"w": other}, saved):
        opt.step()
    assert other.item() == pytest.approx(-5.0)
    assert opt.param_groups[0]["params"][0] is w and opt.param_groups[0]["lr"] == 1.0
    assert opt.state[w]["step"] == 1 and saved["state"][0]["step"] == 2
    with pytest.raises(RuntimeError, match="parameters must be"):
        with optim.swap_in_optimizer_params_and_state(opt, {}, saved):
            pass
