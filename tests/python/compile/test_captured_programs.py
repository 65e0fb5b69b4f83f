"""Programs whose graphs a backend gets: results, gradients, and how many graphs there are."""

import captured_programs
import facula
import pytest
from facula.utils._pytree import tree_flatten

PROGRAMS = captured_programs.programs()


def check_equal(found, expected):
    """Bits, strides and requires_grad of two nests of results."""
    found, expected = tree_flatten(found)[0], tree_flatten(expected)[0]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if not isinstance(b, facula.Tensor):
            assert a == b
            continue
        assert facula.equal(a, b) and a.dtype == b.dtype and a.stride() == b.stride()
        assert a.requires_grad == b.requires_grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_decomp_partition"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_are_as_many_as_pytorch_makes_and_give_eager_results(name, backend):
    results, expected, counts = captured_programs.run(facula, PROGRAMS[name], backend)
    check_equal(results, expected)
    assert counts == captured_programs.GRAPHS[name]


def gradients(call, function, arguments):
    arguments = [
        a.detach().clone().requires_grad_()
        if isinstance(a, facula.Tensor) and a.dtype.is_floating_point
        else a
        for a in arguments
    ]
    facula.manual_seed(3)
    results = tree_flatten(call(function)(*arguments))[0]
    wanted = [r for r in results if isinstance(r, facula.Tensor) and r.requires_grad]
    loss = sum((r.float() * r.float()).sum() for r in wanted)
    parameters = list(function.parameters()) if hasattr(function, "parameters") else []
    leaves = [a for a in arguments if isinstance(a, facula.Tensor) and a.requires_grad]
    if not wanted:
        return []
    return facula.autograd.grad(loss, parameters + leaves, allow_unused=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "name",
    "pointwise several_results branch_on_data explicit_break linear_model convolutions attention "
    "tuples_of_results no_grad_inside constants_of_modules functions_called loss".split(),
)
def test_gradients_are_those_of_eager(name, backend):
    facula.manual_seed(0)
    function, calls, _ = PROGRAMS[name](facula)
    compiled = lambda f: facula.compile(f, backend=backend)  # noqa: E731
    found = gradients(compiled, function, calls[0])
    check_equal(list(found), list(gradients(lambda f: f, function, calls[0])))
