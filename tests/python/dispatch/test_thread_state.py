"""What threads of the engine take over of the thread that calls backward()."""

import facula
from facula.autograd import forward_ad
from facula.overrides import TorchFunctionMode
from facula.utils._python_dispatch import TorchDispatchMode

# Passes within passes that are deeper than this go on on fresh threads.
DEEP = 70


def _at_depth(look):
    """What `look` gives within a backward pass that is `DEEP` passes deep."""
    seen = []

    class Nested(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            if ctx.depth == 0:
                seen.append(look())
            else:
                with facula.enable_grad():
                    leaf = facula.ones(1, requires_grad=True)
                    facula.autograd.backward(Nested.apply(leaf, ctx.depth - 1))
            return gradient, None

    # No method: modes of functions are off while they handle one.
    facula.autograd.backward(Nested.apply(facula.ones(1, requires_grad=True), DEEP))
    return seen[0]


def test_switches_of_autograd():
    def look():
        engine = facula._C
        return engine._is_multithreading_enabled(), engine._is_grad_layout_enforcement_enabled()

    assert _at_depth(look) == (True, True)
    with (
        facula.autograd.set_multithreading_enabled(False),
        facula.autograd.enforce_grad_layout_policy(False),
    ):
        assert _at_depth(look) == (False, False)
    assert _at_depth(look) == (True, True)


def test_function_modes():
    class Noting(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.names.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    with Noting() as outer, Noting() as inner:

        def look():
            before = facula._C._len_torch_function_stack()
            facula.digamma(facula.ones(1))
            with Noting() as own:
                facula.lgamma(facula.ones(1))
            return before, facula._C._len_torch_function_stack(), own.names

        depth, after, own = _at_depth(look)
        assert (depth, after) == (2, 2)
        assert own == ["ones", "lgamma"]
        assert facula._C._len_torch_function_stack() == 2
    assert "digamma" in outer.names and "digamma" in inner.names
    assert facula._C._len_torch_function_stack() == 0


def test_subclasses_switched_off():
    with facula._C.DisableTorchFunctionSubclass():
        assert _at_depth(facula._C._is_torch_function_enabled) is False
    assert _at_depth(facula._C._is_torch_function_enabled) is True


def test_dispatch_modes():
    class Noting(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            self.names.append(str(op))
            return op(*args, **(kwargs or {}))

    with Noting() as mode:
        _at_depth(lambda: facula.digamma(facula.ones(1)))
    assert "aten.digamma.default" in mode.names


def test_autocast_casts_on_the_fresh_thread_and_forgets_there():
    weight = facula.ones(2, 2, requires_grad=True)

    def look():
        with facula.enable_grad():
            return facula.is_autocast_enabled("cpu"), (weight @ weight).dtype

    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert _at_depth(look) == (True, facula.bfloat16)
        assert (weight @ weight).dtype == facula.bfloat16
    assert _at_depth(look) == (False, facula.float32)


def test_hooks_of_saved_tensors():
    packed = []

    def pack(tensor):
        packed.append(tuple(tensor.shape))
        return tensor

    def look():
        with facula.enable_grad():
            return (facula.ones(7, requires_grad=True) ** 2).requires_grad

    with facula.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        assert _at_depth(look)
    assert (7,) in packed


def test_dual_levels():
    def look():
        with facula.no_grad():
            dual = forward_ad.make_dual(facula.full((1,), 3.0), facula.ones(1))
            return forward_ad.unpack_dual(dual * dual).tangent.item()

    with forward_ad.dual_level():
        assert _at_depth(look) == 6.0
