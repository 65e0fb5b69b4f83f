"""What is done with graphs: each function gives values that are compared between frameworks."""

import operator

import facula as torch
import facula.fx.passes.tools_common as tools_common
import facula.fx.passes.utils.fuser_utils as fuser_utils
from facula import fx, nn
from facula.fx.annotate import annotate
from facula.fx.experimental import (
    const_fold,
    merge_matmul,
    normalize,
    optimization,
    schema_type_annotation,
    symbolic_shapes,
)
from facula.fx.experimental.proxy_tensor import make_fx
from facula.fx.operator_schemas import (
    check_for_mutable_operation,
    normalize_function,
    normalize_module,
)
from facula.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from facula.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from facula.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
from facula.fx.passes.graph_transform_observer import GraphTransformObserver
from facula.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from facula.fx.passes.operator_support import OperatorSupport, any_chain, chain, create_op_support
from facula.fx.passes.param_fetch import lift_lowering_attrs_to_nodes
from facula.fx.passes.reinplace import reinplace
from facula.fx.passes.shape_prop import ShapeProp
from facula.fx.passes.split_module import split_module
from facula.fx.passes.split_utils import split_by_tags
from facula.fx.passes.splitter_base import generate_inputs_for_submodules
from facula.fx.passes.utils.matcher_utils import SubgraphMatcher
from facula.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters
from facula.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

F, trace = nn.functional, fx.symbolic_trace


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.l2 = nn.Linear(2, 2), nn.Linear(2, 2)
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x, y):
        a = self.l(x) + self.w
        b = torch.relu(a)
        return self.l2(b * y) + b, a


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.r, self.d = (
            nn.Conv2d(1, 2, 1),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Dropout(),
        )

    def forward(self, x):
        return self.d(self.r(self.b(self.c(x))))


class Pattern(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)

    def forward(self, x):
        return self.l(x)


