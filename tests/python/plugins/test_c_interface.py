"""Libraries in C alone and in C++20 over it: tests/cpp/plugins/toy_c.c and toy_operator.cpp."""

import ctypes
import shutil
import subprocess

import facula
import pytest
from plugin_library import ROOT, compiled

GCC = shutil.which("gcc")


@pytest.fixture(scope="session")  # a process loads a library once
def library(tmp_path_factory):
    path = compiled("toy_c", tmp_path_factory.mktemp("toy"), ".c")
    facula.ops.load_library(path)
    opened = ctypes.CDLL(str(path))
    opened.toy_c_calls.restype = ctypes.c_int64
    opened.toy_c_forward_rules.restype = ctypes.c_int64
    return opened


@pytest.fixture(scope="module")
def ops(library):
    return facula.ops.toy_c


def test_operator(library, ops):
    x = facula.rand(3, 4, dtype=facula.float64, requires_grad=True)
    before = library.toy_c_calls()
    assert facula.equal(ops.affine(x, 2.0, 1.0), 2 * x + 1)
    assert library.toy_c_calls() == before + 1
    assert facula.equal(ops.affine(x, 3.0), 3 * x)
    assert ops.affine(x.to("meta"), 2.0).shape == (3, 4)
    assert facula.autograd.gradcheck(lambda t: ops.affine(t, 3.0, 1.0), (x,))
    big = facula.ones(100_000, dtype=facula.float64)
    assert ops.affine(big, 2.0, 1.0).sum().item() == 300_000


def test_batching_rule(ops, recwarn):
    x = facula.rand(5, 3, dtype=facula.float64)
    assert facula.equal(facula.vmap(lambda t: ops.affine(t, 2.0, 1.0))(x), 2 * x + 1)
    assert not [w for w in recwarn if "no batching rule" in str(w.message)]


def test_rule_of_forward_mode(library, ops):
    x, v = facula.rand(2, 3, 4, dtype=facula.float64).unbind()
    before = library.toy_c_forward_rules()
    value, tangent = facula.func.jvp(lambda t: ops.affine(t, 3.0, 1.0), (x,), (v,))
    assert facula.equal(value, 3 * x + 1) and facula.equal(tangent, 3 * v)
    assert library.toy_c_forward_rules() == before + 1
    # The rule calls operators, which have derivatives of their own.
    mixed = facula.func.jvp(facula.func.grad(lambda t: (ops.affine(t, 3.0) ** 3).sum()), (x,), (v,))
    assert facula.allclose(mixed[1], 3 * 3**3 * 2 * x * v)
    with pytest.raises(RuntimeError, match=r"tangent of the result's sizes, \[3, 4\]; got \[7\]"):
        facula.func.jvp(lambda t: ops.crooked(t, 3.0), (x,), (v,))


def _rand(*sizes):
    return facula.rand(*sizes, dtype=facula.float64)


