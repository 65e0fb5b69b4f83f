"""Wrong calls of public functions: PyTorch's class of exception, function by function."""

import signal
import warnings

import facula
import facula.nn.functional
import pytest

torch = pytest.importorskip("torch")

SECONDS = 5
PLACES = ("", "nn.functional", "linalg", "special", "fft")
# Functions that change the state of the process, read files or ask it questions.
LEFT_OUT = (
    "set_",
    "manual_seed",
    "seed",
    "compile",
    "save",
    "load",
    "use_",
    "_",
    "fork",
    "wait",
    "get_",
    "is_",
    "init",
    "export",
    "vmap",
    "func",
    "cond",
    "frombuffer",
    "from_file",
    # PyTorch's have AttributeErrors of their insides, ours say which argument must be a tensor.
    "lobpcg",
    "pca_lowrank",
    "svd_lowrank",
    # For a meta tensor beside a CPU tensor PyTorch lacks a kernel; ours say that devices differ.
    "hspmm",
    "resize_as_sparse_",
    "smm",
)


def _home(lib, place):
    for part in filter(None, place.split(".")):
        lib = getattr(lib, part)
    return lib


def _found(home, name):
    try:
        return getattr(home, name, None)
    except NotImplementedError:
        return None


def _functions():
    for place in PLACES:
        for name in sorted(dir(_home(facula, place))):
            ours, theirs = (_found(_home(lib, place), name) for lib in (facula, torch))
            usable = callable(ours) and callable(theirs) and not isinstance(ours, type)
            if usable and not name.startswith(LEFT_OUT):
                yield f"{place}.{name}".lstrip("."), ours, theirs


def _calls(lib):
    """Arguments that hardly any function takes."""
    t, loop = lib.ones(2, 3), [1.0]
    loop.append(loop)
    return {
        "none": (),
        "many": (t,) * 9,
        "str": ("x",),
        "None": (None,),
        "object": (object(),),
        "tensor, object": (t, object()),
        "ragged": ([[1], [2, 3]],),
        "loop": (loop,),
        "shapes": (t, lib.ones(5, 7)),
        "nan": (t, float("nan")),
        "inf": (t, float("inf")),
        "negative": (t, -100),
        "huge": (t, 2**70),
        "tensor, str": (t, "zz"),
        "integers": (lib.ones(2, 3, dtype=lib.int64),),
        "dtype": (t, lib.float32),
        "meta": (t, lib.ones(2, 3, device="meta")),
        "keyword": None,
    }


class _Slow(BaseException):
    pass


def _ring(*_):
    raise _Slow


def _ending(lib, function, name):
    """ "ok", or the nearest built-in class of what was raised."""
    args = _calls(lib)[name]
    args, kwargs = ((lib.ones(2),), {"nonsense": 1}) if args is None else (args, {})
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **kwargs)
        return "ok"
    except _Slow:
        return "hung"
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


FUNCTIONS = {name: pair for name, *pair in _functions()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_calls_raise_the_same(name):
    ours, theirs = FUNCTIONS[name]
    different = {}
    for call in _calls(facula):
        endings = _ending(facula, ours, call), _ending(torch, theirs, call)
        if endings[0] != endings[1]:
            different[call] = endings
    assert not different
