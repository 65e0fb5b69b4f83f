"""One kernel per operator, put in from outside, serves its in-place and out= variants too.

facula makes, casts, resizes and checks the results of the toy device's kernels, by the operator's
shape rule: tests/cpp/plugins/toy_device/kernels.cpp only fills what it is given.
"""

import facula
import pytest


def _there(values, dtype=facula.float32, index=0):
    return facula.tensor(values, dtype=dtype).to(f"toy:{index}")


X = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
Y = [2.0, 0.0, -1.0]

# Name, the method in place (if there is one), arguments after self.
OPERATORS = {
    "add": ("add_", lambda: (_there(Y),)),
    "mul": ("mul_", lambda: (_there(Y),)),
    "neg": ("neg_", lambda: ()),
    "lt": ("lt_", lambda: (_there(Y),)),
}


def _on_host(arguments):
    return [a.cpu() if isinstance(a, facula.Tensor) else a for a in arguments]


def _expected(name, *arguments, **keywords):
    return getattr(facula, name)(*_on_host(arguments), **keywords)


class _Counted:
    """Counts the kernels that run within: all the toy's own, each once."""

    def __init__(self, toy):
        self.toy = toy

    def __enter__(self):
        self.native, self.fallback = self.toy.toy_native_calls(), self.toy.toy_fallback_calls()
        return self

    def __exit__(self, *_):
        self.native = self.toy.toy_native_calls() - self.native
        self.fallback = self.toy.toy_fallback_calls() - self.fallback


@pytest.mark.parametrize("name", OPERATORS)
def test_each_variant_runs_the_one_kernel(toy, name):
    in_place, rest = OPERATORS[name]
    x, rest = _there(X), rest()
    expected = _expected(name, x, *rest)
    out = facula.empty((2, 3), dtype=expected.dtype, device="toy")
    changed = x.clone()
    with _Counted(toy) as counted:
        made = getattr(facula, name)(x, *rest)
        given = getattr(facula, name)(x, *rest, out=out)
        same = getattr(changed, in_place)(*rest)
    assert given is out and same is changed
    assert (counted.native, counted.fallback) == (3, 0)
    for result in (made, out):
        assert result.dtype == expected.dtype and str(result.device) == "toy:0"
        assert result.cpu().tolist() == expected.tolist()
    assert changed.cpu().tolist() == expected.to(facula.float32).tolist()


CASTS = {
    "wider": (facula.float32, facula.float64),
    "narrower": (facula.float64, facula.float32),
    "to float": (facula.int64, facula.float32),
    "to complex": (facula.float32, facula.complex64),
    "to half": (facula.float32, facula.float16),
}


@pytest.mark.parametrize("case", CASTS)
def test_out_of_another_dtype_is_cast(toy, case):
    dtype, wanted = CASTS[case]
    x = _there([1.0, 2.0, 3.0], dtype)
    out = facula.empty(3, dtype=wanted, device="toy")
    with _Counted(toy) as counted:
        facula.add(x, x, out=out)
    assert counted.native == 1
    assert out.dtype == wanted and out.cpu().tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("dtype, wanted", [("Float", "Long"), ("Double", "Int"), ("Long", "Bool")])
def test_out_that_cannot_hold_the_result_is_refused(toy, dtype, wanted):
    kinds = {
        "Float": facula.float32,
        "Double": facula.float64,
        "Long": facula.int64,
        "Int": facula.int32,
        "Bool": facula.bool,
    }
    x = _there([1, 2], kinds[dtype])
    out = facula.ones(2, device="toy").to(kinds[wanted])
    text = f"result type {dtype} can't be cast to the desired output type {wanted}"
    with pytest.raises(RuntimeError, match=text):
        facula.mul(x, x, out=out)
    if wanted != "Bool":
        with pytest.raises(RuntimeError, match=text):
            out.mul_(x)
    assert out.cpu().tolist() == [1, 1]


def test_arguments_of_several_dtypes_are_promoted(toy):
    i, f = _there([1, 2], facula.int64), _there([0.5, 1.5], facula.float64)
    cases = {
        "add": ((i, f), facula.float64, [1.5, 3.5]),
        "mul": ((i, 2.5), facula.float32, [2.5, 5.0]),
        "lt": ((i, f), facula.bool, [False, False]),
        "neg": ((_there([1, 2], facula.int32),), facula.int32, [-1, -2]),
    }
    for name, (arguments, dtype, values) in cases.items():
        result = getattr(facula, name)(*arguments)
        assert result.dtype == dtype and result.cpu().tolist() == values, name
    assert (i + i).cpu().tolist() == [2, 4] and facula.add(i, i, alpha=3).cpu().tolist() == [4, 8]
    # Exact beyond what float64 holds.
    big = _there([2**53 + 1], facula.int64)
    assert (big + 1).item() == 2**53 + 2
    # A dtype that the kernels do not know goes by the host, into the same result.
    half = _there([1.5, 2.0], facula.float16)
    assert (half + half).dtype == facula.float16 and (half * half).cpu().tolist() == [2.25, 4.0]


