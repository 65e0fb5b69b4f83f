"""DTensor: made of parts and of whole tensors, under other placements, with gradients."""

import pickle

import facula
import pytest
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from facula.distributed.tensor._utils import compute_local_shape_and_global_offset
from facula.distributed.tensor.placement_types import _StridedShard

S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()


def on_mesh(shape, work):
    """What `work` returns at each rank of a mesh."""
    count = facula.Size(shape).numel()
    return threads.run(lambda rank: work(init_device_mesh("cpu", shape)), count)


@pytest.mark.parametrize("rows", [4, 3, 1])
@pytest.mark.parametrize("before", [S0, S1, R, P])
@pytest.mark.parametrize("after", [S0, S1, R])
def test_redistributed_tensors_keep_their_values(rows, before, after):
    whole = facula.arange(rows * 5.0).reshape(rows, 5)

    def work(mesh):
        x = distribute_tensor(whole, mesh, [before])
        y = x.redistribute(placements=[after])
        shape, _ = compute_local_shape_and_global_offset(whole.shape, mesh, [after])
        assert tuple(y.to_local().shape) == shape
        assert y.placements == (after,)
        return facula.equal(y.full_tensor(), whole)

    assert on_mesh((2,), work) == [True, True]


@pytest.mark.parametrize("before", [(S0, S0), (S0, S1), (S1, S0), (S0, R), (P, S1), (P, P)])
@pytest.mark.parametrize("after", [(S0, S0), (S1, S1), (R, S0), (S1, R), (R, R)])
def test_two_dimensions_of_a_mesh(before, after):
    whole = facula.arange(35.0).reshape(5, 7)

    def work(mesh):
        y = distribute_tensor(whole, mesh, before).redistribute(placements=after)
        shape, offset = compute_local_shape_and_global_offset(whole.shape, mesh, after)
        rows, columns = (slice(o, o + n) for o, n in zip(offset, shape, strict=True))
        return facula.equal(y.to_local(), whole[rows, columns])

    assert on_mesh((2, 2), work) == [True] * 4


def test_strided_shards_interleave_pieces():
    whole = facula.arange(11.0)

    def work(mesh):
        spread = (_StridedShard(0, split_factor=2), S0)
        x = distribute_tensor(whole, mesh, spread)
        assert facula.equal(x.full_tensor(), whole)
        return x.to_local().tolist()

    assert on_mesh((2, 2), work) == [[0, 1, 2], [6, 7, 8], [3, 4, 5], [9, 10]]


def test_local_tensors_make_a_whole_and_carry_gradients():
    def work(mesh):
        rank = mesh.get_rank()
        part = facula.full((2, 3), rank + 1.0, requires_grad=True)
        x = DTensor.from_local(part, mesh, [S0])
        assert x.shape == (4, 3) and not x.is_leaf
        (x.full_tensor() * facula.arange(12.0).view(4, 3)).sum().backward()
        return part.grad.tolist()

    first, second = on_mesh((2,), work)
    assert first == [[0, 1, 2], [3, 4, 5]] and second == [[6, 7, 8], [9, 10, 11]]


def test_run_check_takes_replicas_of_the_first_rank():
    def work(mesh):
        mine = facula.full((2,), float(mesh.get_rank()))
        return DTensor.from_local(mine, mesh, [R], run_check=True).to_local().tolist()

    assert on_mesh((2,), work) == [[0, 0], [0, 0]]


def test_a_module_and_its_optimizer():
    facula.manual_seed(0)
    weight, x = facula.randn(6, 4), facula.randn(5, 4)

    def step(w, x):
        (x @ w.t()).relu().sum().backward()
        facula.optim.Adam([w], lr=0.1).step()
        return w

    alone = step(facula.nn.Parameter(weight.clone()), x)

    def work(mesh):
        w = facula.nn.Parameter(distribute_tensor(weight, mesh, [S0]))
        w = step(w, distribute_tensor(x, mesh, [R]))
        assert isinstance(w, facula.nn.Parameter) and w.grad.placements == (S0,)
        facula.testing.assert_close(w.detach().full_tensor(), alone.detach())
        norm = facula.nn.utils.clip_grad_norm_([w], 1.0)
        facula.testing.assert_close(norm.full_tensor(), alone.grad.norm())

    on_mesh((2,), work)


def test_distribute_module_replicates_what_is_left():
    def work(mesh):
        def partition(name, module, mesh):
            if name == "0":
                module.weight = facula.nn.Parameter(distribute_tensor(module.weight, mesh, [S0]))

        model = facula.nn.Sequential(facula.nn.Linear(3, 4), facula.nn.BatchNorm1d(4))
        model = distribute_module(model, mesh, partition)
        assert model[0].weight.placements == (S0,) and model[0].bias.placements == (R,)
        assert model[1].running_mean.placements == (R,)

    on_mesh((2,), work)


