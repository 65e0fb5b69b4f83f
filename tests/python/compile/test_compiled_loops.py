"""Groups as machine code (codegen): eager's bits, the cache on disk, and what goes wrong there."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import facula
import pytest
from facula import _C
from samples import load_ops
from samples.checks import each, tensors_of
from samples.common import Sample, find, make_arguments, seed_of

LIBRARY = Path(_C.__file__).parent / "libfacula_compiler.so"
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="libfacula_compiler.so is not built (make compiler)"
)

OPS = [op for op in load_ops() if not op.nondeterministic]


@pytest.fixture(autouse=True)
def own_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("FACULA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "loops"))
    _C._set_loop_sightings(1)
    yield
    _C._set_loop_sightings(2)


def same_bits(a, b):
    """Whether two tensors have the same bits, but for what a NaN carries."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = facula.view_as_real(a), facula.view_as_real(b)
    if a.is_floating_point():
        numbers = ~(a.isnan() & b.isnan())
        a, b = a[numbers], b[numbers]
    return a.reshape(-1).view(facula.uint8).equal(b.reshape(-1).view(facula.uint8))


def compiled(function, *args):
    """The result of a compiled call whose groups are machine code as far as they can be."""
    _C._recorded(function, *args)
    _C._wait_for_loops()
    return _C._recorded(function, *args)


def own(leaf, _):
    plain = isinstance(leaf, facula.Tensor) and leaf.layout == facula.strided
    return leaf.detach().clone() if plain and not leaf.is_quantized else leaf


@pytest.mark.parametrize("op", **each(OPS))
def test_every_sample_in_a_loop_gives_the_bits_of_its_kernel(op):
    call = find(facula, op.name)
    for dtype in op.dtype_names():
        for index, sample in op.numbered_samples(dtype):

            def copied(made):
                found = tensors_of(call(*made.args, **made.kwargs))
                return [t.clone() for t in found if isinstance(t, facula.Tensor)]

            def fresh(sample=sample, index=index, dtype=dtype):
                seed = seed_of(op, index)
                args, kwargs = make_arguments(facula, sample, dtype, seed, grad=False)
                return Sample(*args, **kwargs).map(own)

            try:
                want = copied(fresh())
            except Exception:
                continue
            if any(t.layout != facula.strided or t.is_quantized for t in want):
                continue
            _C._recorded(copied, fresh())
            _C._wait_for_loops()
            for w, g in zip(want, _C._recorded(copied, fresh()), strict=True):
                assert same_bits(w, g), f"{dtype} {sample}"


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, -1e-40, 3e38, -3e38, 88.0, -104.0]
SPECIAL += [float("inf"), float("-inf"), float("nan")]
UNARY = "exp expm1 log log1p sqrt rsqrt tanh sigmoid relu neg abs floor ceil round trunc sign erf"
UNARY += " erfc log2 log10 exp2 square reciprocal sinh cosh asinh atan asin acos logit frac"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_special_numbers_in_loops(name, dtype):
    facula.manual_seed(0)
    x = facula.cat([facula.tensor(SPECIAL), facula.randn(999) * 10]).to(getattr(facula, dtype))
    f = getattr(facula, name)
    assert same_bits(f(x * 1), compiled(lambda: f(x * 1)))


