"""Starts ranks that have toy devices (tests/cpp/plugins) and a library that stands in for NCCL."""

import importlib.util
import textwrap
from pathlib import Path

from ranks import Ranks

FIXTURES = Path(__file__).resolve().parents[1] / "dispatch" / "conftest.py"

START = """
import ctypes
toy = ctypes.CDLL(os.environ["TOY_DEVICE"], mode=ctypes.RTLD_GLOBAL)
nccl = ctypes.CDLL(os.environ["FACULA_NCCL_LIBRARY"])
toy.toy_hold.argtypes = [ctypes.c_int, ctypes.c_void_p]
facula.accelerator.set_device_index(rank % 2)
dev = facula.device(os.environ.get("TOY_NAME", "toy"), rank % 2)

def make(backend="cpu:gloo,toy:nccl", seconds=20, **options):
    dist.init_process_group(backend, store=store, rank=rank, world_size=size,
                            timeout=timedelta(seconds=seconds), **options)

def note(text):
    path = os.path.join(sys.argv[3], f"note{rank}")
    with open(path + ".new", "w") as f:
        f.write(f"{time.time()} {text}")
    os.rename(path + ".new", path)
"""


def libraries(tmp_path_factory):
    """The environment of ranks: where the two libraries are."""
    spec = importlib.util.spec_from_file_location("toy_device_fixtures", FIXTURES)
    fixtures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fixtures)
    return {
        "TOY_DEVICE": str(fixtures.library_path(tmp_path_factory)),
        "FACULA_NCCL_LIBRARY": str(fixtures.library_path(tmp_path_factory, "toy_nccl")),
    }


def start(program, size, folder, environment):
    """Ranks that run a program."""
    text = START + textwrap.dedent(program)
    return Ranks(text, size, folder, init=False, **environment)


def run(program, size, folder, environment):
    """What each rank printed; AssertionError if one of them failed."""
    results = start(program, size, folder, environment).end(60)
    for code, _, err in results:
        assert code == 0, err
    return [out for _, out, _ in results]


def notes(folder, ranks):
    """{rank: (time, text)} of what ranks have noted."""
    found = {}
    for rank in ranks:
        when, _, text = (folder / f"note{rank}").read_text().partition(" ")
        found[rank] = float(when), text
    return found