class Replacement(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub, self.l = nn.Tanh(), nn.Linear(2, 2)

    def forward(self, x):
        return self.sub(self.l(x))


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x + (self.a + self.b) * 2


def shown(module):
    """The code of a module and of those in it, and its parameters."""
    inner = [f"{n}: {m.code}" for n, m in module.named_modules() if n and hasattr(m, "code")]
    return [module.code, *inner, [name for name, _ in module.named_parameters()]]


def named(module, name):
    return next(node for node in module.graph.nodes if node.name == name)


# --- steps put in, taken out and copied


def insert_and_erase():
    gm = trace(lambda x, y: torch.relu(x) + y)
    relu = named(gm, "relu")
    with gm.graph.inserting_after(relu):
        first = gm.graph.call_method("tanh", (relu,))
        gm.graph.call_method("sigmoid", (relu,))
    with gm.graph.inserting_after(first):
        gm.graph.call_function(torch.neg, (first,))
    with gm.graph.inserting_before(relu):
        gm.graph.call_function(torch.abs, (relu.args[0],))
    with gm.graph.inserting_before():
        gm.graph.get_attr("w")
    relu.replace_all_uses_with(first, lambda user: user.name == "add")
    gm.w = 3
    gm.recompile()
    before = gm.code
    return before, gm.graph.eliminate_dead_code(), gm.recompile().src, len(gm.graph.nodes)


def move_and_rename():
    gm = trace(lambda x: torch.relu(x) + torch.tanh(x))
    relu, tanh = named(gm, "relu"), named(gm, "tanh")
    relu.prepend(tanh)
    tanh._rename("relu")
    relu.append(gm.graph.call_function(torch.neg, (relu,)))
    gm.recompile()
    return gm.code, tanh < relu, relu > tanh, str(sorted(gm.graph.nodes))


def arguments_changed():
    gm = trace(lambda x, y: torch.add(x, y, alpha=2))
    add, x, y = named(gm, "add"), named(gm, "x"), named(gm, "y")
    add.update_arg(0, y)
    add.insert_arg(0, x)
    add.update_kwarg("alpha", [x, {"k": y}])
    users = [str(x.users), str(y.users)]
    add.args = (y, x)
    add.kwargs = {}
    add.replace_input_with(x, y)
    gm.recompile()
    return users, gm.code, str(x.users), str(add.all_input_nodes)


def graph_copied():
    inner, outer = trace(lambda a, b: a * b + 1).graph, fx.Graph()
    x = outer.placeholder("x")
    parts = [node for node in inner.nodes if node.op == "placeholder"]
    values = dict.fromkeys(parts, x)
    result = outer.graph_copy(inner, values)
    again = outer.graph_copy(inner, dict.fromkeys(parts, result))
    outer.output((result, again))
    return outer, fx.GraphModule(nn.Module(), outer, "Made").code


def inlined():
    inner = trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    outer = trace(lambda x: x + 1)
    add = named(outer, "add")
    outer.add_submodule("inner", inner)
    with outer.graph.inserting_after(add):
        call = outer.graph.call_module("inner", (add,))
    add.replace_all_uses_with(call, lambda user: user is not call)
    first = outer.recompile().src
    with outer.graph.inserting_before(call):
        values = {next(iter(inner.graph.nodes)): add}
        for node in inner.graph.nodes:
            if node.op == "call_module":
                node.target = f"inner.{node.target}"
        call.replace_all_uses_with(outer.graph.graph_copy(inner.graph, values))
    outer.graph.erase_node(call)
    return first, outer.recompile().src, outer.graph.lint()


def made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x", torch.Tensor, 3)
    rest = graph.placeholder("*rest")
    a = graph.call_function(operator.iadd, (x, 1))
    b = graph.call_function(operator.setitem, (a, 0, rest))
    c = graph.call_function(getattr, (a, "not a name"))
    d = graph.get_attr("sub.0.weight", type_expr=torch.Tensor)
    e = graph.call_module("sub.0", (d,), {"k": slice(x, None)})
    f = graph.call_method("view", (e, (1, -1)), {"dtype": torch.float32})
    graph.output({"k": [a, b, c], "f": f}, torch.Tensor)
    return graph, graph.python_code("self").src, graph.python_code("root").src


def errors_of_graphs():
    other, graph = fx.Graph(), fx.Graph()
    x, z = graph.placeholder("x"), other.placeholder("z")
    y = graph.call_function(torch.neg, (x,))
    graph.output(y)

    def foreign():
        graph.call_function(torch.neg, (z,))
        graph.lint()

    actions = [
        lambda: graph.erase_node(x),
        lambda: graph.create_node("jump", "x"),
        lambda: graph.call_function("neg", (x,)),
        lambda: graph.call_module(torch.neg),
        lambda: graph.create_node("call_function", torch.neg, [x]),
        lambda: graph.inserting_before(z),
        lambda: y.prepend(z),
        lambda: y.args.append(1),
        lambda: y.insert_arg(9, x),
        lambda: graph.find_nodes(op="call_function"),
        lambda: other.output_node(),
        lambda: fx.GraphModule(3, graph),
        lambda: fx.GraphModule({}, made_with_module()),
        lambda: fx.map_arg((x,), 3),
        foreign,
    ]
    return [class_of_error(action) for action in actions]


def made_with_module():
    graph = fx.Graph()
    graph.output(graph.call_module("sub"))
    return graph


def class_of_error(action):
    try:
        action()
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0]
    return "none"


# --- patterns


def _replaced(program, pattern, replacement, **options):
    gm = trace(program)
    replace = replace_pattern_with_filters if options else replace_pattern
    matches = replace(gm, pattern, replacement, **options)
    gm.graph.lint()
    return [[type(m).__name__, m.anchor, m.nodes_map] for m in matches], shown(gm)


def _shared(x, y):
    z = x + y
    return torch.relu(z), z


