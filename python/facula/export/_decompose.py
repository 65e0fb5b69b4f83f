"""Exported programs taken apart: functional graphs of the operators that a table leaves."""

from __future__ import annotations

import contextlib
import copy

import facula
from facula import _C
from facula.export._trace import finish_symbols, verify_modules
from facula.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from facula.fx import traceback as fx_traceback
from facula.fx.experimental._symbolic_tracing import SymbolicTracer
from facula.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    _ConstantsMode,
    decompose,
    disable_proxy_modes_tracing,
    set_meta,
    track_tensor_tree,
)
from facula.fx.graph_module import GraphModule
from facula.fx.interpreter import Interpreter
from facula.utils._pytree import tree_leaves, tree_map

_CHANGES = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


def decomposed(program, table):
    """The program with its operators taken apart by a table, without in-place changes.

    Args:
        program (ExportedProgram): stays as it is.
        table (dict): OpOverload to a function that is traced in its place.

    Returns:
        ExportedProgram
    """
    sizes = program._sizes
    of_sample = None if sizes is None else _trace_parts(program, table, None, is_sample=True)[0]
    module, signature = _trace_parts(program, table, sizes, of_sample)
    if sizes is not None:
        finish_symbols(module.graph, sizes)
    made = program._update(module, signature)
    made._dialect = "ATEN"
    return made


def _trace_parts(program, table, sizes, of_sample=None, is_sample=False):
    """The graph module and the signature of a program's parts.

    Args:
        sizes (Sizes | None): the symbols; None for a program without, or of the sample's sizes.
        of_sample (GraphModule | None): that of the sample, which checks this one.
        is_sample (bool): whether this is that one.
    """
    tracer = SymbolicTracer(sizes)
    tracer.names_operands = True
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    values, proxies = _arguments(tracer, placeholders, program._sizes, sizes is None)
    with contextlib.ExitStack() as stack:
        if sizes is not None:
            stack.enter_context(sizes.within(tracer, values, proxies))
        results, changed = _run_functional(program, tracer, values, table, sizes is None)
        specs = copy.deepcopy(program.graph_signature.input_specs)
        outputs, changes = _changes(tracer, specs, changed)
        outputs += [_node_of(tracer, value) for value in results]
        output = tracer.graph.output(tuple(outputs))
    _remove_passing(tracer.graph)
    if is_sample:
        return GraphModule(tracer.root, tracer.graph), None
    if of_sample is not None:
        verify_modules(GraphModule(tracer.root, tracer.graph), sizes, of_sample)
    remove_unused(tracer.graph)
    for change, node in zip(changes, output.args[0], strict=False):
        change.arg.name = node.name
    results = output.args[0][len(changes) :]
    kept = _renamed_results(program.graph_signature.output_specs, results)
    return GraphModule(tracer.root, tracer.graph), ExportGraphSignature(specs, changes + kept)


def _arguments(tracer, placeholders, sizes, is_sample):
    """Fake arguments and their proxies."""
    values, proxies = [], []
    with disable_proxy_modes_tracing():
        for node in placeholders:
            proxy = tracer.create_proxy("placeholder", node.target, (), {}, name=node.name)
            proxy.node.name = node.name
            proxy.node.meta = dict(node.meta)
            value = node.meta.get("val")
            if isinstance(value, facula.Tensor):
                value = _C._make_fake(value.detach())
                if sizes is not None and is_sample:
                    value = _of_sample(value, sizes)
                track_tensor_tree(value, proxy, constant=None, tracer=tracer)
            else:
                set_meta(proxy, value)
            values.append(value)
            proxies.append(proxy)
    return values, proxies


def _of_sample(value, sizes):
    """A fake tensor with the sample's sizes in the place of symbols."""

    def number(n):
        return sizes.expression(n).value(sizes.samples)

    shape, strides = [number(n) for n in value.shape], [number(n) for n in value.stride()]
    with _C._FakeMode(True):
        return facula.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _run_functional(program, tracer, values, table, is_sample):
    """Run the graph on functional tensors; gives results, and the new value of what it changes."""
    mode = ProxyTorchDispatchMode(tracer, "fake", decomposition_table=table)
    mode.detach_is_alias = True
    with contextlib.ExitStack() as stack:
        stack.enter_context(facula.no_grad())
        stack.enter_context(_C._FakeMode(True))
        stack.enter_context(decompose(table))
        stack.enter_context(fx_traceback.preserve_node_meta())
        stack.enter_context(mode)
        stack.enter_context(_ConstantsMode(mode))
        tensors = [v for v in values if isinstance(v, facula.Tensor)]
        wrapped = _C._to_functional_tensors(tensors)
        by_value = {id(v): w for v, w in zip(tensors, wrapped, strict=True)}
        before = [_C._from_functional_tensor(t) for t in wrapped]
        with _C._functionalize_mode(False):
            given = [by_value.get(id(v), v) for v in values]
            results = _Parts(program, tracer, is_sample).run(*given)
        after = [_C._from_functional_tensor(t) for t in wrapped]
        results = [_plain(value) for value in results]
    changed = {
        id(value): new
        for value, old, new in zip(tensors, before, after, strict=True)
        if new is not old
    }
    return results, [changed.get(id(v)) for v in values]


