"""Recurrent networks in both libraries: values, gradients of both orders, states, errors."""

import copy
import io
import itertools

import facula
import pytest
import torch
from facula import func

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
COMMON = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"bidirectional": True, "num_layers": 2},
    {"num_layers": 3, "dropout": 0.5},
    {"num_layers": 2, "dropout": 0.3, "bidirectional": True, "batch_first": True},
]
NETWORKS = [(kind, options) for kind in ("RNN", "GRU", "LSTM") for options in COMMON] + [
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"proj_size": 2, "bidirectional": True, "num_layers": 2}),
    ("LSTM", {"proj_size": 2, "bias": False}),
]
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 6e-2, "float16": 8e-3}


def named(cases):
    """Texts of cases, for pytest."""
    return [f"{kind}-{','.join(f'{k}={v}' for k, v in options.items())}" for kind, options in cases]


def make(lib, kind, options, dtype):
    """A network, an input and an initial state, from one seed; leaves that require grad."""
    lib.manual_seed(3)
    dtype = getattr(lib, dtype)
    network = getattr(lib.nn, kind)(INPUTS, HIDDEN, dtype=dtype, **options)
    shape = (BATCH, STEPS) if options.get("batch_first") else (STEPS, BATCH)
    x = lib.randn(*shape, INPUTS, dtype=dtype).requires_grad_()
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    sizes = [options.get("proj_size", 0) or HIDDEN] + [HIDDEN] * (kind == "LSTM")
    states = [lib.randn(layers, BATCH, n, dtype=dtype).requires_grad_() for n in sizes]
    return network, x, states


def flat(result):
    """All tensors of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [result]


def run(lib, kind, options, dtype, packed, given, second):
    """Results and gradients; their strides."""
    network, x, states = make(lib, kind, options, dtype)
    batch_first = options.get("batch_first", False)
    rnn = lib.nn.utils.rnn
    inputs = x
    if packed:
        inputs = rnn.pack_padded_sequence(x, [2, 5, 4], batch_first, enforce_sorted=False)
    state = None
    if given:
        state = tuple(states) if kind == "LSTM" else states[0]
    output, last = network(inputs, state)
    if packed:
        output = rnn.pad_packed_sequence(output, batch_first, padding_value=0.5)[0]
    results = flat((output, last))
    loss = sum((t * t * t).sum() for t in results)
    leaves = [x, *(states if given else []), *network.parameters()]
    grads = lib.autograd.grad(loss, leaves, create_graph=second)
    if second:
        again = lib.autograd.grad(sum((g * g).sum() for g in grads), leaves)
        grads = [*grads, *again]
    return [*results, *grads], [tuple(t.stride()) for t in results]


def assert_close(ours, theirs, tolerance):
    """Same shapes and dtypes, and values within the tolerance."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        a = torch.tensor(a.detach().double().tolist(), dtype=torch.float64).reshape(b.shape)
        torch.testing.assert_close(
            a, b.detach().double(), rtol=tolerance, atol=tolerance * max(1.0, b.abs().max().item())
        )


WAYS = list(itertools.product((False, True), (False, True)))


@pytest.mark.parametrize(("packed", "given"), WAYS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("kind", "options"), NETWORKS, ids=named(NETWORKS))
def test_values_and_gradients(kind, options, dtype, packed, given):
    """Of whole networks: padded and packed, with and without an initial state."""
    theirs, their_strides = run(torch, kind, options, dtype, packed, given, False)
    ours, our_strides = run(facula, kind, options, dtype, packed, given, False)
    assert_close(ours, theirs, TOLERANCE[dtype])
    assert our_strides == their_strides


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("kind", "options"), NETWORKS, ids=named(NETWORKS))
def test_second_derivatives(kind, options, packed):
    """Gradients of gradients."""
    theirs, _ = run(torch, kind, options, "float64", packed, True, True)
    ours, _ = run(facula, kind, options, "float64", packed, True, True)
    assert_close(ours, theirs, 1e-10)


