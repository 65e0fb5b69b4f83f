"""A model's graph as TensorBoard shows it: the calls of one run, under the names of its modules."""

from __future__ import annotations

import inspect

import facula
from facula.overrides import TorchFunctionMode
from facula.utils._pytree import tree_leaves, tree_map
from facula.utils.tensorboard import _encoding as enc

# Fields: tensorflow/core/framework/graph.proto, node_def.proto, attr_value.proto and
# tensor_shape.proto, versions.proto, step_stats.proto.
_PRODUCER = 22  # the version of graphs that TensorBoard knows


def _text_attribute(key, text):
    return enc.block(5, enc.block(1, key) + enc.block(2, enc.block(2, text)))


def _shapes_attribute(tensors):
    shapes = (b"".join(enc.block(2, enc.integer(1, n)) for n in t.shape) for t in tensors)
    listed = enc.block(1, b"".join(enc.block(7, shape) for shape in shapes))
    return enc.block(5, enc.block(1, "_output_shapes") + enc.block(2, listed))


class _Node:
    """A node of the graph: its name, its operator, the nodes that it takes, and its attributes."""

    def __init__(self, name, op, inputs=(), text="", outputs=()):
        self.name, self.op, self.inputs = name, op, list(inputs)
        self.text, self.outputs = text, list(outputs)

    def encoded(self):
        """The field of a GraphDef with this node."""
        parts = [enc.block(1, self.name), enc.block(2, self.op)]
        parts += [enc.block(3, name) for name in self.inputs]
        parts.append(_text_attribute("attr", self.text))
        if self.outputs:
            parts.append(_shapes_attribute(self.outputs))
        return enc.block(1, b"".join(parts))

    def __str__(self):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in self.outputs)
        return f"{self.name} {shapes} = {self.op}({', '.join(self.inputs)}) {self.text}".rstrip()


def _called(func):
    """The name of what was called; that of the attribute where one was read."""
    name = getattr(func, "__name__", type(func).__name__)
    if name == "__get__":
        return getattr(getattr(func, "__self__", None), "__name__", name)
    return name


class _Recorder(TorchFunctionMode):
    """Keeps a node for each call that gives tensors.

    Args:
        model (Module): its name and those of its modules are the nodes' scopes.
    """

    def __init__(self, model):
        super().__init__()
        self.nodes = []
        # Tensors are kept alive: another one could get the identity of a dead one.
        self._producers = {}
        self._scopes = [type(model).__name__]
        self._parameters = {}
        self._number = 0
        self._handles = []
        self._follow(model, self._scopes[0])

    def _follow(self, module, scope):
        """Remember where parameters are, and go in and out of the scope with the module's calls."""
        for name, tensor in (
            *module.named_parameters(recurse=False),
            *module.named_buffers(recurse=False),
        ):
            self._parameters[id(tensor)] = (scope, name)
        for name, child in module.named_children():
            inner = f"{scope}/{type(child).__name__}[{name}]"

            def enter(_module, _inputs, inner=inner):
                self._scopes.append(inner)

            def leave(_module, _inputs, _outputs):
                self._scopes.pop()

            self._handles.append(child.register_forward_pre_hook(enter))
            self._handles.append(child.register_forward_hook(leave))
            self._follow(child, inner)

    def remove_hooks(self):
        """Take the hooks off the modules."""
        for handle in self._handles:
            handle.remove()

    def add(self, name, op, inputs=(), text="", outputs=()):
        """Keep a node; the tensors in `outputs` come from it."""
        self.nodes.append(_Node(name, op, inputs, text, outputs))
        for tensor in outputs:
            self._producers[id(tensor)] = (tensor, name)

    def _new_name(self):
        self._number += 1
        return f"{self._scopes[-1]}/{self._number}"

    def source(self, tensor):
        """The name of the node that a tensor comes from."""
        known = self._producers.get(id(tensor))
        if known is None:
            self._add_source(tensor)
            known = self._producers[id(tensor)]
        return known[1]

    def _add_source(self, tensor):
        if id(tensor) in self._parameters:
            scope, name = self._parameters[id(tensor)]
            self.add(f"{scope}/{name}/{name}", "prim::GetAttr", (), f"{{ name : {name}}}", [tensor])
            return
        self.add(self._new_name(), "prim::Constant", (), "", [tensor])

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, facula.Tensor)]
        if not outputs:
            return result
        given = tree_leaves((args, kwargs))
        inputs = [self.source(leaf) for leaf in given if isinstance(leaf, facula.Tensor)]
        name = _called(func)
        # A call in place gives the tensor that it took.
        self.add(self._new_name(), f"aten::{name}", inputs, _options(args, kwargs), outputs)
        return result


