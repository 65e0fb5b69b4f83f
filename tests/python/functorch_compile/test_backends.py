"""Backends for `compile` that split graphs into a forward and a backward part."""

import copy

import facula
import pytest
from facula import nn
from facula._dynamo.backends import common, debugging
from facula.functorch.compile import nop
from facula.fx import symbolic_trace

BACKENDS = (
    debugging.eager,
    debugging.eager_noexcept,
    debugging.aot_eager,
    debugging.aot_eager_default_partitioner,
    debugging.aot_eager_decomp_partition,
)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.rest = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.rest(x)


def _graph():
    facula.manual_seed(0)

    class Tracer(facula.fx.Tracer):
        def is_leaf_module(self, m, name):
            return not isinstance(m, Block)

    block = Block()
    return block, facula.fx.GraphModule(block, Tracer().trace(block))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_transformer_s_block_gives_eager_s_gradients(backend):
    block, graph = _graph()
    eager = copy.deepcopy(block)
    x = (facula.arange(48.0).reshape(2, 3, 8) / 20 - 1).requires_grad_()
    other = x.detach().clone().requires_grad_()
    out = backend(graph, [x])(x)
    out.square().sum().backward()
    expected = eager(other)
    expected.square().sum().backward()
    assert facula.allclose(out, expected, atol=1e-6)
    assert facula.allclose(x.grad, other.grad, atol=1e-5)
    own = dict(graph.named_parameters())
    for name, p in eager.named_parameters():
        assert facula.allclose(own[name].grad, p.grad, atol=1e-5), name


def test_compilers_get_both_parts():
    seen = []

    def compiler(part):
        def compile(graph, inputs):
            seen.append((part, len(inputs)))
            return nop(graph, inputs)

        return compile

    backend = common.aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"))
    f = backend(symbolic_trace(lambda x: x.sin()), [facula.ones(2, requires_grad=True)])
    f(facula.ones(2, requires_grad=True)).sum().backward()
    assert seen == [("forward", 1), ("backward", 2)]


def test_an_exception_in_a_graph_is_told_apart():
    graph = symbolic_trace(lambda x: x.view(7))
    with pytest.raises(RuntimeError, match="captured graph raised"):
        debugging.eager_noexcept(graph)(facula.ones(2))


def test_arguments_for_the_least_memory():
    kwargs = common.mem_efficient_fusion_kwargs(True)
    x = facula.ones(2, requires_grad=True)
    f = common.aot_autograd(**kwargs)(symbolic_trace(lambda x: x.sin().exp()), [x])
    assert facula.allclose(f(x), x.sin().exp())
    assert "decompositions" not in common.mem_efficient_fusion_kwargs(False)
