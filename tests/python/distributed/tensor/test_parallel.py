"""Tensor parallel modules compute what they compute in one process, and have its gradients."""

import copy

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from facula.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

S0, S1, R = Shard(0), Shard(1), Replicate()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 6)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.size = width // heads

    def forward(self, x):
        q, k, v = (
            p(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for p in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width=8, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words=10, length=4, width=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, index):
        x = self.words(index) + self.places(facula.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


GPT_PLAN = {
    "words": RowwiseParallel(input_layouts=R),
    "places": RowwiseParallel(input_layouts=R),
    "blocks.*.attention.[qkv]": ColwiseParallel(),
    "blocks.*.attention.out": RowwiseParallel(),
    "blocks.*.mlp.0": ColwiseParallel(),
    "blocks.*.mlp.2": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=R),
}
SEQUENCE_PLAN = {
    "words": RowwiseParallel(input_layouts=R, output_layouts=S1),
    "places": RowwiseParallel(input_layouts=R, output_layouts=S0),
    "blocks.*.norm[12]": SequenceParallel(),
    "blocks.*.attention": PrepareModuleInput(input_layouts=(S1,), desired_input_layouts=(R,)),
    "blocks.*.attention.[qkv]": ColwiseParallel(),
    "blocks.*.attention.out": RowwiseParallel(output_layouts=S1),
    "blocks.*.mlp": PrepareModuleInput(input_layouts=(S1,), desired_input_layouts=(R,)),
    "blocks.*.mlp.0": ColwiseParallel(),
    "blocks.*.mlp.2": RowwiseParallel(output_layouts=S1),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=S1, output_layouts=R),
}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def check(model, plan, inputs, loss, count=2):
    """Compare outputs and gradients of a model with those of a parallel one."""
    output = model(inputs)
    loss(output).backward()
    expected = {n: p.grad.clone() for n, p in model.named_parameters()}

    def work(rank):
        mesh = init_device_mesh("cpu", (count,))
        parallel = parallelize_module(copy.deepcopy(model), mesh, plan)
        parallel.zero_grad()
        found = parallel(inputs)
        loss(found).backward()
        grads = {n: whole(p.grad) for n, p in parallel.named_parameters()}
        return whole(found).detach(), grads

    for found, grads in threads.run(work, count):
        facula.testing.assert_close(found, output.detach())
        assert grads.keys() == expected.keys()
        for name, grad in grads.items():
            facula.testing.assert_close(grad, expected[name], msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("count", [2, 4])
def test_an_mlp(count):
    facula.manual_seed(0)
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    check(MLP(), plan, facula.randn(5, 6), lambda y: y.square().sum(), count)


@pytest.mark.parametrize("plan", [GPT_PLAN, SEQUENCE_PLAN], ids=["tensor", "sequence"])
def test_a_gpt(plan):
    facula.manual_seed(0)
    index = facula.randint(0, 10, (3, 4))
    check(
        GPT(), plan, index, lambda y: nn.functional.cross_entropy(y.flatten(0, 1), index.flatten())
    )


def test_tensor_and_data_parallel():
    facula.manual_seed(0)
    model, x = MLP(), facula.randn(4, 6)
    model(x).square().mean().backward()
    expected = model.up.weight.grad.clone()
    model.zero_grad()
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}

    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        parallel = parallelize_module(copy.deepcopy(model), mesh["tp"], plan)
        mine = x.chunk(2)[mesh.get_local_rank("dp")]
        parallel(mine).square().mean().backward()
        grad = parallel.up.weight.grad.full_tensor()
        facula.distributed.all_reduce(grad, group=mesh.get_group("dp"))
        return grad / 2

    for grad in threads.run(work, 4):
        facula.testing.assert_close(grad, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("classes", [8, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_cut_classes(reduction, classes, weighted):
    facula.manual_seed(0)
    scores, target = facula.randn(6, classes), facula.randint(0, classes, (6,))
    target[2] = -100
    weight = facula.rand(classes) if weighted else None
    alone = scores.clone().requires_grad_()
    loss = nn.functional.cross_entropy(alone, target, weight, reduction=reduction)
    loss.sum().backward()

    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(scores, mesh, [S1]).requires_grad_()
        t = distribute_tensor(target, mesh, [R])
        w = None if weight is None else distribute_tensor(weight, mesh, [R])
        with loss_parallel():
            found = nn.functional.cross_entropy(x, t, w, reduction=reduction)
            assert found.placements == (R,)
            found.sum().backward()
        assert x.grad.placements == (S1,)
        return found.detach().to_local(), x.grad.full_tensor()

    for found, grad in threads.run(work, 2):
        facula.testing.assert_close(found, loss.detach())
        facula.testing.assert_close(grad, alone.grad)


class Pair(nn.Module):
    def forward(self, x, mask=None):
        return x * 2 if mask is None else x * mask


def test_inputs_and_outputs_are_prepared():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = facula.full((1, 2), rank + 1.0)
        style = PrepareModuleInput(input_layouts=S0, desired_input_layouts=R, use_local_output=True)
        given = parallelize_module(Pair(), mesh, style)(x)
        style = PrepareModuleOutput(output_layouts=S0, desired_output_layouts=R)
        returned = parallelize_module(Pair(), mesh, style)(x)
        style = PrepareModuleInputOutput(
            input_layouts=(S0,),
            desired_input_layouts=(R,),
            input_kwarg_layouts={"mask": S0},
            desired_input_kwarg_layouts={"mask": R},
            output_layouts=R,
            desired_output_layouts=S0,
        )
        both = parallelize_module(Pair(), mesh, style)(x, mask=x)
        return given.tolist(), returned.tolist(), both.tolist()

    twice = [[2, 2], [4, 4]]
    assert threads.run(work, 2) == [(twice, twice, [[1, 1]]), (twice, twice, [[4, 4]])]


def test_wrong_plans_are_told():
    def work(rank):
        mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
        with pytest.raises(ValueError, match="one dimension"):
            parallelize_module(MLP(), mesh, ColwiseParallel())
        with pytest.raises(TypeError, match="ParallelStyle"):
            parallelize_module(MLP(), mesh["tp"], [ColwiseParallel()])
        with pytest.raises(NotImplementedError, match="Linear or Embedding"):
            parallelize_module(nn.LayerNorm(2), mesh["tp"], ColwiseParallel())
        with pytest.raises(AssertionError, match="desired_input_layouts"):
            PrepareModuleInput(input_layouts=(S0,), desired_input_layouts=(R, R))
        return True

    assert all(threads.run(work, 2))


def test_names_that_match_nothing_warn():
    def work(rank):
        mesh = init_device_mesh("cpu", (1,))
        with pytest.warns(UserWarning, match="no submodule matches 'sideways'"):
            parallelize_module(MLP(), mesh, {"sideways": ColwiseParallel()})
        return True

    assert threads.run(work, 1) == [True]