def patterns():
    relu, add = torch.relu, torch.add
    return [
        _replaced(lambda x: relu(x + 1) + relu(x), lambda a: relu(a), lambda a: torch.tanh(a)),
        _replaced(lambda x, y: relu(x + y) * (x + y), lambda a, b: a + b, lambda a, b: add(b, a)),
        _replaced(_shared, lambda a, b: relu(a + b), lambda a, b: add(b, a)),
        _replaced(lambda x: x + x + x + x, lambda a, b: a + b + b, lambda a, b: a * b),
        _replaced(lambda x: relu(relu(relu(x))), lambda a: relu(relu(a)), lambda a: torch.tanh(a)),
        _replaced(
            lambda x: torch.cat([x.sum(), x.max()]),
            lambda a: (a.sum(), a.max()),
            lambda a: (a.mean(), a.min()),
        ),
        _replaced(lambda x: x * 2 + x * 3, lambda a: a * 2, lambda a: a * 7),
        _replaced(lambda x: x * 2 + x * 3, lambda a, b: a * b, lambda a, b: torch.mul(a, b)),
        _replaced(lambda x: ((x + 1) + 1) + 1, lambda a: a + 1, lambda a: a - 1),
        _replaced(lambda x: [relu(x), {"a": relu(x)}], lambda a: relu(a), lambda a: a.tanh()),
        _replaced(lambda x: relu(x) + 1, lambda a: relu(a), lambda a: a),
        _replaced(lambda x, y: add(x, y), lambda a, b: add(a, b), lambda a, b: relu(a)),
        _replaced(lambda x: torch.sum(x, 1), lambda a: torch.sum(a, dim=1), lambda a: a),
        _replaced(lambda x, y: torch.cat([x, y]), lambda a: torch.cat([a, a]), lambda a: a * 2),
        _replaced(Small(), Pattern(), Replacement()),
        _replaced(lambda x: x * 2 + x * 3, lambda a: a * 2, lambda a: -a, ignore_literals=True),
        _replaced(
            lambda x: relu(x + 1) + relu(x),
            lambda a: relu(a),
            lambda a: torch.tanh(a),
            match_filters=[lambda m, graph, pattern: m.placeholder_nodes[0].op == "placeholder"],
        ),
        class_of_error(lambda: _replaced(lambda x: x + 1, lambda a: a + 1, lambda a, b: a)),
        class_of_error(lambda: _replaced(lambda x: x + 1, lambda a: a, lambda a: a + 1)),
    ]


def replaced_by_function():
    def replacement(match, graph, pattern):
        made = fx.Graph()
        a = made.placeholder("a")
        made.output(made.call_function(torch.tanh, (a,)))
        return made

    gm = trace(lambda x: torch.relu(x + 1))
    found = replace_pattern_with_filters(
        gm, lambda a: torch.relu(a), replacement_callback=replacement
    )
    return gm.code, [m.replacements for m in found]


def matches():
    graph = trace(lambda x, y: torch.relu(x + y) * 2).graph
    pattern = trace(lambda a, b: torch.relu(a + b)).graph
    whole = trace(lambda x, y: torch.relu(x + y) * 2).graph
    return [
        SubgraphMatcher(pattern).match(graph),
        SubgraphMatcher(pattern).match(graph, node_name_match="relu"),
        SubgraphMatcher(whole, match_output=True).match(graph),
        SubgraphMatcher(whole, match_placeholder=True).match(graph),
        class_of_error(lambda: SubgraphMatcher(fx.Graph())),
    ]


# --- parts


def split():
    places = {"l": 0, "add": 0, "relu": 1, "mul": 1, "l2": 2, "add_1": 2}
    found = []
    for options in (
        {},
        {"keep_original_order": True},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "part"},
        {"tuple_return": True},
    ):
        names, model = {}, Small()
        cut = split_module(trace(model), model, lambda n: places[n.name], names, **options)
        x = torch.ones(2, 2)
        found += [shown(cut), names, bool((cut(x, x)[0] == model(x, x)[0]).all())]
    circle = {"l": 1, "add": 0, "relu": 1, "mul": 1, "l2": 0, "add_1": 1}
    cut = lambda: split_module(trace(Small()), None, lambda n: circle[n.name])  # noqa: E731
    return found, class_of_error(cut), shown(split_module(trace(Small()), None, lambda n: 0))


def split_with_tags():
    tags = {"l": "s0", "add": "s0", "relu": "s1", "mul": "s1", "l2": "s2", "add_1": "s2"}
    gm = trace(Small())
    for node in gm.graph.nodes:
        if node.name in tags:
            node.tag = tags[node.name]
    order = ["s0", "s1", "s2"]
    made, names = split_by_tags(gm, order, return_fqn_mapping=True)
    return shown(made), names, shown(split_by_tags(gm, order, return_tuple=True))


def _sums(a, b, c):
    first = a + b + c
    second = torch.relu(first)
    return second + first + c, second


def _two_ways(a):
    return torch.relu(a + 1) + torch.tanh(a + 2)


def _items(a, b):
    parts = a.split(2)
    return torch.cat([parts[0] + b, parts[1] * b]).relu(), parts[0]


