"""Files as PyTorch wrote them before 0.1.10 (tar) and before 0.4 (views of storages)."""

import io
import pickle
import struct
import tarfile

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


class Reference:
    """Stands in an object for what a file keeps outside of its pickle."""

    def __init__(self, pid):
        self.pid = pid


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.pid if isinstance(obj, Reference) else None


def pickled(obj):
    """A pickle in which References are persistent ids."""
    stream = io.BytesIO()
    _Pickler(stream, 2).dump(obj)
    return stream.getvalue()


def _entry(key, second, name):
    items = b"".join(pickle.dumps(item, 2)[2:-1] for item in (key, second))
    return b"\x80\x02(" + items + b"ctorch\n" + name + b"\nt."


def storage_entry(key, values):
    """A storage of floats."""
    data = struct.pack(f"<q{len(values)}f", len(values), *values)
    return _entry(key, "cpu", b"FloatStorage") + data


def tensor_entry(key, storage, size, stride, offset=0):
    """A tensor over a storage."""
    geometry = struct.pack(f"<ii{2 * len(size) + 1}q", len(size), 0, *size, *stride, offset)
    return _entry(key, storage, b"FloatTensor") + geometry


def tar_of(obj, storages, views, tensors):
    """A tar archive: the entries of `storages` and `tensors`, tuples of `views`, the object."""
    members = {
        "sys_info": pickle.dumps({"protocol_version": 1000}, 2),
        "pickle": pickled(obj),
        "tensors": pickle.dumps(len(tensors), 2) + b"".join(tensors),
        "storages": pickle.dumps(len(storages), 2) + b"".join(storages) + pickle.dumps(views, 2),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def example_tar():
    """Two tensors over one storage, one over a view of it, in a dict."""
    return tar_of(
        {"all": Reference(10), "rows": [Reference(11), Reference(12)], "n": (1, "text")},
        [storage_entry(1, range(6))],
        [(2, 1, 2, 3)],
        [
            tensor_entry(10, 1, (2, 3), (3, 1)),
            tensor_entry(11, 1, (3,), (1,), 3),
            tensor_entry(12, 2, (3,), (1,)),
        ],
    )


def with_views():
    """A file of pickles whose second storage is a view of the first."""
    root = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + b"0X\3\0\0\0cpuK\6"
    view = b"(X\1\0\0\0" + b"1K\2K\3t"
    data = b"\x80\x02(" + root + b"NtQ" + root + view + b"tQl."
    heads = b"".join(pickle.dumps(head, 2) for head in (MAGIC, PROTOCOL, {"little_endian": True}))
    return heads + data + pickle.dumps(["0"], 2) + struct.pack("<q6f", 6, *range(6))