def test_modules_convert_their_parts():
    def work(mesh):
        model = distribute_module(facula.nn.Linear(3, 4), mesh)
        weight = model.weight
        model.double()
        assert model.weight is weight and weight.dtype is facula.float64
        return weight.to_local().dtype, model(
            zeros(2, 3, dtype=facula.float64, device_mesh=mesh)
        ).dtype

    assert on_mesh((2,), work) == [(facula.float64, facula.float64)] * 2


def test_random_tensors_are_those_of_one_process():
    facula.manual_seed(3)
    alone = [facula.randn(5, 3), facula.rand(5, 3)]

    def work(mesh):
        facula.manual_seed(3)
        made = [f(5, 3, device_mesh=mesh, placements=[S0]) for f in (randn, rand)]
        return [facula.equal(m.full_tensor(), a) for m, a in zip(made, alone, strict=True)]

    assert on_mesh((2,), work) == [[True, True]] * 2


def test_factories():
    def work(mesh):
        made = zeros(3, 2, device_mesh=mesh, placements=[S0])
        assert made.shape == (3, 2) and made.to_local().shape[0] == 2 - mesh.get_rank()
        assert ones([4], device_mesh=mesh).placements == (R,)
        with mesh:
            return full((3,), 2.0, placements=[S0]).full_tensor().tolist()

    assert on_mesh((2,), work) == [[2.0, 2.0, 2.0]] * 2


def test_pickles():
    def work(mesh):
        x = distribute_tensor(facula.arange(4.0), mesh, [S0])
        again = pickle.loads(pickle.dumps(x))
        return again.placements == x.placements and again.full_tensor().tolist()

    assert on_mesh((2,), work) == [[0, 1, 2, 3]] * 2


WRONG = {
    "plain": (lambda x, m: x + facula.ones(4, 2), RuntimeError, "plain tensor of shape"),
    "length": (lambda x, m: distribute_tensor(facula.ones(2), m, [S0, S1]), ValueError, "mesh"),
    "dimension": (lambda x, m: distribute_tensor(facula.ones(2), m, [S1]), IndexError, "range"),
    "no mesh": (lambda x, m: zeros(2), RuntimeError, "device mesh"),
    "terms of a whole": (
        lambda x, m: x.redistribute(placements=[R]).redistribute(placements=[P]),
        RuntimeError,
        "from shards alone",
    ),
    "in place": (lambda x, m: x.redistribute(placements=[P]).relu_(), RuntimeError, "write"),
    "no placements": (lambda x, m: x.redistribute(), RuntimeError, "placements"),
    "shape alone": (
        lambda x, m: DTensor.from_local(facula.ones(2), m, [S0], shape=(3,)),
        RuntimeError,
        "together",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_told(name):
    call, error, text = WRONG[name]

    def work(mesh):
        x = distribute_tensor(facula.ones(4, 2), mesh, [S0])
        with pytest.raises(error, match=text):
            call(x, mesh)

    on_mesh((2,), work)


def test_writing_to_a_view_counts_for_its_base():
    def work(mesh):
        row = distribute_tensor(facula.arange(4.0), mesh, [R]).requires_grad_()
        x = zeros(3, 4, device_mesh=mesh)
        x[1].copy_(row)
        assert x.requires_grad and x[1]._base is x
        (x * x).sum().backward()
        return row.grad.full_tensor().tolist(), x.detach().to_local()[1].tolist()

    assert on_mesh((2,), work) == [([0, 2, 4, 6], [0, 1, 2, 3])] * 2


@pytest.mark.parametrize(
    "make",
    [
        lambda p: facula.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: facula.optim.AdamW(p, lr=0.1),
        lambda p: facula.optim.AdamW(p, lr=0.1, foreach=True),
        lambda p: facula.optim.RMSprop(p, lr=0.1, momentum=0.5),
        lambda p: facula.optim.Adagrad(p, lr=0.1),
        lambda p: facula.optim.Adadelta(p, lr=0.1),
        lambda p: facula.optim.Adamax(p, lr=0.1),
        lambda p: facula.optim.NAdam(p, lr=0.1),
        lambda p: facula.optim.RAdam(p, lr=0.1),
        lambda p: facula.optim.Rprop(p, lr=0.1),
        lambda p: facula.optim.ASGD(p, lr=0.1),
    ],
    ids="SGD AdamW foreach RMSprop Adagrad Adadelta Adamax NAdam RAdam Rprop ASGD".split(),
)
def test_optimizers_step_on_parts(make):
    facula.manual_seed(0)
    weight, x = facula.randn(5, 4), facula.randn(3, 4)

    def train(w, x):
        optimizer = make([w])
        for _ in range(3):
            optimizer.zero_grad()
            (x @ w.t()).square().sum().backward()
            facula.nn.utils.clip_grad_norm_([w], 2.0)
            optimizer.step()
        return w.detach()

    alone = train(facula.nn.Parameter(weight.clone()), x)

    def work(mesh):
        w = facula.nn.Parameter(distribute_tensor(weight, mesh, [S0]))
        found = train(w, distribute_tensor(x, mesh, [R]))
        assert found.placements == (S0,)
        facula.testing.assert_close(found.full_tensor(), alone)

    on_mesh((2,), work)