def partitions():
    found = []
    for program, names, options in (
        (_sums, ["add"], {}),
        (_sums, ["add", "relu"], {}),
        (_sums, ["relu"], {}),
        (_sums, ["relu"], {"allows_single_node_partition": True}),
        (_two_ways, ["add", "tanh"], {}),
        (_two_ways, ["add", "relu", "tanh"], {}),
        (_two_ways, ["add"], {"allows_single_node_partition": True}),
        (
            _two_ways,
            ["add"],
            {"allows_single_node_partition": True, "skip_horizontal_fusion": True},
        ),
        (_items, ["add", "getitem", "mul", "cat"], {}),
        (_items, ["split", "getitem", "cat"], {"allows_single_node_partition": True}),
        (Small(), ["l", "add", "mul", "relu"], {}),
        (Small(), ["l", "relu", "mul"], {"allows_single_node_partition": True}),
    ):
        support = create_op_support(
            lambda modules, node, names=names: (
                node.op != "get_attr" and node.name.startswith(tuple(names))
            )
        )
        gm = trace(program)
        proposed = CapabilityBasedPartitioner(gm, support, **options).propose_partitions()
        found.append([sorted(map(str, part.nodes)) for part in proposed])
        found.append(shown(CapabilityBasedPartitioner(gm, support, **options).partition_and_fuse()))
    return found


def fused_by_hand():
    gm = trace(_sums)
    groups = [["add", "add_1"], ["add_2", "add_3"]]
    groups = [{named(gm, name): None for name in group} for group in groups]
    bad = [{named(gm, name): None for name in ("add", "add_1", "add_2")}]
    valid = [fuser_utils.validate_partition(list(g)) for g in groups + bad]
    error = class_of_error(lambda: fuser_utils.fuse_by_partitions(trace(_sums), bad))
    made = fuser_utils.fuse_by_partitions(gm, groups, prefix="made_", always_return_tuple=True)
    return valid, error, shown(made)


def support():
    gm = trace(Small())
    modules = dict(gm.named_modules())
    nodes = [node for node in gm.graph.nodes if node.op in tools_common.CALLABLE_NODE_OPS]
    linear = tools_common.get_node_target(modules, nodes[0])
    rules = [
        OperatorSupport({linear: None, "_operator.add": None}),
        create_op_support(lambda modules, node: node.op == "call_module"),
    ]
    rules += [chain(*rules), any_chain(*rules)]
    targets = [tools_common.get_node_target(modules, node) for node in nodes]
    return targets, [[rule.is_node_supported(modules, node) for node in nodes] for rule in rules]


def order_restored():
    codes = []
    for restore in (tools_common.legalize_graph, tools_common.stable_topological_sort):
        gm = trace(lambda a: torch.tanh(torch.relu(a)))
        named(gm, "relu").prepend(named(gm, "tanh"))
        codes.append(restore(gm).recompile().src)
    return codes


# --- what is known of values


def shapes():
    gm = trace(Small())
    ShapeProp(gm).propagate(torch.ones(3, 2), torch.ones(3, 2))
    metas = [
        [node.name, node.meta.get("tensor_meta"), node.meta.get("type")] for node in gm.graph.nodes
    ]
    channels = trace(lambda x: x.contiguous(memory_format=torch.channels_last))
    ShapeProp(channels).propagate(torch.ones(1, 2, 3, 3))
    return (
        metas,
        gm.print_readable(print_output=False),
        [node.meta.get("tensor_meta") for node in channels.graph.nodes],
        class_of_error(lambda: ShapeProp(gm).propagate(torch.ones(3), torch.ones(5))),
    )


def sizes_in_code():
    gm = trace(lambda x: (x + 1).sum(0))
    for node in gm.graph.nodes:
        if node.op != "output":
            node.meta["val"] = torch.ones(2, 3, dtype=torch.float16)
    node = named(gm, "add")
    node.stack_trace = '  File "/a/b.py", line 3, in f\n    return x + 1\n'
    node.meta["custom"] = {"a": 1}
    options = ({}, {"include_stride": True, "include_device": True}, {"expanded_def": True})
    texts = [gm.print_readable(print_output=False, **option) for option in options]
    return texts, node.format_node(include_tensor_metadata=True)


def nested_modules_printed():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = trace(Small())

        def forward(self, x):
            return self.inner(x, x)[0]

    model = Holder()
    gm = fx.GraphModule(model, Whole().trace(model), "Holder")
    return gm.print_readable(print_output=False), gm


# --- forms


