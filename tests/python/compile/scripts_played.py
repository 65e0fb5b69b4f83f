"""Scripts whose calls are played from stored programs, and what changes between such calls."""

import sys
import threading

import facula
from facula import nn
from facula.nn import functional as F
from skipped_scripts import CALLS, at, calls, net, script


@script(plays=6)
def plain_function(compile):
    f = compile(lambda x, y: (x * 2 + y, [x.sum(dim=0), {"a": y.t(), "n": x.shape[0]}]))
    return calls(f, facula.randn(4, 3), facula.randn(4, 3))


@script(plays=6)
def modules(compile):
    return calls(compile(net()), facula.randn(5, 3))


@script(plays=6)
def keywords_defaults_and_lists_of_arguments(compile):
    @compile
    def f(pair, *, scale=2, shift=None, names=("a",), **rest):
        x, y = pair
        out = x * scale + y
        if shift is not None:
            out = out - shift
        return {name: out + i for i, name in enumerate(names)}, rest["last"] * 1.5

    pair = [facula.randn(3), facula.randn(3)]
    return calls(lambda: f(pair, shift=1.0, names=("p", "q"), last=facula.ones(2)))


@script(plays=6)
def loops_comprehensions_and_closures(compile):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
            self.plain = [1.0, 2.0]
            self.register_buffer("table", facula.arange(3.0))

        @property
        def width(self):
            return self.plain[0] + len(self.blocks)

        def forward(self, x):
            outs = [block(x) for block in self.blocks]
            for i, block in enumerate(self.blocks):
                x = block(x) + self.plain[i % 2]

            def scaled(t):
                return t * self.width

            return scaled(x) + self.table, facula.stack(outs)

    return calls(compile(Deep()), facula.randn(2, 3))


@script(plays=6)
def views_and_inputs_are_returned(compile):
    x = facula.randn(2, 3)

    def see(i):
        seen = f(x)
        return [v is x for v in seen], [v._base is x for v in seen], seen

    f = compile(lambda t: (t, t.t(), t[0], t.view(3, 2), t + 0))
    return [see(i) for i in range(CALLS)]


@script(plays=6)
def an_input_is_changed_in_place(compile):
    x = facula.zeros(3)
    f = compile(lambda t: t.add_(1).mul_(2))
    return calls(lambda: (f(x) is x, x.clone(), x._version))


@script(plays=6)
def a_cache_is_filled(compile):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", facula.zeros(4, 3))

        def forward(self, x, at):
            self.keys.index_copy_(0, at, x)
            return self.keys @ x.t()

    cache = Cache()
    f = compile(cache)
    return [
        (f(facula.randn(1, 3), facula.tensor([i % 4])), cache.keys.clone()) for i in range(CALLS)
    ]


@script(plays=6)
def random_numbers_come_in_order(compile):
    f = compile(lambda x: F.dropout(x, 0.5, True) + facula.rand(3))
    return [calls(f, facula.ones(3)), facula.rand(2)]


@script(plays=5)
def gradients(compile):
    model = net()
    f = compile(model)
    seen = []
    with facula.enable_grad():
        for _ in range(CALLS):
            x = facula.randn(2, 3, requires_grad=True)
            out = f(x)
            out.square().sum().backward()
            seen.append((out, x.grad, [p.grad.clone() for p in model.parameters()]))
            for p in model.parameters():
                p.data -= 0.01 * p.grad
                p.grad = None
    return seen


@script(plays=6)
def aliasing_inputs(compile):
    x, y = facula.zeros(4), facula.ones(4)
    f = compile(lambda a, b: (a.add_(1), b * 2))
    return calls(lambda: f(x, y)) + calls(lambda: f(x, x)) + calls(lambda: f(x, x[:]))


@script(plays=6)
def inference_mode(compile):
    f = compile(net())
    x = facula.randn(2, 3)
    with facula.inference_mode():
        seen = calls(f, x)
    return seen + calls(f, x)