@pytest.mark.parametrize(("kind", "options"), NETWORKS, ids=named(NETWORKS))
def test_state_dict_and_repr(kind, options):
    """Names, order and shapes of parameters; the same first values; repr; copies."""
    theirs, ours = (make(lib, kind, options, "float32")[0] for lib in (torch, facula))
    assert repr(ours) == repr(theirs)
    assert {k: v.tolist() for k, v in ours.state_dict().items()} == {
        k: v.tolist() for k, v in theirs.state_dict().items()
    }
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [len(w) for w in ours.all_weights] == [len(w) for w in theirs.all_weights]
    x = facula.ones(STEPS, BATCH, INPUTS)
    other = copy.deepcopy(ours.eval())
    stored = io.BytesIO()
    facula.save(ours, stored)
    stored.seek(0)
    for copied in (other, facula.load(stored, weights_only=False)):
        assert copied(x)[0].tolist() == ours(x)[0].tolist()
    assert ours.flatten_parameters() is None


CELLS = [
    ("RNNCell", {}),
    ("RNNCell", {"nonlinearity": "relu", "bias": False}),
    ("GRUCell", {}),
    ("GRUCell", {"bias": False}),
    ("LSTMCell", {}),
    ("LSTMCell", {"bias": False}),
]


def run_cell(lib, kind, options, batched, given):
    lib.manual_seed(5)
    cell = getattr(lib.nn, kind)(INPUTS, HIDDEN, dtype=lib.float64, **options)
    batch = (BATCH,) if batched else ()
    x = lib.randn(*batch, INPUTS, dtype=lib.float64).requires_grad_()
    pair = [lib.randn(*batch, HIDDEN, dtype=lib.float64).requires_grad_() for _ in range(2)]
    state = None
    if given:
        state = tuple(pair) if kind == "LSTMCell" else pair[0]
    results = flat(cell(x, state))
    leaves = [x, *cell.parameters()]
    grads = lib.autograd.grad(sum((t * t).sum() for t in results), leaves, create_graph=True)
    again = lib.autograd.grad(sum((g * g).sum() for g in grads), leaves, allow_unused=True)
    names = [t.grad_fn.name() for t in results]
    return repr(cell), list(cell.state_dict()), names, [*results, *grads, *filter_none(again)]


def filter_none(tensors):
    """Those that are there."""
    return [t for t in tensors if t is not None]


@pytest.mark.parametrize(("batched", "given"), WAYS)
@pytest.mark.parametrize(("kind", "options"), CELLS, ids=named(CELLS))
def test_cells(kind, options, batched, given):
    """One step: values, derivatives, names of nodes, parameters."""
    *theirs, their_values = run_cell(torch, kind, options, batched, given)
    *ours, our_values = run_cell(facula, kind, options, batched, given)
    assert ours == theirs
    assert_close(our_values, their_values, 1e-10)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("packed", [False, True])
