"""In-place, out= and method forms of the table's operators against the function form."""

import facula
import pytest
from samples import load_ops
from samples.checks import assert_same_values, cases, is_tensor, tensors_of, to_array
from samples.common import T, make_arguments, seed_of

DTYPES = {"float32", "complex64", "int64", "bool", "bfloat16"}
OPS = [op for op in load_ops() if not op.nondeterministic and "." not in op.name]


def _names_with(form):
    found = set()
    for row in facula._C._operator_table():
        if form in row["forms"] and row["python_module"] != "nn":
            found |= {row["name"], *filter(None, row["aliases"].split(","))}
    return found


OUT = _names_with("out")


def _starts_with_tensor(sample):
    return bool(sample.args) and isinstance(sample.args[0], T)


def _function_and_arguments(op, index, dtype):
    sample, seed = op.samples[index], seed_of(op, index)
    return getattr(facula, op.name), lambda: make_arguments(facula, sample, dtype, seed)


@pytest.mark.parametrize(
    ("op", "dtype"),
    **cases([o for o in OPS if o.method and hasattr(facula.Tensor, o.name)], DTYPES),
)
def test_method(op, dtype):
    """x.f(...) is f(x, ...)."""
    for index, sample in op.numbered_samples(dtype):
        if not _starts_with_tensor(sample):
            continue
        function, arguments = _function_and_arguments(op, index, dtype)
        args, kwargs = arguments()
        got = getattr(args[0], op.name)(*args[1:], **kwargs)
        args, kwargs = arguments()
        assert_same_values(got, function(*args, **kwargs), op.tolerance, repr(sample))


def _fits(result, self):
    """Whether an in-place form may hold the result: the very shape, and a dtype that casts."""
    return (
        is_tensor(result)
        and result.shape == self.shape
        and facula.can_cast(result.dtype, self.dtype)
    )


@pytest.mark.parametrize(
    ("op", "dtype"),
    **cases([o for o in OPS if o.inplace and hasattr(facula.Tensor, o.name + "_")], DTYPES),
)
def test_inplace(op, dtype):
    """x.f_(...) leaves f(x, ...) in x, gives x itself back and counts one change."""
    for index, sample in op.numbered_samples(dtype):
        if not _starts_with_tensor(sample) or sample.args[0].layout == "expanded":
            continue
        function, arguments = _function_and_arguments(op, index, dtype)
        args, kwargs = arguments()
        expected = function(*args, **kwargs)
        fits = _fits(expected, args[0])
        args, kwargs = arguments()
        self, version = args[0], args[0]._version
        change = getattr(self, op.name + "_")
        try:
            result = change(*args[1:], **kwargs)
        except (RuntimeError, TypeError) as error:
            if fits:
                raise AssertionError(f"{sample}: {error}") from error
            continue
        assert result is self, sample
        assert self._version > version, sample
        if fits:
            assert_same_values(self, expected.to(self.dtype), op.tolerance, repr(sample))


def _as_out(tensors):
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


@pytest.mark.parametrize(
    ("op", "dtype"), **cases([o for o in OPS if o.out and o.name in OUT], DTYPES)
)
def test_out(op, dtype):
    """f(..., out=y) fills y, resizes an empty y, writes through strides and gives y back."""
    tried = 0
    for index, sample in op.numbered_samples(dtype):
        function, arguments = _function_and_arguments(op, index, dtype)
        args, kwargs = arguments()
        expected = tensors_of(function(*args, **kwargs))
        if not all(map(is_tensor, expected)):
            continue
        outs = {
            "fresh": [facula.empty_like(t) for t in expected],
            "empty": [facula.empty(0, dtype=t.dtype) for t in expected],
            "strided": [facula.empty(*t.shape, 2, dtype=t.dtype)[..., 0] for t in expected],
        }
        for kind, out in outs.items():
            args, kwargs = arguments()
            try:
                result = tensors_of(function(*args, **kwargs, out=_as_out(out)))
            except TypeError as error:
                # Not every overload has the form.
                assert "out" in str(error) or "argument" in str(error), error
                break
            tried += 1
            assert all(r is o for r, o in zip(result, out, strict=True)), f"{kind} {sample}"
            assert_same_values(out, expected, op.tolerance, f"out {kind} {sample}")
    assert tried, "no sample can be called with out="