@script(plays=4)
def sizes_change(compile):
    f = compile(lambda x: x.reshape(-1, x.shape[-1]).sum(dim=0) / x.shape[0])
    return [f(facula.randn(2 + i % 3, 2, 3)) for i in range(3 * CALLS)]


@script(plays=4)
def strides_and_dtypes_change(compile):
    f = compile(lambda x: (x * 2, x.is_contiguous(), x.dtype))
    kinds = [facula.randn(3, 3), facula.randn(3, 3).t(), facula.ones(3, 3, dtype=facula.int64)]
    return [f(kinds[i % 3]) for i in range(3 * CALLS)]


# ---- what changes between calls


@script(plays=4)
def a_parameter_is_replaced(compile):
    model = net()

    def change():
        model[0].weight = nn.Parameter(facula.ones(4, 3))

    return calls(compile(model), facula.randn(2, 3), before=at(5, change))


@script(plays=4)
def a_parameter_becomes_another_dtype(compile):
    model = net()
    f = compile(model)
    seen = calls(f, facula.randn(2, 3))
    model.double()
    return seen + calls(f, facula.randn(2, 3, dtype=facula.float64)) + calls(f, facula.randn(2, 3))


@script(plays=4)
def data_of_a_parameter_is_set(compile):
    model = net()

    def change():
        model[0].weight.data = facula.zeros(4, 3)
        with facula.no_grad():
            model[3].bias.fill_(7)

    return calls(compile(model), facula.randn(2, 3), before=at(5, change))


@script(plays=4)
def hooks_come_and_go(compile):
    model, seen = net(), []
    f = compile(model)
    x = facula.randn(2, 3)
    seen += calls(f, x)
    handle = model[1].register_forward_hook(lambda m, i, o: seen.append("hook") or o + 1)
    seen += calls(f, x)
    handle.remove()
    seen += calls(f, x)

    def tell(module, args):
        if type(module) is nn.ReLU:
            seen.append("all")

    handle = nn.modules.module.register_module_forward_pre_hook(tell)
    seen += calls(f, x)
    handle.remove()
    return seen + calls(f, x)


SCALE = 2.0
NOISE = 0


@script(plays=4)
def a_global_changes(compile):
    def change(i):
        globals()["NOISE"] = i  # the dict changes at each call, but not what is read
        globals()["SCALE"] = 2.0 if i < 5 else 3.0

    return calls(compile(lambda x: x * SCALE), facula.ones(2), before=change)


@script(plays=4)
def a_builtin_is_covered(compile):
    f = compile(lambda x: x * len(x.shape))

    def change(i):
        globals().pop("len", None)
        if i in (4, 5):
            globals()["len"] = lambda s: 10

    seen = calls(f, facula.ones(2), before=change)
    globals().pop("len", None)
    return seen


@script(plays=4)
def a_closure_changes(compile):
    scale = 2.0

    def set_scale():
        nonlocal scale
        scale = 5.0

    return calls(compile(lambda x: x * scale), facula.ones(2), before=at(5, set_scale))


@script(plays=4)
def a_list_is_changed(compile):
    factors, settings = [1.0, 2.0], {"bias": 1.0}

    def change(i):
        if i == 4:
            factors.append(3.0)
        if i == 6:
            factors[0] = 9.0
        if i == 8:
            settings["bias"] = -1.0

    @compile
    def f(x):
        for factor in factors:
            x = x * factor
        return x + settings["bias"]

    return calls(f, facula.ones(2), n=12, before=change)


@script(plays=4)
def an_attribute_changes(compile):
    class Scale(nn.Module):
        factor = 2.0

        def forward(self, x):
            return x * self.factor

    model = Scale()

    def change(i):
        if i == 3:
            model.factor = 3.0
        if i == 6:
            del model.factor
        if i == 9:
            Scale.factor = 4.0
        model.unrelated = i

    return calls(compile(model), facula.ones(2), n=12, before=change)


@script(plays=4)
def methods_are_patched(compile):
    model = net()
    forward = nn.ReLU.forward

    def change(i):
        if i == 3:
            model[1].forward = lambda x: x * 100
        if i == 6:
            del model[1].forward
        if i == 9:
            nn.ReLU.forward = lambda self, x: x - 1
        if i == 12:
            nn.ReLU.forward = forward

    return calls(compile(model), facula.randn(2, 3), n=15, before=change)