def normalized():
    def calls(x, y):
        pooled = F.max_pool2d(F.relu(x), 2)
        return pooled + F.dropout(y, 0.1), torch.flatten(x, 1), torch.sum(x, dim=1), torch.add(x, y)

    return [
        normalize.NormalizeArgs(trace(calls)).transform().code,
        normalize.NormalizeArgs(trace(calls), normalize_to_only_use_kwargs=False).transform().code,
        normalize.NormalizeArgs(trace(Images())).transform().code,
        normalize.NormalizeOperators(trace(lambda x, y: torch.mul(x, y) - 1)).transform().code,
    ]


def normalized_calls():
    sequence = nn.Sequential(nn.Linear(2, 2))
    return [
        normalize_function(torch.relu, (1,), {}, normalize_to_only_use_kwargs=True),
        normalize_function(torch.cat, ([1, 2],), {"dim": 1}, normalize_to_only_use_kwargs=True),
        normalize_function(torch.flatten, (1, 2), {}),
        normalize_function(
            torch.ops.aten.add.Tensor, (1, 2), {}, normalize_to_only_use_kwargs=True
        ),
        normalize_function(F.dropout, (1,), {}, normalize_to_only_use_kwargs=True),
        normalize_function(torch.add, (1, 2), {}, (torch.Tensor, torch.Tensor)),
        normalize_function(len, (1,), {}),
        normalize_module(sequence, "0", (1,), {}, True),
        class_of_error(lambda: normalize_function(torch.add, (1, 2), {})),
        class_of_error(lambda: normalize_module(sequence, "none", (1,))),
        class_of_error(lambda: check_for_mutable_operation(torch.relu_, (1,), {})),
        class_of_error(lambda: check_for_mutable_operation(torch.relu, (1,), {})),
    ]


def faster():
    model = Images().eval()
    fused, x = optimization.fuse(model), torch.ones(1, 1, 2, 2)
    return [
        shown(fused),
        bool(torch.allclose(fused(x), model(x), atol=1e-5)),
        class_of_error(lambda: optimization.fuse(Images())),
        shown(optimization.remove_dropout(model)),
        const_fold.split_const_subgraphs(Constant()).code,
        const_fold.split_const_subgraphs(Constant())(torch.ones(2)),
        const_fold.split_const_subgraphs(trace(lambda x: x + 1)).code,
    ]


def types_of_values():
    graph = fx.Graph()
    proxy = fx.Proxy(graph.placeholder("x"))
    annotate(proxy, int)
    pair = TensorType((1, Dyn)), TensorType((1, 2))
    return [
        proxy.node.type,
        annotate(3, int),
        class_of_error(lambda: annotate(proxy, str)),
        pair,
        [check(a, b) for check in (is_consistent, is_more_precise) for a in pair for b in pair],
        [is_more_precise(1, Dyn), is_more_precise(Dyn, 1), is_consistent(1, 2), TensorType[1, 2]],
    ]


def targets_and_sizes():
    gm = trace(Small())
    replace_target_nodes_with(gm, "call_function", torch.relu, "call_method", "tanh")
    gm.recompile()
    get_size_of_all_nodes(gm, [torch.ones(3, 2), torch.ones(3, 2)])
    sizes = [tuple(getattr(node, "size_bytes", ())) for node in gm.graph.nodes]
    lift_lowering_attrs_to_nodes(gm)
    known = [sorted(getattr(node, "attrs_for_lowering", {})) for node in gm.graph.nodes]
    return gm.code, sizes, known


def types_of_items():
    graph = fx.Graph()
    pair = graph.placeholder("pair", type_expr=tuple[int, str])
    many = graph.placeholder("many", type_expr=list[float])
    rest = graph.placeholder("rest", type_expr=tuple[int, ...])
    items = [graph.call_function(operator.getitem, (n, 1)) for n in (pair, many, rest)]
    graph.output(items)
    annotate_getitem_nodes(graph)
    return [node.type for node in items]


def observed():
    gm = trace(lambda x: torch.relu(x) + 1)
    observer = GraphTransformObserver(gm, "tanhs")

    def tanhs(graph):
        relu = graph.find_nodes(op="call_function", target=torch.relu)[0]
        with graph.inserting_after(relu):
            tanh = graph.call_function(torch.tanh, relu.args)
        relu.replace_all_uses_with(tanh)
        graph.erase_node(relu)
        return "done"

    result = observer.apply_graph_pass(tanhs)
    return result, gm.recompile().src, [node.meta for node in gm.graph.nodes]