# Arguments with samples in dimension 0, and further ones, that all samples share.
FAMILIES = {
    "product": ((_rand(5, 3), _rand(5, 3)), ()),
    "running": ((_rand(5, 2, 3),), (-1,)),
    "swapped": ((_rand(5, 2, 3, 4),), (0, -1)),
    "reversed": ((_rand(5, 2, 3),), ([0, 1],)),
    "total": ((_rand(5, 2, 3),), ([-2],)),
    "total of all": ((_rand(5, 2, 3),), ()),
    "lower": ((_rand(5, 3, 3),), ()),
    "ordered": ((_rand(5, 2, 3, 4),), ([2, 0, 1],)),
    "wrapped": ((_rand(5, 2, 3),), (-1,)),
    "blank": ((_rand(5, 2),), ([4, 3],)),
    "turned": ((_rand(5, 2, 3),), ()),
    "pool1": ((_rand(5, 2, 6),), ([2],)),
    "pool2": ((_rand(5, 4, 2, 6, 4),), ([2, 2],)),
    "pool3": ((_rand(5, 2, 2, 4, 4),), ([2, 2, 2],)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_batching_rules_of_facula(ops, recwarn, family):
    batched, shared = FAMILIES[family]
    op = getattr(ops, family.split()[0])
    expected = facula.stack([op(*sample, *shared) for sample in zip(*batched, strict=True)])
    for at in (0, 1):
        moved = [t.movedim(0, at) for t in batched]
        result = facula.vmap(lambda *x: op(*x, *shared), in_dims=at)(*moved)
        assert facula.allclose(result, expected), at
    assert not [w for w in recwarn if "no batching rule" in str(w.message)]


def test_batching_rules_of_facula_for_several_tensors(ops, recwarn):
    x, y, at = _rand(5, 2, 3), _rand(2, 3), facula.randint(0, 2, (5, 2, 3))
    samples = list(zip(x, at, strict=True))
    taken = facula.vmap(lambda t, i: ops.taken(t, 0, i))(x, at)
    assert facula.equal(taken, facula.stack([ops.taken(t, 0, i) for t, i in samples]))
    joined = facula.vmap(lambda t: ops.joined([t, y], -1))(x)
    assert facula.equal(joined, facula.stack([ops.joined([t, y], -1) for t in x]))
    piled = facula.vmap(lambda t: ops.piled([t, y], 1))(x)
    assert facula.equal(piled, facula.stack([ops.piled([t, y], 1) for t in x]))
    assert not [w for w in recwarn if "no batching rule" in str(w.message)]


# What facula_operator_register refuses: schema, family, dims.
BAD_FAMILIES = {
    b"batch_family 15 is unknown": (b"(Tensor x) -> Tensor", 15, None),
    b"batch_family -1 is unknown": (b"(Tensor x) -> Tensor", -1, None),
    b"names 'axis', which is no argument": (b"(Tensor x, int dim) -> Tensor", 2, b"axis"),
    b"names with commas between them": (b"(Tensor x, int dim) -> Tensor", 2, b"a, b"),
    b"that the rule of batch_family 2 reads": (b"(int x, int dim) -> Tensor", 2, None),
    b"that the rule of batch_family 6 reads": (b"(Tensor x, int dims) -> Tensor", 6, b"dims"),
    b"that the rule of batch_family 7 reads": (b"(Tensor x, int? at) -> Tensor", 7, b"at"),
    b"that the rule of batch_family 8 reads": (b"(Tensor x, int size) -> Tensor", 8, None),
    b"that the rule of batch_family 9 reads": (b"(Tensor x, int dim) -> Tensor", 9, None),
    b"that the rule of batch_family 10 reads": (b"(Tensor[] x) -> Tensor", 10, None),
    b"that the rule of batch_family 11 reads": (b"(Tensor x) -> Tensor", 11, None),
}


def test_batching_rules_that_do_not_fit_are_refused(library):
    define = library.toy_c_define_in_family
    define.argtypes = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_char_p]
    library.facula_error_text.restype = ctypes.c_char_p
    for text, (schema, family, dims) in BAD_FAMILIES.items():
        assert define(b"toy_c::unfit" + schema, family, dims) == 3, text
        assert text in library.facula_error_text()
    with pytest.raises(AttributeError):
        facula.ops.toy_c.unfit  # noqa: B018


def test_errors_keep_their_class(ops):
    with pytest.raises(TypeError, match="expected a tensor of float64"):
        ops.affine(facula.ones(2), 1.0)
    with pytest.raises(NotImplementedError, match="contiguous memory"):
        ops.affine(facula.ones(2, 2, dtype=facula.float64).t().expand(2, 2).t()[:, :1], 1.0)
    cases = (
        (0, IndexError, "failed with code 4 and without a text"),
        (1, KeyError, "a key of the library's"),
        (2, RuntimeError, "negative dimension"),
        (3, IndexError, "expected the index of an argument, 0 to 0; got 7"),
        (4, RuntimeError, "an unknown code"),
        (5, TypeError, "result 0 must be Tensor, not int"),
        (6, TypeError, "no value has the tag 77"),
    )
    for how, error, text in cases:
        with pytest.raises(error, match=text):
            ops.fail(how)


ECHOES = [3, -1.5, True, 2 + 1j, "word", [1, 2], [0.5], [True, False], facula.float16]


@pytest.mark.parametrize("value", ECHOES, ids=str)
def test_values_there_and_back(ops, value):
    overloads = "bcdefghik"
    overload = getattr(ops.echo, overloads[ECHOES.index(value)])
    assert overload(value) == value


def test_tensors_there_and_back(ops):
    t = facula.ones(2)
    assert ops.echo.a(t) is t
    assert [x is y for x, y in zip(ops.echo.j([t, t]), [t, t], strict=True)] == [True, True]
    assert ops.echo.l(facula.device("cpu")) == facula.device("cpu")


# Sizes of a facula_operator_definition that ends before a field: what an older header has.
BEFORE_CPU, BEFORE_ANY = 40, 48


def test_structs_of_other_versions(library, ops):
    define = library.toy_c_define
    define.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
    library.facula_error_text.restype = ctypes.c_char_p
    x = facula.ones(2, dtype=facula.float64)
    # Shorter: fields that are missing are as if they were zero.
    assert define(b"toy_c::old(Tensor x, float s, float t=0.) -> Tensor", BEFORE_ANY) == 0
    assert ops.old(x, 2.0).tolist() == [2.0, 2.0]
    # Longer: what this build does not know is not read.
    assert define(b"toy_c::new(Tensor x, float s, float t=0.) -> Tensor", 4096) == 0
    assert ops.new(x, 2.0).tolist() == [2.0, 2.0]
    # Without a kernel, as far as its size says.
    assert define(b"toy_c::none(Tensor x, float s, float t=0.) -> Tensor", BEFORE_CPU) == 0
    with pytest.raises(NotImplementedError, match="toy_c::none"):
        ops.none(x, 2.0)
    for size in (0, 4):
        assert define(b"toy_c::bad(Tensor x) -> Tensor", size) == 3
        assert b"expected the struct's size" in library.facula_error_text()
    assert define(b"toy_c::affine(Tensor x, float s) -> Tensor", 48) == 1
    assert b"is defined already" in library.facula_error_text()
    assert define(b"not a schema", 48) == 1
    assert define(None, 48) == 2


class Value(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_uint32), ("length", ctypes.c_uint32), ("i", ctypes.c_int64)]


