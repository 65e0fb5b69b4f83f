"""`save` and `load`: exported programs in PyTorch's `.pt2` archives."""

from __future__ import annotations

import io
import json
import os
import pickle
import sys

import facula
from facula.export import _guards, _schema, _write
from facula.export._read import device_of, program_of
from facula.serialization import _core
from facula.serialization._container import ArchiveReader, ArchiveWriter
from facula.serialization._files import archive_name, opened_to_read, opened_to_write

_MODEL = "model"


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write an exported program to a file that `load` reads, PyTorch's as well as facula's.

    Args:
        ep (ExportedProgram): what `export` gave.
        f (str | PathLike | file object): where to; `.pt2` is the usual ending.
        extra_files (dict[str, str] | None): more records, name to text.
        opset_version (dict[str, int] | None): makes no difference.
        pickle_protocol (int): of the sample arguments.

    Raises:
        TypeError: `ep` is no ExportedProgram.
        NotImplementedError: the graph has values that the format has no place for.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> program = facula.export.export(facula.nn.ReLU(), (facula.ones(2),))
        >>> facula.export.save(program, file)
        >>> facula.export.load(file).module()(facula.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    from facula.export.exported_program import ExportedProgram

    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"save(): expected an ExportedProgram; got {type(ep).__name__}")
    program = json.dumps(_write.program_json(ep, _guards.texts_of(ep)), allow_nan=False)
    samples = _pickled(ep.example_inputs, pickle_protocol)
    with opened_to_write(f) as write:
        writer = ArchiveWriter(write, archive_name(f))
        _write_tensors(writer, ep.state_dict, _schema.WEIGHTS, "weight", _schema.WEIGHTS_CONFIG)
        _write_tensors(writer, ep.constants, _schema.CONSTANTS, "tensor", _schema.CONSTANTS_CONFIG)
        writer.add(f"models/{_MODEL}.json", program.encode())
        writer.add(f"data/sample_inputs/{_MODEL}.pt", samples)
        for name, text in (extra_files or {}).items():
            writer.add(f"extra/{name}", text if isinstance(text, bytes) else text.encode())
        writer.add("archive_format", b"pt2")
        writer.add("archive_version", b"0")
        writer.add(".data/version", b"6\n")
        writer.add("byteorder", sys.byteorder.encode())
        writer.add(".data/serialization_id", writer.identity().encode())
        writer.finish()


def _pickled(value, protocol=2):
    stream = io.BytesIO()
    facula.save(value, stream, pickle_protocol=protocol)
    return stream.getvalue()


def _write_tensors(writer, tensors, folder, prefix, config_name):
    """Write each storage once, and where in it each tensor lies."""
    config, names = {}, {}
    for name, tensor in tensors.items():
        strided = tensor.layout is facula.strided and type(tensor) in (
            facula.Tensor,
            facula.nn.Parameter,
        )
        storage = _core.untyped(tensor.untyped_storage()) if strided else None
        identity = _core.storage_identity(storage) if strided else id(tensor)
        if identity not in names:
            names[identity] = f"{prefix}_{len(names)}"
            data = _core.storage_bytes(storage) if strided else _pickled(tensor)
            writer.add(f"{folder}/{names[identity]}", data)
        config[name] = {
            "path_name": names[identity],
            "is_param": isinstance(tensor, facula.nn.Parameter),
            "use_pickle": not strided,
            "tensor_meta": _write.tensor_meta(tensor, _write.plain_size),
        }
    writer.add(config_name, json.dumps({"config": config}).encode())


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read an exported program that `save` wrote, here or in PyTorch.

    Args:
        f (str | PathLike | file object): what to read.
        extra_files (dict[str, str] | None): its values are replaced by the records of its keys.
        expected_opset_version (dict[str, int] | None): makes no difference.

    Returns:
        ExportedProgram

    Raises:
        RuntimeError: it is no whole archive, or of another version.
        NotImplementedError: the program calls an operator that facula lacks.
    """
    if isinstance(f, (str, os.PathLike)):
        f = os.fspath(f)
    with opened_to_read(f) as file:
        archive = ArchiveReader(file)
        name = _model_name(archive)
        data = _json(archive, f"models/{name}.json")
        weights = _read_tensors(archive, _schema.WEIGHTS, _weights_config(archive, name))
        constants = _read_tensors(
            archive, _schema.CONSTANTS, f"{_schema.CONSTANTS}/{name}_constants_config.json"
        )
        for key in extra_files or ():
            extra_files[key] = bytes(archive.read(f"extra/{key}")).decode()
        samples = _samples(archive, f"data/sample_inputs/{name}.pt")
    return program_of(data, weights, constants, samples)


def _model_name(archive):
    if not archive.has("archive_format") or bytes(archive.read("archive_format")) != b"pt2":
        raise RuntimeError("load(): expected a .pt2 archive of export.save(); got another file")
    names = [n for n in archive.names() if n.startswith("models/") and n.endswith(".json")]
    if len(names) != 1:
        raise RuntimeError(f"load(): expected an archive with one program; got {names}")
    return names[0][len("models/") : -len(".json")]


def _weights_config(archive, name):
    return f"{_schema.WEIGHTS}/{name}_weights_config.json"


def _json(archive, name):
    return json.loads(bytes(archive.read(name)))


def _read_tensors(archive, folder, config_name):
    if not archive.has(config_name):
        return {}
    storages, tensors, made = {}, {}, {}
    for name, entry in _json(archive, config_name)["config"].items():
        # Two names of one parameter are one parameter again.
        key = json.dumps(entry, sort_keys=True)
        if key not in made:
            made[key] = _read_tensor(archive, folder, entry, storages)
        tensors[name] = made[key]
    return tensors


def _read_tensor(archive, folder, entry, storages):
    path, meta = f"{folder}/{entry['path_name']}", entry["tensor_meta"]
    if entry["use_pickle"]:
        stream = io.BytesIO(bytes(archive.read(path)))
        tensor = facula.load(stream, weights_only=True)
    else:
        if path not in storages:
            storages[path] = archive.read_storage(path)
        tensor = _core.tensor_over(
            storages[path],
            _schema.value_of("dtype", meta["dtype"]),
            meta["storage_offset"]["as_int"],
            [n["as_int"] for n in meta["sizes"]],
            [n["as_int"] for n in meta["strides"]],
            False,
        )
        device = device_of(meta["device"])
        tensor = tensor if device.type == "cpu" else tensor.to(device)
    if entry["is_param"] and not isinstance(tensor, facula.nn.Parameter):
        return facula.nn.Parameter(tensor, requires_grad=meta["requires_grad"])
    return tensor.requires_grad_(meta["requires_grad"])


def _samples(archive, name):
    """The sample arguments; None where they are of classes that a safe load does not make."""
    if not archive.has(name):
        return None
    stream = io.BytesIO(bytes(archive.read(name)))
    try:
        return facula.load(stream, weights_only=True)
    except pickle.UnpicklingError:
        return None