def products_merged():
    def products(a, b, c):
        return torch.matmul(a, c) + 1, torch.matmul(b, c)

    merged = merge_matmul.merge_matmul(products)
    inputs = torch.ones(2, 3), torch.ones(4, 3), torch.ones(3, 5)
    return sorted(str(node.target) for node in merged.graph.nodes if node.op == "output"), [
        part.shape for part in merged(*inputs)
    ]


def _view_is_kept(x):
    a = x + 1
    return a + 1, a.view(-1)


def _view_is_written(x):
    a = x + 1
    return a.view(-1) + 1


def _other_dtype(x):
    a = x + 1
    return a.to(torch.float64) + 1, a.sum(0)


def _late_use(x):
    a = x + 1
    return a + a.relu(), (a > 0).float()


def written_in_place():
    found = []
    for program in (
        lambda x: (x + 1).relu() * 2,
        lambda x: x.relu(),
        lambda x: torch.add(x + 1, x.expand(3, 2, 2)),
        _view_is_kept,
        _view_is_written,
        _other_dtype,
        _late_use,
    ):
        x = torch.tensor([[-2.0, 1.0], [3.0, -4.0]])
        changed = reinplace(make_fx(program)(x), x)
        found += [changed.code, changed(x.clone()), program(x)]
    return found


def equal_steps_once():
    def operators(x):
        a = x.cos() + x.cos()
        b = x.sum(0) + x.sum(0) + x.sum([0])
        return a, b, torch.rand(2) + torch.rand(2), x + 1, x + 1

    def functions(x):
        return torch.cos(x) + torch.cos(x) + x.sin() + x.sin() + x[0] + x[0]

    traced = make_fx(operators)(torch.ones(2, 2))
    results = [CSEPass()(gm) for gm in (traced, trace(functions), trace(lambda x: x + 1))]
    aten = torch.ops.aten
    banned = [op in get_CSE_banned_ops() for op in (aten.bernoulli, aten.add_, aten.cos)]
    return [[result.modified, result.graph_module.code] for result in results], banned


def typed():
    def functions(x):
        return F.relu(x) + F.layer_norm(x, (2,)), torch.relu(x)

    annotate_types = schema_type_annotation.AnnotateTypesWithSchema
    return [annotate_types(trace(p)).transform().code for p in (Small(), functions)]


def arguments_of_modules():
    model = nn.Sequential(nn.Flatten(), nn.Sequential(nn.ReLU()))
    return generate_inputs_for_submodules(model, (torch.ones(1, 1, 2),), ["1", "1.0"])


def questions_about_sizes():
    s, t = symbolic_shapes, torch.ones(2, 3)
    questions = [
        lambda: [s.guard_or_false(True), s.guard_or_true(False), s.statically_known_true(True)],
        lambda: [s.guard_int(3), s.guard_float(2.0), s.guard_scalar(True)],
        lambda: [s.has_free_symbols(t), len(s.free_symbols([1, t])), s.is_concrete_int(3)],
        lambda: [s.sym_eq((1, 2), (1, 2)), s.sym_eq(1, 2), s.sym_and(True, False), s.sym_or(0, 1)],
        lambda: [s.statically_known_false(False), s.optimization_hint(3), s.is_nested_int(3)],
        lambda: s.check_consistent(t, t),
        lambda: s.check_consistent(t, torch.ones(4)),
        lambda: s.check_consistent(1, 2),
        lambda: s.check_consistent(t, 1),
        lambda: s.guard_int(True),
        lambda: s.guard_int(3.0),
        lambda: s.guard_float(3),
        lambda: s.guard_or_false(t.sum() > 0),
        lambda: s.statically_known_true(3),
        lambda: s.guard_scalar("a"),
        lambda: s.sym_eq(t, t),
    ]
    return [_answer(question) for question in questions]


def _answer(question):
    error = class_of_error(question)
    return question() if error == "none" else error


EDITS = [
    insert_and_erase,
    move_and_rename,
    arguments_changed,
    graph_copied,
    inlined,
    made_by_hand,
    errors_of_graphs,
    patterns,
    replaced_by_function,
    matches,
    split,
    split_with_tags,
    partitions,
    fused_by_hand,
    support,
    order_restored,
    shapes,
    sizes_in_code,
    nested_modules_printed,
    normalized,
    normalized_calls,
    faster,
    types_of_values,
    targets_and_sizes,
    types_of_items,
    observed,
    products_merged,
    questions_about_sizes,
    written_in_place,
    equal_steps_once,
    typed,
    arguments_of_modules,
]
