"""Files that ask for more than they are: each is refused with an error, in bounded memory, stack
and time. A process with limits reads each."""

import isolated
import pytest

MEMORY = isolated.GIGABYTE * 3 // 2
BODY = """
import io, json, pickle, struct, zipfile, zlib
import facula as m
from facula.serialization import safetensors

def archive(data, storages=(), method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        made.writestr("a/version", b"3", zipfile.ZIP_STORED)
        made.writestr("a/byteorder", b"little", zipfile.ZIP_STORED)
        with made.open("a/data.pkl", "w") as record:
            for piece in [data] if isinstance(data, bytes) else data:
                record.write(piece)
        for name, content in storages:
            made.writestr(f"a/data/{name}", content)
    return file.getvalue()

def pickled(data):
    m.load(io.BytesIO(archive(data)))

def tensors(header, content, text=None):
    text = json.dumps(header).encode() if text is None else text
    file = io.BytesIO(struct.pack("<Q", len(text)) + text + content)
    return safetensors.load_file(file)

def entry(start, end, shape=None, dtype="U8"):
    return {"dtype": dtype, "shape": [end - start] if shape is None else shape,
            "data_offsets": [start, end]}

def plain(size):
    return io.BytesIO(b"\\x80\\x02" + size)

MB = 1 << 20
try:
    CALL
except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
    print("refused:", str(error)[:300])
"""
# The names of the table say what is wrong with a file.
HOSTILE = {
    # Pickles: deep and doubling tuples, wherever something could hash, compare or print them.
    "deep tuple called": r'pickled(b"\x80\x02N" + b"\x85" * 1000000 + b")R.")',
    "doubling tuple called": r'pickled(b"\x80\x02N\x85" + b"".join(b"q%ch%c\x86" % (i, i) '
    r'for i in range(60)) + b")R.")',
    "deep tuple as key": r'pickled(b"\x80\x02}N" + b"\x85" * 1000000 + b"Ns.")',
    "doubling tuple as key": r'pickled(b"\x80\x02}N\x85" + b"".join(b"q%ch%c\x86" % (i, i) '
    r'for i in range(60)) + b"Ns.")',
    "doubling tuple built": r'pickled(b"\x80\x02N\x85" + b"".join(b"q%ch%c\x86" % (i, i) '
    r'for i in range(60)) + b"}b.")',
    "doubling tuple made an object": r'pickled(b"\x80\x02N\x85" + b"".join(b"q%ch%c\x86" % (i, i) '
    r'for i in range(60)) + b")\x81.")',
    "doubling tuple in a set": r'pickled(b"\x80\x04\x8f(N\x85" + b"".join(b"q%ch%c\x86" % (i, i) '
    r'for i in range(60)) + b"\x90.")',
    "doubling tuple as persistent id": r'pickled(b"\x80\x02N\x85" + b"".join(b"q%ch%c\x86" % (i, i)'
    r' for i in range(60)) + b"Q.")',
    "doubling tuple as inner function": r'pickled(b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2'
    r'\n(N\x85" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(60)) + b"ctorch\nTensor\n)NtR.")',
    "doubling tuple as protocol": r"m.load(io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + "
    r'b"\x80\x02N\x85" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(60)) + b"." + '
    r"pickle.dumps({}, 2)))",
    "one list copied often": r'pickled(b"\x80\x02c__builtin__\nset\nq\x00](" + b"N" * MB + '
    r'b"e\x85q\x01" + b"h\x00h\x01R0" * MB + b".")',
    "one text copied often": r'pickled(b"\x80\x02c__builtin__\nbytearray\nq\x00B" + '
    r'struct.pack("<I", MB) + b"x" * MB + b"\x85q\x01(" + b"h\x00h\x01R" * MB + b".")',
    "one dict of attributes copied often": r'pickled(b"\x80\x02ccollections\nOrderedDict\n)R}(" + '
    r'b"".join(b"X\x04\x00\x00\x00%04xN" % i for i in range(20000)) + b"uq\x01" + '
    r'b"0ccollections\nOrderedDict\n)Rh\x01b" * 100000 + b".")',
    "long key hashed often": r'pickled(b"\x80\x02}q\x00\x8b" + struct.pack("<i", 4 * MB) + b"x" * '
    r'4 * MB + b"q\x01" + b"0h\x00h\x01Ns" * MB + b".")'.replace(
        'b"x" * 4 * MB', '(b"x" * 4 * MB)'
    ),
    "wide tuple hashed often": r'pickled(b"\x80\x02}q\x00(" + b"N" * 9000 + b"tq\x01" + '
    r'b"0h\x00h\x01Ns" * MB + b".")',
    "count that lies": r'pickled(b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.")',
    "no end": r'pickled(b"\x80\x02" + b"(" * MB)',
    # Tensors.
    "tensor of 70,000 dimensions": r'pickled(b"\x80\x02ctorch._utils\n_rebuild_meta_tensor_no_'
    r"storage"
    r'\n(ctorch\nfloat32\n(" + b"\x8a\x08" + b"\xff" * 7 + b"\x7f" + b"2" * 70000 + b"t(" + '
    r'b"K\x01" * 70001 + b"t\x89tR.")',
    # Archives.
    "deflated pickle": r'm.load(io.BytesIO(archive([b"\x80\x04"] + [b"\x8f" * MB] * 200 + [b"."], '
    "method=zipfile.ZIP_DEFLATED)))",
    "deflated storage": "m.load(io.BytesIO(archive(pickle.dumps({}), "
    '[(f"{i}", bytes(100 * MB)) for i in range(2)], zipfile.ZIP_DEFLATED)'
    '.replace(b"a/data/1", b"a/data/0")))',
    "method that is not read": "m.load(io.BytesIO(archive(pickle.dumps(1), "
    "method=zipfile.ZIP_LZMA)))",
    # safetensors.
    "overlapping ranges": 'tensors({f"t{i}": entry(0, MB) for i in range(5600)}, bytes(MB))',
    "a hole": 'tensors({"a": entry(0, 10), "b": entry(20, 30)}, bytes(30))',
    "bytes left at the end": 'tensors({"a": entry(0, 10)}, bytes(30))',
    "a name twice": 'tensors(None, bytes(10), b\'{"a": {"dtype": "U8", "shape": [10], '
    '"data_offsets": [0, 10]}, "a": {"dtype": "U8", "shape": [10], "data_offsets": [0, 10]}}\')',
    "70,000 dimensions": 'tensors({"a": entry(0, 1, [1] * 70000)}, bytes(1))',
    "70,000 large dimensions": 'tensors({"a": entry(0, 1, [2**62] * 70000)}, bytes(1))',
    "sizes whose product wraps": 'tensors({"a": entry(0, 0, [2**32, 2**32])}, b"")',
    "negative sizes": 'tensors({"a": entry(0, 1, [-1, -1])}, bytes(1))',
    "sizes that are booleans": 'tensors({"a": entry(0, 1, [True])}, bytes(1))',
    "dtype that is a list": 'tensors({"a": entry(0, 1, [1], [[]])}, bytes(1))',
    "metadata of numbers": 'tensors({"__metadata__": {"a": 3}}, b"")',
    "more keys than there are": 'tensors({"a": {**entry(0, 1), "x": 1}}, bytes(1))',
    "deep header": 'tensors(None, b"", b"[" * 10 * MB)',
    "deep header of tables": 'tensors(None, b"", b\'{"a":\' * MB)',
    "a number of many digits": "tensors(None, b\"\", b'{\"a\":' + b'9' * MB + b'}')",
    "header length that lies": 'safetensors.load_file(io.BytesIO(struct.pack("<Q", 2**63) '
    '+ b"{}"))',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name):
    out = isolated.run(BODY.replace("CALL", HOSTILE[name]), seconds=60, memory=MEMORY)
    assert out.startswith("refused:"), f"it was read: {out}"