def test_autocast(kind, packed):
    """Result dtypes under autocast, and values within those of bfloat16."""
    found = []
    for lib in (torch, facula):
        network, x, _ = make(lib, kind, {}, "float32")
        inputs = lib.nn.utils.rnn.pack_padded_sequence(x, [5, 4, 2]) if packed else x
        with lib.autocast("cpu"):
            output, last = network(inputs)
        output = output.data if packed else output
        output.float().sum().backward()
        found.append(flat((output, last, network.weight_hh_l0.grad)))
    assert_close(found[1], found[0], 0.1)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_transforms(kind):
    """vmap over inputs, grad, and forward mode along a direction."""
    network, x, states = make(facula, kind, {"num_layers": 2}, "float64")
    network.requires_grad_(False)
    x, states = x.detach(), [s.detach() for s in states]
    many = facula.stack([x, x * 2])
    with facula.no_grad():
        batched = func.vmap(lambda t: network(t)[0])(many)
        single = [network(t)[0] for t in many]
    assert facula.allclose(batched, facula.stack(single), rtol=1e-12)

    def loss(t):
        return network(t)[0].pow(2).sum()

    leaf = x.clone().requires_grad_()
    loss(leaf).backward()
    assert facula.allclose(func.grad(loss)(x), leaf.grad, rtol=1e-12)
    direction = facula.randn_like(x)
    tangent = func.jvp(loss, (x,), (direction,))[1]
    assert facula.allclose(tangent, (leaf.grad * direction).sum(), rtol=1e-10)
    with facula.autograd.forward_ad.dual_level():
        dual = facula.autograd.forward_ad.make_dual(x, direction)
        dual_tangent = facula.autograd.forward_ad.unpack_dual(loss(dual)).tangent
    assert facula.allclose(dual_tangent, tangent, rtol=1e-10)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_per_sample_gradients(kind):
    """vmap over grad by way of functional_call gives the gradients of single samples."""
    network, x, _ = make(facula, kind, {}, "float64")
    values = {k: v.detach() for k, v in network.named_parameters()}

    def loss(values, sample):
        return func.functional_call(network, values, (sample.unsqueeze(1),))[0].pow(2).sum()

    found = func.vmap(func.grad(loss), (None, 1))(values, x.detach())
    for i in range(BATCH):
        single = func.grad(loss)(values, x.detach()[:, i])
        for name, grad in single.items():
            assert facula.allclose(found[name][i], grad, rtol=1e-11), name


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("packed", [False, True])
def test_meta(kind, packed):
    """Sizes without data."""
    network = getattr(facula.nn, kind)(INPUTS, HIDDEN, 2, device="meta")
    x = facula.empty(STEPS, BATCH, INPUTS, device="meta")
    if packed:
        x = facula.nn.utils.rnn.pack_padded_sequence(x, [5, 4, 2])
    output, last = network(x)
    output = output.data if packed else output
    assert output.is_meta
    assert output.shape == ((11, HIDDEN) if packed else (STEPS, BATCH, HIDDEN))
    assert flat(last)[0].shape == (2, BATCH, HIDDEN)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_any_number_of_threads_gives_the_same_bits(kind):
    """Forward and backward, with weights that fit a core's cache and such that do not."""
    before = facula.get_num_threads()
    for hidden, batch, name in ((48, 40, "float32"), (420, 9, "float32"), (48, 40, "bfloat16")):
        found = []
        for threads in (1, 2, 3, 8):
            facula.set_num_threads(threads)
            facula.manual_seed(0)
            dtype = getattr(facula, name)
            network = getattr(facula.nn, kind)(32, hidden, bidirectional=True, dtype=dtype)
            x = facula.randn(6, batch, 32).to(dtype).requires_grad_()
            network(x)[0].pow(2).sum().backward()
            grads = [x.grad, *(p.grad for p in network.parameters())]
            found.append([g.tolist() for g in grads])
        facula.set_num_threads(before)
        assert all(f == found[0] for f in found[1:])


def test_eval_mode_has_gradients():
    """What backward needs is kept whenever gradients are wanted."""
    network, x, _ = make(facula, "LSTM", {}, "float64")
    network.eval()
    network(x)[0].sum().backward()
    theirs, y, _ = make(torch, "LSTM", {}, "float64")
    theirs.eval()(y)[0].sum().backward()
    assert_close([x.grad], [y.grad], 1e-12)


def packed_parts(packed):
    """The parts of a PackedSequence as lists."""
    return [None if t is None else t.tolist() for t in packed]