def _options(args, kwargs):
    """The arguments that are no tensors, as text."""

    def shown(nest):
        return tree_map(lambda leaf: "%" if isinstance(leaf, facula.Tensor) else leaf, nest)

    rest = [repr(shown(arg)) for arg in args if not isinstance(arg, facula.Tensor)]
    rest += [
        f"{key}={shown(value)!r}"
        for key, value in kwargs.items()
        if not isinstance(value, facula.Tensor)
    ]
    return "{" + ", ".join(rest) + "}"


def _input_names(model, count):
    """The names of the arguments of `forward`, as many as there are inputs."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]


def _run(model, inputs):
    """The recorder of one run of the model in evaluation mode, without gradients."""
    recorder = _Recorder(model)
    for name, given in zip(_input_names(model, len(inputs)), inputs, strict=True):
        tensors = [leaf for leaf in tree_leaves(given) if isinstance(leaf, facula.Tensor)]
        recorder.add(f"input/{name}", "IO Node", (), "", tensors)
    training = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with facula.no_grad(), recorder:
            result = model(*inputs)
    except Exception as error:
        raise RuntimeError(f"add_graph(): running the model failed: {error}") from error
    finally:
        recorder.remove_hooks()
        for module, was in training.items():
            module.training = was
    found = [leaf for leaf in tree_leaves(result) if isinstance(leaf, facula.Tensor)]
    for i, tensor in enumerate(found, 1):
        source = recorder.source(tensor)
        recorder.nodes.append(_Node(f"output/output.{i}", "IO Node", [source], "", [tensor]))
    return recorder


def graph(model, args, verbose=False, use_strict_trace=True):
    """The graph of one run of a model, and the device that it ran on.

    Args:
        model (Module): run in evaluation mode, without gradients.
        args (Tensor or sequence): its inputs.
        verbose (bool): print the nodes.
        use_strict_trace (bool): accepted for compatibility; results may be any nest of tensors.

    Returns:
        tuple of bytes: a GraphDef and a StepStats message.

    Raises:
        AttributeError: `model` is no Module.
        RuntimeError: there are no inputs, or the model raised an error.

    Example:
        >>> encoded, _ = graph(facula.nn.Linear(2, 1), facula.ones(3, 2))
        >>> b"aten::linear" in encoded
        True
    """
    if not isinstance(model, facula.nn.Module):
        raise AttributeError(f"add_graph(): expected a Module; got {type(model).__name__}")
    if args is None:
        raise RuntimeError("add_graph(): expected the model's inputs as input_to_model; got None")
    inputs = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    recorder = _run(model, inputs)
    if verbose:
        print("\n".join(map(str, recorder.nodes)))
    nodes = b"".join(node.encoded() for node in recorder.nodes)
    versions = enc.block(4, enc.integer(1, _PRODUCER))
    device = next((leaf.device for leaf in tree_leaves(inputs) if hasattr(leaf, "device")), None)
    kind = "GPU" if device is not None and device.type == "cuda" else "CPU"
    return nodes + versions, enc.block(1, enc.block(1, f"/device:{kind}:0"))