# They convert the input to out's dtype and compute there, as PyTorch does.
COMPUTES_IN_OUT = {"cumsum", "cumprod"}
CASTS = [o for o in OPS if o.out and o.name in OUT - COMPUTES_IN_OUT]


@pytest.mark.parametrize("op", CASTS, ids=lambda o: o.name)
def test_out_of_no_fitting_dtype_raises(op):
    """A result that does not cast to out's dtype raises and leaves out alone."""
    if "float32" not in op.dtype_names():
        pytest.skip("no floating point results")
    function, arguments = _function_and_arguments(op, 0, "float32")
    args, kwargs = arguments()
    expected = tensors_of(function(*args, **kwargs))
    if not all(is_tensor(t) and t.is_floating_point() for t in expected):
        pytest.skip("results are not floating point numbers")
    out = [facula.zeros(t.shape, dtype=facula.int64) for t in expected]
    with pytest.raises((RuntimeError, TypeError)):
        function(*args, **kwargs, out=_as_out(out))
    assert not any(to_array(t).any() for t in out)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **out: facula.unbind_copy(x, 0, **out),
        lambda x, **out: facula.split_copy(x, 1, **out),
        lambda x, **out: facula.split_with_sizes_copy(x, [1, 1], **out),
    ],
    ids=["unbind_copy", "split_copy", "split_with_sizes_copy"],
)
def test_out_is_a_list_of_results(call):
    """Operators with a list of results write into the tensors of a list, and give nothing back."""
    x = facula.arange(6.0).reshape(2, 3)
    expected = call(x)
    out = [facula.empty(t.shape) for t in expected]
    assert call(x, out=out) is None
    assert_same_values(out, list(expected))
    with pytest.raises(RuntimeError, match="must be a list of 2 tensors; got 1"):
        call(x, out=out[:1])


def test_where_and_nonzero_give_coordinates():
    x = facula.tensor([[1, 0], [0, 2]])
    for found in (
        facula.where(x),
        facula.nonzero(x, as_tuple=True),
        x.nonzero(as_tuple=True),
    ):
        assert [columns.tolist() for columns in found] == [[0, 1], [0, 1]]
    assert x.nonzero(as_tuple=False).tolist() == facula.nonzero(x).tolist() == [[0, 0], [1, 1]]


