"""Sparsifiers, schedulers and pruners: counts of zeros, models that stay the same, clear errors."""

import copy
import doctest
from importlib import import_module

import facula
import pruning_cases as cases
import pytest
from facula import nn
from facula.ao import pruning
from facula.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
from facula.ao.pruning._experimental.pruner import LSTMSaliencyPruner, SaliencyPruner


def stepped(sparsifier, model, config=None):
    sparsifier.prepare(model, config)
    sparsifier.step()
    return sparsifier


@pytest.mark.parametrize(
    "level, block, zeros, left",
    [
        (0.5, (1, 4), None, 32),
        (0.25, (2, 2), None, 48),
        (1.0, (1, 4), 2, 32),
        (1.0, (1, 4), None, 0),
        (0.99, (8, 8), None, 64),  # one block stays at a level below 1
        (0.0, (1, 4), None, 64),
    ],
)
def test_levels_count_blocks(level, block, zeros, left):
    model = nn.Sequential(nn.Linear(8, 8))
    sparsifier = stepped(pruning.WeightNormSparsifier(level, block, zeros), model)
    assert int((model[0].weight != 0).sum()) == left
    sparsifier.squash_mask()
    assert int((model[0].weight != 0).sum()) == left


def test_two_of_four_in_every_block():
    model = nn.Sequential(nn.Linear(12, 6))
    stepped(pruning.WeightNormSparsifier(1.0, (1, 4), zeros_per_block=2), model)
    blocks = model[0].weight.detach().view(6, 3, 4)
    kept = (blocks != 0).sum(2)
    assert (kept == 2).all()
    original = model[0].parametrizations.weight.original.detach().view(6, 3, 4).abs()
    smallest_kept = facula.where(blocks != 0, original, facula.inf).amin(2)
    assert (facula.where(blocks == 0, original, 0.0).amax(2) <= smallest_kept).all()


def test_blocks_cut_off_at_the_end():
    model = nn.Sequential(nn.Linear(8, 5))
    stepped(pruning.WeightNormSparsifier(1.0, (2, 3), zeros_per_block=5), model)
    assert int((model[0].weight != 0).sum()) == 2 * 2  # whole blocks keep one; the others nothing


def test_gradients_stop_at_the_mask():
    model = nn.Sequential(nn.Linear(8, 8))
    sparsifier = stepped(pruning.WeightNormSparsifier(0.5), model)
    model(facula.ones(1, 8)).sum().backward()
    grad = model[0].parametrizations.weight.original.grad
    assert grad.int().tolist() == cases.masks(sparsifier)[0]


def test_state_moves_through_a_file(tmp_path):
    first = stepped(pruning.WeightNormSparsifier(0.5), cases.two_layers(facula))
    wanted = cases.masks(first)
    facula.save(first.state_dict(), tmp_path / "state.pt")
    second = pruning.WeightNormSparsifier(0.1)
    second.prepare(cases.two_layers(facula), None)
    second.load_state_dict(facula.load(tmp_path / "state.pt", weights_only=False))
    assert cases.masks(second) == wanted


def test_a_copy_steps_for_itself():
    sparsifier = stepped(pruning.NearlyDiagonalSparsifier(1), nn.Sequential(nn.Linear(4, 4)))
    twin = copy.deepcopy(sparsifier)
    twin.groups[0]["nearliness"] = 3
    twin.step()
    assert cases.masks(twin)[0][0] == [1, 1, 0, 0]
    assert cases.masks(sparsifier)[0][0] == [1, 0, 0, 0]


def test_a_scheduler_before_the_sparsifier_warns():
    sparsifier = pruning.WeightNormSparsifier(0.8)
    sparsifier.prepare(nn.Sequential(nn.Linear(4, 4)), None)
    scheduler = pruning.LambdaSL(sparsifier, lambda epoch: 0.5**epoch)
    with pytest.warns(UserWarning, match="before sparsifier.step"):
        scheduler.step()
    with pytest.warns(UserWarning, match="get_last_sl"):
        scheduler.get_sl()


def test_verbose_schedulers_print_levels(capsys):
    sparsifier = pruning.WeightNormSparsifier(0.8)
    sparsifier.prepare(nn.Sequential(nn.Linear(4, 4)), None)
    pruning.LambdaSL(sparsifier, lambda epoch: 0.5, verbose=True)
    assert "group 0 to 4.0000e-01" in capsys.readouterr().out


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("options", cases.OPTIONS, ids=str)
def test_cut_models_give_what_masked_ones_gave(kind, options):
    _, before, after, parameters, _ = cases.cut_between(facula, kind, **options)
    assert facula.allclose(facula.tensor(before), facula.tensor(after), atol=1e-5)
    whole = options.get("padding") and kind.startswith("conv")
    assert len(parameters["a.weight"]) == (6 if whole else 3)