CHAINS = {
    "ten": lambda x, y: ((x + y) * y - x).relu().add(x).mul(x).sigmoid().add(y).sub(y) * x,
    "kept": lambda x, y: [a := x * y, b := a + 1, b.tanh()],
    "in place": lambda x, y: (x * 1).add_(y).mul_(2).sigmoid_(),
    "numbers": lambda x, y: facula.where(x > 0, x * 0.5, y - 3).clamp(-1, 1),
    "broadcast": lambda x, y: x.view(100, -1) * y[:100, None] + y[: x.numel() // 100],
    "strided": lambda x, y: (x.view(100, -1).t() + y.view(100, -1).t()).exp() * 2,
    "halves": lambda x, y: (x.half() * 3 + y.half()).tanh() * 0.1,
    "bfloat16": lambda x, y: (x.bfloat16() * 3 + y.bfloat16()).exp() - 1.5,
    "integers": lambda x, y: ((x * 100).int() * 3 + (y * 100).int()) % 7,
    "bits": lambda x, y: ((x > 0) & (y > 0)) | (x < y).logical_not(),
    "doubles": lambda x, y: (x.double() / y.double()).log1p().sqrt(),
    "complex": lambda x, y: facula.complex(x, y) * (1 + 2j) - facula.complex(y, x),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CHAINS)
def test_chains_give_the_bits_of_single_calls(name, threads):
    facula.manual_seed(0)
    x, y = facula.randn(40_000), facula.randn(40_000)
    f = CHAINS[name]
    before = facula.get_num_threads()
    facula.set_num_threads(threads)
    try:
        want, got = f(x, y), compiled(f, x, y)
    finally:
        facula.set_num_threads(before)
    for w, g in zip(*(v if isinstance(v, list) else [v] for v in (want, got)), strict=True):
        assert same_bits(w, g) and w.stride() == g.stride()


# A block of machine code has 64 to 512 elements, by the widest operand.
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int8"])
@pytest.mark.parametrize("width", [17, 63, 64, 129, 200, 511, 512, 1030])
def test_ends_of_blocks(dtype, width):
    facula.manual_seed(0)
    rows = 20_000 // width
    x, y = ((facula.randn(n, width) * 9).to(getattr(facula, dtype)) for n in (rows, 1))
    for f in (lambda: (x * y + 1).mul(x).abs(), lambda: (x * x - 2).abs() > x):
        assert same_bits(f(), compiled(f))


def softmax(x, y):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def layer_norm(x, y):
    centered = x - x.mean(-1, keepdim=True)
    return centered * facula.rsqrt((centered * centered).mean(-1, keepdim=True) + 1e-5) * y + 1


def huber(x, y):
    d = (x - y).abs()
    return facula.where(d < 1, 0.5 * d * d, d - 0.5).mean()


def in_place(x, y):
    d = x * 1
    d.sub_(d.amax(-1, keepdim=True)).mul_(y).exp_()
    return [d, d.sum(-1)]


def between(x, y):
    """Results that are read after a reduction, stay, and have one byte."""
    d = x * y + 1
    near = (d > 0) & (d < 1)
    return [d, facula.where(near, d, d * 2) / d.sum(-1, keepdim=True), (d * d).sum(-1)]


REDUCING = [softmax, layer_norm, huber, in_place, between]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(300, 512), (37, 1001), (900, 70), (1, 300_001)], ids=str)
@pytest.mark.parametrize("f", REDUCING, ids=lambda f: f.__name__)
def test_groups_that_reduce_give_the_bits_of_single_calls(f, shape, dtype):
    facula.manual_seed(0)
    x, y = (facula.randn(n, shape[1]).to(getattr(facula, dtype)) for n in (shape[0], 1))
    want = f(x, y)
    before = facula.get_num_threads()
    try:
        for threads in (1, 2, 3):
            facula.set_num_threads(threads)
            got = compiled(f, x, y)
            for w, g in zip(*(v if isinstance(v, list) else [v] for v in (want, got)), strict=True):
                assert same_bits(w, g) and w.stride() == g.stride()
    finally:
        facula.set_num_threads(before)


@pytest.mark.parametrize("f", [softmax, layer_norm, huber], ids=lambda f: f.__name__)
def test_steps_between_reductions_are_machine_code(f):
    x, y = facula.randn(1000, 100), facula.randn(1000 if f is huber else 1, 100)
    compiled(f, x, y)
    before = _C._loop_counts()["used"]
    _C._recorded(f, x, y)
    assert _C._loop_counts()["used"] == before + (2 if f is layer_norm else 1)


@pytest.mark.skipif(
    facula.backends.cpu.get_cpu_capability() != "AVX512", reason="permutes of sixteen entries"
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["atan", "erfc", "tanh"])
def test_functions_by_tables_are_machine_code(name, dtype):
    x = facula.randn(5000, dtype=getattr(facula, dtype)) * 4
    function = getattr(facula, name)
    compiled(lambda: function(x) * 2 + 1)
    before = _C._loop_counts()["used"]
    got = _C._recorded(lambda: function(x) * 2 + 1)
    assert got.equal(function(x) * 2 + 1)
    assert _C._loop_counts()["used"] == before + 1


def test_another_number_needs_no_other_code():
    x = facula.randn(5000)
    compiled(lambda: (x * 2 + 1).exp())
    before = _C._loop_counts()
    got = _C._recorded(lambda: (x * 3 + 0.5).exp())
    after = _C._loop_counts()
    assert got.equal((x * 3 + 0.5).exp())
    assert after["used"] == before["used"] + 1
    assert after["compiled"] == before["compiled"]