SEQUENCES = {
    "packed": lambda rnn, lib: packed_parts(
        rnn.pack_padded_sequence(lib.arange(30.0).reshape(5, 3, 2), [5, 4, 2])
    ),
    "unsorted": lambda rnn, lib: packed_parts(
        rnn.pack_padded_sequence(
            lib.arange(30.0).reshape(3, 5, 2), lib.tensor([2, 4, 3]), True, enforce_sorted=False
        )
    ),
    "pack_sequence": lambda rnn, lib: packed_parts(
        rnn.pack_sequence([lib.ones(2, 2), lib.ones(4, 2)], enforce_sorted=False)
    ),
    "unpack_sequence": lambda rnn, lib: [
        t.tolist()
        for t in rnn.unpack_sequence(
            rnn.pack_sequence([lib.arange(2), lib.arange(4)], enforce_sorted=False)
        )
    ],
    "padded": lambda rnn, lib: [
        t.tolist()
        for t in rnn.pad_packed_sequence(
            rnn.pack_sequence([lib.arange(4.0), lib.arange(2.0)]), True, -1.0, total_length=6
        )
    ],
    "pad_sequence": lambda rnn, lib: rnn.pad_sequence(
        [lib.arange(4.0), lib.arange(2.0)], padding_value=7, padding_side="left"
    ).tolist(),
    "pad_sequence of a tensor": lambda rnn, lib: rnn.pad_sequence(lib.ones(2, 3)).tolist(),
    "pad_sequence by promotion": lambda rnn, lib: rnn.pad_sequence(
        [lib.ones(2), lib.arange(3)], True
    ).tolist(),
    "unpad_sequence": lambda rnn, lib: [
        t.tolist() for t in rnn.unpad_sequence(lib.ones(4, 2, 2), lib.tensor([2, 4]))
    ],
    "invert_permutation": lambda rnn, lib: rnn.invert_permutation(lib.tensor([2, 0, 1])).tolist(),
    "to": lambda rnn, lib: str(rnn.pack_sequence([lib.ones(2)]).double().data.dtype)[-7:],
    "to itself": lambda rnn, lib: (lambda p: p.cpu() is p and p.to("cpu") is p)(
        rnn.pack_sequence([lib.ones(2)])
    ),
    "repr": lambda rnn, lib: repr(rnn.pack_sequence([lib.ones(2), lib.ones(1)])),
    "grown lengths": lambda rnn, lib: rnn.pack_padded_sequence(lib.ones(5, 2), [1, 2]),
    "no length": lambda rnn, lib: rnn.pack_padded_sequence(lib.ones(5, 2), [1, 0]),
    "too few lengths": lambda rnn, lib: rnn.pack_padded_sequence(lib.ones(5, 2), [1]),
    "a side": lambda rnn, lib: rnn.pad_sequence([lib.ones(2)], padding_side="up"),
    "no sequences": lambda rnn, lib: rnn.pad_sequence([]),
    "no iterable": lambda rnn, lib: rnn.pad_sequence(5),
    "other widths": lambda rnn, lib: rnn.pad_sequence([lib.ones(2, 2), lib.ones(2, 3)]),
    "too short": lambda rnn, lib: rnn.pad_packed_sequence(
        rnn.pack_sequence([lib.ones(4)]), total_length=3
    ),
    "one argument": lambda rnn, lib: rnn.PackedSequence(lib.ones(3)),
    "meta sizes": lambda rnn, lib: rnn.PackedSequence(
        lib.ones(3), lib.tensor([2, 1], device="meta")
    ),
    "no state": lambda rnn, lib: lib.lstm(
        lib.ones(2, 2, 2), (lib.ones(1, 2, 2),), [], True, 1, 0.0, False, False, False
    ),
    "no steps": lambda rnn, lib: lib.nn.GRU(2, 2)(lib.ones(0, 1, 2)),
    "1-D": lambda rnn, lib: lib.nn.GRU(2, 2)(lib.ones(2)),
    "other inputs": lambda rnn, lib: lib.nn.GRU(2, 2)(lib.ones(1, 1, 3)),
    "other dtype": lambda rnn, lib: lib.nn.GRU(2, 2)(lib.ones(1, 1, 2).double()),
    "other state": lambda rnn, lib: lib.nn.GRU(2, 2)(lib.ones(1, 1, 2), lib.ones(1, 2, 2)),
    "flat state": lambda rnn, lib: lib.nn.LSTM(2, 2)(lib.ones(1, 1, 2), (lib.ones(1, 2),) * 2),
    "unbatched": lambda rnn, lib: [
        tuple(t.shape) for t in lib.nn.GRU(2, 3, 2)(lib.ones(4, 2), lib.ones(2, 3))
    ],
    "no batch": lambda rnn, lib: [tuple(t.shape) for t in lib.nn.GRU(2, 3)(lib.ones(4, 0, 2))],
    "hidden_size": lambda rnn, lib: lib.nn.LSTM(2, 0),
    "input_size": lambda rnn, lib: lib.nn.LSTM(2.0, 1),
    "num_layers": lambda rnn, lib: lib.nn.LSTM(2, 1, 0),
    "bias": lambda rnn, lib: lib.nn.LSTM(2, 1, bias=0),
    "batch_first": lambda rnn, lib: lib.nn.RNN(2, 1, batch_first=1),
    "dropout": lambda rnn, lib: lib.nn.LSTM(2, 1, 2, dropout=1.5),
    "proj_size": lambda rnn, lib: lib.nn.LSTM(2, 1, proj_size=1),
    "proj_size of a GRU": lambda rnn, lib: lib.nn.GRU(2, 3, proj_size=1),
    "nonlinearity": lambda rnn, lib: lib.nn.RNN(2, 1, nonlinearity="exp"),
    "nonlinearity of a cell": lambda rnn, lib: lib.nn.RNNCell(2, 1, nonlinearity="exp")(
        lib.ones(1, 2)
    ),
    "mode": lambda rnn, lib: lib.nn.RNNBase("X", 2, 1),
    "cell inputs": lambda rnn, lib: lib.nn.LSTMCell(2, 3)(lib.ones(1, 3)),
    "cell batch": lambda rnn, lib: lib.nn.GRUCell(2, 3)(lib.ones(1, 2), lib.ones(2, 3)),
    "cell dims": lambda rnn, lib: lib.nn.GRUCell(2, 3)(lib.ones(1, 1, 2)),
}


