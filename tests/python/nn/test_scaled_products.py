"""Products of matrices of 8-bit floats with scales."""

import facula
import pytest
from facula.nn import functional as F

TENSOR, ROW = F.ScalingType.TensorWise, F.ScalingType.RowWise
E4, E5 = facula.float8_e4m3fn, facula.float8_e5m2


def _matrices(dtype=E4):
    a = (facula.arange(64.0).view(4, 16) % 7 - 3).to(dtype)
    return a, (facula.arange(48.0).view(3, 16) % 5 - 2).to(E4).t()


@pytest.mark.parametrize("dtype", [E4, E5])
@pytest.mark.parametrize("out", [facula.float32, facula.bfloat16, facula.float16])
def test_one_scale_for_each_matrix(dtype, out):
    a, b = _matrices(dtype)
    found = F.scaled_mm(
        a, b, facula.tensor(2.0), TENSOR, facula.tensor(0.5), TENSOR, bias=facula.ones(3),
        output_dtype=out,
    )  # fmt: skip
    assert found.dtype == out
    assert facula.equal(found, (a.float() @ b.float() + 1).to(out))


def test_a_scale_for_each_row_and_column():
    a, b = _matrices()
    rows, columns = facula.arange(1.0, 5.0)[:, None], facula.tensor([[1.0, 2.0, 0.5]])
    found = F.scaled_mm(a, b, [rows], [ROW], [columns], [ROW], output_dtype=facula.float32)
    assert facula.equal(found, rows * (a.float() @ b.float()) * columns)
    assert F.scaled_mm(a, b, rows, ROW, columns, ROW).dtype == facula.bfloat16


def test_results_of_8_bits_are_scaled_and_bounded():
    a, one = facula.full((16, 16), 448.0).to(E4), facula.tensor(1.0)
    assert facula._scaled_mm(a, a.t(), one, one)[0, 0].float() == 448
    small = facula.ones(2, 2).to(E4)
    found = facula._scaled_mm(small, small, one, one, scale_result=facula.tensor(0.5))
    assert found.dtype == E4
    assert found.float().tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mat_a": facula.ones(4, 16)}, ValueError),
        ({"mat_a": facula.ones(4, 8).to(E4)}, RuntimeError),
        ({"scale_a": facula.ones(4)}, ValueError),
        ({"scale_a": facula.tensor(1.0, dtype=facula.float64)}, ValueError),
        ({"scale_recipe_a": ROW}, ValueError),
        ({"scale_recipe_a": F.ScalingType.BlockWise1x128}, NotImplementedError),
        ({"contraction_dim": (0, 1)}, NotImplementedError),
        ({"swizzle_a": F.SwizzleType.SWIZZLE_32_4_4}, NotImplementedError),
        ({"bias": facula.ones(2)}, RuntimeError),
    ],
)
def test_what_does_not_fit(change, error):
    a, b = _matrices()
    call = {
        "mat_a": a,
        "mat_b": b,
        "scale_a": facula.tensor(1.0),
        "scale_recipe_a": TENSOR,
        "scale_b": facula.tensor(1.0),
        "scale_recipe_b": TENSOR,
    }
    with pytest.raises(error, match="scaled_mm"):
        F.scaled_mm(**{**call, **change})


# --- scales of blocks

KINDS = F.ScalingType
E8 = facula.float8_e8m0fnu


def _numbers(rows, columns, seed):
    return (facula.arange(rows * columns).view(rows, columns) * seed % 11 - 5).float()


def _scales(rows, columns, dtype):
    return (2.0 ** (facula.arange(rows * columns).view(rows, columns) % 4)).to(dtype)


