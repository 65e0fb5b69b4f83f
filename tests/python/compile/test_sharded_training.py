"""A parameter whose memory comes and goes, as in fully sharded training, in compiled functions."""

import gc

import facula
import pytest
from facula import _C

ROWS, INNER, COLUMNS = 64, 512, 256
BYTES = 4 * INNER * COLUMNS
SCALAR = 256  # the block of one: in some runs the compiled step has one more of them alive
# An interpreted backward pass holds the weight's gradient while it is copied; eager hands it over.
MORE = {"aot_eager": BYTES}


@pytest.fixture(autouse=True)
def one_thread():
    """How much scratch memory of threads is alive at a time is chance."""
    before = facula.get_num_threads()
    facula.set_num_threads(1)
    yield
    facula.set_num_threads(before)


class Sharded:
    """A flat parameter with memory while it is used alone; its values are kept elsewhere."""

    def __init__(self):
        self.values = facula.randn(INNER * COLUMNS) * 0.05
        self.flat = facula.nn.Parameter(facula.empty(INNER * COLUMNS))
        self.free()

    def fill(self):
        self.flat.untyped_storage().resize_(BYTES)
        keep = facula.autograd._unsafe_preserve_version_counter(self.flat)
        with facula.no_grad(), keep:
            self.flat.copy_(self.values)

    def free(self):
        self.flat.untyped_storage().resize_(0)

    def forward(self, x):
        self.fill()
        weight = self.flat.view(INNER, COLUMNS)
        y = (x @ weight).relu() @ weight.t()
        self.free()
        return y

    def step(self):
        self.free()
        self.values -= 0.5 * self.flat.grad
        self.flat.grad = None


def train(call, steps=3):
    """Losses, the last values, and the most memory that a step has taken."""
    facula.manual_seed(0)
    sharded = Sharded()
    forward = call(sharded.forward)
    losses, peak = [], 0
    for step in range(steps):
        x = facula.randn(ROWS, INNER)
        if step == steps - 1:
            gc.collect()
            _C._reset_peak_memory_stats()
            before = _C._memory_stats()["allocated"]
        y = forward(x)
        assert sharded.flat.untyped_storage().nbytes() == 0
        y.register_hook(lambda gradient: sharded.fill())
        loss = y.square().mean()
        loss.backward()
        if step == steps - 1:
            peak = _C._memory_stats()["peak_allocated"] - before
        sharded.step()
        losses.append(loss.item())
    return losses, sharded.values, peak


@pytest.mark.parametrize("backend", ["inductor", "eager", "aot_eager"])
def test_training_takes_the_bits_and_the_memory_of_eager(backend):
    losses, values, peak = train(lambda f: facula.compile(f, backend=backend))
    expected, wanted, allowed = train(lambda f: f)
    assert losses == expected and facula.equal(values, wanted)
    assert peak <= allowed + SCALAR + MORE.get(backend, 0)


def test_a_graph_may_hold_the_whole_life_of_the_memory():
    def f(x, weight, values):
        weight.untyped_storage().resize_(24)
        with facula.no_grad():
            weight.copy_(values)
        y = x * weight
        weight.untyped_storage().resize_(0)
        return y.sum()

    codes = []

    def backend(graph_module, example_inputs):
        codes.append(graph_module.code)
        return graph_module.forward

    weight = facula.ones(6)
    weight.untyped_storage().resize_(0)
    compiled = facula.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        assert compiled(facula.ones(6), weight, facula.arange(6.0)).item() == 15
        assert weight.untyped_storage().nbytes() == 0
    assert len(codes) == 1 and codes[0].count("resize_storage_bytes_(") == 2
