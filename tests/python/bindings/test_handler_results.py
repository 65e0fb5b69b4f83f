"""What handlers in Python return is checked before C++ unpacks it: modes, `__torch_dispatch__`,
kernels of facula.library, `__torch_function__`."""

import isolated
import pytest

# Calls whose C++ code goes on with what the handler gave it: text, and whether it has one Tensor as
# its first operator's result.
CALLS = [
    "x.neg()",
    "x + 1",
    "m.diff(x)",
    "m.einsum('ij,jk->ik', x, x)",
    "m.trapezoid(x)",
    "m.nn.functional.bilinear(x, x, m.ones(2, 3, 3))",
    "m.nn.functional.conv2d(m.ones(1, 1, 5, 5), m.ones(1, 1, 2, 2), padding='same')",
    "x.as_subclass(m.nn.Parameter)",
    "x.tolist()",
    "x.sum().tolist()",
    "x.sum().item()",
    "float(x.sum())",
    "bool(x.sum())",
    "x[0]",
    "x[x > 0]",
    "x[[0, 1]]",
    "x.__setitem__(0, 3)",
    "list(x)",
    "m.cat([x, x])",
    "m.split(x, 1)",
    "m.chunk(x, 3)",
    "x.max(0)",
    "m.var_mean(x)",
    "x.sort()",
    "m.nn.functional.linear(x, x, x[0])",
    "m.nn.functional.layer_norm(x, (3,))",
    "m.nn.functional.cross_entropy(x, m.tensor([0, 1, 2]))",
    "m.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])",
    "m.nn.LSTM(3, 2)(x[None])",
    "m.matmul(x, x)",
    "m.tensordot(x, x, 1)",
    "m.cdist(x, x)",
    "m.meshgrid(x[0], x[0], indexing='ij')",
    "m.where(x > 0, x, 0)",
    "m.nonzero(x)",
    "m.unique(x)",
    "m.equal(x, x)",
    "m.allclose(x, x)",
    "x.add_(1)",
    "m.add(x, x, out=m.ones(3, 3))",
    "m._foreach_add([x, x], 1)",
    "m._foreach_add_([x, x], 1)",
    "x.to(m.float64)",
    "x.reshape(9)",
    "x.expand(2, 3, 3)",
    "m.zeros(2)",
    "m.rand(2)",
    "m.tensor([1.0])",
    "m.arange(3)",
    "m.stft(m.ones(64), 16, return_complex=True, window=m.ones(16))",
    "m.nn.functional.interpolate(x[None, None], scale_factor=2)",
    "m.nn.functional.max_pool2d(x[None, None], 2)",
    "m.nn.functional.embedding(m.tensor([0]), x)",
    "m.nn.functional.pad(x, (1, 1), mode='circular')",
    "m.cov(x)",
    "m.histc(x)",
    "m.combinations(x[0])",
    "(y * 2).sum().backward()",
    "m.autograd.grad((y.exp() * y).sum(), y)",
    "m.func.vmap(lambda t: t * 2)(x)",
    "repr(x)",
    "m.save(x, io.BytesIO())",
]
BAD = {
    "none": "None",
    "int": "3",
    "text": "'x'",
    "object": "object()",
    "tuple": "(x,)",
    "list": "[x, x]",
    "empty": "()",
    "nones": "[None, None]",
    "five": "(x,) * 5",
    "scalar": "m.ones(())",
    "strange": "m.ones(0, 2, dtype=m.int64)",
    "mixed": "(x, 3)",
    "huge": "10**30",
    "nan": "float('nan')",
}
# `bad` is made anew for each call, outside of the handler.
BODY = """
import gc, io, sys, warnings
import facula as m
from facula.utils._python_dispatch import TorchDispatchMode
from facula.overrides import TorchFunctionMode
warnings.simplefilter("ignore")

class Dispatch(TorchDispatchMode):
    def __init__(self, returned, after):
        super().__init__()
        self.returned, self.left = returned, after
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.left -= 1
        return func(*args, **(kwargs or {})) if self.left >= 0 else self.returned

class Function(TorchFunctionMode):
    def __init__(self, returned, after):
        super().__init__()
        self.returned, self.left = returned, after
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.left -= 1
        return func(*args, **(kwargs or {})) if self.left >= 0 else self.returned

for call in {calls!r}:
    for after in range(4):
        x = m.arange(9.0).reshape(3, 3)
        y = m.arange(9.0).reshape(3, 3).requires_grad_()
        bad = eval({bad!r})
        try:
            with {mode}(bad, after):
                eval(call)
        except Exception:
            pass
gc.collect()
print("whole")
"""