PROGRAM = """
import facula, os, sys
from facula import _C
_C._set_loop_sightings(1)
x = facula.arange(20000.0) / 1000
f = lambda: (x * 2 + 1).exp().sqrt() - x
want = f()
_C._recorded(f)
_C._wait_for_loops()
assert _C._recorded(f).equal(want)
counts = _C._loop_counts()
print(counts["compiled"], counts["loaded"], counts["failed"], counts["used"])
"""


def run_program(folder, program=PROGRAM, **more):
    env = {**os.environ, "FACULA_CACHE_DIR": str(folder), **more}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [int(n) for n in done.stdout.split()]


def test_the_next_process_finds_the_code_on_disk(tmp_path):
    assert run_program(tmp_path) == [1, 0, 0, 1]
    assert run_program(tmp_path) == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b[:-100] + b"\0" * 100,
        lambda b: b"",
        lambda b: b"something else",
        lambda b: b[:8] + b"\xff" * 16 + b[24:],
    ],
)
def test_damaged_files_are_compiled_again(tmp_path, damage):
    run_program(tmp_path)
    (file,) = tmp_path.glob("*.loop")
    file.write_bytes(damage(file.read_bytes()))
    assert run_program(tmp_path) == [1, 0, 0, 1]
    assert run_program(tmp_path) == [0, 1, 0, 1]


def test_files_name_the_scalar_functions_that_they_have_copies_of(tmp_path):
    run_program(tmp_path)
    (file,) = tmp_path.glob("*.loop")
    data = file.read_bytes()
    key = re.search(rb"LLVM [0-9.]+, scalar functions ([0-9]+)\n", data)
    assert key
    file.write_bytes(data.replace(key[1], b"1" * len(key[1])))
    assert run_program(tmp_path) == [1, 0, 0, 1]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert run_program(tmp_path / "file") == [1, 0, 0, 1]
    assert run_program("/proc/self/nothing") == [1, 0, 0, 1]


def test_a_disk_that_is_full_keeps_no_part_of_a_file(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert run_program(tmp_path, limit + PROGRAM) == [1, 0, 0, 1]
    assert not list(tmp_path.iterdir())


def test_files_that_others_may_write_are_not_executed(tmp_path):
    run_program(tmp_path)
    (file,) = tmp_path.glob("*.loop")
    file.chmod(0o666)
    assert run_program(tmp_path) == [1, 0, 0, 1]


def test_two_processes_fill_one_folder(tmp_path):
    env = {**os.environ, "FACULA_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [p.wait(timeout=120) for p in both] == [0, 0, 0]
    assert run_program(tmp_path) == [0, 1, 0, 1]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_process_killed_while_it_compiles_leaves_nothing_broken(tmp_path):
    slow = PROGRAM.replace("_C._wait_for_loops()", "os.kill(os.getpid(), 9)")
    env = {**os.environ, "FACULA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", slow], env=env, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert run_program(tmp_path)[3] == 1


def test_a_process_may_end_while_it_compiles(tmp_path):
    chains = "for k in range(1, 9): _C._recorded(lambda: eval('x' + '.mul(x).add(1).sqrt()' * k))"
    program = PROGRAM.partition("f = lambda")[0] + chains.replace("(lambda:", "(lambda k=k:")
    for _ in range(3):
        assert run_program(tmp_path, program) == []


def test_a_compiled_function_runs_where_there_is_no_compiler(tmp_path):
    package = tmp_path / "facula"
    shutil.copytree(LIBRARY.parent, package, symlinks=True, ignore=lambda *_: [LIBRARY.name])
    assert run_program(tmp_path, PYTHONPATH=str(tmp_path)) == [0, 0, 0, 0]


def test_without_the_library_rows_go_on(tmp_path):
    (tmp_path / "broken.so").write_text("no library")
    for library in ("/nowhere.so", str(tmp_path / "broken.so")):
        assert run_program(tmp_path, FACULA_COMPILER_LIBRARY=library) == [0, 0, 0, 0]
    assert run_program(tmp_path, FACULA_COMPILER="0") == [0, 0, 0, 0]


FORK = """
import facula, os
from facula import _C
_C._set_loop_sightings(1)
x = facula.arange(20000.0) / 1000
chain = lambda k: lambda: eval("x" + ".mul(x).add(1).sqrt()" * k, {"x": x})
for k in range(1, 8):
    _C._recorded(chain(k))
pid = os.fork()
for k in range(1, 8):
    want = chain(k)()
    assert _C._recorded(chain(k)).equal(want)
    _C._wait_for_loops()
    assert _C._recorded(chain(k)).equal(want)
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(1)
"""


def test_fork_while_loops_are_compiled(tmp_path):
    assert run_program(tmp_path, FORK) == [1]
