"""Runs compiled programs as the function they were recorded from: with its results, gradients,
aliases and changes of arguments."""

from __future__ import annotations

import facula
from facula._functorch._aot_autograd.program import has_effect, record_program
from facula.autograd import Function
from facula.autograd.function import once_differentiable


def call_compiled(function, args):
    """Call what a compiler returned: with one list if it is boxed."""
    args = list(args)
    return function(args) if getattr(function, "_boxed_call", False) else function(*args)


def _without_autocast(function, args):
    """Casts are in the graph already."""
    if not facula.is_autocast_enabled():
        return call_compiled(function, args)
    with facula.autocast(device_type="cpu", enabled=False):
        return call_compiled(function, args)


def _as_list(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


class CompiledProgram:
    """A program whose graphs a compiler has taken.

    Args:
        function (callable): of a list's items; returns a list.
        args (list): Tensors and constants: calls take such of the same geometry.
        fw_compiler, bw_compiler, inference_compiler (callable): of a GraphModule and a list of
            example arguments; they return a callable.
        partition_fn (callable): splits a joint graph.
        decompositions (dict): OpOverload to a function that is traced in its place.
    """

    def __init__(
        self,
        function,
        args,
        fw_compiler,
        bw_compiler,
        partition_fn,
        decompositions=None,
        inference_compiler=None,
    ):
        self._function, self._args = function, list(args)
        self._partition_fn, self._decompositions = partition_fn, decompositions
        self._bw_compiler = bw_compiler or fw_compiler
        tensors = [a for a in args if isinstance(a, facula.Tensor)]
        with_gradients = facula.is_grad_enabled() and any(t.requires_grad for t in tensors)
        self.program = self._record(with_gradients)
        if with_gradients and not self.program.differentiable:
            outputs = self.program.outputs  # views of arguments may have gradients all the same
            self.program = self._record(False)
            self.program.outputs = outputs
        if self.program.differentiable:
            self._compile_joint(fw_compiler)
        else:
            compiler = inference_compiler or fw_compiler
            self.forward = compiler(self.program.graph, self._examples(self.program.graph))
        # What is recorded again needs the arguments' geometry alone.
        self._args = self.program.arguments

    def _record(self, with_gradients, defined=None):
        return record_program(
            self._function,
            self._args,
            with_gradients=with_gradients,
            decompositions=self._decompositions,
            defined=defined,
            fresh=frozenset() if defined is None else self.program.fresh,
        )

    @staticmethod
    def _examples(graph):
        """Fake tensors and constants for the arguments of a graph."""
        nodes = graph.graph.find_nodes(op="placeholder")
        return [node.meta.get("val") for node in nodes]

    def _compile_joint(self, fw_compiler):
        program = self.program
        forward, backward = self._partition_fn(
            program.graph, self._examples(program.graph), num_fwd_outputs=program.count
        )
        self.saved_names = [getattr(a, "name", None) for a in output_args(forward)[program.count :]]
        self.forward = fw_compiler(forward, self._examples(forward))
        self._backward_module = backward
        everything = tuple(range(len(program.differentiable)))
        self._backwards = {everything: self._backward_of(backward, everything)}
        self._function_class = _compiled_function(self)

    def _backward_of(self, module, defined):
        """A function of saved values and defined tangents that compiles when it is first called."""
        compiled = []

        def run(args):
            if not compiled:
                compiled.append(self._bw_compiler(module, self._examples(module)))
            return _as_list(_without_autocast(compiled[0], args))

        return run

    def backward_for(self, defined):
        """The backward program where only these of the differentiable outputs have a cotangent."""
        if defined not in self._backwards:
            program = self._record(True, defined)
            module = _restricted(program, self.saved_names, self._backward_module)
            self._backwards[defined] = self._backward_of(module, defined)
        return self._backwards[defined]

    def __call__(self, args):
        """The function's results, as a list."""
        if self.program.differentiable:
            values = self._function_class.apply(*args)
            values = list(values) if isinstance(values, tuple) else [values]
        else:
            with facula.no_grad() if not facula.is_inference_mode_enabled() else _nothing():
                values = _as_list(_without_autocast(self.forward, args))
        self._write_back(args, values)
        return [self._result(output, args, values) for output in self.program.outputs]

    # --- the epilogue

    def _write_back(self, args, values):
        for m in self.program.mutations:
            arg, new = args[m.argument], values[m.index]  # the last value where the index is -1
            if m.geometry:
                with facula.no_grad():
                    arg.as_strided_(*m.geometry)
            if m.index < 0:
                continue
            if m.with_history:
                arg.copy_(new)
            else:
                with facula.no_grad():
                    arg.copy_(new)

    def _result(self, output, args, values):
        if output.kind == "constant":
            return output.value
        if output.kind == "value":
            return values[output.index]
        if output.kind == "input":
            return args[output.index]
        base = args[output.index] if output.kind == "view_of_input" else values[output.index]
        if output.requires_grad or not base.requires_grad:
            return _view(base, output)
        return _view(base.detach(), output)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def _view(base, output):
    """A view with the geometry of a result over the memory of a tensor."""
    if output.dtype is not base.dtype:
        if output.dtype.is_complex and not base.dtype.is_complex:
            base = facula.view_as_complex(base)
        elif base.dtype.is_complex and not output.dtype.is_complex:
            base = facula.view_as_real(base)
        else:
            base = base.view(output.dtype)
    sizes, strides, offset = output.geometry
    if base.is_contiguous() and _is_contiguous(sizes, strides) and base.storage_offset() == offset:
        if base.numel() == _count(sizes):
            return base.view(sizes)
    return base.as_strided(sizes, strides, offset)


def _count(sizes):
    count = 1
    for n in sizes:
        count *= n
    return count


def _is_contiguous(sizes, strides):
    expected = 1
    for n, s in zip(reversed(sizes), reversed(strides), strict=True):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


def output_args(module):
    """What a graph returns, as a list of nodes and constants."""
    return _as_list(module.graph.output_node().args[0])


def _restricted(program, saved_names, backward_module):
    """The backward part of a joint graph as a function of the saved values and its tangents."""
    from facula._functorch.partitioners import extract_graph

    nodes = {node.name: node for node in program.graph.graph.nodes}
    saved = [nodes.get(name) for name in saved_names]
    tangents = [
        node
        for node in program.graph.graph.find_nodes(op="placeholder")
        if node.name.startswith("tangents")
    ]
    grads = output_args(program.graph)[program.count :]
    names = [
        node.name
        for node in backward_module.graph.find_nodes(op="placeholder")
        if not node.name.startswith("tangents")
    ]
    if None in saved:
        raise RuntimeError(
            "aot_autograd: expected the values that the forward part saved in the joint graph of "
            f"fewer cotangents; got none of the name {saved_names[saved.index(None)]!r}"
        )
    by_name = dict(zip(saved_names, saved, strict=True))
    inputs = [by_name[name] for name in names] + tangents
    return extract_graph(program.graph, inputs, grads)


def _tangent_strides(graph):
    """The strides that the tangents of a joint graph were recorded with."""
    nodes = graph.graph.find_nodes(op="placeholder")
    return [n.meta["val"].stride() for n in nodes if n.name.startswith("tangents")]


def _with_strides(t, strides):
    """A tangent with the strides that the graph was recorded for: kernels may depend on them."""
    if t.stride() == strides:
        return t
    return facula.empty_strided(t.shape, strides, dtype=t.dtype, device=t.device).copy_(t)


def _compiled_function(program):
    """The autograd Function of a compiled program."""
    info = program.program
    is_differentiable = set(info.differentiable)
    tangent_strides = _tangent_strides(info.graph)
    written = [m.argument for m in info.mutations]

    def kept(value, args):
        """A value as it is saved: what the epilogue writes to is copied."""
        storage = value.untyped_storage()._cdata
        shares = any(args[i].untyped_storage()._cdata == storage for i in written)
        return value.clone() if shares else value

    def own(k, value, values, args):
        """A result as autograd takes it: an argument that comes back, or a result that is there
        twice, once with gradients, is another tensor over it."""
        twins = args if k in is_differentiable else [*args, *(values[d] for d in is_differentiable)]
        is_twin = isinstance(value, facula.Tensor) and any(value is other for other in twins)
        return value.detach() if is_twin else value

    class CompiledFunction(Function):
        @staticmethod
        def forward(ctx, *args):
            results = _as_list(_without_autocast(program.forward, args))
            values, saved = results[: info.count], results[info.count :]
            ctx.set_materialize_grads(False)
            ctx.is_tensor = [isinstance(s, facula.Tensor) for s in saved]
            ctx.save_for_backward(*(kept(s, args) for s in saved if isinstance(s, facula.Tensor)))
            ctx.numbers = [s for s in saved if not isinstance(s, facula.Tensor)]
            values = [own(k, v, values, args) for k, v in enumerate(values)]
            rest = [v for k, v in enumerate(values) if k not in is_differentiable]
            ctx.mark_non_differentiable(*(v for v in rest if isinstance(v, facula.Tensor)))
            return tuple(values)

        @staticmethod
        @once_differentiable
        def backward(ctx, *grads):
            given = [grads[index] for index in info.differentiable]
            defined = tuple(k for k, g in enumerate(given) if g is not None)
            if not defined:
                return (None,) * len(ctx.needs_input_grad)
            tensors, numbers = iter(ctx.saved_tensors), iter(ctx.numbers)
            saved = [next(tensors) if is_one else next(numbers) for is_one in ctx.is_tensor]
            tangents = [_with_strides(given[k], tangent_strides[k]) for k in defined]
            return tuple(program.backward_for(defined)([*saved, *tangents]))

    return CompiledFunction


__all__ = ["CompiledProgram", "call_compiled", "has_effect", "output_args"]