@pytest.mark.parametrize("mode", ["Dispatch", "Function"])
@pytest.mark.parametrize("name", BAD)
def test_bad_returns_of_modes_crash_nothing(name, mode):
    body = BODY.replace("{calls!r}", repr(CALLS)).replace("{bad!r}", repr(BAD[name]))
    body = body.replace("{mode}", mode)
    assert isolated.run(body, seconds=300).endswith("whole\n")


class Returns:
    """A mode whose handler returns one thing."""

    def __new__(cls, returned):
        from facula.utils._python_dispatch import TorchDispatchMode

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return returned

        return Mode()


def make(m):
    return m.arange(9.0).reshape(3, 3)


# What is called, what the handler returns, and what the error says.
ERRORS = [
    (lambda m, x: x.neg(), lambda x: None, r"aten::neg\(\): .* expected Tensor; got NoneType"),
    (lambda m, x: x.neg(), lambda x: 3, r"aten::neg\(\): .* expected Tensor; got int"),
    (lambda m, x: x.neg(), lambda x: (x,), r"aten::neg\(\): .* expected Tensor; got tuple"),
    (lambda m, x: x.max(0), lambda x: (x, 3), r"result 1 \('indices'\): expected .*; got int"),
    (lambda m, x: x.max(0), lambda x: (x,), r"expected a tuple of 2 results; got tuple of 1"),
    (lambda m, x: x.max(0), lambda x: x, r"expected a tuple of 2 results; got .*Tensor"),
    (
        lambda m, x: m.vmap(lambda row: row.neg())(x),
        lambda x: x[0, 0],
        r"aten::neg\(\): expected a result for each of the 3 examples of vmap\(\); got shape \[\]",
    ),
    (lambda m, x: m.split_copy(x, 1), lambda x: x, r"expected list of Tensors; got .*Tensor"),
    (lambda m, x: m.split_copy(x, 1), lambda x: [x, 3], r"got a list with int at position 1"),
    (lambda m, x: m.equal(x, x), lambda x: "yes", r"expected bool; got str"),
    (lambda m, x: x.sum().item(), lambda x: x, r"_local_scalar_dense\(\): .*; got .*Tensor"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_error_names_operator_result_and_what_came(number):
    import facula as m

    call, returned, text = ERRORS[number]
    x = make(m)
    summed = x.sum()
    with pytest.raises(RuntimeError, match=text), Returns(returned(x)):
        summed.item() if "scalar" in text else call(m, x)


def test_gradients_that_nobody_asked_for_may_be_none():
    import facula as m
    from facula.utils._python_dispatch import TorchDispatchMode

    class Passes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = make(m)[None, None].requires_grad_()
    weight = m.ones(1, 1, 2, 2)
    with Passes():
        m.nn.functional.conv2d(x, weight).sum().backward()
    assert x.grad.shape == x.shape


def test_none_stands_for_what_an_operator_writes():
    import facula as m

    x, out = make(m), m.ones(3, 3)
    with Returns(None):
        assert x.add_(1) is x
        assert m.add(x, x, out=out) is out
    assert x.equal(make(m))


def test_kernels_of_libraries_are_checked_too():
    import facula as m

    library = m.library.Library("handler_results", "DEF")
    library.define("one(Tensor x) -> Tensor")
    library.define("number(Tensor x) -> int")
    library.define("many(Tensor x) -> Tensor[]")
    library.define("nothing(Tensor x) -> ()")
    returned = [None]
    for name in ("one", "number", "many", "nothing"):
        library.impl(name, lambda x: returned[0], "CPU")
    ops, x = m.ops.handler_results, m.ones(2)
    good = {"one": x, "number": 3, "many": [x, x], "nothing": None}
    for name in good:
        for other in good:
            returned[0] = good[other]
            if name == other:
                getattr(ops, name)(x)
                continue
            with pytest.raises(RuntimeError, match=rf"handler_results::{name}\(\).*expected"):
                getattr(ops, name)(x)
    library._destroy()


def test_len_of_overrides_is_no_negative_number():
    import facula as m

    class Short(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -5

    with pytest.raises(ValueError, match="__len__"):
        len(m.ones(2).as_subclass(Short))
