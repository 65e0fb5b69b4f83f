"""Dtypes without arithmetic beside PyTorch: facts, conversions, and which operators run."""

import io
import warnings

import facula
import pytest
import torch

FLOAT8 = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
OPAQUE = "bits8 bits16 bits1x8 bits2x4 bits4x2".split()
NARROW = [f"{sign}int{bits}" for sign in ("u", "") for bits in range(1, 8)]
ALL = [*FLOAT8, "float4_e2m1fn_x2", "bcomplex32", *OPAQUE, *NARROW]
OTHERS = "bool uint8 int8 int64 float16 bfloat16 float32 complex32 complex64".split()

# d is the dtype, x eight of its elements, y four others.
EXPRESSIONS = """
repr(d) d.itemsize d.is_floating_point d.is_complex d.is_signed d.abbr
d.to_real() d.to_complex() m.finfo(d) m.iinfo(d)
x.type() x.dtype x.element_size() x.is_floating_point() x.is_complex() m.empty(3,dtype=d).shape
m.zeros(3,dtype=d).dtype m.zeros_like(x).dtype x.new_zeros(2).dtype x.zero_().dtype
m.ones(3,dtype=d).dtype m.full((2,),1,dtype=d).dtype x.fill_(1).dtype m.eye(2,dtype=d).dtype
x.view(m.uint8).tolist() x.view(m.int16).dtype m.zeros(2,dtype=m.int32).view(d).shape
m.cat([x,y]).dtype m.stack([x,x]).dtype m.where(m.tensor(True),x,x).dtype x[1].shape
x.float() x.double() x.half() x.bfloat16() x.to(m.complex64) x.int() x.bool()
m.tensor([0.,1.,-2.]).to(d).dtype m.tensor([1,2]).to(d).dtype m.tensor([True]).to(d).dtype
x.tolist() x[2].item() float(x[2]) m.tensor([1.,2.],dtype=d).tolist()
(x==x) (x!=x) (x[:4]==y) (x==1) x<x x.isnan() x.isinf() x.isfinite() x.any() x.all()
m.equal(x,x.view(2,-1).view(-1)) x.abs() -x x+x x-x x/x x.sum() x.mean() x.max() x.sort()
(x*x).view(m.uint8) x@x m.mm(x.view(2,-1),x.view(-1,2))
m.addmm(x[:4].view(2,2),x.view(2,-1),x.view(-1,2))
x.numpy() type(x.__dlpack__()).__name__ m.from_dlpack(x).dtype
m.empty(2,dtype=d,requires_grad=True).requires_grad m.rand(2,dtype=d).dtype
m.promote_types(d,d) m.result_type(x,1) m.result_type(x,1.5) m.result_type(x,True)
m.can_cast(d,m.float32) m.can_cast(m.float32,d) m.can_cast(m.int32,d) m.set_default_dtype(d)
x.storage().dtype len(x.untyped_storage()) m.empty(4).type(d).dtype x.type_as(m.ones(1)).dtype
""".split()
# What facula does and PyTorch refuses.
MORE = {
    "m.equal(x,x.view(2,-1).view(-1))": [*FLOAT8, "bcomplex32"],
    "m.ones(3,dtype=d).dtype": ["bcomplex32"],
    "m.full((2,),1,dtype=d).dtype": ["bcomplex32"],
    "x.fill_(1).dtype": ["bcomplex32"],
    "m.eye(2,dtype=d).dtype": ["bcomplex32"],
    "x.abs()": ["float8_e8m0fnu"],
}
# What PyTorch does and facula refuses: it compares the two numbers of a byte by the byte.
LESS = {e: ["float4_e2m1fn_x2"] for e in ("(x==x)", "(x!=x)", "(x[:4]==y)", "x.isnan()")}


def answer(m, name, expression):
    d = getattr(m, name)
    count = 8 * d.itemsize
    names = {
        "m": m,
        "d": d,
        "x": (m.arange(count) % 5 * 8 + 7).to(m.uint8).view(d),
        "y": (m.arange(count // 2) % 3 * 8 + 15).to(m.uint8).view(d),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(expression, names)).replace("facula", "torch")  # noqa: S307
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_answers(name, expression):
    ours, theirs = (answer(m, name, expression) for m in (facula, torch))
    if name in LESS.get(expression, ()):
        assert ours is NotImplementedError
    elif name in MORE.get(expression, ()):
        assert isinstance(ours, str)
    elif isinstance(theirs, type) and issubclass(theirs, RuntimeError):
        assert isinstance(ours, type) and issubclass(ours, RuntimeError)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("other", [*OTHERS, "float8_e5m2", "uint4", "int4", "bits8", "bcomplex32"])
def test_promotion(name, other):
    answers = []
    for m in (facula, torch):
        try:
            promoted = m.promote_types(getattr(m, name), getattr(m, other))
            answers.append(str(promoted).rpartition(".")[2])
        except RuntimeError:
            answers.append(RuntimeError)
    assert answers[0] == answers[1]


def bits(m, values):
    return values.view(m.uint8).tolist()


def every_half(m):
    """All values of bfloat16 and float16."""
    codes = m.arange(65536, dtype=m.int32).to(m.int16)
    return m.cat([codes.view(m.bfloat16).float(), codes.view(m.float16).float()])


SOURCES = {
    "halves": every_half,
    "bfloat16": lambda m: m.arange(65536, dtype=m.int32).to(m.int16).view(m.bfloat16),
    "float16": lambda m: m.arange(65536, dtype=m.int32).to(m.int16).view(m.float16),
    "floats": lambda m: (m.arange(200000, dtype=m.int64) * 21474 - 2**31).int().view(m.float32),
    "doubles": lambda m: (m.arange(100000, dtype=m.int64) * 92233720368547).view(m.float64),
    "integers": lambda m: m.arange(-70000, 70000, 3),
}


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("source", SOURCES)
def test_rounding(name, source):
    ours, theirs = (bits(m, SOURCES[source](m).to(getattr(m, name))) for m in (facula, torch))
    assert ours == theirs


@pytest.mark.parametrize("name", FLOAT8)
def test_all_codes(name):
    for wide in ("float16", "bfloat16", "float32", "float64", "complex64", "bool"):
        ours, theirs = (
            m.arange(256, dtype=m.uint8).view(getattr(m, name)).to(getattr(m, wide))
            for m in (facula, torch)
        )
        assert repr(ours.tolist()) == repr(theirs.tolist()), wide


READABLE = [name for name in ALL if name not in NARROW]  # which torch.save() refuses


@pytest.mark.parametrize("name", READABLE)
def test_files_across(name):
    for writer, reader in ((facula, torch), (torch, facula)):
        stream = io.BytesIO()
        x = writer.arange(8, dtype=writer.uint8).view(getattr(writer, name))
        writer.save({"x": x, "d": x.dtype}, stream)
        stream.seek(0)
        read = reader.load(stream)
        assert read["d"] is getattr(reader, name) and read["x"].dtype is read["d"]
        assert bits(reader, read["x"]) == list(range(8))
