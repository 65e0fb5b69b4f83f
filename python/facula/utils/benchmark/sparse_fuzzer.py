"""Sparse tensors drawn at random, to time operators on."""

from __future__ import annotations

import math

import facula
from facula.utils.benchmark.fuzzer import FuzzedTensor

__all__ = ["FuzzedSparseTensor"]


class FuzzedSparseTensor(FuzzedTensor):
    """A COO tensor whose geometry is drawn.

    Args:
        name, size, min_elements, max_elements, dim_parameter, dtype, cuda: as of `FuzzedTensor`.
        sparse_dim (str, optional): a parameter that says how many dimensions are sparse.
        nnz (str, optional): a parameter that says how many elements are kept.
        density (str, optional): a parameter that says which share is; instead of `nnz`.
        coalesced (str, optional): a parameter that says whether each index comes once.
    """

    def __init__(
        self,
        name,
        size,
        min_elements=None,
        max_elements=None,
        dim_parameter=None,
        sparse_dim=None,
        nnz=None,
        density=None,
        coalesced=None,
        dtype=facula.float32,
        cuda=False,
    ):
        super().__init__(
            name,
            size,
            min_elements=min_elements,
            max_elements=max_elements,
            dim_parameter=dim_parameter,
            dtype=dtype,
            cuda=cuda,
        )
        self._sparse_dim, self._nnz = sparse_dim, nnz
        self._density, self._coalesced = density, coalesced

    @staticmethod
    def sparse_tensor_constructor(size, dtype, sparse_dim, nnz, is_coalesced):
        """A COO tensor of random numbers at random places.

        Args:
            size (tuple of int): all sizes, the sparse ones first.
            dtype (facula.dtype): of the values.
            sparse_dim (int): how many dimensions are sparse.
            nnz (int): how many indices.
            is_coalesced (bool): whether indices that come twice are added up.
        """
        size = tuple(size)
        shape = (nnz, *size[sparse_dim:])
        if dtype.is_floating_point:
            values = facula.rand(size=shape, dtype=dtype, device="cpu")
        else:
            values = facula.randint(1, 127, size=shape, dtype=dtype, device="cpu")
        places = facula.rand(sparse_dim, nnz, device="cpu")
        places = (places * facula.tensor(size[:sparse_dim]).unsqueeze(1)).to(facula.int64)
        made = facula.sparse_coo_tensor(places, values, size)
        return made.coalesce() if is_coalesced else made

    def _make_tensor(self, params, state):
        """The tensor of one draw, and what is to be known of it."""
        size, _, _ = self._geometry(params)
        sparse_dim = int(params.get(self._sparse_dim, len(size)))
        sparse_dim = min(sparse_dim, len(size))
        nnz = params.get(self._nnz)
        if nnz is None:
            nnz = math.ceil(math.prod(size[:sparse_dim]) * params[self._density])
        coalesced = bool(params.get(self._coalesced, False))
        tensor = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, int(nnz), coalesced)
        if self._cuda:
            tensor = tensor.cuda()
        properties = {
            "numel": int(tensor.numel()),
            "shape": tensor.size(),
            "is_coalesced": tensor.is_coalesced(),
            "density": tensor._nnz() / max(math.prod(size[:sparse_dim]), 1),
            "sparsity": 1 - tensor._nnz() / max(math.prod(size[:sparse_dim]), 1),
            "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(),
            "is_hybrid": tensor.dense_dim() > 0,
            "dtype": str(self._dtype),
        }
        return tensor, properties