def test_padding_keeps_a_channel_that_has_a_bias():
    _, before, after, parameters, _ = cases.cut_between(facula, "conv relu", padding=1)
    assert facula.allclose(facula.tensor(before), facula.tensor(after), atol=1e-5)
    assert parameters["a.bias"].count(0.0) == 3


def test_lstms_lose_rows_of_every_gate():
    model, x = cases.recurrent(facula, 2, True)
    names = [f"r.weight_{kind}_l{layer}" for kind in ("ih", "hh") for layer in (0, 1)]
    config = [{"tensor_fqn": name} for name in names]
    smaller = stepped(LSTMSaliencyPruner({"sparsity_level": 0.5}), model, config).prune()
    assert smaller(x).shape == (2, 5, 3)
    assert smaller.r.hidden_size == 3
    assert smaller.r.weight_ih_l1.shape == (12, 3)
    assert smaller.n.normalized_shape == (3,)


def fork(x_of):
    class Fork(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return x_of(self, x)

    return Fork()


PRUNE_ERRORS = {
    "branch": (
        fork(lambda m, x: (lambda h: m.b(h) + h)(m.a(x))),
        [{"tensor_fqn": "a.weight"}],
        (Exception, "the module 'a'"),
    ),
    "unknown": (
        nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4)),
        [{"tensor_fqn": "0.weight"}],
        (Exception, "the module '0'"),
    ),
    "groups": (
        nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.Conv2d(4, 4, 1)),
        [{"tensor_fqn": "0.weight"}],
        (NotImplementedError, "groups=2"),
    ),
    "rows of one weight": (
        cases.recurrent(facula, 1, False)[0],
        [{"tensor_fqn": "r.weight_ih_l0"}],
        (ValueError, "as many rows"),
    ),
}


@pytest.mark.parametrize("name", PRUNE_ERRORS)
def test_what_cannot_be_cut_is_named(name):
    model, config, (error, text) = PRUNE_ERRORS[name]
    pruner = stepped(SaliencyPruner({"sparsity_level": 0.5}), model, config)
    with pytest.raises(error, match=text):
        pruner.prune()


@pytest.mark.parametrize("name", cases.ERRORS)
def test_wrong_calls_raise_clear_errors(name):
    with pytest.raises(Exception) as raised:
        cases.ERRORS[name](facula)
    assert str(raised.value)


def test_one_dimensional_data_have_masks_of_their_shape():
    sparsifier = DataNormSparsifier([("v", facula.arange(1.0, 8.0))], 0.5)
    sparsifier.step()
    assert sparsifier.get_mask("v").tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert sparsifier.get_data("v", return_original=False).sum() == 18


def test_replaced_data_keep_their_mask():
    sparsifier = DataNormSparsifier([("a", facula.arange(8.0).view(2, 4))])
    sparsifier.step()
    with pytest.warns(UserWarning, match="replaced"):
        masked = sparsifier.add_data("a", facula.ones(2, 4))
    assert masked.tolist() == [[0.0] * 4, [1.0] * 4]
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="shape"):
        sparsifier.add_data("a", facula.ones(3, 4))


DOCUMENTED = [
    "sparsifier.base_sparsifier",
    "sparsifier.nearly_diagonal_sparsifier",
    "sparsifier.utils",
    "sparsifier.weight_norm_sparsifier",
    "scheduler.base_scheduler",
    "scheduler.cubic_scheduler",
    "scheduler.lambda_scheduler",
    "_experimental.activation_sparsifier.activation_sparsifier",
    "_experimental.data_scheduler.base_data_scheduler",
    "_experimental.data_sparsifier.base_data_sparsifier",
    "_experimental.data_sparsifier.data_norm_sparsifier",
    "_experimental.pruner.base_structured_sparsifier",
    "_experimental.pruner.FPGM_pruner",
    "_experimental.pruner.lstm_saliency_pruner",
    "_experimental.pruner.parametrization",
    "_experimental.pruner.saliency_pruner",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_give_what_they_say(name):
    module = import_module(f"facula.ao.pruning.{name}")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module, extraglobs={"facula": facula}):
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
