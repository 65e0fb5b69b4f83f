"""Plans that write each piece once, and read whatever pieces cover those of this rank."""

from __future__ import annotations

import dataclasses
import io
import math
from collections import ChainMap, defaultdict

import facula
from facula.distributed.checkpoint._nested_dict import flatten_state_dict, set_element
from facula.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from facula.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Writes each piece of each tensor once, whichever ranks have it.

    Args:
        flatten_state_dict (bool): whether nested states become flat ones, so that tensors in them
            are entries of their own.
        flatten_sharded_tensors (bool): accepted; tensors have one level of pieces.
        dedup_replicated_tensors: accepted; pieces are always written once.
        dedup_save_to_lowest_rank (bool): the first rank that has a piece writes it; else the one
            that has the least to write.
        enable_plan_caching (bool): accepted; plans are made each time.
    """

    def __init__(
        self,
        flatten_state_dict=True,
        flatten_sharded_tensors=True,
        dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank=False,
        enable_plan_caching=False,
    ):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """Take what is to be saved."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self):
        """What this rank could write (SavePlan)."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans):
        """The plans of all ranks and the checkpoint's Metadata."""
        plans = _without_copies(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged = dict(ChainMap(*(p.planner_data for p in plans)))
            metadata = dataclasses.replace(metadata, planner_data=merged)
        _check_pieces(metadata)
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan):
        """The last look at this rank's plan."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        """What is to be written for an item: Tensor or BytesIO."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The entry, or this rank's piece of it."""
        found = self.state_dict[index.fqn]
        return _piece(found, index) if isinstance(found, facula.Tensor) else found

    def transform_object(self, write_item, object):
        """The entry as it is written: pickles as a stream."""
        if write_item.type is WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            facula.save(object, stream)
            stream.seek(0)
            return stream
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Fills tensors in place from whatever pieces cover them.

    Args:
        flatten_state_dict (bool): whether nested states are taken as flat ones.
        flatten_sharded_tensors (bool): accepted; tensors have one level of pieces.
        allow_partial_load (bool): whether entries that the checkpoint lacks stay as they are.
    """

    def __init__(
        self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False
    ):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Take what is to be filled."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata = state_dict, metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self):
        """What this rank needs (LoadPlan)."""
        if self.metadata is None:
            raise AssertionError("DefaultLoadPlanner: expected metadata; got None")
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan):
        """The plans of all ranks, on the coordinator."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan):
        """The last look at this rank's plan."""
        return new_plan

    def load_bytes(self, read_item, value):
        """Take a pickle that was read."""
        key = read_item.dest_index.fqn
        loaded = facula.load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[key], loaded)
        else:
            self.state_dict[key] = loaded

    def resolve_tensor(self, read_item):
        """The part of a tensor that an item is read into."""
        tensor = self.lookup_tensor(read_item.dest_index)
        return self.transform_tensor(read_item, tensor)

    def commit_tensor(self, read_item, tensor):
        """Nothing is left to do: the tensor is that of the state."""

    def lookup_tensor(self, index):
        """This rank's piece of a tensor."""
        return _piece(self.state_dict[index.fqn], index)

    def transform_tensor(self, read_item, tensor):
        """The part of a piece that is read."""
        for dim, (begin, n) in enumerate(
            zip(read_item.dest_offsets, read_item.lengths, strict=True)
        ):
            tensor = tensor.narrow(dim, begin, n)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all that a checkpoint has, or the entries below some keys, into an empty state."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _is_wanted(self, fqn, path):
        return self.keys is None or fqn in self.keys or str(path[0]) in self.keys

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Fill an empty state with tensors of the checkpoint's sizes."""
        if state_dict:
            raise AssertionError(f"expected an empty state; got keys {sorted(state_dict)[:5]}")
        paths = metadata.planner_data or {}
        for fqn, entry in metadata.state_dict_metadata.items():
            path = paths.get(fqn, (fqn,))
            if not self._is_wanted(fqn, path):
                continue
            value = None
            if isinstance(entry, TensorStorageMetadata):
                value = facula.empty(entry.size, dtype=entry.properties.dtype)
            set_element(state_dict, path, value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


# ---- pieces


def _is_part(tensor):
    return hasattr(tensor, "__create_chunk_list__")


def _has_place(tensor):
    """Whether this rank is on the mesh of a DTensor."""
    mesh = getattr(tensor, "device_mesh", None)
    return mesh is None or mesh.get_coordinate() is not None


def _pieces(tensor):
    """The pieces of a tensor that this rank has."""
    if _is_part(tensor):
        return tensor.__create_chunk_list__()
    return [ChunkStorageMetadata(facula.Size([0] * tensor.dim()), tensor.size())]


def _piece(tensor, index):
    """The numbers of a piece, as a plain tensor that shares memory."""
    tensor = tensor.detach()
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index).detach()
    if hasattr(tensor, "to_local"):
        return tensor.to_local()
    if index.offset is not None and any(index.offset):
        raise ValueError(
            f"{index.fqn}: expected a piece from the beginning of a tensor; got {index.offset}"
        )
    return tensor


# ---- saving


def _write_items(fqn, value):
    if not isinstance(value, facula.Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO, BytesIOWriteData(0))]
    if not _has_place(value):
        return []
    kind = WriteItemType.SHARD if _is_part(value) else WriteItemType.TENSOR
    properties = TensorProperties.create_from_tensor(value)
    return [
        WriteItem(
            MetadataIndex(fqn, piece.offsets),
            kind,
            tensor_data=TensorWriteData(piece, properties, value.size()),
        )
        for piece in _pieces(value)
        if math.prod(piece.sizes) or not math.prod(value.size())
    ]


