"""Small names of tensors, dtypes, modules and functions give what PyTorch's give."""

import pickle
import warnings

import facula
import pytest
import torch


def shown(value):
    """A text that is the same for equal values of both libraries."""
    if isinstance(value, (facula.Tensor, torch.Tensor)):
        return str(value.tolist())
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return str(value).replace("facula", "torch")


def outcome(lib, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(call(lib))
        except Exception as error:
            return type(error).__name__


def matrix(lib):
    return lib.arange(6.0).reshape(2, 3)


def set_to(lib):
    x = matrix(lib)
    return [x.is_set_to(y) for y in (x, x.clone(), x.t(), x[:], x.view(3, 2), x[1:])]


def merged(lib, attention, padding):
    layer = lib.nn.MultiheadAttention(4, 2)
    sizes = [
        None if s is None else lib.arange(float(torch.Size(s).numel())).view(s)
        for s in (attention, padding)
    ]
    return layer.merge_masks(*sizes, lib.ones(2, 3, 4))


class Twice:
    """A Function of each library."""

    def __new__(cls, lib):
        class F(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        return F


DTYPES = (
    "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool complex64 complex128 "
    "complex32 uint16 uint32 uint64 float8_e4m3fn float8_e5m2 uint4 int7 bits16 bits1x8".split()
)
CALLS = {
    "bools after the first size": lambda lib: lib.ones(3).view(3, True),
    "bools in a tuple": lambda lib: lib.zeros((2, True)).shape,
    "reshape": lambda lib: lib.ones(3).reshape(3, True),
    "factory": lambda lib: lib.ones(3, True, 2),
    "a bool first": lambda lib: lib.ones(3).view(True, 3),
    "floats": lambda lib: lib.ones(3).view(3, 1.0),
    "0-dim tensors are operands": lambda lib: [
        lib.min(lib.tensor(5), lib.tensor(6)),
        lib.max(lib.tensor([1, 2]), lib.tensor(0)),
        lib.tensor([1, 2]).min(lib.tensor(0)),
        lib.max(lib.tensor([[1, 2]]), 1),
    ],
    "0-dim repeats": lambda lib: lib.ones(2).repeat_interleave(lib.tensor(2)),
    "0-dim sections": lambda lib: lib.ones(4).tensor_split(lib.tensor(2)),
    "is_same_size": lambda lib: [matrix(lib).is_same_size(y) for y in (matrix(lib), lib.ones(3))],
    "is_set_to": set_to,
    "name": lambda lib: matrix(lib).name,
    "const_data_ptr": lambda lib: (lambda x: x.const_data_ptr() == x.data_ptr())(matrix(lib)),
    "detach_": lambda lib: lib.detach_(lib.ones(2, requires_grad=True) * 2).requires_grad,
    "Storage": lambda lib: lib.Storage.__name__,
    "itself": lambda lib: lib.torch is lib,
    "to_dlpack": lambda lib: lib.from_dlpack(lib.to_dlpack(matrix(lib))),
    "repr of max": lambda lib: repr(matrix(lib).max(0)),
    "repr of out": lambda lib: repr(
        lib.sort(matrix(lib), out=(lib.empty(0), lib.empty(0, dtype=lib.int64)))
    ),
    "str of aminmax": lambda lib: str(lib.aminmax(matrix(lib))),
    "merged masks": lambda lib: merged(lib, (3, 3), (2, 3)),
    "masks of heads": lambda lib: merged(lib, (4, 3, 3), (2, 3)),
    "attention mask": lambda lib: merged(lib, (3, 3), None),
    "padding mask": lambda lib: merged(lib, None, (2, 3)),
    "no mask": lambda lib: merged(lib, None, None),
    "cummulative_sizes": lambda lib: lib.utils.data.ConcatDataset([[1, 2], [3]]).cummulative_sizes,
    "requires_grad of a node": lambda lib: (
        Twice(lib).apply(lib.ones(2, requires_grad=True)).grad_fn.requires_grad
    ),
    "attributes of Function": lambda lib: [
        hasattr(lib.autograd.Function, n) for n in ("saved_tensors", "name", "next_functions")
    ],
    "extended": lambda lib: lib.autograd.NestedIOFunction().backward_extended(1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    assert outcome(facula, CALLS[name]) == outcome(torch, CALLS[name])


def test_abbreviations():
    for name in DTYPES:
        if hasattr(facula, name):
            assert getattr(facula, name).abbr == getattr(torch, name).abbr


def test_old_name_warns():
    with pytest.warns(FutureWarning, match="cumulative_sizes"):
        facula.utils.data.ConcatDataset([[1]]).cummulative_sizes  # noqa: B018


def test_all_return_types():
    found = facula.return_types.all_return_types
    ours, theirs = (
        {kind.__name__ for kind in kinds} for kinds in (found, torch.return_types.all_return_types)
    )
    # Decompositions and nested results come with linalg and sparse.
    missing = {
        n
        for n in theirs - ours
        if not n.startswith(("linalg_", "lu_", "svd", "slogdet", "geqrf", "triangular_solve"))
    }
    assert missing == set() and facula.return_types.max in found
    assert pickle.loads(pickle.dumps(found[0])) is found[0]
