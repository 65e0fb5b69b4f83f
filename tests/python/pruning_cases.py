"""Programs that prune, for the tests of facula alone and beside PyTorch: each takes the library."""

from importlib import import_module
from math import prod, sin

PRUNER = "ao.pruning._experimental.pruner"
DATA = "ao.pruning._experimental.data_sparsifier"


def part(lib, name):
    return import_module(f"{lib.__name__}.{name}")


def spread(lib, *shape):
    """Numbers of both signs without a pattern: no two magnitudes or sums of them tie."""
    count = prod(shape)
    numbers = [sin(0.7 * (i + 1) * (i + 1)) for i in range(count)]
    return lib.tensor(numbers).reshape(shape)


def filled(lib, model):
    with lib.no_grad():
        for parameter in model.parameters():
            parameter.copy_(spread(lib, *parameter.shape))
    return model


def two_layers(lib):
    nn = lib.nn
    return filled(lib, nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 5))))


def masks(sparsifier):
    params = [g["module"].parametrizations[g["tensor_name"]][0] for g in sparsifier.groups]
    return [param.mask.int().tolist() for param in params]


def stepped(lib, sparsifier, model=None, config=None):
    sparsifier.prepare(model or two_layers(lib), config)
    sparsifier.step()
    return sparsifier


LEVELS = (-0.2, 0, 0.15, 0.25, 0.5, 0.97, 1.0, 1.5)
BLOCKS = (((1, 4), None), ((1, 1), None), ((3, 2), None), ((1, 4), 2), ((1, 8), 3), ((1, 4), 0))


