"""facula.nested beside torch.nested: values, lengths, dtypes, gradients, errors, text, files."""

import io
import re

import facula
import pytest
import torch
from nested_cases import CALLS, ERRORS, inputs, numbers

pytestmark = pytest.mark.filterwarnings("ignore")


def plain_parts(result):
    """A result as numbers: of each tensor dtype, shape and values, sequence by sequence."""
    if isinstance(result, (tuple, list)):
        return [plain_parts(item) for item in result]
    if not hasattr(result, "dtype"):
        return result
    if result.is_nested:
        layout = str(result.layout).rpartition(".")[2]
        return [layout, *(plain_parts(part) for part in result.unbind())]
    dtype = str(result.dtype).rpartition(".")[2]
    return dtype, tuple(result.shape), flat(result)


def flat(tensor):
    return pytest.approx(tensor.detach().reshape(-1).tolist(), rel=1e-5, abs=1e-6)


def own(parts):
    """`plain_parts` with lists of numbers in place of what compares them."""
    if isinstance(parts, list):
        return [own(part) for part in parts]
    return (*parts[:2], parts[2].expected) if isinstance(parts, tuple) else parts


@pytest.mark.parametrize("label, call", CALLS, ids=[c[0] for c in CALLS])
def test_results(label, call):
    ours, theirs = (plain_parts(call(lib, inputs(lib)[0])) for lib in (facula, torch))
    assert own(ours) == theirs


def gradients(lib, call):
    made, leaves = inputs(lib)
    results = call(lib, made)
    results = [results] if hasattr(results, "dtype") else list(results)
    parts = [p for r in results for p in (r.unbind() if r.is_nested else [r])]
    total = 0.0
    for part in parts:
        if part.requires_grad:
            total = total + (part * numbers(lib, *part.shape).to(part.dtype)).sum()
    if not isinstance(total, float):
        total.backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


# Others are checked by differences in tests/python/nested: PyTorch lacks many of these gradients.
LEARNING = "add number linear layer_norm embedding sum transpose cat attention".split()


@pytest.mark.parametrize("label", LEARNING)
def test_gradients(label):
    call = dict(CALLS)[label]
    ours, theirs = gradients(facula, call), gradients(torch, call)
    for name, grad in theirs.items():
        if grad is None:
            assert ours[name] is None
        else:
            assert ours[name].reshape(-1).tolist() == pytest.approx(
                grad.reshape(-1).tolist(), rel=1e-4, abs=1e-5
            ), name


@pytest.mark.parametrize("label, call, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(label, call, error):
    for lib in (torch, facula):
        with pytest.raises(error):
            call(lib, inputs(lib)[0])


def text(lib, make):
    text = repr(make(lib)).replace("facula", "torch")
    return re.sub(r"\bj\d+", "j", re.sub(r"0x[0-9a-f]+", "", text))


def made(lib, layout, **options):
    parts = [numbers(lib, 2, 3), numbers(lib, 1, 3)]
    return lib.nested.nested_tensor(parts, layout=getattr(lib, layout), **options)


TEXTS = [
    lambda lib: made(lib, "jagged"),
    lambda lib: made(lib, "jagged", requires_grad=True),
    lambda lib: made(lib, "jagged", requires_grad=True) * 2,
    lambda lib: made(lib, "jagged").transpose(1, 2),
    lambda lib: made(lib, "jagged").shape,
    lambda lib: made(lib, "jagged").stride(),
    lambda lib: made(lib, "strided"),
    lambda lib: made(lib, "strided", requires_grad=True),
    lambda lib: made(lib, "strided", requires_grad=True) * 2,
    lambda lib: made(lib, "strided", dtype=lib.float64),
    lambda lib: lib.nested.nested_tensor([]),
]


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_text(index):
    assert text(facula, TEXTS[index]) == text(torch, TEXTS[index])


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("writer, reader", [(facula, torch), (torch, facula)], ids=["to", "from"])
def test_files(layout, writer, reader):
    file = io.BytesIO()
    nested = made(writer, layout)
    writer.save(nested, file)
    file.seek(0)
    found = reader.load(file, weights_only=reader is facula)
    assert own(plain_parts(found)) == plain_parts(nested) or plain_parts(found) == own(
        plain_parts(nested)
    )


CONSTRUCTED = [
    lambda lib: lib.nested.nested_tensor([[1, 2], [3, 4, 5]], layout=lib.jagged),
    lambda lib: lib.nested.nested_tensor([[1.0], [2.0, 3.0]], dtype=lib.float64),
    lambda lib: lib.nested.nested_tensor(
        [numbers(lib, 2, 3), numbers(lib, 2, 1)], layout=lib.jagged
    ),
    lambda lib: lib.nested.as_nested_tensor(numbers(lib, 2, 3, 2), layout=lib.jagged),
    lambda lib: lib.nested.as_nested_tensor(numbers(lib, 2, 3, 2)),
    lambda lib: jagged(lib, numbers(lib, 5, 2), lib.tensor([0, 2, 5])),
    lambda lib: jagged(lib, numbers(lib, 5, 2), lengths=lib.tensor([2, 3])),
    lambda lib: jagged(lib, numbers(lib, 5, 2), lib.tensor([0, 3, 5]), lib.tensor([1, 2])),
    lambda lib: jagged(lib, numbers(lib, 2, 5), lib.tensor([0, 3, 5]), jagged_dim=2),
    lambda lib: narrowed(lib, lib.tensor([0, 1]), lib.tensor([2, 3])),
    lambda lib: narrowed(lib, 1, lib.tensor([2, 3])),
    lambda lib: narrowed(lib, 1, lib.tensor([2, 3])).contiguous(),
    lambda lib: narrowed(lib, 1, 2) * 2,
    lambda lib: lib.nested.masked_select(numbers(lib, 2, 3), numbers(lib, 2, 3) > 0),
]


def jagged(lib, *args, **options):
    return lib.nested.nested_tensor_from_jagged(*args, **options)


def narrowed(lib, start, length):
    return lib.nested.narrow(numbers(lib, 2, 4, 2), 1, start, length, layout=lib.jagged)


@pytest.mark.parametrize("index", range(len(CONSTRUCTED)))
def test_construction(index):
    ours, theirs = CONSTRUCTED[index](facula), CONSTRUCTED[index](torch)
    assert own(plain_parts(ours)) == plain_parts(theirs)
    if str(theirs.layout) == "torch.jagged":
        assert ours.offsets().tolist() == theirs.offsets().tolist()
        lengths = [n if n is None else n.tolist() for n in (ours.lengths(), theirs.lengths())]
        assert lengths[0] == lengths[1]
        assert ours.is_contiguous() == theirs.is_contiguous()
