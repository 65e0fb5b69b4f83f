"""Dynamic sizes: graphs that serve other sizes, ranges, conditions, errors."""

import copy

import facula
import pytest
from facula import nn
from facula._dynamo.exc import UserError
from facula.export import Dim, export

A, B = Dim("a"), Dim("b", max=64)


class _Function(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x, y):
        return self.f(x, y)


PROGRAMS = {
    "pointwise": (lambda x, y: x + y, ({0: A}, {0: A})),
    "unnamed_sizes_that_are_equal": (lambda x, y: x + y, ({0: Dim.AUTO}, {0: Dim.AUTO})),
    "product_of_sizes": (lambda x, y: x.reshape(x.shape[0] * x.shape[1]), ({0: A, 1: B}, None)),
    "joined": (lambda x, y: facula.cat([x, y]).reshape(-1, 2), ({0: A}, {0: B})),
    "sliced_by_a_size": (lambda x, y: x.flatten()[: x.shape[0] - 1], ({0: A}, None)),
    "expanded": (lambda x, y: x[:, None].expand(x.size(0), 3, 6) * x.shape[0], ({0: A}, None)),
    "factory": (lambda x, y: facula.zeros(x.shape[0] + 1, 2) + x.shape[0], ({0: A}, None)),
    "remainder": (lambda x, y: facula.zeros(x.shape[0] % 3 + 1), ({0: A}, None)),
    "greater_size": (
        lambda x, y: facula.zeros(facula.sym_max(x.shape[0], 5)) + facula.sym_min(x.shape[0], 3),
        ({0: A}, None),
    ),
    "sizes_returned": (lambda x, y: (x.shape[0], x.shape[0] * 3), ({0: A}, None)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_serves_other_sizes(name):
    function, shapes = PROGRAMS[name]
    x, y = facula.rand(4, 6), facula.rand(4, 6)
    program = export(_Function(function), (x, y), dynamic_shapes=shapes)
    assert program.range_constraints
    decomposed = program.run_decompositions()
    for rows in (4, 7, 2):
        other = facula.rand(rows, 6)
        given = (other, other.clone() if shapes[1] else y)
        expected, got = function(*given), program.module()(*given)
        facula.testing.assert_close(got, expected)
        facula.testing.assert_close(decomposed.module()(*given), expected)


def test_decomposed_program_keeps_what_changes_in_place():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", facula.zeros(1))

        def forward(self, x):
            self.rows.add_(self.rows * 0 + x.shape[0])
            return facula.nn.functional.silu(x.mul(2).flatten()) + self.rows

    module, x = Counter(), facula.rand(4, 6)
    program = export(module, (x,), dynamic_shapes=({0: A},)).run_decompositions()
    assert list(program.graph_signature.buffers_to_mutate.values()) == ["rows"]
    other = facula.rand(9, 6)
    expected = copy.deepcopy(module)(other)
    facula.testing.assert_close(program.module()(other), expected)


def _double_where_large(x, y):
    return x * 2 if x.shape[0] > 2 else x


def test_conditions_narrow_unnamed_sizes():
    x = facula.rand(4, 6)
    program = export(_Function(_double_where_large), (x, x), dynamic_shapes=({0: Dim.AUTO}, None))
    assert str(program.range_constraints) == "{s77: VR[3, int_oo]}"
    with pytest.raises(AssertionError, match=">= 3"):
        program.module()(facula.rand(2, 6), x)


FIXED = {
    "equal_to_a_number": lambda x, y: x + 1 if x.shape[0] == 4 else x,
    "number_asked_for": lambda x, y: x * int(x.shape[0]),
    "loop": lambda x, y: sum(x[i] for i in range(x.shape[0])),
    "size_of_another": lambda x, y: x + y,
    "value_of_a_tensor": lambda x, y: x + facula.tensor(x.shape[0]),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_fixes_a_size_is_an_error_where_it_was_to_be_dynamic(name):
    x = facula.rand(4, 6)
    module = _Function(FIXED[name])
    for wanted in (A, Dim.DYNAMIC):
        with pytest.raises(UserError, match="4 alone"):
            export(module, (x, x), dynamic_shapes=({0: wanted}, None))
    program = export(module, (x, x), dynamic_shapes=({0: Dim.AUTO}, None))
    assert program.range_constraints == {}
    facula.testing.assert_close(program.module()(x, x), module(x, x))


@pytest.mark.parametrize(
    "shapes",
    [{"z": {0: A}}, ({0: A},), ({7: A}, None), ({0: "a"}, None), ({0: 5}, None)],
)
def test_wrong_shapes_raise(shapes):
    x = facula.rand(4, 6)
    with pytest.raises(UserError):
        export(_Function(lambda x, y: x), (x, x), dynamic_shapes=shapes)


def test_named_sizes_keep_their_range():
    x = facula.rand(4, 6)
    with pytest.raises(UserError, match="needs"):
        export(_Function(_double_where_large), (x, x), dynamic_shapes=({0: A}, None))
    program = export(_Function(lambda x, y: x), (x, x), dynamic_shapes=({0: B}, None))
    with pytest.raises(AssertionError, match="<= 64"):
        program.module()(facula.rand(65, 6), x)