def program_weight_norm(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    return [masks(stepped(lib, make(level, *block))) for level in LEVELS for block in BLOCKS]


def program_norms(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    return [masks(stepped(lib, make(0.5, norm=n))) for n in (None, 1, 2, lambda x: x + 1)]


def program_nearly_diagonal(lib):
    make = part(lib, "ao.pruning").NearlyDiagonalSparsifier
    return [masks(stepped(lib, make(n))) for n in (-1, 0, 1, 3, 5, 9)]


def program_groups_and_texts(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    config = [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight", "sparsity_level": 0.2}]
    model = two_layers(lib)
    sparsifier = stepped(lib, make(), model, config)
    state = sparsifier.state_dict()
    return (
        sparsifier,
        model,
        state["groups"],
        {name: list(entry) for name, entry in state["state"].items()},
        list(model.state_dict()),
        sorted(sparsifier.__getstate__()),
    )


def program_state_moves(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    first, second = stepped(lib, make(0.5)), stepped(lib, make(0.1))
    second.load_state_dict(first.state_dict())
    levels = [group["sparsity_level"] for group in second.groups]
    return masks(second) == masks(first), levels, first.state == second.state


def program_squash(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    model = two_layers(lib)
    sparsifier = stepped(lib, make(0.5), model)
    sparsifier.squash_mask(("sparsity_level",), {"0": ("zeros_per_block",)})
    layers = model[0], model[2][0]
    return model, [(m.sparse_params, m.weight.tolist()) for m in layers]


def program_steps_keep_zeros(lib):
    make = part(lib, "ao.pruning").WeightNormSparsifier
    sparsifier = stepped(lib, make(0.5, (1, 1)))
    for group in sparsifier.groups:
        group["module"].parametrizations.weight.original.data.mul_(-2)
    sparsifier.step()
    sparsifier.enable_mask_update = False
    sparsifier.groups[0]["sparsity_level"] = 0
    sparsifier.step()
    return masks(sparsifier)


def program_convert(lib):
    nn = lib.nn

    class Sparse(nn.Linear):
        @classmethod
        def from_dense(cls, dense):
            return cls(dense.in_features, dense.out_features)

    model = two_layers(lib)
    sparsifier = part(lib, "ao.pruning").WeightNormSparsifier()
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    return sparsifier.convert(model, {nn.Linear: Sparse})


def program_schedules(lib):
    pruning = part(lib, "ao.pruning")

    def levels(make, **options):
        sparsifier = pruning.WeightNormSparsifier(0.8)
        config = [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight", "sparsity_level": 0.4}]
        sparsifier.prepare(two_layers(lib), config)
        scheduler = make(sparsifier, **options)
        found = [scheduler.get_last_sl()]
        for _ in range(8):
            sparsifier.step()
            scheduler.step()
            found.append(scheduler.get_last_sl())
        state = scheduler.state_dict()
        return found, sorted(state), str(scheduler)

    cubic = pruning.CubicSL
    each = {"init_sl": (0.1, 0.2), "init_t": [0, 3], "delta_t": [1, 2], "total_t": [5, 3]}
    return [
        levels(pruning.LambdaSL, sl_lambda=lambda epoch: 0.5**epoch),
        levels(pruning.LambdaSL, sl_lambda=[lambda e: 0.5**e, lambda e: 0.1 * e], last_epoch=2),
        levels(cubic, init_sl=0.1, init_t=2, delta_t=2, total_t=3),
        levels(cubic, init_t=3, delta_t=1, total_t=2, initially_zero=True),
        levels(cubic, init_sl=0.9, delta_t=1, total_t=3),
        levels(cubic, init_sl=-1, delta_t=3, total_t=2),
        levels(cubic, **each, initially_zero=[True, False]),
    ]


def program_names(lib):
    utils = part(lib, "ao.pruning.sparsifier.utils")
    model = two_layers(lib)
    found = utils.get_arg_info_from_tensor_fqn(model, "2.0.weight")
    return (
        [utils.fqn_to_module(model, path) for path in ("", "2", "2.0", "7.0", "0.nope")],
        [utils.module_to_fqn(model, m) for m in (model, model[2][0], lib.nn.ReLU())],
        found,
        utils.get_arg_info_from_tensor_fqn(model, "weight")["module_fqn"],
    )


def program_data_norm(lib):
    make, found = part(lib, DATA).DataNormSparsifier, []
    for norm in ("L1", "L2"):
        for level in (0, 0.05, 0.3, 0.5, 0.97, 1.0, 1.5):
            for block in (((1, 4), None), ((1, 1), None), ((3, 2), None), ((1, 4), 2)):
                data = [("a", spread(lib, 6, 8)), ("p", lib.nn.Parameter(spread(lib, 4, 5)))]
                data.append(("e", filled(lib, lib.nn.Embedding(4, 8))))
                sparsifier = make(data, level, *block, norm=norm)
                sparsifier.step()
                found.append([sparsifier.get_mask(name) for name, _ in data])
    return found


def program_data_containers(lib):
    make = part(lib, DATA).DataNormSparsifier
    tensor = spread(lib, 3, 4)
    sparsifier = make([("a", tensor), ("e", filled(lib, lib.nn.EmbeddingBag(4, 8)))])
    sparsifier.add_data("n", lib.ones(3, 4), sparsity_level=0.2)
    sparsifier.step()
    state = sparsifier.state_dict()
    layouts = [str(entry["mask"].layout) for entry in state["state"].values()]
    other = make()
    other.load_state_dict(state)
    sparsifier.squash_mask(names="a")
    return (
        sparsifier,
        sparsifier._container,
        sparsifier.get_data("a", return_original=False),
        sparsifier.get_data("n") is sparsifier._container.parametrizations.n.original,
        layouts,
        sorted(state),
        other,
        other.get_mask("e"),
    )


def program_data_schedules(lib):
    base = part(lib, "ao.pruning._experimental.data_scheduler").BaseDataScheduler

    class Halving(base):
        def get_schedule_param(self):
            return {name: v * 0.5**self.last_epoch for name, v in self.base_param.items()}

    sparsifier = part(lib, DATA).DataNormSparsifier([("a", spread(lib, 4, 8))])
    scheduler = Halving(sparsifier, "sparsity_level")
    found = []
    for _ in range(3):
        sparsifier.step()
        scheduler.step()
        found.append(scheduler.get_last_param())
    return found, scheduler.state_dict(), scheduler


def program_quantized_embeddings(lib):
    quantize = part(lib, f"{DATA}.quantization_utils").post_training_sparse_quantize
    sparsifier, found = part(lib, DATA).DataNormSparsifier, []
    for first in (True, False):
        model = lib.nn.Module()
        model.e = filled(lib, lib.nn.Embedding(4, 8))
        model.b = filled(lib, lib.nn.EmbeddingBag(3, 4, mode="sum"))
        quantize(model, sparsifier, first, None, sparsity_level=0.5, sparse_block_shape=(1, 2))
        found += [model.e.weight().int_repr(), model.b.weight().int_repr(), model]
    return found


def program_activations(lib):
    name = "ao.pruning._experimental.activation_sparsifier.activation_sparsifier"
    model = two_layers(lib)
    sparsifier = part(lib, name).ActivationSparsifier(
        model,
        aggregate_fn=lambda total, new: total + new,
        reduce_fn=lambda total: total.abs().mean(0, keepdim=True),
        mask_fn=lambda mean, threshold: (mean > threshold).float(),
        threshold=0.7,
    )
    sparsifier.register_layer(model[0])
    sparsifier.register_layer(model[2][0], features=[0, 2], feature_dim=1, threshold=0.05)
    x = spread(lib, 3, 8)
    model(x)
    model(2 * x)
    before = sparsifier.get_mask("0").tolist()
    sparsifier.step()
    shown = repr(sparsifier)
    state = sparsifier.state_dict()
    kinds = sorted(state), sorted(state["data_groups"]["0"])
    sparsifier.squash_mask()
    return before, sparsifier.get_mask("0"), sparsifier.get_mask("2.0"), shown, kinds, model(x)


def network(lib, kind, bias=True, padding=0):
    """A small model of the kind, and an input of it."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            if kind.startswith("linear"):
                self.a, self.b = nn.Linear(4, 6, bias=bias), nn.Linear(6, 3, bias=bias)
            else:
                self.a = nn.Conv2d(2, 6, 3, bias=bias)
                self.b = nn.Conv2d(6, 3, 3, bias=bias, padding=padding)
            self.act, self.pool, self.flat = nn.Tanh(), nn.MaxPool2d(2), nn.Flatten()
            self.mean, self.last = nn.AdaptiveAvgPool2d((1, 2)), nn.Linear(6, 2)

        def forward(self, x):
            x = self.a(x)
            if "act" in kind:
                x = self.act(x)
            if "relu" in kind:
                x = F.relu(x)
            if "pool" in kind:
                x = self.pool(x)
            if "max" in kind:
                x = F.max_pool2d(x, 2)
            if "late" in kind:
                x = F.leaky_relu(x)
            x = self.b(x)
            return self.last(self.flat(self.mean(x))) if "flat" in kind else x

    shape = (3, 4) if kind.startswith("linear") else (2, 2, 10, 10)
    return filled(lib, Net()), spread(lib, *shape)


def pruned(lib, model, x, config, make="SaliencyPruner", defaults=None):
    pruner = getattr(part(lib, PRUNER), make)(defaults or {})
    pruner.prepare(model, config)
    pruner.step()
    before, found = model(x), masks(pruner)
    smaller = pruner.prune()
    after = smaller(x)
    parameters = {name: tensor.tolist() for name, tensor in smaller.state_dict().items()}
    return found, before.tolist(), after.tolist(), parameters, repr(smaller).split("\n\n")[0]


KINDS = (
    "linear",
    "linear act",
    "linear relu",
    "conv",
    "conv act",
    "conv relu pool",
    "conv act max",
    "conv pool late",
    "conv relu flat",
)
OPTIONS = ({}, {"bias": False}, {"prune_bias": False}, {"padding": 1, "prune_bias": False})


def cut_between(lib, kind, bias=True, padding=0, **options):
    """The first of two layers cut by half: masks, outputs, parameters and text."""
    config = [{"tensor_fqn": "a.weight", "sparsity_level": 0.5, **options}]
    return pruned(lib, *network(lib, kind, bias, padding), config)


def program_cut_channels(lib):
    return [cut_between(lib, kind, **options) for kind in KINDS for options in OPTIONS]


def program_cut_all(lib):
    model, x = network(lib, "conv relu flat")
    config = [{"tensor_fqn": f"{name}.weight"} for name in ("a", "b", "last")]
    return pruned(lib, model, x, config, defaults={"sparsity_level": 0.4})


def program_fpgm(lib):
    found = []
    for level in (-0.1, 0, 0.3, 0.5, 0.9, 1.0):
        for dist in (None, 1, 2):
            pruner = part(lib, PRUNER).FPGMPruner(level, dist)
            model = lib.nn.Sequential(lib.nn.Conv2d(2, 7, 3), lib.nn.Linear(4, 6))
            found.append(masks(stepped(lib, pruner, filled(lib, model))))
    return found


def recurrent(lib, layers, norm):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.LSTM(4, 6, layers, batch_first=True)
            self.n = nn.LayerNorm(6) if norm else None
            self.l = nn.Linear(6, 3)

        def forward(self, x):
            y, _ = self.r(x)
            return self.l(self.n(y) if norm else y)

    return filled(lib, Net()), spread(lib, 2, 5, 4)


def program_lstm(lib):
    found = []
    for layers, cut, norm in ((1, (0,), False), (1, (0,), True), (2, (0, 1), False)):
        names = [f"r.weight_{kind}_l{layer}" for layer in cut for kind in ("ih", "hh")]
        config = [{"tensor_fqn": name, "sparsity_level": 0.5} for name in names]
        model, x = recurrent(lib, layers, norm)
        found.append(pruned(lib, model, x, config, "LSTMSaliencyPruner"))
    return found


def program_masks_as_parametrizations(lib):
    pruner = part(lib, PRUNER)
    fake = pruner.FakeStructuredSparsity(lib.tensor([True, False]))
    flat = part(lib, "ao.pruning").FakeSparsity(lib.tensor([1.0, 0.0]))
    return (
        *(fake(lib.ones(2, *rest)) for rest in ((), (3,), (3, 1, 1))),
        (fake.state_dict(), flat.state_dict(), fake, flat, flat(lib.ones(2))),
        sorted(k for k, v in vars(pruner).items() if isinstance(v, type)),
    )


def _weight_norm(lib, *args, config=None, **kwargs):
    return stepped(lib, part(lib, "ao.pruning").WeightNormSparsifier(*args, **kwargs), None, config)


# Wrong calls: PyTorch's exception class is expected.
ERRORS = {
    "norm": lambda lib: _weight_norm(lib, norm=3),
    "zeros per block": lambda lib: _weight_norm(lib, zeros_per_block=5),
    "negative zeros": lambda lib: _weight_norm(lib, zeros_per_block=-1),
    "no matrix": lambda lib: _weight_norm(lib, config=[{"tensor_fqn": "0.bias"}]),
    "no name": lambda lib: _weight_norm(lib, config=[{"x": 1}]),
    "no dict": lambda lib: _weight_norm(lib, config=["0.weight"]),
    "no module": lambda lib: _weight_norm(lib, config=[{"tensor_fqn": "9.weight"}]),
    "no tensor": lambda lib: _weight_norm(lib, config=[{"tensor_fqn": "0.nope"}]),
    "contradiction": lambda lib: _weight_norm(
        lib, config=[{"tensor_fqn": "0.weight", "module_fqn": "1"}]
    ),
    "kept": lambda lib: _weight_norm(lib).squash_mask(("nope",)),
    "no mapping": lambda lib: _weight_norm(lib).convert(two_layers(lib)),
    "unprepared": lambda lib: (
        part(lib, "ao.pruning")
        .WeightNormSparsifier()
        .load_state_dict(_weight_norm(lib).state_dict())
    ),
    "abstract": lambda lib: part(lib, "ao.pruning").BaseSparsifier(),
    "even": lambda lib: stepped(lib, part(lib, "ao.pruning").NearlyDiagonalSparsifier(2)),
    "wide": lambda lib: stepped(lib, part(lib, "ao.pruning").NearlyDiagonalSparsifier(11)),
    "mask shape": lambda lib: part(lib, "ao.pruning").FakeSparsity(lib.ones(2))(lib.ones(3)),
    "functions": lambda lib: part(lib, "ao.pruning").LambdaSL(_weight_norm(lib), [abs] * 3),
    "no schedule": lambda lib: part(lib, "ao.pruning").BaseScheduler(_weight_norm(lib)),
    "values": lambda lib: part(lib, "ao.pruning").CubicSL(_weight_norm(lib), init_t=[1]),
    "data norm": lambda lib: part(lib, DATA).DataNormSparsifier(norm="L3"),
    "data class": lambda lib: part(lib, DATA).DataNormSparsifier([("a", 3)]),
    "data name": lambda lib: part(lib, DATA).DataNormSparsifier().get_mask("zz"),
    "data model": lambda lib: part(lib, DATA).DataNormSparsifier().prepare(None, None),
    "data rank": lambda lib: part(lib, DATA).DataNormSparsifier([("a", lib.ones(2, 3, 4))]).step(),
    "dist": lambda lib: part(lib, PRUNER).FPGMPruner(0.5, 3),
    "rows": lambda lib: part(lib, PRUNER).FakeStructuredSparsity(lib.ones(2))(lib.ones(3)),
    "no level": lambda lib: stepped(lib, part(lib, PRUNER).SaliencyPruner({})),
    "level": lambda lib: stepped(lib, part(lib, PRUNER).SaliencyPruner({"sparsity_level": 2.0})),
}
