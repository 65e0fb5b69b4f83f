"""Programs that are traced; the comparison runs the same file with PyTorch in facula's place."""

import collections
import enum
import math
import operator
import typing
from dataclasses import dataclass

import facula as torch
from facula import fx, nn

F = nn.functional
Pair = collections.namedtuple("Pair", "first second")


class Color(enum.Enum):
    RED = 1


@dataclass
class Box:
    value: object
    scale: float = 2.0


@fx.wrap
def clip(x, limit):
    return x if limit is None else x.clamp(max=limit)


fx.wrap("len")


class Point(metaclass=fx.ProxyableClassMeta):
    def __init__(self, x, y):
        self.x, self.y = x, y


# --- functions


def arithmetic(x, y):
    return [x + y, x - 1, 2 * x, x**2, 2**x, -x, +x, x / y, 1 / x, x // 2, x % 3, x @ y, 7 - x]


def bits(x, y):
    return (x < y) | (x == y) & ~(x >= 1) ^ (x != y), x << 1, 1 << x, x >> y, (x > 0), (x <= y)


def augmented(x, y):
    x += y
    x *= 2
    x //= 3
    return x


def augmented_by_function(x):
    return operator.iadd(x, 1) * operator.imul(x, 2)


def methods(x):
    return x.add_(1).mul_(2).view(-1, 2).t().contiguous().size(0)


def torch_functions(x, y):
    return (
        torch.cat([x, y], dim=0).sum(-1, keepdim=True),
        torch.stack((x, y)),
        torch.add(x, y, alpha=2),
    )


def functional(x):
    x = F.gelu(F.linear(x, x, None))
    x = F.relu(x) + F.softmax(x, dim=-1) + F.dropout(x, 0.5, False) + F.layer_norm(x, (2,))
    return F.sigmoid(x), F.tanh(x), F.silu(x, inplace=False), F.cross_entropy(x, x)


def functional_on_images(x):
    x = F.max_pool2d(F.pad(x, (1, 1)), 2, padding=0) + F.avg_pool2d(x, 2, 1)
    return F.interpolate(x, scale_factor=2.0), F.conv2d(x, x), F.adaptive_avg_pool2d(x, 1)


def slices(x):
    return x[0], x[..., 1:], x[None, ::2], x[1:, :-1], x[[0, 1]], x[:, None, 0], x[-1]


def index_by_value(x, i):
    return x[i], x[i.size(0) :], x[:, i]


def constants(x):
    x = x.masked_fill(x > 0, float("inf")) + float("nan") - float("-inf")
    return x + 1j, x.to(torch.float64), x * True, x.sum(None)


def devices(x):
    return x.to(torch.device("cpu"), torch.int64), x.clone(memory_format=torch.preserve_format)


def made_tensors(x):
    return x + torch.ones(2), torch.zeros(2) * x, torch.full((2,), 3.0)


def variadic(*args, **kwargs):
    return args[0] + kwargs["scale"]


def only_keywords(x, *args, a, b=2, **kwargs):
    return x + a * b, args


def defaults(x, y=2, *, z=None, name="n", t=(1, 2.5)):
    return x * y


MaybeTensor = typing.Optional[torch.Tensor]  # noqa: UP045
Ints, Table = typing.List[int], typing.Dict[str, int]  # noqa: UP006


def annotated(x: torch.Tensor, y: int, z: MaybeTensor = None) -> torch.Tensor:
    return x + y


def annotated_generic(x: Ints, y: Table, z: typing.Any) -> int:
    return x[0]


def hidden_names(device, inf, list, if_, fooBar, _x, x_1, x):  # noqa: A002
    return device + inf + list + if_ + fooBar + _x + x_1 + x


def attributes(x):
    return x.T, x.shape[0], x.dtype, x.grad.data.fooBar, x.isHTML.someMethod(1)


def unpack(x):
    a, b = x.split(2)
    (c, d), e = x.nested()
    return a + b + c + d + e


def nested_result(x):
    return {"a": x + 1, "b": [x, (x * 2, None)], "c": 3}


def named_tuple(x):
    return torch.stack(Pair(x, x + 1)), Pair(1, x)


def data_class(x):
    return x.take(Box(x, 3.0))


def enumeration(x):
    return x.paint(Color.RED)


def sizes(x):
    return x.view(x.size(0), -1).reshape(x.shape[0] * 2, x.size(1) // 2)


def loop_of_known_length(x):
    for i in range(3):
        x = x + i
    return x


def known_condition(x, flag=True):
    if isinstance(x, torch.Tensor):
        return x
    return x + 1 if x is not None else -x


def wrapped(x):
    return clip(x, 3) + len(x) + math.sqrt(x.size(0)) + math.floor(2.5)


def proxyable(x):
    return Point(x, 2), Point(1, 2).x + x


def overloads(x, y):
    ops = torch.ops.aten
    return ops.add(x, y), ops.add.Tensor(x, y), ops.relu.default(x), ops.sum.dim_IntList(x, [0])


def builtin_functions(x):
    return abs(x), getattr(x, "shape"), sum([x, x, 1])  # noqa: B009


def text_of_proxy(x):
    return x.describe(f"{x}", repr(x))


def unused(x):
    y = x + 1
    z = torch.relu(x)  # noqa: F841
    return y


def returns_constant(x):
    return 5


def returns_nothing(x):
    x.relu()


def flagged(x, y, flag, n=3):
    return x if flag else y + n


def of_nest(d, items):
    return {"sum": d["a"] + items[0] * items[1], "rest": (d["b"], 3)}


# --- programs that are refused


def branch(x):
    return x if x.sum() > 0 else -x


def loop(x):
    return [t for t in x]


def spread(x):
    return dict(**x)


def as_int(x):
    return int(x)


def as_index(x):
    return [1, 2][x]


def as_range(x):
    return [i for i in range(x.size(0))]


def membership(x):
    return 1 in x


def set_item(x):
    x[0] = 1
    return x


def greatest(x):
    return max(x, 2)


def divmod_of(x):
    return divmod(x, 2)


def strange_argument(x):
    return x.foo(object())


def function_argument(x):
    return x.map(clip)


def class_argument(x):
    return x.to(float)


def set_argument(x):
    return x.foo({1, 2})


def proxy_as_key(x):
    return {x: 1}


def asserts(x):
    assert x.shape[0] == 3
    return x


def foreign_parameter(x):
    return x + nn.Parameter(torch.ones(2))


# --- modules


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.myBlock = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
        self.W = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.full((2,), 2.0))
        self.plain = torch.ones(2)
        self.held = [torch.ones(2)]

    def forward(self, x, k=2):
        for block in self.myBlock:
            x = block(x)
        x = x * self.W + self.scale * x + self.plain + x - self.held[0]
        return self.W + x * k, self.scale.sum(), self.W.sum()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.other = Plain(), Plain()
        self.seq = nn.Sequential(nn.Conv2d(2, 2, 3), nn.Sequential(nn.BatchNorm2d(2), nn.ReLU6()))
        self.alias = self.inner

    def forward(self, x, image):
        a, _, _ = self.inner(x)
        b, _, c = self.other(a, k=3)
        return b + self.alias(c)[0], self.seq(image), F.linear(x, self.inner.myBlock[0].weight)


class Dictionaries(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a b": nn.Linear(2, 2), "0": nn.Identity()})
        self.params = nn.ParameterList([nn.Parameter(torch.ones(2))])

    def forward(self, x):
        for name in self.layers:
            x = self.layers[name](x)
        return x + self.params[0]


class Stochastic(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + torch.rand(2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * (c // 2) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, c))


class Shapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        return x.view(self.weight.shape[0], self.weight.size()[1]) * self.weight.ndim


# --- tracers


class Inside(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return False


class Whole(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, Plain)


class Buffers(fx.Tracer):
    proxy_buffer_attributes = True


class Branching(fx.Tracer):
    def to_bool(self, obj):
        return True

    def iter(self, obj):
        return iter([obj[0], obj[1]])


class Named(fx.Tracer):
    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        node.meta["kind"] = kind
        return node


class Constant(fx.Tracer):
    def __init__(self):
        super().__init__(param_shapes_constant=True)


class Wrapping(fx.Tracer):
    def __init__(self):
        super().__init__(autowrap_modules=(math, operator), autowrap_functions=(methods,))


def calls_methods(x):
    return methods(x) + operator.add(x, math.pi)


class Case(typing.NamedTuple):
    """What is traced, and how."""

    program: object
    concrete: object = None
    tracer: type = fx.Tracer
    inputs: tuple = None
    is_copied: bool = True


def _ones(*sizes):
    return torch.arange(1.0, math.prod(sizes) + 1).reshape(sizes)


_X, _Y = _ones(2, 2), _ones(2, 2) - 2.5
_NEST = ({"a": _ones(1), "b": 2}, [_ones(1), 3.0])

CASES = [
    Case(arithmetic, inputs=(_X, _Y)),
    Case(bits, inputs=(_X.to(torch.int64), _Y.to(torch.int64))),
    Case(augmented, inputs=(_X.clone(), _Y)),
    Case(augmented_by_function, inputs=(_X.clone(),)),
    Case(methods, inputs=(_X.clone(),)),
    Case(torch_functions, inputs=(_X, _Y)),
    Case(functional),
    Case(functional_on_images),
    Case(slices, inputs=(_X,)),
    Case(index_by_value, inputs=(_X, torch.tensor([1, 0]))),
    Case(constants, inputs=(_X,)),
    Case(devices, inputs=(_X,)),
    Case(made_tensors, inputs=(_X,)),
    Case(variadic),
    Case(only_keywords),
    Case(defaults, inputs=(_X,)),
    Case(annotated, inputs=(_X, 1)),
    Case(annotated_generic, inputs=([1], {}, 2)),
    Case(hidden_names, inputs=tuple(range(8))),
    Case(attributes),
    Case(unpack),
    Case(nested_result, inputs=(_X,)),
    Case(named_tuple, inputs=(_X,)),
    Case(data_class),
    Case(enumeration),
    Case(sizes, inputs=(_X,)),
    Case(loop_of_known_length, inputs=(_X,)),
    Case(known_condition, inputs=(_X,)),
    Case(wrapped, inputs=(_X,)),
    Case(proxyable),
    Case(overloads, inputs=(_X, _Y)),
    Case(builtin_functions, inputs=(_X,)),
    Case(text_of_proxy),
    Case(unused, inputs=(_X,)),
    Case(returns_constant, inputs=(_X,)),
    Case(returns_nothing, inputs=(_X,)),
    Case(flagged, {"flag": True}, inputs=(_X, _Y, True)),
    Case(flagged, (fx.PH, fx.PH, False, 4), inputs=(_X, _Y, False, 4)),
    Case(flagged, (fx.PH, fx.PH)),
    # Loaded by PyTorch, these lose their form.
    Case(
        of_nest,
        {"d": {"a": fx.PH, "b": fx.PH}, "items": [fx.PH, fx.PH]},
        inputs=_NEST,
        is_copied=False,
    ),
    Case(
        of_nest, {"d": {"a": fx.PH, "b": 2}, "items": (fx.PH, fx.PH)}, inputs=_NEST, is_copied=False
    ),
    Case(branch),
    Case(loop),
    Case(spread),
    Case(as_int),
    Case(as_index),
    Case(as_range),
    Case(membership),
    Case(set_item),
    Case(greatest),
    Case(divmod_of),
    Case(strange_argument),
    Case(function_argument),
    Case(class_argument),
    Case(set_argument),
    Case(proxy_as_key),
    Case(asserts),
    Case(foreign_parameter),
    Case(Plain()),
    Case(Outer()),
    Case(Dictionaries()),
    Case(Stochastic()),
    Case(Attention()),
    Case(Shapes(), inputs=(_ones(6),)),
    Case(Shapes(), tracer=Constant, inputs=(_ones(6),)),
    Case(Plain(), tracer=Inside),
    Case(Outer(), tracer=Whole),
    Case(Plain(), tracer=Buffers),
    Case(branch, tracer=Branching),
    Case(loop, tracer=Branching),
    Case(unused, tracer=Named),
    Case(calls_methods, tracer=Wrapping),
    Case(nn.Linear(2, 2)),
    Case(nn.Linear(2, 2), tracer=Inside),
    # PyTorch cannot load what it writes for this one, and traces nothing any more afterwards.
    Case(flagged, {"flag": None, "n": 7}, inputs=(_X, _Y, None, 7), is_copied=False),
]


def name_of(case):
    """What a test calls the case."""
    program = getattr(case.program, "__name__", type(case.program).__name__)
    how = [str(case.concrete)] if case.concrete else []
    how += [case.tracer.__name__] if case.tracer is not fx.Tracer else []
    return " ".join([program, *how])


def trace(case):
    """The GraphModule of a case."""
    if case.tracer is fx.Tracer:
        return fx.symbolic_trace(case.program, case.concrete)
    tracer = case.tracer()
    graph = tracer.trace(case.program, case.concrete)
    name = getattr(case.program, "__name__", type(case.program).__name__)
    return fx.GraphModule(tracer.root, graph, name)