def outcome(call, lib):
    """A value, or the nearest built-in class of an error."""
    try:
        return call(lib.nn.utils.rnn, lib)
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_and_errors(name):
    """Packing, padding, and what is refused."""
    assert outcome(SEQUENCES[name], facula) == outcome(SEQUENCES[name], torch)


def test_dropout_without_layers_to_stand_between_is_warned_of():
    for lib in (facula, torch):
        with pytest.warns(UserWarning, match="dropout=0.5"):
            lib.nn.GRU(2, 3, dropout=0.5)


def test_wrong_operands_raise():
    """Sizes that would lead a kernel out of its memory."""
    x, h = facula.ones(5, 3, 4), facula.ones(3, 6)
    w = [facula.ones(24, 4), facula.ones(24, 6), facula.ones(24), facula.ones(24)]
    tail = (False, [], 2, 6, 1, True, False, False, True)
    good = [x, *w, h, h]
    assert facula.mkldnn_rnn_layer(*good, *tail)[0].shape == (5, 3, 6)
    for i in range(7):
        for bad in (good[i][:-1], good[i].double()):
            args = [*good[:i], bad, *good[i + 1 :]]
            if i in (3, 4) and bad.dtype == facula.float64:
                continue  # biases are read in the type of the sums
            if i == 0 and bad.dtype == facula.float32:
                continue  # fewer steps
            with pytest.raises(RuntimeError):
                facula.mkldnn_rnn_layer(*args, *tail)
    for sizes in ([3, 4], [0], [3, -1], [2, 2], [1 << 62, 1 << 62]):
        with pytest.raises(RuntimeError, match="batch_sizes|batch sizes"):
            facula.mkldnn_rnn_layer(x.reshape(15, 4), *w, h, h, False, sizes, *tail[2:])
    with pytest.raises(RuntimeError, match="mode"):
        facula.mkldnn_rnn_layer(*good, False, [], 7, *tail[3:])
