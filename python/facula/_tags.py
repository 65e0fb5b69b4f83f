"""What is known of operators beside their schemas, by PyTorch's names."""

from __future__ import annotations

import enum

import facula


class Tag(enum.Enum):
    """A property of an operator.

    `OpOverload.tags` has those that the operator's record tells: pointwise, inplace, out,
    nondeterministic_seeded, dynamic_output_shape, data_dependent_output.

    Example:
        >>> facula.Tag.pointwise in facula.ops.aten.add.Tensor.tags
        True
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self):
        return self.value

    __index__ = __int__


Tag.__module__ = facula.__name__


def tags_of(overload):
    """The tags of an OpOverload, in the order of their numbers.

    Args:
        overload (OpOverload): like `facula.ops.aten.add.Tensor`.

    Returns:
        list of Tag
    """
    names = set(overload._tags())
    written = [argument for argument in overload._arguments() if argument[6]]
    if any(keyword_only for _, _, keyword_only, *_ in written):
        names.add("out")
    elif written and overload.__name__.partition(".")[0].endswith("_"):
        names.add("inplace")
    return sorted((Tag[name] for name in names), key=int)