def test_calls_from_outside_are_checked(library):
    find, call = library.facula_operator_find, library.facula_operator_call
    library.facula_error_text.restype = ctypes.c_char_p
    op = ctypes.c_void_p()
    assert find(b"nothing", ctypes.byref(op)) == 5
    assert find(None, ctypes.byref(op)) == 2 and find(b"add.Tensor", None) == 2
    assert find(b"aten::add.Tensor", ctypes.byref(op)) == 0
    assert library.facula_operator_argument(op, b"alpha") == 2
    assert library.facula_operator_argument(op, b"beta") == -1
    t = facula.ones(2)
    tensor, result = Value(1, 0, t._cdata), Value()
    given = (Value * 4)(tensor, Value(2, 0, 3), Value(255, 0, 0), Value(0, 0, 0))
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p] + [
        ctypes.c_size_t
    ]
    assert call(op, given, 3, ctypes.byref(result), 1) == 0
    assert result.tag == 1
    library.facula_value_release(ctypes.byref(result))
    assert result.tag == 0
    bad = {
        b"at most 3 arguments": (given, 4),
        b"missing the argument 'other'": (given, 1),
        b"must be Tensor, not None": ((Value * 2)(Value(), tensor), 2),
        b"argument 'alpha' must be Scalar, not Tensor": ((Value * 3)(tensor, tensor, tensor), 3),
        b"no value has the tag 99": ((Value * 2)(tensor, Value(99, 0, 0)), 2),
        b"no dtype has the number 99": ((Value * 2)(tensor, Value(7, 0, 99)), 2),
        b"no device of this process": ((Value * 2)(tensor, Value(10, 0, 77)), 2),
        b"is a null pointer": ((Value * 2)(tensor, Value(13, 5, 0)), 2),
        b"expected arguments; got a null pointer": (None, 2),
    }
    for text, (arguments, n) in bad.items():
        assert call(op, arguments, n, ctypes.byref(result), 1) in (2, 3)
        assert text in library.facula_error_text(), text
    assert call(None, given, 2, None, 0) == 2
    assert call(op, given, 2, None, 1) == 2
    assert call(op, given, 2, None, 0) == 0


def test_blobs(library):
    released = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda c: released.append(c))
    memory = (ctypes.c_double * 6)(*range(6))

    class Device(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]

    make, out = library.facula_tensor_from_blob, ctypes.c_void_p()

    def blob(data, sizes, strides, dtype=7, device=0):
        n = (ctypes.c_int64 * len(sizes))(*sizes)
        s = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        return make(
            data,
            len(sizes),
            n,
            s,
            dtype,
            Device(device, -1),
            deleter,
            ctypes.c_void_p(5),
            ctypes.byref(out),
        )

    assert blob(memory, (2, 3), None) == 0
    library.facula_tensor_numel.restype = ctypes.c_int64
    assert library.facula_tensor_numel(out) == 6
    data = ctypes.c_void_p()
    assert library.facula_tensor_data(out, ctypes.byref(data)) == 0
    assert data.value == ctypes.addressof(memory)
    assert released == []
    library.facula_tensor_release(out)
    assert released == [5]
    for bad in (
        (memory, (-1,), None),
        (memory, (2**62, 2**62), None),
        (memory, (2,), (-1,)),
        (None, (2,), None),
        (memory, (2,), None, 12),
        (memory, (2,), None, 7, 14),
        (memory, (2,), None, 7, 99),
    ):
        assert blob(*bad) != 0, bad
    assert released == [5]


@pytest.mark.skipif(GCC is None, reason="no C compiler")
@pytest.mark.parametrize("standard", ["c11", "c17", "c++17", "c++20"])
def test_header_by_itself(tmp_path, standard):
    language = "c++" if "+" in standard else "c"
    source = tmp_path / "a.c"
    source.write_text('#include "facula/c.h"\nint main(void) { return (int)facula_c_version(); }\n')
    command = [GCC, "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, f"-I{ROOT / 'include'}", "-fsyntax-only", str(source)], check=True)