class _Parts(Interpreter):
    """Runs a program with the parts that PyTorch's programs have for what writes or is random.

    Args:
        program (ExportedProgram): what is run.
        tracer (SymbolicTracer): writes the parts.
        is_sample (bool): whether sizes are the sample's, and not symbols.
    """

    def __init__(self, program, tracer, is_sample):
        super().__init__(program.graph_module)
        self._tracer, self._is_sample = tracer, is_sample
        if program._sizes is not None:
            self._numbers = tracer.numbers = _KnownNumbers(program._sizes, is_sample)

    def run_node(self, n):
        """Run a node; sizes are known from when the program was exported."""
        value = n.meta.get("val")
        if self._tracer.numbers is not None:
            self._numbers.node = n
        if n.op == "call_function" and isinstance(value, facula.SymBool):
            return value.node.expr.holds(value.node.sizes.samples) if self._is_sample else value
        if n.target is facula.ops.aten._assert_scalar.default:
            return self._assert(n)
        if n.op == "call_function" and isinstance(value, facula.SymInt):
            sizes = value.node.sizes
            if self._is_sample:
                return value.node.expr.value(sizes.samples)
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            given = tree_map(lambda v: self._tracer.unwrap_proxy(_plain(v)), args)
            proxy = self._tracer.create_proxy(n.op, n.target, given, kwargs, name=n.name)
            sizes.stands_for(value.node.expr, proxy)
            return value
        return super().run_node(n)

    def _assert(self, n):
        """A check of sizes; the sample passes it."""
        if not self._is_sample:
            args, _ = self.fetch_args_kwargs_from_env(n)
            given = tuple(map(self._tracer.unwrap_proxy, args))
            self._tracer.create_proxy(n.op, n.target, given, {}, name=n.name)

    def call_function(self, target, args, kwargs):
        """Call an operator, or its parts."""
        aten = facula.ops.aten
        if isinstance(target, _C.OpOverload):
            args, kwargs = tree_map(_stand_in, (args, kwargs))
        if target is aten.batch_norm.default and args[3] is not None:
            return _batch_norm(*args)
        if target is aten.dropout.default and args[2]:
            return aten.native_dropout.default(*args)[0]
        return super().call_function(target, args, kwargs)


class _KnownNumbers:
    """The sizes that data decide: those of the results that a program's nodes have.

    Args:
        sizes (Sizes): of the program.
        is_sample (bool): whether they are the sample's, and not symbols.
    """

    def __init__(self, sizes, is_sample):
        self._sizes, self._is_sample, self._seen = sizes, is_sample, set()
        self.node = None  # what is run

    def size(self, limit=None, least=0):
        """The size of a result: the first number in the node's that no other had."""
        for tensor in tree_leaves(self.node.meta["val"]):
            for n in tensor.shape if isinstance(tensor, facula.Tensor) else ():
                found = self._sizes.expression(n)
                new = str(found) in self._sizes.unbacked and found not in self._seen
                if new:
                    self._seen.add(found)
                    return found.value(self._sizes.samples) if self._is_sample else n
        raise NotImplementedError(
            f"run_decompositions(): expected {self.node.target} in the program to have a size that "
            "data decide; got none"
        )

    def size_of_slice(self, dim, size, start, end, step):
        """The size of a slice's result in its dimension; of one in a file, as its node has it."""
        known = self._sizes.known_size_of_slice(size, start, end, step)
        return self.node.meta["val"].shape[dim] if known is None else known

    def is_symbolic(self, value):
        """Whether an argument is a number from data."""
        return not self._is_sample and self._sizes.is_symbolic(value)

    def note_results(self, tensors):
        """Let symbols be read from the tensors that a call has given."""
        if not self._is_sample:
            self._sizes.note_results(tensors)


def _stand_in(value):
    return value.node.stand_in() if isinstance(value, facula.SymInt) else value


def _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn=False):
    aten = facula.ops.aten
    given = x, weight, bias, running_mean, running_var
    if not training:
        return aten._native_batch_norm_legit_no_training.default(*given, momentum, eps)[0]
    functional = aten._native_batch_norm_legit_functional.default
    result, _, _, mean, var = functional(*given, True, momentum, eps)
    running_mean.copy_(mean)
    running_var.copy_(var)
    return result


def _plain(value):
    if isinstance(value, facula.Tensor) and _C._is_functional_tensor(value):
        return _C._from_functional_tensor(value)
    return value


def _node_of(tracer, value):
    return tracer.create_arg(tracer.unwrap_proxy(value))


def _changes(tracer, specs, changed):
    nodes, outputs = [], []
    for spec, value in zip(specs, changed, strict=True):
        if value is None:
            continue
        node = _node_of(tracer, value)
        nodes.append(node)
        target = spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target
        outputs.append(OutputSpec(_CHANGES[spec.kind], TensorArgument(node.name), target))
    return nodes, outputs


def _renamed_results(specs, nodes):
    kept = copy.deepcopy([s for s in specs if s.kind is OutputKind.USER_OUTPUT])
    for spec, node in zip(kept, nodes, strict=True):
        if isinstance(node, facula.fx.Node):
            spec.arg.name = node.name
    return kept


def _remove_passing(graph):
    """Take out nodes that give what they are given."""
    aten = facula.ops.aten
    for node in list(graph.nodes):
        if node.target is aten.alias.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target is aten.copy.default and _is_same_kind(*node.args[:2]):
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)


def _is_same_kind(a, b):
    a, b = a.meta.get("val"), b.meta.get("val")
    return (
        isinstance(a, facula.Tensor)
        and isinstance(b, facula.Tensor)
        and (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
    )


def remove_unused(graph, kept=frozenset()):
    """Take out what nothing uses and what has no effect, but nodes of these names."""
    from facula._functorch._aot_autograd.program import has_effect

    check = facula.ops.aten._assert_scalar.default
    graph.eliminate_dead_code(
        lambda node: node.name in kept or node.target is check or has_effect(node)
    )