def create_default_local_save_plan(state_dict, is_coordinator):
    """All that this rank has, piece by piece (SavePlan).

    Args:
        state_dict (dict): flat.
        is_coordinator (bool): whether this is the rank that decides.
    """
    items = [item for fqn, value in state_dict.items() for item in _write_items(fqn, value)]
    return SavePlan(items)


def _without_copies(plans, lowest):
    """Leaves each piece to one of the ranks that have it."""
    holders = defaultdict(list)
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders[item.index].append((rank, item))
    load, chosen = [0] * len(plans), {}
    # What one rank alone has is counted first.
    for index, found in sorted(holders.items(), key=lambda entry: len(entry[1])):
        ranks = [rank for rank, _ in found]
        rank = ranks[0] if lowest else min(ranks, key=lambda r: (load[r], r))
        chosen[index] = rank
        load[rank] += found[0][1].tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[i for i in plan.items if chosen[i.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(all_plans, rewrite_index_hints=True):
    """The plans of all ranks with the places of their pieces, and the Metadata.

    Args:
        all_plans (list of SavePlan): none with a piece of another.
        rewrite_index_hints (bool): whether items learn the numbers of their pieces.

    Returns:
        list of SavePlan, Metadata
    """
    entries, plans = {}, []
    for plan in all_plans:
        items = []
        for item in plan.items:
            items.append(_noted(item, entries, rewrite_index_hints))
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(entries, version="1.0.0")


def _noted(item, entries, rewrite):
    fqn = item.index.fqn
    if item.type is WriteItemType.BYTE_IO:
        entries[fqn] = BytesStorageMetadata()
        return item
    data = item.tensor_data
    entry = entries.setdefault(fqn, TensorStorageMetadata(data.properties, data.size, []))
    number = len(entry.chunks)
    entry.chunks.append(data.chunk)
    if not rewrite:
        return item
    return dataclasses.replace(item, index=dataclasses.replace(item.index, index=number))


def _check_pieces(metadata):
    """ValueError unless the pieces of each tensor are the whole of it, once."""
    for fqn, entry in metadata.state_dict_metadata.items():
        if not isinstance(entry, TensorStorageMetadata):
            continue
        count = sum(math.prod(piece.sizes) for piece in entry.chunks)
        inside = all(
            begin >= 0 and begin + n <= size
            for piece in entry.chunks
            for begin, n, size in zip(piece.offsets, piece.sizes, entry.size, strict=True)
        )
        if not inside or count != math.prod(entry.size) or _overlap(entry.chunks):
            raise ValueError(
                f"save(): expected pieces of {fqn} that make up {tuple(entry.size)}; got "
                f"{[(tuple(p.offsets), tuple(p.sizes)) for p in entry.chunks]}"
            )


def _overlap(pieces):
    ordered = sorted(pieces, key=lambda piece: tuple(piece.offsets))
    for i, a in enumerate(ordered):
        for b in ordered[i + 1 :]:
            if b.offsets and b.offsets[0] >= a.offsets[0] + a.sizes[0]:
                break  # and so do all that follow
            if _shared(a, b) is not None:
                return True
    return False


def _shared(a, b):
    """The part that two pieces share, as (offsets, sizes), or None."""
    begins, sizes = [], []
    for i in range(len(a.sizes)):
        begin = max(a.offsets[i], b.offsets[i])
        end = min(a.offsets[i] + a.sizes[i], b.offsets[i] + b.sizes[i])
        if end <= begin:
            return None
        begins.append(begin)
        sizes.append(end - begin)
    return begins, sizes


# ---- loading


def create_default_local_load_plan(state_dict, metadata, strict=True):
    """What covers the tensors of a state, and its pickles (LoadPlan).

    Args:
        state_dict (dict): flat.
        metadata (Metadata): of the checkpoint.
        strict (bool): whether all entries must be in it.

    Raises:
        RuntimeError: the checkpoint lacks an entry.
        ValueError: a tensor of another size.
    """
    items = []
    for fqn, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(fqn)
        if entry is None:
            if strict:
                raise RuntimeError(f"load(): the checkpoint has no entry {fqn!r}")
            continue
        if isinstance(entry, BytesStorageMetadata):
            nothing = facula.Size([0])
            index = MetadataIndex(fqn)
            items.append(ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing))
        elif not isinstance(value, facula.Tensor):
            raise ValueError(
                f"load(): expected a tensor of {tuple(entry.size)} for {fqn!r}, which the "
                f"checkpoint has; got {type(value).__name__}"
            )
        elif _has_place(value):
            items += _read_items(fqn, entry, value)
    return LoadPlan(items)


def _read_items(fqn, entry, tensor):
    if entry.size != tensor.size():
        raise ValueError(
            f"load(): expected {fqn!r} of size {tuple(entry.size)}, as it was saved; got "
            f"{tuple(tensor.size())}"
        )
    items = []
    for mine in _pieces(tensor):
        for number, stored in enumerate(entry.chunks):
            shared = _shared(mine, stored)
            if shared is None:
                continue
            begins, sizes = shared
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, mine.offsets),
                    facula.Size([b - o for b, o in zip(begins, mine.offsets, strict=True)]),
                    MetadataIndex(fqn, stored.offsets, number),
                    facula.Size([b - o for b, o in zip(begins, stored.offsets, strict=True)]),
                    facula.Size(sizes),
                )
            )
    return items


def create_default_global_load_plan(all_plans):
    """The plans of all ranks: each reads what it needs."""
    return all_plans
