"""What the inputs and outputs of an exported graph are: parameters, buffers, the user's own."""

from __future__ import annotations

import dataclasses
from enum import Enum, auto

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders effects, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A symbolic int, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A symbolic float, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A symbolic bool, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of the user's, by the name of its node."""

    name: str
    class_fqn: str
    fake_val: object = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that the program was exported with."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(Enum):
    """Where an input of the graph comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is for."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


def _check_argument(spec):
    if not isinstance(spec.arg, ArgumentSpec):
        raise AssertionError(
            f"{type(spec).__name__}(): expected an argument's description; got "
            f"{type(spec.arg).__name__}"
        )


@dataclasses.dataclass
class InputSpec:
    """An input: its kind, its node, and the name in the module that it stands for."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("InputSpec(): expected persistent= for a buffer; got None")
        _check_argument(self)

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output: its kind, its node, and what it is the new value of."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __post_init__(self):
        _check_argument(self)

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs of a joint graph are gradients, and which the loss."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in its order.

    Args:
        input_specs (list[InputSpec]): parameters, buffers, constants, then the user's inputs.
        output_specs (list[OutputSpec]): changes of buffers, then of inputs, then the results.
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind):
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    def _inputs(self, kind):
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _outputs(self, kind):
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self):
        """The parameters' names in the module."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        """The buffers' names in the module."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        """The names of the buffers that the state dict leaves out."""
        return tuple(
            s.target
            for s in self.input_specs
            if s.kind is InputKind.BUFFER and s.persistent is False
        )

    @property
    def lifted_tensor_constants(self):
        """The names of the tensors that were constants of the program."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        """The names of objects of classes of the user's."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self):
        """The nodes of the user's inputs, or the constants in their places."""
        return tuple(_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self):
        """The nodes of the results, or the constants in their places."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self):
        """node -> parameter"""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        """node -> buffer"""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self):
        """node -> constant"""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self):
        """node -> object"""
        return self._inputs(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self):
        """node of the new value -> buffer"""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        """node of the new value -> parameter"""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        """node of the new value -> node of the input"""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def input_tokens(self):
        """The nodes of tokens that are given."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self):
        """The nodes of tokens that are returned."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    @property
    def backward_signature(self):
        """The gradients among the outputs, or None."""
        losses = [s for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            self._outputs(OutputKind.GRADIENT_TO_PARAMETER),
            self._outputs(OutputKind.GRADIENT_TO_USER_INPUT),
            losses[0].arg.name,
        )

    @property
    def assertion_dep_token(self):
        """None: assertions are nodes that stay."""
        return None

    def replace_all_uses(self, old, new):
        """Give a node another name in every description.

        Args:
            old, new (str): the names.
        """
        for name in (old, new):
            if not isinstance(name, str):
                raise AssertionError(
                    f"replace_all_uses(): expected names; got {type(name).__name__}"
                )
        for spec in [*self.input_specs, *self.output_specs]:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new
            if getattr(spec, "kind", None) is OutputKind.USER_INPUT_MUTATION:
                spec.target = new if spec.target == old else spec.target

    def get_replace_hook(self, replace_inputs=False):
        """A hook for graph modules: outputs whose nodes are replaced are known by the new ones.

        Args:
            replace_inputs (bool): whether inputs are followed as well.
        """

        def hook(old, new, user):
            if user.op == "output":
                self.replace_all_uses(old.name, new)
            if replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self):
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(argument):
    return argument.value if isinstance(argument, ConstantArgument) else argument.name
