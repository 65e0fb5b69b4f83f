"""Products of matrices of 8-bit floats, whose numbers stand for themselves times a scale."""

from __future__ import annotations

from enum import Enum

import facula


class ScalingType(Enum):
    """How much of a matrix shares a scale."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """In which order the scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


def scaled_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    output_dtype=facula.bfloat16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """The product of two matrices of small floats and their scales, summed in float32.

    Args:
        mat_a: (M, K), of a float8 dtype; or float4_e2m1fn_x2 of (M, K / 2), by blocks.
        mat_b: (K, N), of a float8 dtype; or float4_e2m1fn_x2 of (K / 2, N).
        scale_a: of one element, or (M, 1) for each row; of blocks, see below. May stand in a list.
        scale_recipe_a: a `ScalingType`; may stand in a list.
        scale_b: of one element, or (1, N) for each column; of blocks, see below. The same.
        scale_recipe_b: the same as `scale_recipe_a`; both `BlockWise1x128` and `BlockWise128x128`
            go with either.
        swizzle_a: None, `SwizzleType.NO_SWIZZLE`, or `SWIZZLE_32_4_4` for blocks of 16 and 32.
        swizzle_b: the same.
        bias: None or (N,), added to each row.
        output_dtype: that of the result; None: that of `mat_a`.
        contraction_dim: empty or (1, 0): K is the last dimension of `mat_a`, the first of `mat_b`.
        use_fast_accum: has no effect on a CPU.

    Blocks are cut along K. Their scales are float32 of (M, K / 128) and (K / 128, N) for
    `BlockWise1x128`, of (M / 128, K / 128) and (K / 128, N / 128) for `BlockWise128x128`;
    float8_e8m0fnu of (M, K / 32) and (N, K / 32) for `BlockWise1x32`; float8_e4m3fn of (M, K / 16)
    and (N, K / 16) for `BlockWise1x16`, which a second scale with `TensorWise` may follow.

    Returns:
        Tensor (M, N).

    Raises:
        NotImplementedError: recipes that do not go together, other orders, other dimensions.
        ValueError: dtypes or sizes of scales that do not fit the recipes.
        AttributeError: a recipe is no `ScalingType`.

    Example:
        >>> a = facula.ones(2, 4).to(facula.float8_e4m3fn)
        >>> scale, each = facula.tensor(0.5), facula.nn.functional.ScalingType.TensorWise
        >>> facula.nn.functional.scaled_mm(a, a.t(), scale, each, scale, each).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    _check_contraction(contraction_dim)
    recipes = _listed(scale_recipe_a), _listed(scale_recipe_b)
    _check_recipes(recipes)
    if recipes[0][0] in _BLOCKS:
        product = _block_product(
            (mat_a, mat_b.t()),
            recipes,
            (_listed(scale_a), _listed(scale_b)),
            (_listed(swizzle_a), _listed(swizzle_b)),
        )
        product = product if bias is None else product + bias.float()
        return product.to(output_dtype or mat_a.dtype)
    recipes = [_single(r, "a recipe") for r in recipes]
    scale_a, scale_b = _single(scale_a, "scale_a"), _single(scale_b, "scale_b")
    _check_order((swizzle_a, swizzle_b))
    if recipes[0] is not recipes[1]:
        raise ValueError(
            f"scaled_mm(): expected one recipe for both matrices; got {recipes[0].name} and "
            f"{recipes[1].name}"
        )
    if recipes[0] is ScalingType.TensorWise:
        for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
            if scale.numel() != 1:
                raise ValueError(
                    f"scaled_mm(): expected {name} of one element; got {tuple(scale.shape)}"
                )
    return facula._scaled_mm(
        mat_a, mat_b, scale_a, scale_b, bias, None, output_dtype, use_fast_accum
    )


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _single(value, name):
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) != 1:
        raise NotImplementedError(f"scaled_mm(): expected {name} alone; got {len(value)} of them")
    return value[0]


def _check_recipes(recipes):
    for recipe in recipes[0] + recipes[1]:
        if not isinstance(recipe, ScalingType):
            raise AttributeError(  # as PyTorch, which asks for its value
                f"scaled_mm(): expected recipes as ScalingType; got {type(recipe).__name__}"
            )


def _check_order(swizzles):
    for swizzle in swizzles:
        if swizzle is not None and _single(swizzle, "a swizzle") is not SwizzleType.NO_SWIZZLE:
            raise NotImplementedError(f"scaled_mm(): expected scales in order; got {swizzle}")


def _check_contraction(dims):
    if [d % 2 for d in dims] not in ([], [1, 0]):
        raise NotImplementedError(f"scaled_mm(): expected contraction_dim (1, 0); got {dims}")


# --- scales of blocks

# Of a matrix whose rows are multiplied: rows and columns of a block, and the dtype of its scale.
_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16, facula.float8_e4m3fn),
    ScalingType.BlockWise1x32: (1, 32, facula.float8_e8m0fnu),
    ScalingType.BlockWise1x128: (1, 128, facula.float32),
    ScalingType.BlockWise128x128: (128, 128, facula.float32),
}
_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def _block_product(matrices, recipes, scales, swizzles):
    """Rows of the first by rows of the second, both (rows, K), each block times its scale."""
    of_128 = {ScalingType.BlockWise1x128, ScalingType.BlockWise128x128}
    firsts = {recipes[0][0], recipes[1][0]}
    if len(firsts) == 2 and firsts != of_128:
        raise NotImplementedError(f"scaled_mm(): expected recipes that go together; got {recipes}")
    factors = [
        _scaled_rows(*parts, is_second)
        for is_second, parts in enumerate(zip(matrices, recipes, scales, swizzles, strict=True))
    ]
    if factors[0].shape[1] != factors[1].shape[1]:
        raise RuntimeError(
            f"scaled_mm(): expected matrices (M, K) and (K, N); got K of {factors[0].shape[1]} and "
            f"{factors[1].shape[1]}"
        )
    return factors[0] @ factors[1].t()


def _scaled_rows(matrix, recipes, scales, swizzles, is_second):
    values = _numbers(matrix)
    if len(scales) != len(recipes):
        raise ValueError(
            f"scaled_mm(): expected a scale for each recipe; got {len(scales)} and {len(recipes)}"
        )
    found = values * _spread(scales[0], recipes[0], swizzles[0], values.shape, is_second)
    for recipe, scale in zip(recipes[1:], scales[1:], strict=True):
        if recipe is not ScalingType.TensorWise or scale.numel() != 1:
            raise NotImplementedError(
                f"scaled_mm(): expected one more scale of the whole matrix; got {recipe} of "
                f"{tuple(scale.shape)}"
            )
        found = found * scale.reshape(())
    return found


def _numbers(matrix):
    """float32 values; of float4 twice as many columns, the lower half of each byte first."""
    if matrix.dim() != 2:
        raise RuntimeError(f"scaled_mm(): expected matrices; got {matrix.dim()} dimensions")
    if matrix.dtype != facula.float4_e2m1fn_x2:
        return matrix.float()
    codes = matrix.contiguous().view(facula.uint8).int()
    table = facula.tensor([*_FLOAT4, *(-v for v in _FLOAT4)], device=matrix.device)
    return table[facula.stack([codes & 15, codes >> 4], -1).flatten(1)]


def _spread(scale, recipe, swizzle, shape, is_second):
    """A scale for each element of a matrix of that shape."""
    height, width, dtype = _BLOCKS[recipe]
    counts = (-(-shape[0] // height), -(-shape[1] // width))
    if scale.dtype != dtype:
        raise ValueError(f"scaled_mm(): {recipe} expected {dtype} scales; got {scale.dtype}")
    if swizzle is SwizzleType.SWIZZLE_32_4_4 and width < 128:
        scale = _in_order(scale.float(), counts)
    else:
        _check_order([swizzle])
        given = scale.t() if is_second and width == 128 else scale
        if tuple(given.shape) != counts:
            raise ValueError(
                f"scaled_mm(): expected scales {counts} of {tuple(shape)} numbers; got "
                f"{tuple(given.shape)}"
            )
        scale = given.float()
    rows = scale.repeat_interleave(height, 0)[: shape[0]]
    return rows.repeat_interleave(width, 1)[:, : shape[1]]


def _in_order(scale, counts):
    """Rows of scales, from tiles of 128 by 4 that lie one by one, as 32 rows of 4 by 4 each."""
    tiles = (-(-counts[0] // 128), -(-counts[1] // 4))
    if scale.numel() != tiles[0] * tiles[1] * 512:
        raise ValueError(
            f"scaled_mm(): expected {tiles[0] * tiles[1] * 512} scales in tiles of 128 by 4; got "
            f"{scale.numel()}"
        )
    ordered = scale.reshape(*tiles, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return ordered.reshape(tiles[0] * 128, tiles[1] * 4)[: counts[0], : counts[1]]
