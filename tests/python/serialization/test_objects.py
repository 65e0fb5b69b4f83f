"""Each kind of object comes back from each format, from pickles and as a copy."""

import copy
import io
import pickle

import facula
import pytest
from serialized_objects import OBJECTS, PLAIN, plain

FORMATS = [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}]


def loaded(obj, weights_only, options):
    stream = io.BytesIO()
    facula.save(obj, stream, **options)
    return facula.load(io.BytesIO(stream.getvalue()), weights_only=weights_only)


@pytest.mark.parametrize("options", FORMATS, ids=["zip", "legacy", "protocol_4"])
@pytest.mark.parametrize("name", [*PLAIN, *OBJECTS])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_files(name, options):
    obj = {**PLAIN, **OBJECTS}[name](facula)
    for weights_only in {False, name in PLAIN}:
        assert plain(loaded(obj, weights_only, options)) == plain(obj)


@pytest.mark.parametrize("name", [*PLAIN, *OBJECTS])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_pickles(name):
    obj = {**PLAIN, **OBJECTS}[name](facula)
    assert plain(pickle.loads(pickle.dumps(obj))) == plain(obj)


@pytest.mark.parametrize("name", [*PLAIN, *OBJECTS])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_copies(name):
    obj = {**PLAIN, **OBJECTS}[name](facula)
    assert plain(copy.copy(obj)) == plain(obj)
    if name != "made_by_an_operation":
        values = [plain(o)[-1] for o in (copy.deepcopy(obj), obj) if isinstance(o, facula.Tensor)]
        assert values[::2] == values[1::2]


class Wrapper(facula.Tensor):
    """A tensor that only holds another one."""

    @staticmethod
    def __new__(cls, inner):
        made = facula.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


class Slotted(facula.Tensor):
    """A tensor with attributes outside of its dict."""

    __slots__ = ("note",)


def test_subclasses():
    wrapped = loaded(Wrapper(facula.ones(2)), False, {})
    assert type(wrapped) is Wrapper and wrapped.inner.tolist() == [1, 1]
    slotted = facula.ones(2).as_subclass(Slotted)
    slotted.note, slotted.other = 3, 4
    for back in (loaded(slotted, False, {}), pickle.loads(pickle.dumps(slotted))):
        assert type(back) is Slotted
        assert (back.note, back.other, back.tolist()) == (3, 4, [1, 1])
    with facula.serialization.safe_globals([Slotted, Wrapper]):
        assert loaded(slotted, True, {}).note == 3
        assert loaded(Wrapper(facula.ones(2)), True, {}).inner.tolist() == [1, 1]


def test_names_are_found():
    assert loaded([facula.add, facula.contiguous_format], False, {}) == [
        facula.add,
        facula.contiguous_format,
    ]
