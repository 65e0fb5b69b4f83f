"""Grids of ranks: each dimension of a grid has a process group for each of its lines."""

from __future__ import annotations

import itertools
import threading
import warnings
import weakref

import facula
from facula.distributed import _world as world

__all__ = ["DeviceMesh", "init_device_mesh"]

_of_thread = threading.local()  # ranks may be threads: the meshes that `with` has entered
_worlds = weakref.WeakKeyDictionary()  # default group -> number
_numbers = itertools.count(1)


def _world_number():
    """What tells meshes apart whose groups come from different calls of init_process_group."""
    if not world.is_initialized():
        return 0
    group = world._get_default_group()
    if group not in _worlds:
        _worlds[group] = next(_numbers)
    return _worlds[group]


def _entered():
    if not hasattr(_of_thread, "meshes"):
        _of_thread.meshes = []
    return _of_thread.meshes


class _MeshEnvironment:
    """The mesh that a `with` statement has entered."""

    def get_current_mesh(self):
        """The innermost mesh; RuntimeError if there is none."""
        if not _entered():
            raise RuntimeError("expected a device mesh, or a `with` over one; got neither")
        return _entered()[-1]


_mesh_resources = _MeshEnvironment()


def _ranks_of(mesh):
    if isinstance(mesh, facula.Tensor):
        if mesh.device.type not in ("cpu", "meta"):
            raise ValueError(f"DeviceMesh(): expected a mesh on the CPU; got {mesh.device}")
        return mesh.detach().to(facula.int32).contiguous()
    return facula.tensor(mesh, dtype=facula.int32)


def _check_device_type(device_type):
    if not device_type.isalpha():
        raise RuntimeError(
            f"init_device_mesh(): expected a device type without an index, such as "
            f"device.type; got {device_type!r}"
        )


def _check_names(names, ndim):
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(f"init_device_mesh(): expected mesh_dim_names that differ; got {names}")
    if len(names) != ndim:
        raise RuntimeError(
            f"init_device_mesh(): expected a name for each of {ndim} dimensions; got {names}"
        )


