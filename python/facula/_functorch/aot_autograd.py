"""Functions and modules compiled with their gradients: the graphs of the forward and the backward
pass are recorded ahead of time, and compilers are called with them."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field

import facula
from facula._functorch._aot_autograd.program import record_program
from facula._functorch._aot_autograd.runtime import CompiledProgram
from facula._functorch.partitioners import default_partition
from facula.func import functional_call
from facula.nn import Module
from facula.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "GraphSignature",
    "aot_export_joint_simple",
    "aot_export_module",
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compile_graph_module",
    "compiled_function",
    "compiled_module",
    "make_boxed_compiler",
    "make_boxed_func",
]


def make_boxed_func(f):
    """A function that takes its arguments as one list, which it may empty early.

    Example:
        >>> make_boxed_func(lambda a, b: a + b)([1, 2])
        3
    """

    def boxed(args):
        return f(*args)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    """A compiler whose results take their arguments as one list."""

    @functools.wraps(compiler)
    def boxed(graph_module, example_inputs):
        compiled = compiler(graph_module, example_inputs)
        return compiled if getattr(compiled, "_boxed_call", False) else make_boxed_func(compiled)

    return boxed


def _key(leaves, spec):
    """What a compiled program depends on besides the values of tensors."""

    def part(leaf, number_of):
        if not isinstance(leaf, facula.Tensor):
            try:
                hash(leaf)
            except TypeError:
                return type(leaf), id(leaf)
            return type(leaf), leaf
        return (
            leaf.dtype,
            leaf.device,
            tuple(leaf.shape),
            leaf.stride() if leaf.layout is facula.strided else None,
            leaf.requires_grad,
            leaf.is_leaf,
            number_of.setdefault(leaf.untyped_storage()._cdata, len(number_of)),
        )

    number_of = {}
    state = facula.is_grad_enabled(), facula.is_autocast_enabled(), facula.get_default_dtype()
    return str(spec), state, tuple(part(leaf, number_of) for leaf in leaves)


def _flat(fn, spec, out_spec):
    """A function of leaves that returns leaves; the spec of its results goes into a list."""

    def flat(*leaves):
        args, kwargs = tree_unflatten(list(leaves), spec)
        results, found = tree_flatten(fn(*args, **kwargs))
        out_spec[:] = [found]
        return results

    return flat


def aot_function(
    fn,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    num_params_buffers=0,
    keep_inference_input_mutations=False,
    inference_compiler=None,
    *,
    dynamic=False,
    enable_log=True,
    disable_functionalization=False,
    _disable_torch_fn_metadata_mode=False,
):
    """A function that runs graphs which compilers have taken, forward and backward.

    The first call with arguments of a geometry records the function on fake tensors, together with
    its backward pass, and without in-place changes. Those are made at the end of a call: arguments
    are written back, results that share memory with arguments or one another do so again. A
    cotangent that is not defined costs nothing and gives None where nothing else gives a gradient.

    Args:
        fn (callable): of nests of Tensors and constants.
        fw_compiler (callable): of a GraphModule and a list of fake example inputs; returns a
            callable that takes such inputs, or one list of them if it has `_boxed_call`.
        bw_compiler (callable): the same for the backward part; `fw_compiler` if None.
        partition_fn (callable): splits the joint graph: `default_partition` or
            `min_cut_rematerialization_partition`.
        decompositions (dict): OpOverload to a function that is recorded in its place.
        inference_compiler (callable): takes the graph where nothing requires grad.
        num_params_buffers, keep_inference_input_mutations, dynamic, enable_log: accepted; sizes are
            part of what is compiled.

    Returns:
        callable: with the results, gradients and effects of `fn`.

    Example:
        >>> def compiler(graph_module, example_inputs):
        ...     return make_boxed_func(graph_module.forward)
        >>> f = aot_function(lambda x: x.sin() * 2, compiler)
        >>> x = facula.zeros(2, requires_grad=True)
        >>> f(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    programs = {}

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        key = _key(leaves, spec)
        if key not in programs:
            out_spec = []
            program = CompiledProgram(
                _flat(fn, spec, out_spec),
                leaves,
                fw_compiler,
                bw_compiler,
                partition_fn,
                decompositions,
                inference_compiler,
            )
            programs[key] = program, out_spec[0]
        program, out_spec = programs[key]
        return tree_unflatten(program(leaves), out_spec)

    return compiled


compiled_function = aot_function


class _CompiledModule(Module):
    """A module whose calls run compiled graphs; its parameters are those of the module inside."""

    def __init__(self, mod, options):
        super().__init__()
        self.orig_module = mod
        self._compiled = aot_function(self._call, **options)

    def _call(self, parameters, buffers, args, kwargs):
        return functional_call(self.orig_module, (parameters, buffers), args, kwargs)

    def forward(self, *args, **kwargs):
        """What the module gives."""
        parameters = dict(self.orig_module.named_parameters())
        buffers = dict(self.orig_module.named_buffers())
        return self._compiled(parameters, buffers, args, kwargs)


def aot_module(mod, *args, **kwargs):
    """A module that runs graphs which compilers have taken.

    Args:
        mod (Module): what is recorded; its parameters and buffers are arguments of the graphs.
        *args, **kwargs: as `aot_function` takes them behind the function.

    Returns:
        Module: with `orig_module`.
    """
    facula._assert(isinstance(mod, Module), "aot_module(): expected a Module")
    names = ("fw_compiler", "bw_compiler", "partition_fn", "decompositions")
    return _CompiledModule(mod, dict(zip(names, args, strict=False)) | kwargs)


compiled_module = aot_module


def _tensors_of(mod):
    """A module's parameters and buffers by name, and a function that calls it with others."""
    named = dict(mod.named_parameters(remove_duplicate=False))
    named |= dict(mod.named_buffers(remove_duplicate=False))
    names = list(named)

    def call(*leaves):
        tensors = dict(zip(names, leaves, strict=False))
        return functional_call(mod, tensors, leaves[len(names) :])

    return named, call


def aot_module_simplified(
    mod,
    args,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    keep_inference_input_mutations=False,
    inference_compiler=None,
    compiler_config_extra=None,
    ignore_shape_env=False,
    disable_functionalization=False,
    pre_grad_passes=None,
    compile_region_name=None,
):
    """The compiled form of a graph module, for backends of `compile`.

    The program is recorded at once, for the example inputs' geometry and requires_grad; arguments
    are flat.

    Args:
        mod (Module): its parameters and buffers become arguments of the graphs.
        args (sequence): example inputs: Tensors, real or fake, and constants.
        fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler: as
            `aot_function` takes them.

    Returns:
        callable: of the inputs; its results are those of the module.
    """
    named, call = _tensors_of(mod)
    out_spec = []

    def flat(*leaves):
        results, found = tree_flatten(call(*leaves))
        out_spec[:] = [found]
        return results

    if pre_grad_passes is not None:
        mod = pre_grad_passes(mod, args)
        named, call = _tensors_of(mod)
    program = CompiledProgram(
        flat,
        [*named.values(), *args],
        fw_compiler,
        bw_compiler,
        partition_fn,
        decompositions,
        inference_compiler,
    )
    spec = out_spec[0]

    def forward(*runtime_args):
        tensors = [*mod.parameters(), *mod.buffers()] if not named else _current(mod, named)
        return tree_unflatten(program([*tensors, *runtime_args]), spec)

    forward.zero_grad = mod.zero_grad
    forward.named_parameters, forward.named_buffers = mod.named_parameters, mod.named_buffers
    return forward


def _current(mod, named):
    """The tensors that a module has now at these names."""
    now = dict(mod.named_parameters(remove_duplicate=False))
    now |= dict(mod.named_buffers(remove_duplicate=False))
    return [now[name] for name in named]


def compile_graph_module(
    gm,
    example_inputs,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
):
    """The compiled form of a graph module: what a backend of `compile` returns.

    Args:
        gm (GraphModule): of calls at the level of functions and modules.
        example_inputs (sequence): Tensors and constants.
        fw_compiler, bw_compiler, partition_fn, decompositions: as `aot_function` takes them.

    Returns:
        callable: of the inputs.
    """
    return aot_module_simplified(
        gm, example_inputs, fw_compiler, bw_compiler, partition_fn, decompositions
    )


# --- graphs without a runtime


@dataclass
class BackwardSignature:
    """Which outputs of an exported joint graph are gradients of what."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclass
class GraphSignature:
    """Which arguments and outputs of an exported graph are what, by the names of its nodes."""

    parameters: list
    buffers: list
    user_inputs: list
    user_outputs: list
    inputs_to_parameters: dict
    inputs_to_buffers: dict
    buffers_to_mutate: dict = field(default_factory=dict)
    user_inputs_to_mutate: dict = field(default_factory=dict)
    in_spec: object = None
    out_spec: object = None
    backward_signature: object = None


def aot_export_module(
    mod,
    args,
    *,
    decompositions=None,
    trace_joint,
    output_loss_index=None,
    pre_dispatch=False,
    dynamic_shapes=None,
    kwargs=None,
):
    """The graph of a module without in-place changes, with its parameters as arguments.

    Args:
        mod (Module): what is recorded.
        args (sequence of Tensors): example inputs; `kwargs` (dict): others.
        decompositions (dict): OpOverload to a function that is recorded in its place.
        trace_joint (bool): add the gradients of the loss; it alone keeps its gradient.
        output_loss_index (int): which result is the loss.

    Returns:
        tuple[GraphModule, GraphSignature]: the graph returns the new values of buffers and inputs
        that the module changes, its results, and with `trace_joint` gradients.

    Raises:
        RuntimeError: `trace_joint` without `output_loss_index`, or a loss of several elements.
    """
    if pre_dispatch:
        raise NotImplementedError("aot_export_module(): pre_dispatch=True is not there yet")
    if trace_joint and output_loss_index is None:
        raise RuntimeError("aot_export_module(): trace_joint=True needs output_loss_index")
    named = dict(mod.named_parameters()) | dict(mod.named_buffers())
    leaves, spec = tree_flatten((tuple(args), dict(kwargs or {})))
    out_spec = []

    def flat(*values):
        tensors = dict(zip(named, values, strict=False))
        new_args, new_kwargs = tree_unflatten(list(values[len(named) :]), spec)
        results, found = tree_flatten(functional_call(mod, tensors, new_args, new_kwargs))
        out_spec[:] = [found]
        return _only_loss(results, output_loss_index) if trace_joint else results

    grad = facula.enable_grad() if trace_joint else facula.no_grad()
    with grad:
        program = record_program(
            flat,
            [*named.values(), *leaves],
            with_gradients=trace_joint,
            decompositions=decompositions,
        )
    signature = _signature(mod, named, program, spec, out_spec[0], output_loss_index)
    if trace_joint:
        _seed_with_one(program)
    return program.graph, signature


def _only_loss(results, index):
    loss = results[index]
    if loss.numel() != 1 or not loss.requires_grad:
        raise RuntimeError(
            "aot_export_module(): expected a loss of one element that requires grad; got shape "
            f"{tuple(loss.shape)}, requires_grad={loss.requires_grad}"
        )
    return [r if r is loss or not hasattr(r, "detach") else r.detach() for r in results]


def _seed_with_one(program):
    """Take the cotangent of the loss, which is one, off the arguments of a joint graph."""
    graph = program.graph.graph
    node = next(n for n in graph.find_nodes(op="placeholder") if n.name.startswith("tangents"))
    value = node.meta["val"]
    last = [n for n in graph.find_nodes(op="placeholder") if n is not node][-1]
    with graph.inserting_after(last):
        one = graph.call_function(
            facula.ops.aten.full.default,
            (list(value.shape), 1.0),
            {"dtype": value.dtype, "device": value.device, "pin_memory": False},
        )
    one.meta = dict(node.meta)
    node.replace_all_uses_with(one)
    graph.erase_node(node)
    program.graph.recompile()


def _signature(mod, named, program, spec, out_spec, loss_index):
    graph = program.graph.graph
    inputs = [n.name for n in graph.find_nodes(op="placeholder")]
    outputs = [getattr(o, "name", o) for o in graph.output_node().args[0]]
    parameters = list(dict(mod.named_parameters()))
    buffers = list(dict(mod.named_buffers()))
    names = dict(zip(inputs, named, strict=False))
    count = len(named)
    mutated = {m.index: m.argument for m in program.mutations if m.index >= 0}
    user_inputs = [n for n in inputs[count:] if not n.startswith("tangents")]
    results = [name for i, name in enumerate(outputs[: program.count]) if i not in mutated]
    backward = None
    if loss_index is not None and program.wanted:
        grads = dict(zip(inputs, outputs[program.count :], strict=False))
        wanted = [inputs[i] for i in program.wanted]
        backward = BackwardSignature(
            {grads[n]: names[n] for n in wanted if n in names},
            {grads[n]: n for n in wanted if n not in names},
            results[loss_index],
        )
    return GraphSignature(
        parameters,
        buffers,
        user_inputs,
        results,
        {n: p for n, p in names.items() if p in parameters},
        {n: p for n, p in names.items() if p in buffers},
        {outputs[k]: names[inputs[i]] for k, i in mutated.items() if inputs[i] in names},
        {outputs[k]: inputs[i] for k, i in mutated.items() if inputs[i] not in names},
        spec,
        out_spec,
        backward,
    )


def aot_export_joint_simple(func, args, *, trace_joint, num_params_buffers=0, decompositions=None):
    """The graph of a function of flat arguments, with gradients on demand.

    Args:
        func (callable): of Tensors; returns a Tensor or a list of them. It changes no argument.
        args (sequence of Tensors): example inputs.
        trace_joint (bool): add the backward pass: the graph takes cotangents, too.
        decompositions (dict): OpOverload to a function that is recorded in its place.

    Returns:
        GraphModule

    Raises:
        RuntimeError: the function changes an argument, or a result shares memory with one.
    """

    def flat(*leaves):
        return tree_flatten(func(*leaves))[0]

    program = record_program(
        flat, list(args), with_gradients=trace_joint, decompositions=decompositions
    )
    shared = [o.kind for o in program.outputs if "view" in o.kind or o.kind == "input"]
    if program.mutations or shared:
        raise RuntimeError(
            "aot_export_joint_simple(): expected a function that changes no argument and whose "
            f"results have memory of their own; got {len(program.mutations)} changed arguments and "
            f"{len(shared)} shared results"
        )
    return program.graph


# --- what is being compiled, for messages

_graphs = itertools.count()
_current_graph = []


def get_graph_being_compiled():
    """The name of the graph that is being compiled."""
    return _current_graph[-1] if _current_graph else "model"


get_aot_graph_name = get_graph_being_compiled


def get_aot_compilation_context():
    """The names of the graphs that are being compiled, and a name for the model."""
    return list(_current_graph), "model"
