"""Operators made with facula.library, and from C++ in a library of its own."""

import facula
import pytest
from facula import Tensor, library


@pytest.fixture
def lib():
    with library._scoped_library("scratch", "FRAGMENT") as made:
        yield made


@library.custom_op("tests_lib::scale", mutates_args=())
def scale(x: Tensor, w: Tensor, k: int = 2) -> Tensor:
    return x * w * k


@scale.register_fake
def _(x, w, k=2):
    return facula.empty_like(x)


def _scale_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.k = inputs[2]


def _scale_backward(ctx, gradient):
    x, w = ctx.saved_tensors
    return gradient * w * ctx.k, gradient * x * ctx.k, None


scale.register_autograd(_scale_backward, setup_context=_scale_setup)


# --- custom operators


def test_custom_operator():
    x, w = facula.full((2,), 3.0), facula.full((2,), 5.0)
    assert scale(x, w).tolist() == [30.0, 30.0]
    assert facula.ops.tests_lib.scale(x, w=w, k=1).tolist() == [15.0, 15.0]
    assert str(scale._opoverload._schema) == (
        "tests_lib::scale(Tensor x, Tensor w, SymInt k=2) -> Tensor"
    )
    assert repr(scale) == "<CustomOpDef(tests_lib::scale)>"
    assert scale(x.to("meta"), w.to("meta")).shape == (2,)


def test_gradient_of_custom_operator():
    x = facula.full((1,), 3.0, requires_grad=True)
    w = facula.full((1,), 5.0, requires_grad=True)
    y = scale(x, w)
    assert y.grad_fn.name() == "GeneratedBackwardFor_tests_lib_scale_defaultBackward"
    y.backward()
    assert (x.grad.item(), w.grad.item()) == (10.0, 6.0)
    with facula.no_grad():
        assert not scale(x, w).requires_grad


def test_gradient_under_transforms():
    x = facula.full((3,), 3.0)
    assert facula.func.grad(lambda v: scale(v, v).sum())(x).tolist() == [12.0] * 3
    assert facula.vmap(scale, in_dims=(0, None))(x, facula.tensor(2.0)).tolist() == [12.0] * 3
    each = facula.vmap(facula.func.grad(lambda v: scale(v, v)))(x)
    assert each.tolist() == [12.0] * 3


