"""Each kind of object, in each format, written by one library and read by the other."""

import copy
import io
import pickle
import warnings

import facula
import pytest
from serialized_objects import OBJECTS, PLAIN, plain

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

CASES = {**PLAIN, **OBJECTS}
FORMATS = {
    "zip": {},
    "legacy": {"_use_new_zipfile_serialization": False},
    "protocol_4": {"pickle_protocol": 4},
}


def outcome(run):
    """What a call gives in plain values, or the class of its error."""
    try:
        return plain(run())
    except Exception as error:
        return type(error).__name__


def written(lib, make, options):
    stream = io.BytesIO()
    lib.save(make(lib), stream, **options)
    return stream.getvalue()


# PyTorch 2.15 ends most readings of these with a SystemError, of its own files as well.
BROKEN_IN_TORCH = {"generator"}


def check(name, how, weights_only):
    make = CASES[name]
    theirs, ours = (written(lib, make, FORMATS[how]) for lib in (torch, facula))

    def read(lib, data):
        return outcome(lambda: lib.load(io.BytesIO(data), weights_only=weights_only))

    expected = read(torch, theirs)
    if isinstance(expected, str) and expected.endswith("Error") and read(facula, ours) != expected:
        # What PyTorch cannot read of its own, we may read; both files then say the same.
        expected = plain(make(facula))
        assert read(facula, theirs) == expected
        assert read(facula, ours) == expected
        return
    assert read(facula, theirs) == expected, "PyTorch's file here"
    seen = read(torch, ours)
    if name in BROKEN_IN_TORCH and seen == "SystemError":
        return
    assert seen == expected, "our file in PyTorch"
    assert read(facula, ours) == expected, "our file here"


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_files_both_ways(name, how):
    check(name, how, weights_only=False)


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_weights_both_ways(name, how):
    check(name, how, weights_only=True)


@pytest.mark.parametrize(
    "copied",
    [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
@pytest.mark.parametrize("name", CASES)
def test_copies(name, copied):
    expected = outcome(lambda: copied(CASES[name](torch)))
    if isinstance(expected, str) and expected.endswith("Error"):
        # Pickles of dtypes without a storage class fail in PyTorch.
        return
    assert outcome(lambda: copied(CASES[name](facula))) == expected


class Old(torch.nn.Module):
    """A module that a file of the old format keeps with its source."""


class New(facula.nn.Module):
    """The same for this package."""


def test_source_of_modules_is_kept():
    stream = io.BytesIO()
    facula.save(New(), stream, _use_new_zipfile_serialization=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for load in (torch.load, facula.load):
            stream.seek(0)
            assert type(load(stream, weights_only=False)) is New
    changed = stream.getvalue().replace(
        b"The same for this package.", b"The same for that package."
    )
    with pytest.warns(torch.serialization.SourceChangeWarning):
        torch.load(io.BytesIO(changed), weights_only=False)
    with pytest.warns(facula.serialization.SourceChangeWarning):
        facula.load(io.BytesIO(changed), weights_only=False)