def _each(scales, rows, columns):
    """A scale for each of (rows, columns) elements."""
    height, width = -(-rows // scales.shape[0]), -(-columns // scales.shape[1])
    height, width = (1 << (n - 1).bit_length() for n in (height, width))
    every = facula.tensor(
        [[float(scales[i // height, k // width]) for k in range(columns)] for i in range(rows)]
    )
    return every


BLOCKS = {  # the scales' shapes and dtype, for (3, 256) by (256, 5)
    KINDS.BlockWise1x128: ((3, 2), (2, 5), facula.float32),
    KINDS.BlockWise128x128: ((1, 2), (2, 1), facula.float32),
    KINDS.BlockWise1x32: ((3, 8), (5, 8), E8),
    KINDS.BlockWise1x16: ((3, 16), (5, 16), E4),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_scale_for_each_block(kind):
    of_a, of_b, dtype = BLOCKS[kind]
    a, b = _numbers(3, 256, 7), _numbers(5, 256, 3).t()
    scale_a, scale_b = _scales(*of_a, dtype), _scales(*of_b, dtype)
    found = F.scaled_mm(
        a.to(E4), b.to(E4), scale_a, kind, scale_b, kind,
        bias=facula.ones(5), output_dtype=facula.float32,
    )  # fmt: skip
    by_column = scale_b.t() if dtype == facula.float32 else scale_b
    wanted = (a * _each(scale_a, 3, 256)) @ (b.t() * _each(by_column, 5, 256)).t() + 1
    assert facula.equal(found, wanted)


def test_blocks_of_rows_by_square_blocks():
    a, b = _numbers(3, 256, 7), _numbers(5, 256, 3).t()
    rows, squares = _scales(3, 2, facula.float32), _scales(2, 1, facula.float32)
    found = F.scaled_mm(
        a.to(E4), b.to(E4), rows, KINDS.BlockWise1x128, squares, KINDS.BlockWise128x128,
        output_dtype=facula.float32,
    )  # fmt: skip
    wanted = (a * _each(rows, 3, 256)) @ (b * _each(squares.t(), 1, 256).t())
    assert facula.equal(found, wanted)


def _in_tiles(scales):
    """Scales as tensor cores read them: tiles of 128 by 4, and of those rows 32 apart together."""
    rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
    out = []
    for tile in range(0, rows, 128):
        for left in range(0, columns, 4):
            for row in range(32):
                for part in range(4):
                    for column in range(4):
                        i, k = tile + part * 32 + row, left + column
                        inside = i < scales.shape[0] and k < scales.shape[1]
                        out.append(float(scales[i, k]) if inside else 1.0)
    return facula.tensor(out).to(scales.dtype)


def test_scales_in_tiles():
    a, b = _numbers(130, 160, 7).to(E4), _numbers(5, 160, 3).t().to(E4)
    scale_a, scale_b = _scales(130, 5, E8), _scales(5, 5, E8)
    kind, tiles = KINDS.BlockWise1x32, F.SwizzleType.SWIZZLE_32_4_4
    found = F.scaled_mm(
        a, b, _in_tiles(scale_a), kind, _in_tiles(scale_b), kind, tiles, tiles,
        output_dtype=facula.float32,
    )  # fmt: skip
    plain = F.scaled_mm(a, b, scale_a, kind, scale_b, kind, output_dtype=facula.float32)
    assert facula.equal(found, plain)


def test_float4_with_two_levels_of_scales():
    table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    codes = [facula.arange(n * 16).view(n, 16) * step % 256 for n, step in ((3, 7), (5, 11))]
    packed = [c.to(facula.uint8).view(facula.float4_e2m1fn_x2) for c in codes]
    a, b = (
        facula.tensor([[table[x] for byte in row for x in (byte % 16, byte // 16)] for row in c])
        for c in (half.tolist() for half in codes)
    )
    scale_a, scale_b, whole = _scales(3, 2, E4), _scales(5, 2, E4), facula.tensor(0.25)
    kinds = [KINDS.BlockWise1x16, TENSOR]
    found = F.scaled_mm(
        packed[0], packed[1].t(), [scale_a, whole], kinds, [scale_b, whole], kinds,
        output_dtype=facula.float32,
    )  # fmt: skip
    wanted = (a * _each(scale_a, 3, 32)) @ (b * _each(scale_b, 5, 32)).t() / 16
    assert facula.equal(found, wanted)


@pytest.mark.parametrize(
    ("kind", "scale", "error"),
    [
        (KINDS.BlockWise1x32, facula.ones(3, 8), ValueError),
        (KINDS.BlockWise1x32, facula.ones(3, 7).to(E8), ValueError),
        (KINDS.BlockWise1x128, facula.ones(2, 2), ValueError),
        (KINDS.BlockWise1x16, facula.ones(3, 16).to(E8), ValueError),
    ],
)
def test_scales_that_do_not_fit(kind, scale, error):
    a = _numbers(3, 256, 7).to(E4)
    with pytest.raises(error, match="scaled_mm"):
        F.scaled_mm(a, a.t(), scale, kind, scale, kind)
