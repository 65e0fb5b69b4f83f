"""Shapes that stages tell each other, and which rank has which stage."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import facula
from facula._subclasses.fake_tensor import FakeTensorMode

__all__ = [
    "PipeInfo",
    "PipeliningMetadataError",
    "generate_rank_to_stage_mapping",
    "generate_stage_to_rank_mapping",
]


class PipeliningMetadataError(RuntimeError):
    """A stage gives or gets other tensors than it said."""


@dataclass(frozen=True)
class _TensorMeta:
    """What a stage must know of a tensor before it comes."""

    shape: tuple
    stride: tuple
    dtype: facula.dtype
    requires_grad: bool

    @staticmethod
    def from_tensor(tensor):
        """That of a tensor."""
        return _TensorMeta(
            tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.requires_grad
        )

    def to_tensor(self, device):
        """A tensor of any values."""
        made = facula.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)
        return made.requires_grad_(self.requires_grad)

    def get_diff(self, other):
        """The names of fields that differ."""
        names = ("shape", "stride", "dtype", "requires_grad")
        return [n for n in names if getattr(self, n) != getattr(other, n)]

    def __str__(self):
        return f"{self.dtype} {list(self.shape)}"


@dataclass
class PipeInfo:
    """What is known of a model that was split."""

    graph: object
    num_stages: int
    has_loss_and_backward: bool


def as_tuple(output):
    """The outputs of a stage, which may be a single one."""
    if isinstance(output, (tuple, list)):
        return tuple(output)
    return (output,)


def metas_of(where, values):
    """What is to be known of tensors.

    Raises:
        TypeError: something is no tensor.
    """
    for value in values:
        if not isinstance(value, facula.Tensor):
            raise TypeError(f"{where}: expected tensors between stages; got {type(value).__name__}")
    return tuple(_TensorMeta.from_tensor(v) for v in values)


def validate(where, expected, values):
    """Compare tensors with what was told about them.

    Raises:
        PipeliningMetadataError: their number, shapes or dtypes differ.
    """
    found = metas_of(where, values)
    same = len(found) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(found, expected, strict=True)
    )
    if not same:
        raise PipeliningMetadataError(
            f"{where}: expected {', '.join(map(str, expected))}; got "
            f"{', '.join(map(str, found)) or 'nothing'}"
        )


def infer_outputs(where, parts, metas, kwargs, has_backward):
    """What a module returns, by running it on tensors without memory.

    Args:
        where (str): for errors.
        parts (DataParallelParts): of the module.
        metas (tuple of _TensorMeta): its inputs.
        kwargs (dict): arguments by name, of real tensors.
        has_backward (bool): whether gradients are needed.
    """
    if parts.is_tensor_parallel():
        # DTensors need memory; the ranks of the stage are all here, and take part.
        args = tuple(facula.zeros_like(meta.to_tensor("cpu")) for meta in metas)
        with facula.set_grad_enabled(has_backward):
            for arg, meta in zip(args, metas, strict=True):
                arg.requires_grad_(meta.requires_grad and has_backward)
            return metas_of(where, as_tuple(parts.run_without_effect(args, kwargs)))
    with contextlib.ExitStack() as scopes:
        module, state = scopes.enter_context(parts.finding_shapes())
        fake = scopes.enter_context(FakeTensorMode())
        scopes.enter_context(facula.set_grad_enabled(has_backward))
        fakes = {name: fake.from_tensor(value) for name, value in state.items()}
        args = tuple(meta.to_tensor("cpu") for meta in metas)
        named = {
            k: fake.from_tensor(v) if isinstance(v, facula.Tensor) else v for k, v in kwargs.items()
        }
        return metas_of(where, as_tuple(facula.func.functional_call(module, fakes, args, named)))


def generate_stage_to_rank_mapping(pp_size, num_stages, style="loop"):
    """The rank of each stage.

    Args:
        pp_size (int): ranks of the pipeline.
        num_stages (int): stages of the pipeline.
        style (str): "loop" (from the last rank on to the first) or "v" (and back from there).

    Returns:
        dict

    Raises:
        ValueError: another style, or a number of stages that ranks do not divide.

    Example:
        >>> from facula.distributed.pipelining._utils import generate_stage_to_rank_mapping
        >>> generate_stage_to_rank_mapping(2, 4, "v")
        {0: 0, 1: 1, 2: 1, 3: 0}
    """
    if style == "loop":
        return {stage: stage % pp_size for stage in range(num_stages)}
    if style != "v":
        raise ValueError(f"generate_stage_to_rank_mapping(): expected loop or v; got {style!r}")
    if num_stages % pp_size:
        raise ValueError(
            "generate_stage_to_rank_mapping(): expected a number of stages that "
            f"{pp_size} ranks divide; got {num_stages}"
        )
    there_and_back = [*range(pp_size), *reversed(range(pp_size))]
    return {stage: there_and_back[stage % (2 * pp_size)] for stage in range(num_stages)}


def generate_rank_to_stage_mapping(pp_size, num_stages, style="loop"):
    """The stages of each rank; see `generate_stage_to_rank_mapping`."""
    result = {rank: [] for rank in range(pp_size)}
    for stage, rank in generate_stage_to_rank_mapping(pp_size, num_stages, style).items():
        result[rank].append(stage)
    return result