X, Y = facula.arange(6.0).reshape(2, 3) - 2, facula.ones(2, 3)
# The same call in forms that the shortest way serves, and in one that is parsed.
PLAIN = {
    "two tensors": (lambda: facula.add(X, Y), lambda: facula.add(input=X, other=Y)),
    "a result": (
        lambda: facula.add(X, Y, out=facula.empty(2, 3)),
        lambda: facula.add(input=X, other=Y, alpha=1, out=facula.empty(2, 3)),
    ),
    "an int": (lambda: facula.softmax(X, 1), lambda: facula.softmax(X, dim=facula.tensor(1))),
    "a negative int": (lambda: X.softmax(-2), lambda: X.softmax(facula.tensor(-2))),
    "one int of a list": (lambda: X.mean(1), lambda: X.mean([1])),
    "a bool": (lambda: X.sum(1, keepdim=True), lambda: X.sum((1,), True)),
    "another bool": (lambda: X.amax(0, keepdim=False), lambda: X.amax((0,), False)),
    "ints spelled out": (lambda: X.view(3, 2), lambda: X.view(size=(3, 2))),
    "a tuple of ints": (lambda: X.permute((1, 0)), lambda: X.permute(dims=[1, 0])),
    "one int alone": (lambda: X.reshape(-1), lambda: X.reshape(shape=[-1])),
    "a tuple among others": (
        lambda: facula.layer_norm(X, (3,), None, None, 1e-5, True),
        lambda: facula.layer_norm(X, normalized_shape=[3], eps=facula.tensor(1e-5)),
    ),
    "two dimensions": (lambda: X.sum((0, 1)), lambda: X.sum(dim=[0, 1], dtype=facula.float32)),
    "numbers": (lambda: X.clamp(-1, 1.5), lambda: X.clamp(min=-1, max=facula.tensor(1.5))),
    "a number for a tensor": (lambda: X.mul(2), lambda: X.mul(facula.tensor(2.0))),
    "a number in place": (lambda: X.clone().add_(1.5), lambda: X.clone().add_(other=1.5, alpha=1)),
    "nothing for an option": (lambda: X.mean(None), lambda: X.mean(dim=None, dtype=None)),
    "sizes": (lambda: facula.zeros(2, 3), lambda: facula.zeros(size=(2, 3))),
    "tensors": (lambda: facula.cat([X, Y]), lambda: facula.cat(tensors=(X, Y), dim=0)),
    "tensors and an int": (lambda: facula.stack((X, Y), 1), lambda: facula.stack([X, Y], dim=1)),
    "ints and slices": (lambda: X[1, 0:2], lambda: X[..., 1, 0:2]),
    "slices": (lambda: X[:, 1:], lambda: X[..., 1:]),
    "all slices": (lambda: X[:, :], lambda: X[...]),
    "no index": (lambda: X[()], lambda: X[...]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_shortest_way_gives_what_parsing_gives(name):
    plain, parsed = PLAIN[name]
    for call in (plain, plain):  # signatures are made by the first call
        assert_same_values(call(), parsed())
        assert call().stride() == parsed().stride()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: facula.softmax(X, True), TypeError),
        (lambda: facula.softmax(X, 2**70), ValueError),
        (lambda: X.sum(1, keepdim=1), TypeError),
        (lambda: X.sum(1, dim=1), TypeError),
        (lambda: facula.add(X, Y, out=3), TypeError),
        (lambda: facula.add(X, Y, alpha=1, beta=1), TypeError),
        (lambda: facula.cat([X, 3]), TypeError),
        (lambda: facula.cat([]), ValueError),
        (lambda: X.view(3, 2.0), TypeError),
        (lambda: X[0, 0, 0], IndexError),
        (lambda: X[:, 3], IndexError),
        (lambda: X[:, ::-1], ValueError),
        (lambda: facula.ones(())[:, 0], IndexError),
    ],
)
def test_what_the_shortest_way_leaves_to_the_parser(call, error):
    for _ in range(2):
        with pytest.raises(error):
            call()


# Kernels that fill results, composites, and results whose shape follows from the data.
RESIZED = {
    "add": lambda out: facula.add(X, Y, out=out),
    "sum": lambda out: facula.sum(X, 0, out=out),
    "matmul": lambda out: facula.matmul(X, Y.t(), out=out),
    "stack": lambda out: facula.stack([X, Y], out=out),
    "masked_select": lambda out: facula.masked_select(X, X > -1, out=out),
}


@pytest.mark.parametrize("name", RESIZED)
def test_out_with_elements_warns_when_it_is_resized(name):
    fits = RESIZED[name](facula.empty(0))
    RESIZED[name](facula.empty_like(fits))
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        again = RESIZED[name](facula.empty(11, 13))
    assert facula.equal(again, fits)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: facula.linalg.lu_factor_ex(X, out=(t, facula.empty(0, dtype=facula.int32), t)),
        lambda t: facula.aminmax(X, out=(t, t)),
    ],
    ids=["lu_factor_ex", "aminmax"],
)
def test_one_tensor_cannot_be_two_results(call):
    """Its sizes would be those of the last result, and the kernel would write past its end."""
    with pytest.raises(RuntimeError, match="out= must be different tensors; got the same"):
        call(facula.empty(0))