def test_wrong_number_of_gradients():
    @library.custom_op("tests_lib::short", mutates_args=())
    def short(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    short.register_autograd(lambda ctx, g: (g,))
    with pytest.raises(RuntimeError, match=r"expected 2, got 1"):
        short(facula.ones(1, requires_grad=True), facula.ones(1)).backward()


def test_keyword_only_arguments_with_gradient():
    @library.custom_op("tests_lib::keyword", mutates_args=())
    def keyword(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    keyword.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup)
    for given, expected in (({"k": 5.0}, 5.0), ({}, 2.0)):
        x = facula.ones(1, requires_grad=True)
        keyword(x, **given).backward()
        assert x.grad.item() == expected


def test_lists_with_gradient():
    @library.custom_op("tests_lib::listed", mutates_args=())
    def listed(xs: list[Tensor], k: int) -> list[Tensor]:
        return [x * k for x in xs]

    listed.register_autograd(lambda ctx, gs: ([g * 3 for g in gs], None))
    a, b = (facula.ones(1, requires_grad=True) for _ in range(2))
    results = listed([a, b], 3)
    assert type(results) is list
    (results[0] + results[1] * 2).backward()
    assert (a.grad.item(), b.grad.item()) == (3.0, 6.0)


def test_results_must_not_share_memory():
    @library.custom_op("tests_lib::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    @library.custom_op("tests_lib::part", mutates_args=())
    def part(x: Tensor) -> Tensor:
        return x[:1]

    for op in (same, part):
        with pytest.raises(RuntimeError, match="alias"):
            op(facula.ones(2))


def test_written_arguments_count_versions():
    @library.custom_op("tests_lib::bump", mutates_args={"x"})
    def bump(x: Tensor) -> None:
        x.add_(1)

    x = facula.zeros(1)
    assert bump(x) is None and x.item() == 1.0 and x._version > 0
    with pytest.raises(RuntimeError, match="non-functional"):
        bump.register_autograd(lambda ctx: None)


def test_kernels_by_device():
    @library.custom_op("tests_lib::by_device", mutates_args=(), device_types="cpu")
    def by_device(x: Tensor) -> Tensor:
        return x + 1

    assert by_device(facula.ones(1)).item() == 2.0
    with pytest.raises(RuntimeError, match="no fake impl"):
        by_device(facula.ones(1, device="meta"))
    by_device.register_fake(lambda x: facula.empty_like(x))
    assert by_device(facula.ones(3, device="meta")).shape == (3,)

    @by_device.register_kernel("cpu")
    def _(x):
        return x + 10

    assert by_device(facula.ones(1)).item() == 11.0
    with by_device.set_kernel_enabled("cpu", False):
        assert by_device(facula.ones(1)).item() == 2.0
    assert by_device(facula.ones(1)).item() == 11.0
    with pytest.raises(RuntimeError):
        by_device.register_kernel("nowhere", lambda x: x)


def test_a_second_definition_takes_the_place_of_the_first():
    for k in (2, 3):
        made = library.custom_op(
            "tests_lib::again", mutates_args=(), schema="(Tensor x) -> Tensor"
        )(lambda x, k=k: x * k)
        assert made(facula.ones(1)).item() == k == facula.ops.tests_lib.again(facula.ones(1)).item()


def test_batching_rule():
    seen = []

    @library.custom_op("tests_lib::batched", mutates_args=())
    def batched(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @batched.register_vmap
    def _(info, in_dims, x, y):
        seen.append((info.batch_size, info.randomness, in_dims))
        return batched(x, y), 0

    x, y = facula.ones(2, 3), facula.ones(3)
    assert facula.vmap(batched, in_dims=(0, None))(x, y).tolist() == [[2.0] * 3] * 2
    nested = facula.vmap(facula.vmap(batched))(x, x)
    assert nested.tolist() == [[2.0] * 3] * 2
    assert seen == [(2, "error", (0, None)), (3, "error", (0, 0)), (2, "error", (0, 0))]
    assert batched(y, y).tolist() == [2.0] * 3


def test_autocast_rule():
    @library.custom_op("tests_lib::half", mutates_args=())
    def half(x: Tensor, n: int) -> Tensor:
        return x * n

    half.register_autocast("cpu", facula.bfloat16)
    x = facula.ones(2)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert half(x, 2).dtype == facula.bfloat16
        assert half(x.double(), 2).dtype == facula.float64
    assert half(x, 2).dtype == facula.float32
    with pytest.raises(ValueError):
        half.register_autocast(3, facula.bfloat16)


def test_rule_for_a_subclass_and_a_mode():
    class Sub(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("the rule comes first")

    class Mode(facula.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @library.custom_op("tests_lib::ruled", mutates_args=())
    def ruled(x: Tensor) -> Tensor:
        return x + 1

    ruled.register_torch_dispatch(
        Sub, lambda cls, func, types, args, kwargs: facula.full((1,), 7.0)
    )
    ruled.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: facula.zeros(1))
    assert ruled(Tensor._make_subclass(Sub, facula.ones(1))).item() == 7.0
    with Mode():
        assert ruled(facula.ones(1)).item() == 0.0
    assert ruled(facula.ones(1)).item() == 2.0


BAD_OPERATORS = {
    "no namespace": (ValueError, dict(name="scale", fn=lambda x: x, schema="(Tensor x) -> Tensor")),
    "no annotation": (ValueError, dict(name="tests_lib::bad", fn=lambda x: x)),
    "other mutation": (
        ValueError,
        dict(
            name="tests_lib::bad", fn=lambda x: x, mutates_args={"x"}, schema="(Tensor x) -> Tensor"
        ),
    ),
    "bad schema": (RuntimeError, dict(name="tests_lib::bad", fn=lambda x: x, schema="(Tensor")),
}


@pytest.mark.parametrize("name", BAD_OPERATORS)
def test_bad_operators(name):
    error, options = BAD_OPERATORS[name]
    options = {"mutates_args": (), **options}
    with pytest.raises(error):
        library.custom_op(options.pop("name"), options.pop("fn"), **options)


# --- libraries


def test_define_and_implement(lib):
    assert lib.define("f(Tensor x) -> Tensor") == "f"
    f = facula.ops.scratch.f
    with pytest.raises(NotImplementedError):
        f(facula.ones(1))
    lib.impl("f", lambda x: x + 1, "CPU")
    assert f(facula.ones(1)).item() == 2.0
    lib.impl("f", lambda x: x + 2, "CPU")
    assert f(facula.ones(1)).item() == 3.0
    lib._destroy()
    assert not hasattr(facula.ops.scratch, "f")


def test_a_name_that_went_can_come_back():
    for value in (1.0, 2.0):
        with library._scoped_library("comes_back", "DEF") as made:
            made.define("f(Tensor x) -> Tensor")
            made.impl("f", lambda x, value=value: x * value, "CPU")
            assert facula.ops.comes_back.f(facula.ones(1)).item() == value


def test_kernels_wait_for_their_operator(lib):
    lib.impl("later", lambda x: x * 4, "CPU")
    lib.define("later(Tensor x) -> Tensor")
    assert facula.ops.scratch.later(facula.ones(1)).item() == 4.0


def test_fallthrough_passes_a_layer_by(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    lib.impl("f", lambda x: x + 100, "Autograd")
    assert facula.ops.scratch.f(facula.ones(1, requires_grad=True)).item() == 101.0
    lib.impl("f", library.fallthrough_kernel, "Autograd")
    assert facula.ops.scratch.f(facula.ones(1, requires_grad=True)).item() == 2.0
    with pytest.raises(NotImplementedError):
        library.fallthrough_kernel()


def test_kernels_of_existing_operators():
    with library._scoped_library("aten", "IMPL") as made:
        made.impl("neg", lambda x: facula.full_like(x, 42.0), "CPU")
        assert facula.neg(facula.ones(1)).item() == 42.0
        before = library.get_kernel("aten::neg", "CPU")
        assert before(facula.ones(1)).item() == 42.0
    assert facula.neg(facula.ones(1)).item() == -1.0


def test_fallback_of_a_backend(lib):
    lib.define("nowhere(Tensor x) -> Tensor")
    with library._scoped_library("_", "IMPL") as made:
        made.fallback(lambda op, *args: args[0] * 3, "CPU")
        assert facula.ops.scratch.nowhere(facula.ones(1)).item() == 3.0
    with pytest.raises(NotImplementedError):
        facula.ops.scratch.nowhere(facula.ones(1))


WRONG = {
    "kind": (ValueError, lambda lib: library.Library("q", "X")),
    "reserved": (ValueError, lambda lib: library.Library("prim", "DEF")),
    "second DEF": (RuntimeError, lambda lib: library.Library("aten", "DEF")),
    "define in IMPL": (RuntimeError, lambda lib: library.Library("q", "IMPL").define("z() -> ()")),
    "defined twice": (RuntimeError, lambda lib: [lib.define("z() -> ()") for _ in range(2)]),
    "schema": (RuntimeError, lambda lib: lib.define("f(Tensor")),
    "alias analysis": (RuntimeError, lambda lib: lib.define("z() -> ()", alias_analysis="X")),
    "no callable": (TypeError, lambda lib: lib.impl("f", 3)),
    "dispatch key": (RuntimeError, lambda lib: lib.impl("f", print, "NoKey")),
    "unsupported key": (NotImplementedError, lambda lib: lib.impl("f", print, "ADInplaceOrView")),
    "with_keyset": (NotImplementedError, lambda lib: lib.impl("f", print, "CPU", with_keyset=True)),
    "operator's name": (RuntimeError, lambda lib: lib.impl(3, print)),
    "fallback's namespace": (RuntimeError, lambda lib: lib.fallback(print, "CPU")),
    "fallback's key": (AssertionError, lambda lib: lib.fallback(print)),
    "qualname": (ValueError, lambda lib: library.define("noname", "() -> ()")),
    "qualname's type": (ValueError, lambda lib: library.define(3, "() -> ()")),
    "device type": (RuntimeError, lambda lib: library.impl("aten::neg", "nowhere", print)),
    "fake of nothing": (RuntimeError, lambda lib: library.register_fake("aten::nothing", print)),
    "fake's op": (ValueError, lambda lib: library.register_fake(3, print)),
    "kernel's op": (ValueError, lambda lib: library.register_kernel(3, "cpu", print)),
    "vmap of nothing": (RuntimeError, lambda lib: library.register_vmap("aten::nothing", print)),
    "get_kernel": (RuntimeError, lambda lib: library.get_kernel("aten::nothing", "CPU")),
    "triton_op": (NotImplementedError, lambda lib: library.triton_op("a::b", mutates_args=())),
    "wrap_triton": (NotImplementedError, lambda lib: library.wrap_triton(print)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(lib, name):
    error, call = WRONG[name]
    with pytest.raises(error):
        call(lib)


def test_shape_rules_have_a_context(lib):
    """There is one while a rule runs; without a trace no size stands for what data decide."""
    seen = []

    def rule(x):
        seen.append(library.get_ctx())
        return facula.empty_like(x)

    lib.define("seen(Tensor x) -> Tensor")
    library.register_fake("scratch::seen", rule, lib=lib)
    facula.ops.scratch.seen(facula.ones(2, device="meta"))
    assert library.get_ctx() is None
    with pytest.raises(NotImplementedError, match="symbolic"):
        seen[0].new_dynamic_size()


def test_a_shape_rule_waits_for_its_operator():
    library.register_fake("scratch_waits::twice", lambda x: x.new_empty(2 * x.shape[0]))
    lib = library.Library("scratch_waits", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    assert facula.ops.scratch_waits.twice(facula.ones(3, device="meta")).shape == (6,)
    lib._destroy()


def test_operators_complain_with_runtime_errors():
    for call in (lambda: scale(), lambda: scale(1, 2, 3, 4), lambda: scale("x", "y")):
        with pytest.raises(RuntimeError, match="tests_lib::scale"):
            call()


def test_functions_of_the_module():
    library.define("tests_lib::h", "(Tensor x) -> Tensor")

    @library.impl("tests_lib::h", "cpu")
    def _(x):
        return x * 2

    library.register_fake("tests_lib::h", lambda x: facula.empty_like(x))
    assert facula.ops.tests_lib.h(facula.ones(1)).item() == 2.0
    assert facula.ops.tests_lib.h(facula.ones(2, device="meta")).shape == (2,)


# --- opcheck


@library.custom_op("tests_lib::liar", mutates_args=())
def liar(x: Tensor) -> Tensor:
    x.add_(1)
    return x.clone()


@library.custom_op("tests_lib::misshapen", mutates_args=())
def misshapen(x: Tensor) -> Tensor:
    return x[:1].clone()


misshapen.register_fake(lambda x: facula.empty_like(x))


def test_opcheck_passes():
    x = facula.rand(3, requires_grad=True)
    for op, args in (
        (scale, (x, facula.rand(3), 2)),
        (facula.ops.aten.sin.default, (x,)),
        (facula.ops.aten.mm, (facula.rand(2, 3), facula.rand(3, 2))),
    ):
        assert set(library.opcheck(op, args).values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    "op, test", [(liar, "test_schema"), (misshapen, "test_faketensor"), (liar, "test_faketensor")]
)
def test_opcheck_finds(op, test):
    found = library.opcheck(op, (facula.rand(3),), test_utils=test, raise_exception=False)
    assert isinstance(found[test], Exception)
    with pytest.raises(Exception, match=test):
        library.opcheck(op, (facula.rand(3),), test_utils=test)


def test_opcheck_arguments():
    for bad in (
        lambda: library.opcheck(scale, (), test_utils="nope"),
        lambda: library.opcheck(3, ()),
    ):
        with pytest.raises(ValueError):
            bad()


# --- libraries


@pytest.mark.parametrize(
    "path, error",
    [("/nowhere.so", OSError), (__file__, OSError), (3, TypeError), (None, TypeError)],
)
def test_no_library(path, error):
    with pytest.raises(error):
        facula.ops.load_library(path)


def test_an_operator_without_its_implicit_kernel_says_so():
    with library._scoped_library("implicit_gone", "DEF") as a:
        a.define("f(Tensor x) -> Tensor")
        b = library.Library("implicit_gone", "IMPL")
        b.impl("f", lambda x: x + 1, "CompositeImplicitAutograd")
        c = library.Library("implicit_gone", "IMPL")
        x = facula.ones(2, requires_grad=True)
        assert facula.ops.implicit_gone.f(x).grad_fn.name() == "AddBackward0"
        c.impl("f", lambda x: x * 2, "CompositeExplicitAutograd")
        assert facula.ops.implicit_gone.f(x.detach()).tolist() == [2, 2]
        c._destroy()
        assert facula.ops.implicit_gone.f(x).grad_fn.name() == "AddBackward0"
        b._destroy()
        with pytest.raises(NotImplementedError, match="implicit_gone::f"):
            facula.ops.implicit_gone.f(x)