@script(plays=4)
def a_function_gets_other_code(compile):
    def helper(x, by=2):
        return x * by

    def change(i):
        if i == 3:
            helper.__defaults__ = (5,)
        if i == 6:
            helper.__code__ = (lambda x, by: x - by).__code__

    return calls(compile(lambda x: helper(x)), facula.ones(2), n=10, before=change)


@script(plays=4)
def a_function_of_the_package_is_patched(compile):
    relu = F.relu

    def change(i):
        F.relu = relu if i < 5 else lambda x, inplace=False: x * 50

    seen = calls(compile(lambda x: F.relu(x)), facula.randn(3), before=change)
    F.relu = relu
    return seen


@script(plays=4)
def a_class_changes(compile):
    class A(nn.Module):
        def forward(self, x):
            return x + 1

    class B(nn.Module):
        def forward(self, x):
            return x + 2

    model = A()

    def change():
        model.__class__ = B

    return calls(compile(model), facula.ones(2), before=at(5, change))


@script(plays=4)
def the_dict_of_a_module_is_replaced(compile):
    model = net()

    def change():
        model[0].__dict__ = nn.Linear(3, 4).__dict__

    return calls(compile(model), facula.randn(2, 3), before=at(5, change))


@script(plays=4)
def submodules_change(compile):
    model = net()

    def change(i):
        if i == 3:
            model[1] = nn.Tanh()
        if i == 6:
            model.append(nn.Linear(2, 2))
        if i == 9:
            del model[1]

    return calls(compile(model), facula.randn(2, 3), n=12, before=change)


@script(plays=4)
def training_and_evaluation(compile):
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    f = compile(model)
    x = facula.randn(6, 3)
    seen = []
    for i in range(12):
        model.train(i % 6 < 3)
        seen.append((f(x), model[2].running_mean.clone(), model[2].num_batches_tracked.clone()))
    return seen


@script(plays=4)
def modes_of_gradients(compile):
    model = net()
    f = compile(model)
    x = facula.randn(2, 3)
    seen = []
    for i in range(12):
        with facula.set_grad_enabled(i % 4 < 2):
            seen.append(f(x))
    for p in model.parameters():
        p.requires_grad_(False)
    with facula.enable_grad():
        return seen + calls(f, x)


@script(plays=4)
def autocast(compile):
    f = compile(net())
    x = facula.randn(2, 3)
    seen = calls(f, x)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        seen += calls(f, x)
    return seen + calls(f, x)


@script(plays=4)
def default_dtype(compile):
    f = compile(lambda x: x + facula.zeros(2))
    x = facula.ones(2)
    seen = calls(f, x)
    facula.set_default_dtype(facula.float64)
    try:
        return seen + calls(f, x)
    finally:
        facula.set_default_dtype(facula.float32)


