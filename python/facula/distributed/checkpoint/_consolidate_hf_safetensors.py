"""Pieces of tensors in safetensors files become whole tensors, in the files that others read."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import facula
import facula.distributed as dist
from facula.serialization._files import opened_to_write
from facula.serialization.safetensors import Entry, read_entries, read_tensor, write_tensors

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]

_SUFFIX = ".safetensors"
_INDEX = "model.safetensors.index.json"
_SHARDING_INFO = "DCP_SHARDING_INFO"


class _Piece(NamedTuple):
    """A part of a tensor: the file that has it, and where it begins in the tensor."""

    path: Path
    entry: Entry
    offsets: list


def _file_name(index, count, shard=None):
    """The name of a file: PyTorch's, which is the one that Hugging Face's libraries know."""
    name = f"model-{index:05d}-of-{count:05d}{_SUFFIX}"
    return name if shard is None else f"shard-{shard:05d}-{name}"


def _offsets_of(path, name, entry, metadata):
    """Where a piece begins; files without a word of it have whole tensors."""
    told = json.loads(metadata.get(_SHARDING_INFO, "{}")).get(name)
    if told is None:
        return [0] * len(entry.shape)
    offsets = told["saved_offsets"]
    if len(offsets) != len(entry.shape) or any(type(o) is not int or o < 0 for o in offsets):
        raise ValueError(
            f"{path}: expected {len(entry.shape)} offsets of {name!r}; got {offsets!r:.80}"
        )
    return offsets


def _find_pieces(folder):
    """All pieces of tensors in the safetensors files of a folder, by name.

    Raises:
        FileNotFoundError: there are none.
        ValueError: a file is damaged; pieces of one tensor have several dtypes.
    """
    found, paths = defaultdict(list), sorted(Path(folder).glob(f"*{_SUFFIX}"))
    if not paths:
        raise FileNotFoundError(f"{folder}: expected files *{_SUFFIX}; got none")
    for path in paths:
        with open(path, "rb") as file:
            entries, metadata = read_entries(file)
        for name, entry in entries.items():
            piece = _Piece(path, entry, _offsets_of(path, name, entry, metadata))
            found[name].append(piece)
    for name, pieces in found.items():
        kinds = {(piece.entry.dtype, len(piece.offsets)) for piece in pieces}
        if len(kinds) > 1:
            raise ValueError(f"{folder}: expected pieces of one kind for {name!r}; got {kinds}")
    return found


def _size_of(pieces):
    """The size of the tensor that some pieces make."""
    ends = ([o + n for o, n in zip(p.offsets, p.entry.shape, strict=True)] for p in pieces)
    return facula.Size([max(dim) for dim in zip(*ends, strict=True)])


def _join(name, pieces):
    """The whole tensor."""
    size = _size_of(pieces)
    if sum(math.prod(p.entry.shape) for p in pieces) != math.prod(size):
        raise ValueError(
            f"consolidate_safetensors_files(): expected pieces of {name!r} that make "
            f"{tuple(size)}; got {[(p.offsets, p.entry.shape) for p in pieces[:5]]}"
        )
    whole = facula.empty(size, dtype=pieces[0].entry.dtype)
    for piece in pieces:
        part = whole
        for dim, (begin, n) in enumerate(zip(piece.offsets, piece.entry.shape, strict=True)):
            part = part.narrow(dim, begin, n)
        with open(piece.path, "rb") as file:
            part.copy_(read_tensor(file, name, piece.entry))
    return whole


def _check_mapping(what, names, mapping):
    """Raises ValueError unless each name has the number of a file."""
    missing = sorted(set(names) - set(mapping))
    if missing:
        raise ValueError(f"{what}(): expected a file for each tensor; got none for {missing[:5]}")
    if any(type(index) is not int or index < 1 for index in mapping.values()):
        raise ValueError(f"{what}(): expected files that are numbered from 1; got {mapping!r:.200}")


def _write_index(folder, sizes, file_of):
    """The table that says which file has which tensor."""
    table = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": file_of}
    with opened_to_write(Path(folder) / _INDEX) as write:
        write(json.dumps(table, indent=2).encode())


def _consolidate(found, output_dir, mapping, num_threads, is_mine=lambda index: True):
    """Writes the files that `is_mine` accepts; (bytes, file) of all tensors by name."""
    _check_mapping("consolidate_safetensors_files", found, mapping)
    count = max(mapping.values())
    names = defaultdict(list)
    for name in found:
        names[mapping[name]].append(name)
    Path(output_dir).mkdir(parents=True, exist_ok=True)

    def write_file(index):
        shapes = {n: (found[n][0].entry.dtype, _size_of(found[n])) for n in names[index]}
        with opened_to_write(Path(output_dir) / _file_name(index, count)) as write:
            write_tensors(write, shapes, lambda n: _join(n, found[n]), {"format": "pt"})

    with ThreadPoolExecutor(max(1, num_threads)) as pool:
        list(pool.map(write_file, [index for index in sorted(names) if is_mine(index)]))
    sizes = {n: math.prod(_size_of(p)) * p[0].entry.dtype.itemsize for n, p in found.items()}
    return sizes, {n: _file_name(mapping[n], count) for n in found}


def consolidate_safetensors_files(input_dir, output_dir, fqn_to_index_mapping, num_threads=1):
    """Make whole tensors of the pieces that ranks have written.

    Args:
        input_dir: the folder of the pieces.
        output_dir: the folder of the files to be written, and of the index of them.
        fqn_to_index_mapping (dict): from the name of each tensor to the number of its file, from 1.
        num_threads (int): how many files are written at once; each has one tensor in memory.

    Raises:
        FileNotFoundError: there are no pieces.
        ValueError: a damaged file, missing pieces, a tensor without a file.

    Example:
        >>> import tempfile
        >>> from facula.serialization.safetensors import save_file
        >>> folder = tempfile.mkdtemp()
        >>> save_file({"w": facula.ones(2)}, folder + "/part.safetensors")
        >>> consolidate_safetensors_files(folder, folder + "/whole", {"w": 1})
        >>> import os; sorted(os.listdir(folder + "/whole"))
        ['model-00001-of-00001.safetensors', 'model.safetensors.index.json']
    """
    found = _find_pieces(input_dir)
    _write_index(output_dir, *_consolidate(found, output_dir, fqn_to_index_mapping, num_threads))


def consolidate_safetensors_files_on_every_rank(
    input_dir, output_dir, fqn_to_index_mapping, num_threads=1, process_group=None
):
    """As `consolidate_safetensors_files`, where each rank writes some of the files.

    Args:
        input_dir, output_dir, fqn_to_index_mapping, num_threads: as there, the same at all ranks.
        process_group (ProcessGroup): the ranks; the default group if None.
    """
    has_ranks = dist.is_available() and dist.is_initialized()
    rank = dist.get_rank(process_group) if has_ranks else 0
    ranks = dist.get_world_size(process_group) if has_ranks else 1
    found = _find_pieces(input_dir)
    sizes, file_of = _consolidate(
        found, output_dir, fqn_to_index_mapping, num_threads, lambda i: (i - 1) % ranks == rank
    )
    if has_ranks:
        dist.barrier(process_group)
    if rank == 0:
        _write_index(output_dir, sizes, file_of)
