"""Recorded and compiled programs under the name torch, and the package functorch."""

import textwrap

from alias.processes import run_code


def test_graphs_name_torch_and_functorch_is_found():
    out = run_code(
        textwrap.dedent("""
        import torch
        import functorch
        from functorch.compile import aot_function, make_boxed_func
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch._functorch.aot_autograd import aot_module_simplified
        from torch._decomp import core_aten_decompositions

        assert functorch.make_fx is make_fx and functorch.vmap is torch.vmap
        print(make_fx(lambda x: x.sin() > 0)(torch.ones(2)).code.strip())
        seen = []

        def compiler(graph, inputs):
            seen.append(len(inputs))
            return make_boxed_func(graph.forward)

        x = torch.ones(2, requires_grad=True)
        aot_function(lambda x: x * x, compiler)(x).sum().backward()
        print(x.grad, seen, torch.ops.aten.silu.default in core_aten_decompositions())
        """)
    )
    assert out.split("\n") == [
        "def forward(self, x_1):",
        "    sin = torch.ops.aten.sin.default(x_1);  x_1 = None",
        "    gt = torch.ops.aten.gt.Scalar(sin, 0);  sin = None",
        "    return gt",
        "tensor([2., 2.]) [1, 2] True",
        "",
    ]
