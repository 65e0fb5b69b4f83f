"""A table of a model's modules: what they give, their parameters, and the memory it takes."""

from __future__ import annotations

from typing import NamedTuple

import facula


class ModuleRow(NamedTuple):
    """One module of a summary.

    `shapes` are the sizes of the tensors it gave, one after another over all calls; `parameters`
    those of its own, without those of modules inside it.
    """

    name: str
    kind: str
    depth: int
    shapes: tuple
    parameters: int
    output_bytes: int


class Summary:
    """What `facula.summary` finds; printed, it is a table.

    Attributes:
        rows (list[ModuleRow]): the modules in the order of `named_modules`.
        parameters, trainable (int): numbers of parameters, shared ones counted once.
        parameter_bytes, gradient_bytes, buffer_bytes (int): what they take.
        output_bytes (int): what the modules without modules inside them gave: about what a
            backward pass keeps.
    """

    def __init__(self, model, rows):
        parameters, buffers = list(model.parameters()), list(model.buffers())
        inner = {row.name.rpartition(".")[0] for row in rows if row.name}
        self.rows = rows
        self.parameters = sum(map(_count, parameters))
        self.trainable = sum(_count(p) for p in parameters if p.requires_grad)
        self.parameter_bytes = sum(map(_bytes, parameters))
        self.gradient_bytes = sum(_bytes(p) for p in parameters if p.requires_grad)
        self.buffer_bytes = sum(map(_bytes, buffers))
        self.output_bytes = sum(row.output_bytes for row in rows if row.name not in inner)

    def __str__(self):
        lines = [("module", "output", "parameters"), *map(_cells, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines]
        rule = "-" * len(table[0])
        return "\n".join([table[0], rule, *table[1:], rule, *self._totals()])

    __repr__ = __str__

    def _totals(self):
        yield f"parameters: {self.parameters:,}, of which {self.trainable:,} are trained"
        yield (
            f"memory: parameters {_size(self.parameter_bytes)}, buffers {_size(self.buffer_bytes)},"
            f" outputs {_size(self.output_bytes)}, gradients {_size(self.gradient_bytes)}"
        )


def _count(parameter):
    return 0 if facula.nn.parameter.is_lazy(parameter) else parameter.numel()


def _bytes(tensor):
    return 0 if facula.nn.parameter.is_lazy(tensor) else tensor.nbytes


def _size(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}" if unit != "B" else f"{count} B"
        count /= 1000


def _cells(row):
    own = row.name.rpartition(".")[2]
    label = f"{'  ' * row.depth}{own}: {row.kind}" if own else row.kind
    shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in row.shapes)
    return label, shapes or "-", f"{row.parameters:,}" if row.parameters else "-"


def summary(model, *inputs, **named_inputs):
    """The modules of a model: outputs' shapes, numbers of parameters, memory.

    The model is called once with the inputs, without gradients and in evaluation mode: no
    parameter, buffer or random number changes. Without inputs, there are no shapes.

    Args:
        model (nn.Module): the model.
        inputs, named_inputs: what the model is called with.

    Returns:
        Summary: a table when it is printed; its attributes have the figures.

    Raises:
        TypeError: the model is no module.

    Example:
        >>> from facula import nn
        >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        >>> facula.summary(model, facula.zeros(5, 8))
        module       output  parameters
        -------------------------------
        Sequential   5x2              -
          0: Linear  5x16           144
          1: ReLU    5x16             -
          2: Linear  5x2             34
        -------------------------------
        parameters: 178, of which 178 are trained
        memory: parameters 712 B, buffers 0 B, outputs 680 B, gradients 712 B
    """
    if not isinstance(model, facula.nn.Module):
        raise TypeError(f"summary(): expected an nn.Module; got {type(model).__name__}")
    modules = dict(model.named_modules())
    outputs = _outputs(model, modules, inputs, named_inputs) if inputs or named_inputs else {}
    return Summary(model, [_row(n, m, outputs.get(m, [])) for n, m in modules.items()])


def _row(name, module, outputs):
    return ModuleRow(
        name,
        type(module).__name__,
        name.count(".") + 1 if name else 0,
        tuple(tuple(tensor.shape) for tensor in outputs),
        sum(map(_count, module.parameters(recurse=False))),
        sum(tensor.nbytes for tensor in outputs),
    )


def _outputs(model, modules, inputs, named_inputs):
    """What each module gives, by module: tensors without data, when the model is called."""
    found, handles = {}, []

    def keep(module, args, output):
        tensors = facula.utils._pytree.tree_leaves(output)
        kept = [t.to("meta") for t in tensors if isinstance(t, facula.Tensor)]
        found.setdefault(module, []).extend(kept)

    training = [module for module in modules.values() if module.training]
    try:
        handles += [module.register_forward_hook(keep) for module in modules.values()]
        model.eval()
        with facula.no_grad(), facula.random.fork_rng():
            model(*inputs, **named_inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module in training:
            module.training = True
    return found
