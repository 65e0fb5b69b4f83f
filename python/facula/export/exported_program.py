"""ExportedProgram: the graph of a module, what its inputs and outputs are, and its tensors."""

from __future__ import annotations

import copy
import dataclasses
import functools
import typing

from facula.export import _unlift
from facula.export.graph_signature import (  # noqa: F401  (names that PyTorch has here too)
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)
from facula.fx.graph_module import GraphModule

__all__ = [
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "default_decompositions",
]


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module in the program is called: its inputs, outputs and their structures."""

    inputs: list
    outputs: list
    in_spec: typing.Any
    out_spec: typing.Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node, new_node):
        """Give a node another name in the description."""
        for argument in [*self.inputs, *self.outputs]:
            if argument.name == original_node.name:
                argument.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, by its name; its signature where it was to be kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(typing.NamedTuple):
    """The structures of the arguments, `(args, kwargs)`, and of the result."""

    in_spec: typing.Any
    out_spec: typing.Any


def default_decompositions():
    """The operators that `run_decompositions()` takes apart, with the functions that do.

    Returns:
        CustomDecompTable: OpOverload to function; entries may be added or taken out.
    """
    from facula.export.decomp_utils import CustomDecompTable

    return CustomDecompTable()


class ExportedProgram:
    """A program that `export` made of a module; `module()` gives one that can be called.

    Args:
        root (Module | dict): has what the graph's nodes name.
        graph (Graph): the program.
        graph_signature (ExportGraphSignature): what its inputs and outputs are.
        state_dict (dict): parameters and persistent buffers.
        range_constraints (dict): symbol to the range of values that it may have.
        module_call_graph (list[ModuleCallEntry]): the modules; the first is the whole.
        example_inputs (tuple): `(args, kwargs)` that it was made with.
        constants (dict): tensors that are neither parameters nor persistent buffers.
    """

    def __init__(
        self,
        root,
        graph,
        graph_signature,
        state_dict,
        range_constraints,
        module_call_graph,
        example_inputs=None,
        constants=None,
        *,
        verifiers=None,
    ):
        self._graph_module = GraphModule(root, graph)
        for node, given in zip(self._graph_module.graph.nodes, graph.nodes, strict=True):
            node.name = given.name  # a copy renames arguments that are called as Python's functions
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._dialect = "TRAINING"
        self._sizes, self._expressions = None, {}  # of the dynamic sizes
        self._guard_texts = []  # conditions of a file that it was read from

    graph_module = property(lambda self: self._graph_module, doc="The graph as a module.")
    graph = property(lambda self: self._graph_module.graph, doc="The graph.")
    graph_signature = property(
        lambda self: self._graph_signature, doc="What the graph's inputs and outputs are."
    )
    state_dict = property(lambda self: self._state_dict, doc="Parameters and persistent buffers.")
    range_constraints = property(
        lambda self: self._range_constraints, doc="The values that each symbol may have."
    )
    module_call_graph = property(
        lambda self: self._module_call_graph, doc="The modules of the program."
    )
    constants = property(
        lambda self: self._constants, doc="Tensors that are no parameters or persistent buffers."
    )
    tensor_constants = constants
    example_inputs = property(
        lambda self: self._example_inputs, doc="`(args, kwargs)` that it was made with."
    )
    call_spec = property(
        lambda self: CallSpec(
            self._module_call_graph[0].signature.in_spec,
            self._module_call_graph[0].signature.out_spec,
        ),
        doc="The structures of arguments and result.",
    )
    dialect = property(lambda self: self._dialect, doc="Which operators the graph has.")

    def parameters(self):
        """The parameters, one after the other."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        """`(name, parameter)`, one after the other."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self):
        """The buffers, one after the other."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        """`(name, buffer)`, one after the other."""
        passing = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in passing else self.state_dict)[name]

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "ExportedProgram(): expected a call of `program.module()`; got a call of the program"
        )

    def module(self, check_guards=True):
        """The program as a module: it has the parameters, takes what forward() took.

        Args:
            check_guards (bool): check sizes and constants of the arguments at each call.

        Returns:
            GraphModule

        Example:
            >>> program = facula.export.export(facula.nn.ReLU(), (facula.ones(2),))
            >>> program.module()(facula.tensor([-1.0, 1.0]))
            tensor([0., 1.])
        """
        module = _unlift.unlift(self, check_guards)
        for name in ("train", "eval"):
            setattr(module, name, functools.partial(_refuse_mode, name))
        return module

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program without in-place changes, of core operators.

        Args:
            decomp_table (dict | None): OpOverload to a function that is traced in its place; the
                core decompositions where None; {} keeps every operator that has a kernel.

        Returns:
            ExportedProgram: new values of buffers and inputs are further outputs, before the
            results.
        """
        from facula.export._decompose import decomposed

        table = default_decompositions() if decomp_table is None else dict(decomp_table)
        return decomposed(self, table)

    def validate(self):
        """Check the graph and that the signature names its inputs and outputs.

        Raises:
            ValueError: they do not agree.
        """
        self._validate()

    def _validate(self):
        self.graph.lint()
        nodes = [n.target for n in self.graph.nodes if n.op == "placeholder"]
        named = [spec.arg.name for spec in self.graph_signature.input_specs]
        if nodes != named:
            raise ValueError(
                f"ExportedProgram: expected the inputs {named} of the signature; got {nodes}"
            )

    def _update(
        self, graph_module, graph_signature, *, state_dict=None, constants=None, verifiers=None
    ):
        """Another program with this graph and signature; the rest is shared."""
        made = ExportedProgram(
            graph_module,
            graph_module.graph,
            graph_signature,
            self.state_dict if state_dict is None else state_dict,
            dict(self.range_constraints),
            copy.deepcopy(self.module_call_graph),
            self.example_inputs,
            self.constants if constants is None else constants,
        )
        made._sizes, made._expressions = self._sizes, self._expressions
        made._guard_texts, made._dialect = self._guard_texts, self._dialect
        return made

    def __str__(self):
        code = self.graph_module.print_readable(
            print_output=False, include_stride=False, include_device=False
        )
        indented = code.replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {indented}\n"
            f"Graph signature:{signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )


def _refuse_mode(name, *args):
    raise NotImplementedError(
        f"{name}(): expected a program whose graph has both modes; got one that was exported in "
        "one of them"
    )