@script(plays=4)
def subclasses_and_parameters_are_given(compile):
    class Mine(facula.Tensor):
        pass

    seen = []

    class Loud(facula.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    f = compile(lambda x: x * 2 + 1)
    x = facula.ones(2)
    kinds = (x, x.as_subclass(Mine), x.as_subclass(Loud), nn.Parameter(x))
    return [f(kinds[i % 4]) for i in range(24)], seen


@script(plays=4)
def modes_see_calls(compile):
    from facula.overrides import TorchFunctionMode
    from facula.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    f = compile(lambda x: facula.relu(x).sum())
    x = facula.randn(3)
    out = calls(f, x)
    with Functions():
        out += calls(f, x, n=2)
    with Calls():
        out += calls(f, x, n=2)
    return out + calls(f, x), seen


@script(plays=4)
def transforms(compile):
    f = compile(lambda x: (x * x).sum())
    x = facula.randn(2, 3)
    seen = calls(f, x)
    seen += [facula.func.grad(f)(x), facula.vmap(f)(x)]
    return seen + calls(f, x)


@script(plays=4)
def tracers_see_frames(compile):
    def inner(x):
        return x + 1

    names = []

    def look(frame, event, arg):
        if event == "call" and frame.f_code.co_name == "inner":
            names.append(event)

    f = compile(lambda x: inner(x) * 2)
    seen = calls(f, facula.ones(2))
    before = sys.getprofile()
    sys.setprofile(look)
    seen += calls(f, facula.ones(2))
    sys.setprofile(before)
    return seen + calls(f, facula.ones(2)), names


@script(plays=4)
def errors_come_as_they_would(compile):
    def pick(x, i):
        return facula.index_select(x * 2, 0, i) + 1

    f = compile(pick)
    good, bad = facula.tensor([0, 1]), facula.tensor([0, 7])
    x = facula.randn(3, 2)
    return [calls(f, x, bad if i % 4 == 3 else good, n=1) for i in range(12)]


@script(plays=4)
def the_dict_of_a_class_is_changed_by_a_base(compile):
    class Base(nn.Module):
        def helper(self, x):
            return x + 1

    class Derived(Base):
        def forward(self, x):
            return self.helper(x)

    def change(i):
        if i == 4:
            Derived.helper = lambda self, x: x + 2
        if i == 8:
            del Derived.helper
            Base.helper = lambda self, x: x + 3

    return calls(compile(Derived()), facula.ones(2), n=12, before=change)


@script(plays=8)
def threads(compile):
    model = net()
    f = compile(model)
    xs = [facula.randn(2, 3) for _ in range(4)]
    calls(f, xs[0])
    seen = [None] * 4

    def work(i):
        with facula.no_grad():
            seen[i] = calls(f, xs[i], n=50)[-1]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return seen


@script(plays=4)
def recursion_and_nested_functions(compile):
    @compile
    def outer(x, depth):
        def go(t, n):
            return t if n == 0 else go(t * 2, n - 1)

        return go(x, depth)

    return [outer(facula.ones(2), 1 + i % 2) for i in range(16)]


@script(plays=4)
def super_and_its_bases(compile):
    class Base(nn.Module):
        def forward(self, x):
            return x + 1

    class Between(Base):
        pass

    class Derived(Between):
        def forward(self, x):
            return super().forward(x) * 2

    def change(i):
        if i == 3:
            Base.forward = lambda self, x: x + 10
        if i == 6:
            Between.forward = lambda self, x: x + 100
        if i == 9:
            Derived.__bases__ = (Base,)

    return calls(compile(Derived()), facula.ones(2), n=12, before=change)


@script(plays=4)
def attributes_come_and_go(compile):
    class Config:
        width = 2

    class Model(nn.Module):
        config = Config()

        def forward(self, x):
            first, *rest = [x, x + 1, x + 2]
            if hasattr(self, "bias") and getattr(self.config, "on", True):
                first = first + self.bias
            return first * getattr(self.config, "scale", 1.0), rest, {(1, "a"): 3}[(1, "a")]

    model = Model()

    def change(i):
        if i == 3:
            model.bias = nn.Parameter(facula.ones(2))
        if i == 6:
            model.config.scale = 3.0
        if i == 9:
            Config.on = False
        if i == 12:
            del model.bias

    return calls(compile(model), facula.ones(2), n=15, before=change)


@script(plays=4)
def the_module_itself_is_exchanged(compile):
    model, other = net(), net()
    f = compile(model)
    x = facula.randn(2, 3)
    seen = calls(f, x)
    if isinstance(f, nn.Module) and "_orig_mod" in f._modules:
        f._orig_mod = other
        return seen + calls(f, x)
    return seen + calls(other, x)


@script(plays=4)
def errors_after_writes(compile):
    f = compile(lambda x, i: (x.add_(1), facula.index_select(x, 0, i)))
    good, bad = facula.tensor([0, 1]), facula.tensor([0, 7])
    x = facula.zeros(3)
    return [(calls(f, x, bad if i % 4 == 3 else good, n=1), x.clone()) for i in range(12)]