def test_out_of_another_size_is_resized(toy):
    x, y = _there(X), _there(Y)
    expected = (x.cpu() + y.cpu()).tolist()
    empty = facula.empty(0, device="toy")
    facula.add(x, y, out=empty)
    assert empty.shape == (2, 3) and empty.cpu().tolist() == expected
    other = facula.empty(4, device="toy")
    with pytest.warns(UserWarning, match="was resized"):
        facula.add(x, y, out=other)
    assert other.shape == (2, 3) and other.cpu().tolist() == expected
    narrow = facula.empty(6, 2, device="toy")[:3, 0]  # strided, of the right size
    facula.mul(y, y, out=narrow)
    assert narrow.cpu().tolist() == [4.0, 0.0, 1.0] and narrow.stride() == (2,)


def test_strides_and_repeated_dimensions(toy):
    x = _there(X).t()
    assert (x + x).cpu().tolist() == (x.cpu() * 2).tolist()
    wide = _there([[1.0], [2.0]]).expand(2, 3)
    assert (wide * _there(X)).cpu().tolist() == (wide.cpu() * facula.tensor(X)).tolist()
    assert (_there(X)[:, ::2] + 1).cpu().tolist() == (facula.tensor(X)[:, ::2] + 1).tolist()
    assert (facula.ones(0, 3, device="toy") + 1).shape == (0, 3)


def test_in_place_of_a_wrong_shape_is_refused(toy):
    y = _there(Y)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast"):
        y.add_(_there(X))
    with pytest.raises(RuntimeError, match="each element at a place of its own"):
        y.expand(2, 3).add_(1)
    assert y.cpu().tolist() == Y


def test_memory_that_arguments_share(toy):
    base = _there([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RuntimeError, match="shares a part of its memory"):
        facula.add(base[:3], 1, out=base[1:])
    assert base.cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
    facula.add(base, base, out=base)
    assert base.cpu().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_two_results(toy):
    x = _there(X)
    with _Counted(toy) as counted:
        values, places = x.max(1)
    assert (counted.native, counted.fallback) == (1, 0)
    assert values.cpu().tolist() == [3.0, 5.0] and places.cpu().tolist() == [2, 1]
    assert x.max(0, keepdim=True).indices.cpu().tolist() == [[1, 1, 0]]
    out = (facula.empty(0, device="toy"), facula.empty(0, dtype=facula.int64, device="toy"))
    given = facula.max(x, 0, out=out)
    assert given.values is out[0] and given.indices is out[1]
    assert out[0].cpu().tolist() == [4.0, 5.0, 3.0] and out[1].cpu().tolist() == [1, 1, 0]


MIXED = {
    "out on the host": lambda x: facula.add(x, x, out=facula.empty(3)),
    "out on another toy": lambda x: facula.add(x, x, out=facula.empty(3, device="toy:1")),
    "argument on the host": lambda x: x + facula.ones(3),
    "argument on another toy": lambda x: facula.mul(x, facula.ones(3, device="toy:1")),
    "in place": lambda x: facula.ones(3, device="toy:1").add_(x),
    "second of two results": lambda x: facula.max(
        x, 0, out=(facula.empty(0, device="toy"), facula.empty(0, dtype=facula.int64))
    ),
}


@pytest.mark.parametrize("case", MIXED)
def test_devices_that_are_mixed_are_refused(toy, case):
    x = _there([1.0, 2.0, 3.0])
    with _Counted(toy) as counted, pytest.raises(RuntimeError, match="device"):
        MIXED[case](x)
    assert counted.native == 0


def test_a_number_of_the_host_comes_along(toy):
    x = _there([1.0, 2.0])
    assert (x + facula.tensor(2.5, dtype=facula.float64)).dtype == facula.float32
    assert (x + facula.tensor(2.5)).cpu().tolist() == [3.5, 4.5]
    assert (x * facula.tensor(2)).cpu().tolist() == [2.0, 4.0]


def test_gradients_and_versions(toy):
    x = _there([1.0, 2.0]).requires_grad_()
    y = x * 3
    version = y._version
    y.add_(x)
    assert y._version == version + 1
    y.neg().sum().backward()
    assert x.grad.cpu().tolist() == [-4.0, -4.0]
    with pytest.raises(RuntimeError, match="out=.*don't support automatic differentiation"):
        facula.add(x, x, out=facula.empty(2, device="toy"))


def test_meta_and_fake_need_no_kernel(toy):
    before = toy.toy_native_calls()
    assert (facula.ones(2, device="meta") + 1).shape == (2,)
    assert toy.toy_native_calls() == before