OVERLAPPING = """
import struct, zlib, io, pickle
import facula as m

# One record of 1 MB that 2,000 entries of the directory name.
def local(name, data):
    return struct.pack("<4s5HIIIHH", b"PK\\3\\4", 20, 0, 0, 0, 33, 0, len(data), len(data),
                       len(name), 0) + name + data
def central(name, size, at):
    return struct.pack("<4s6H3I5H2I", b"PK\\1\\2", 20, 20, 0, 0, 0, 33, 0, size, size, len(name),
                       0, 0, 0, 0, 0, at) + name

class Id:
    def __init__(self, i):
        self.i = i

class Pickler(pickle.Pickler):
    def persistent_id(self, o):
        return ("storage", m.serialization._core.StorageType("ByteStorage"), str(o.i), "cpu",
                1 << 20) if isinstance(o, Id) else None
    def reducer_override(self, o):
        if isinstance(o, m.serialization._core.StorageType):
            return "ByteStorage"
        return NotImplemented

COUNT = 3000
pkl = b"\\x80\\x02](" + b"".join(
    b"(X\\x07\\x00\\x00\\x00storagectorch\\nByteStorage\\nX\\x04\\x00\\x00\\x00%04d"
    b"X\\x03\\x00\\x00\\x00cpuJ\\x00\\x00\\x10\\x00tQ" % i for i in range(COUNT)) + b"e."
body, entries = b"", b""
for name, data in ((b"a/version", b"3"), (b"a/data.pkl", pkl)):
    entries += central(name, len(data), len(body))
    body += local(name, data)
at = len(body)
body += local(b"a/data/0000", bytes(1 << 20))
for i in range(COUNT):
    entries += central(b"a/data/%04d" % i, 1 << 20, at)
end = struct.pack("<4s4H2IH", b"PK\\5\\6", 0, 0, COUNT + 2, COUNT + 2, len(entries), len(body), 0)
try:
    m.load(io.BytesIO(body + entries + end))
except RuntimeError as error:
    print("refused:", error)
"""


def test_records_that_share_bytes_are_refused():
    assert isolated.run(OVERLAPPING, seconds=60, memory=MEMORY).startswith("refused:")


def test_what_honest_writers_write_is_read():
    import io
    import zipfile

    import facula as m

    state = {f"layer.{i}.weight": m.arange(40.0) for i in range(300)}
    file = io.BytesIO()
    m.save(state, file)
    packed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    packed.seek(0)
    assert m.load(packed)["layer.7.weight"].equal(m.arange(40.0))