def _row_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class DeviceMesh:
    """The ranks of a program as a grid, with a process group along each dimension.

    All ranks make the mesh, in the same order as any other group.

    Args:
        device_type (str): "cpu", "cuda" ...
        mesh (Tensor or nested list): the global ranks; default all, in one dimension.
        mesh_dim_names (tuple of str): names of the dimensions.
        backend_override (tuple): has no effect; groups use the backend of the default group.
        preserve_rank_order (bool): number the ranks of a group as the mesh has them; default
            in ascending order.

    Raises:
        RuntimeError: there are more ranks in the mesh than in the world.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.device_mesh.DeviceMesh("cpu", [[0, 1], [2, 3]])
        ...     return mesh.get_coordinate()
        >>> facula.distributed.threads.run(work, 4)
        [(0, 0), (0, 1), (1, 0), (1, 1)]
    """

    def __init__(
        self,
        device_type,
        mesh=None,
        *,
        mesh_dim_names=None,
        backend_override=None,
        preserve_rank_order=False,
        _init_backend=True,
        _rank=None,
    ):
        _check_device_type(device_type)
        if _init_backend and not world.is_initialized():
            world.init_process_group()
        if mesh is None:
            mesh = facula.arange(world.get_world_size())
        self._lie_over(device_type, _ranks_of(mesh), mesh_dim_names)
        if _rank is None:
            _rank = world.get_rank() if world.is_initialized() else 0
        self._place(_rank)
        self._groups = []
        if _init_backend:
            self._groups = self._make_groups(preserve_rank_order)

    def _lie_over(self, device_type, mesh, names, root=None):
        self._hash = None
        self._world = _world_number()
        self._device_type = device_type
        self._mesh = mesh
        self._shape = tuple(mesh.shape)
        self._ranks = tuple(mesh.reshape(-1).tolist())
        self._mesh_dim_names = tuple(names) if names else None
        self._root_mesh = root
        self._flattened = {} if root is None else root._flattened  # name -> mesh
        self._strides = _row_strides(self._shape)
        _check_names(self._mesh_dim_names, len(self._shape))
        if len(set(self._ranks)) != len(self._ranks):
            raise AssertionError(f"DeviceMesh(): expected each rank once; got {self._ranks}")

    def _place(self, rank):
        self._rank = rank
        self._coordinate = None
        if rank in self._ranks:
            at = self._ranks.index(rank)
            steps = _row_strides(self._shape)
            self._coordinate = tuple(
                at // step % size for step, size in zip(steps, self._shape, strict=True)
            )

    def _make_groups(self, preserve_rank_order=False):
        size = world.get_world_size()
        if len(self._ranks) > size:
            raise RuntimeError(
                f"DeviceMesh(): expected no more than the {size} ranks of the world; "
                f"got {len(self._ranks)}"
            )
        return [self._make_group(dim, preserve_rank_order) for dim in range(self.ndim)]

    def _make_group(self, dim, preserve_rank_order):
        """This rank's group along a dimension; the groups of the other lines are made beside it."""
        if self._ranks == tuple(range(world.get_world_size())) and self.ndim == 1:
            return world._get_default_group()
        mine = None
        lines = self._mesh.movedim(dim, -1).reshape(-1, self._shape[dim]).tolist()
        for line in lines:
            name = self._mesh_dim_names[dim] if self._mesh_dim_names else f"dim_{dim}"
            group = world.new_group(
                line, group_desc=f"mesh_{name}", sort_ranks=not preserve_rank_order
            )
            if self._rank in line:
                mine = group
        return mine

    # --- what it is

    @property
    def device_type(self):
        """The type of the devices."""
        return self._device_type

    @property
    def mesh(self):
        """The global ranks, an int32 tensor of the mesh's shape."""
        return self._mesh

    @property
    def mesh_dim_names(self):
        """The names of the dimensions, or None."""
        return self._mesh_dim_names

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self._shape)

    @property
    def shape(self):
        """The sizes of the dimensions, a tuple."""
        return self._shape

    def size(self, mesh_dim=None):
        """The number of ranks, of one dimension where it is given.

        Args:
            mesh_dim (int): the dimension.

        Returns:
            int
        """
        return len(self._ranks) if mesh_dim is None else self._shape[mesh_dim]

    def get_rank(self):
        """The global rank of this process."""
        return self._rank

    def get_coordinate(self):
        """Where this rank is in the mesh: a tuple, or None if it is not in it."""
        return self._coordinate

    def _is_current_rank_part_of_mesh(self):
        return self._coordinate is not None

    def _sym_get_coordinate(self, index):
        return self._coordinate[index]

    def get_local_rank(self, mesh_dim=None):
        """The coordinate of this rank along a dimension.

        Args:
            mesh_dim (int or str): the dimension; may be left out where there is but one.

        Returns:
            int

        Raises:
            RuntimeError: no dimension is named, and there are several.
        """
        return self._coordinate[self._dim_of(mesh_dim, "get_local_rank")]

    def _dim_of(self, mesh_dim, op):
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"{op}(): expected mesh_dim for a mesh of {self.ndim} dimensions; got none"
                )
            return 0
        return self._get_mesh_dim_by_name(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim

    def _get_mesh_dim_by_name(self, mesh_dim_name):
        if not self._mesh_dim_names or mesh_dim_name not in self._mesh_dim_names:
            raise KeyError(
                f"expected a name of mesh_dim_names={self._mesh_dim_names}; got {mesh_dim_name!r}"
            )
        return self._mesh_dim_names.index(mesh_dim_name)

    def get_group(self, mesh_dim=None):
        """The process group of this rank along a dimension.

        Args:
            mesh_dim (int or str): the dimension; may be left out where there is but one.

        Returns:
            ProcessGroup

        Raises:
            RuntimeError: no dimension is named, and there are several; or there are no groups.
            KeyError: there is no dimension of this name.
        """
        if not self._groups:
            raise RuntimeError("get_group(): expected a mesh with process groups; got one without")
        if isinstance(mesh_dim, str) and mesh_dim in self._flattened:
            return self._flattened[mesh_dim].get_group()
        return self._groups[self._dim_of(mesh_dim, "get_group")]

    def get_all_groups(self):
        """The process groups of this rank, one for each dimension."""
        return [self.get_group(i) for i in range(self.ndim)]

    def abort(self):
        """Make all calls of its groups fail."""
        for group in self._groups:
            world._abort_process_group(group)

    # --- parts of it

    def _get_root_mesh(self):
        return self._root_mesh or self

    def _get_root_mesh_dim(self):
        root = self._get_root_mesh()
        if self.ndim != 1 or root is self or not self._mesh_dim_names:
            return None
        names = root._mesh_dim_names or ()
        return names.index(self._mesh_dim_names[0]) if self._mesh_dim_names[0] in names else None

    def _part(self, mesh, names, groups):
        part = object.__new__(type(self))
        part._lie_over(self._device_type, mesh, names, self._get_root_mesh())
        part._place(self._rank)
        part._groups = groups
        return part

    def __getitem__(self, mesh_dim_names):
        """The mesh of some dimensions, through this rank.

        Args:
            mesh_dim_names (str or tuple of str): in the order that they have in the mesh.

        Returns:
            DeviceMesh

        Raises:
            RuntimeError: the mesh has no names.
            KeyError: there are no dimensions of these names, or they come in another order.

        Example:
            >>> def work(rank):
            ...     mesh = facula.distributed.device_mesh.init_device_mesh(
            ...         "cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            ...     return mesh["tp"].mesh.tolist()
            >>> facula.distributed.threads.run(work, 4)
            [[0, 1], [0, 1], [2, 3], [2, 3]]
        """
        if not self._mesh_dim_names:
            raise RuntimeError("DeviceMesh: expected mesh_dim_names to take a part; got none")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        wrong = [n for n in names if n not in self._mesh_dim_names]
        if wrong:
            raise KeyError(
                f"DeviceMesh: expected names of {list(self._mesh_dim_names)}; got {names}"
            )
        dims = [self._mesh_dim_names.index(n) for n in names]
        if dims != sorted(set(dims)):
            raise KeyError(
                f"DeviceMesh: expected names in the order of {self._mesh_dim_names}; got {names}"
            )
        at = tuple(
            slice(None) if i in dims else (self._coordinate or (0,) * self.ndim)[i]
            for i in range(self.ndim)
        )
        part = self._part(self._mesh[at], names, [self._groups[i] for i in dims])
        part._strides = tuple(self._strides[i] for i in dims)
        return part

    def _get_all_submeshes(self, mesh_dim_name):
        """The meshes of all lines along a dimension, of which only this rank's has a group."""
        dim = self._get_mesh_dim_by_name(mesh_dim_name)
        lines = self._mesh.movedim(dim, -1).reshape(-1, self._shape[dim])
        return [
            self._part(
                line, (mesh_dim_name,), [self._groups[dim]] if self._rank in line.tolist() else []
            )
            for line in lines
        ]

    def _flatten(self, mesh_dim_name=None, backend_override=None):
        """The mesh's ranks in one dimension, which the root mesh then knows by its name.

        Args:
            mesh_dim_name (str): default the names of the dimensions, joined by "_".
            backend_override: has no effect.

        Returns:
            DeviceMesh
        """
        root = self._get_root_mesh()
        if not root._mesh_dim_names:
            raise RuntimeError("_flatten(): expected a mesh with mesh_dim_names; got none")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        if self.ndim == 1 and name in (self._mesh_dim_names or ()):
            return self
        if name in (root._mesh_dim_names or ()):
            raise ValueError(f"_flatten(): expected a new name; got {name!r} again")
        known = root._flattened.get(name)
        if known is not None:
            return known
        group = self._group_over_all_lines(name)
        flat = self._part(self._mesh.reshape(-1), (name,), [group])
        root._flattened[name] = flat
        return flat

    def _group_over_all_lines(self, name):
        root = self._get_root_mesh()
        dims = [root._mesh_dim_names.index(n) for n in self._mesh_dim_names]
        rest = [i for i in range(root.ndim) if i not in dims]
        lines = root._mesh.permute(*rest, *dims).reshape(-1, len(self._ranks))
        mine = None
        for line in lines.tolist():
            group = world.new_group(line, group_desc=f"mesh_{name}")
            if self._rank in line:
                mine = group
        return mine

    def _unflatten(self, dim, mesh_sizes, mesh_dim_names, backend_override=None):
        """The mesh with one dimension cut into several.

        Args:
            dim (int or str): the dimension.
            mesh_sizes (tuple of int): its parts.
            mesh_dim_names (tuple of str): their names.
            backend_override: has no effect.

        Returns:
            DeviceMesh
        """
        dim = self._dim_of(dim, "_unflatten")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError(
                f"_unflatten(): expected a name for each of {mesh_sizes}; got {mesh_dim_names}"
            )
        shape = [*self._shape[:dim], *mesh_sizes, *self._shape[dim + 1 :]]
        names = list(self._mesh_dim_names or [f"dim_{i}" for i in range(self.ndim)])
        names[dim : dim + 1] = mesh_dim_names
        return DeviceMesh(self._device_type, self._mesh.reshape(shape), mesh_dim_names=tuple(names))

    @staticmethod
    def _concatenate(device_mesh_list):
        """The mesh of the dimensions of several parts of one mesh."""
        names = [n for m in device_mesh_list for n in m.mesh_dim_names]
        return device_mesh_list[0]._get_root_mesh()[tuple(names)]

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """A mesh over process groups that exist.

        Args:
            group (ProcessGroup or list): one, or one for each dimension.
            device_type (str): the type of the devices.
            mesh (Tensor or nested list): the ranks; needed where there are several groups.
            mesh_dim_names (tuple of str): names of the dimensions.

        Returns:
            DeviceMesh

        Raises:
            ValueError: the mesh does not fit the groups.
        """
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if not groups:
            raise ValueError("from_group(): expected at least one process group; got none")
        if mesh is None and len(groups) > 1:
            raise ValueError("from_group(): expected a mesh beside several groups; got none")
        ranks = world.get_process_group_ranks(groups[0])
        if mesh is not None and len(groups) == 1 and _ranks_of(mesh).tolist() != ranks:
            raise ValueError(
                f"from_group(): expected a mesh of the group's ranks {ranks}; got {mesh}"
            )
        if mesh is not None and _ranks_of(mesh).dim() != len(groups):
            raise ValueError(
                f"from_group(): expected a mesh of {len(groups)} dimensions, one for each group; "
                f"got {_ranks_of(mesh).dim()}"
            )
        made = DeviceMesh(
            device_type,
            ranks if mesh is None else mesh,
            mesh_dim_names=mesh_dim_names,
            _init_backend=False,
        )
        made._groups = groups
        return made

    # --- as a value

    def __enter__(self):
        _entered().append(self)
        return self

    def __exit__(self, *error):
        _entered().pop()

    def __repr__(self):
        sizes = ", ".join(
            f"{name}={size}" if name else str(size)
            for name, size in zip(
                self._mesh_dim_names or [None] * self.ndim, self._shape, strict=True
            )
        )
        # As a tuple is written, but with names; a name needs no comma behind it.
        comma = "," if self.ndim == 1 and not self._mesh_dim_names else ""
        return f"DeviceMesh(({sizes}{comma}), '{self._device_type}', stride={self._strides})"

    def _key(self):
        # Where ranks are threads, each has a mesh, with groups of its own; and groups end.
        own = self._rank, self._world
        return self._ranks, self._shape, self._device_type, self._mesh_dim_names, own

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(self._key())
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __reduce__(self):
        return _remake, (self._device_type, self._mesh.tolist(), self._mesh_dim_names)


def _remake(device_type, ranks, names):
    """A mesh as it was pickled: with the groups of a mesh that exists, if this rank has one."""
    found = DeviceMesh(device_type, ranks, mesh_dim_names=names, _init_backend=False)
    if not world.is_initialized():
        return found
    lines = [
        found._mesh.movedim(d, -1)[tuple(c for i, c in enumerate(found._coordinate) if i != d)]
        for d in range(found.ndim)
        if found._coordinate is not None
    ]
    groups = [world._find_pg_by_ranks_and_tag("", line.tolist()) for line in lines]
    if all(g is not None for g in groups):
        found._groups = groups
    else:
        warnings.warn(
            "DeviceMesh: this process has no groups for the mesh of a pickle", stacklevel=2
        )
    return found


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """All ranks as a grid of a given shape, numbered row by row.

    Args:
        device_type (str): "cpu", "cuda" ...
        mesh_shape (tuple of int): the sizes of the dimensions.
        mesh_dim_names (tuple of str): their names.
        backend_override (dict): has no effect; groups use the backend of the default group.

    Returns:
        DeviceMesh

    Raises:
        RuntimeError: names do not fit the shape, or there are fewer ranks in the world.

    Example:
        >>> def work(rank):
        ...     return repr(facula.distributed.device_mesh.init_device_mesh("cpu", (2,)))
        >>> facula.distributed.threads.run(work, 2)[0]
        "DeviceMesh((2,), 'cpu', stride=(1,))"
    """
    mesh_shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    _check_names(mesh_dim_names, len(mesh_shape))
    _check_device_type(device_type)
    ranks = facula.arange(facula.Size(mesh_shape).numel(), dtype=facula.int32).view(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
