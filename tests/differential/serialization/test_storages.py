"""What storages of both kinds answer, beside PyTorch: values, or the class of the error."""

import copy
import pickle

import facula
import pytest
from serialized_objects import plain

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

STORAGES = {
    "bytes": "l.arange(6, dtype=l.uint8).untyped_storage()",
    "float": "l.arange(6.0).storage()",
    "long": "l.arange(6).storage()",
    "bool": "l.tensor([True, False, True]).storage()",
    "complex": "l.tensor([1j, 2]).storage()",
    "half": "l.tensor([1, 2]).half().storage()",
    "empty": "l.ones(0).storage()",
    "uint16": "l.ones(3, dtype=l.uint16).storage()",
}
READ = """
repr(s)|str(s)|len(s)|s.size()|s.nbytes()|s.element_size()|s.tolist()|list(s)|s[0]|s[-1]|s[100]
s[1:3]|s[::2]|s[:]|s['a']|s[1.5]|s[None]|str(s.device)|s.is_cuda|s.is_sparse|s.is_shared()
s.is_pinned()|s.resizable()|s.filename|s.get_device()|s.type()|s.type(l.LongStorage)
s.type('torch.LongStorage')|s.type(int)|s.clone()|s.cpu()|s.cpu() is s|s.untyped()|s.float()
s.double()|s.half()|s.long()|s.int()|s.short()|s.char()|s.byte()|s.bool()|s.bfloat16()
s.complex_double()|s.complex_float()|s.float8_e5m2()|s.float8_e4m3fn()|s == s|s != s|s in [s]
bool(s)|copy.copy(s)|copy.deepcopy(s)|s.pickle_storage_type()|isinstance(s, l.FloatStorage)
isinstance(s, l.storage._StorageBase)|type(s).__name__|l.is_storage(s)|s.to(device='cpu')
s.to('cpu')|l.zeros(0).set_(s)|l.zeros(0, dtype=l.int64).set_(s)|l.Tensor(s)
l.FloatTensor(s)|l.zeros(0).new(s)|s.foo|s._size()|s._nbytes()|s._element_size()
""".replace("\n", "|")
WRITTEN = """
s.fill_(1)|s.fill_('a')|s.copy_(s.clone())|s.copy_(l.ones(1).storage())|s.copy_(3)
s.resize_(1)|s.resize_(-1)|s.__setitem__(0, 1)|s.__setitem__(0, 'a')|s.__setitem__(100, 1)
s.__setitem__(slice(0, 2), 3)|s.__setitem__(1.5, 1)|s.__setitem__('a', 1)
""".replace("\n", "|")
CLASSES = (
    "FloatStorage LongStorage BoolStorage ComplexFloatStorage ByteStorage TypedStorage".split()
)
MADE = """
c()|c(0)|c(3).size()|c(-1)|c([1, 2])|c((1, 0))|c([])|c([[1]])|c(['a'])|c('ab')|c(1.5)|c(None)
c({1, 2})|c(l.ones(2))|c(l.ones(2).storage())|c(range(2))|c(2, device='cpu').size()|c(3, 4)
c(wrap_storage=l.ones(2).untyped_storage())|c(2, dtype=l.float32).size()|c(foo=1)|c.__name__
c.from_buffer(b'\\1\\0' * 8, 'native')|c.from_buffer(b'\\1\\0' * 8, 'big')
c.from_buffer(b'\\1\\0' * 8, 'little', 1, 1)|c.from_buffer(b'\\1' * 7, 'native').nbytes()
c.from_buffer(b'\\1' * 16, 'native', offset=99)|c.from_buffer(b'\\1' * 16, 'native', count=99)
c.from_buffer(b'\\1' * 8, byte_order='foo').nbytes()|issubclass(c, l.TypedStorage)
pickle.loads(pickle.dumps(c)) is c|isinstance(c(1), c)
""".replace("\n", "|")


def answer(expression, names):
    try:
        value = eval(expression, {"copy": copy, "pickle": pickle}, names)
    except Exception as error:
        return type(error).__name__
    return plain(value)


def both(expression, **makers):
    """The answers of PyTorch and of this package."""
    return [
        answer(expression, {"l": lib, **{k: eval(text, {"l": lib}) for k, text in makers.items()}})
        for lib in (torch, facula)
    ]


@pytest.mark.parametrize("storage", STORAGES)
def test_reading(storage):
    for expression in filter(None, READ.split("|")):
        expected, got = both(expression, s=STORAGES[storage])
        assert got == expected, expression


@pytest.mark.parametrize("storage", [name for name in STORAGES if name != "empty"])
def test_writing(storage):
    for expression in filter(None, WRITTEN.split("|")):
        expected, got = both(f"({expression}, s.tolist())[1]", s=STORAGES[storage])
        assert got == expected, expression


@pytest.mark.parametrize("kind", CLASSES)
def test_making(kind):
    for expression in filter(None, MADE.split("|")):
        expected, got = both(expression, c=f"l.{kind}")
        assert got == expected, expression
