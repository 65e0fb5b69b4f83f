"""Cases of sparse tensors: each a name and a function of a library, facula or PyTorch.

`CASES` have results, `ERRORS` raise. What the functions read is made by `Inputs`, from numbers,
so that both libraries get the same.
"""


class Inputs:
    """Sparse and strided tensors of one library."""

    def __init__(self, lib):
        self.lib = lib
        t = lib.tensor
        self.i = t([[0, 1, 1], [2, 0, 2]])
        self.v = t([3.0, 4.0, 5.0])
        self.coo = lib.sparse_coo_tensor(self.i, self.v, (2, 3))
        self.twice = lib.sparse_coo_tensor(
            t([[0, 1, 0, 1], [2, 0, 2, 1]]), t([1.0, 2.0, 3.0, -4.0]), (2, 3)
        )
        self.hybrid = lib.sparse_coo_tensor(
            t([[1, 0, 1]]), t([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]]), (2, 2)
        )
        self.ints = lib.sparse_coo_tensor(self.i, t([3, 4, -5]), (2, 3))
        self.z = lib.sparse_coo_tensor(self.i, t([3 + 1j, 4.0, 5 - 2j]), (2, 3))
        self.dense = t([[0.5, -1.0, 2.0], [1.5, 0.0, -3.0]])
        self.square = t(
            [[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [4.0, 0.0, 5.0, 6.0], [0.0] * 4]
        )
        self.csr = self.square.to_sparse_csr()
        self.csc = self.square.to_sparse_csc()
        self.bsr = self.square.to_sparse_bsr((2, 2))
        self.bsc = self.square.to_sparse_bsc((2, 2))
        self.right = t([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0], [-1.0, 4.0]])


# Of these PyTorch leaves elements in another order, or several at one position.
BY_VALUE = {
    "between compressed layouts",
    "coo * coo",
    "index_select",
    "products as sparse",
    "sum keepdim",
}

CASES = {
    "coo": lambda x: x.coo,
    "coo of lists": lambda x: x.lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)),
    "coo without size": lambda x: x.lib.sparse_coo_tensor(x.i, x.v),
    "coo of a size": lambda x: x.lib.sparse_coo_tensor((2, 3)),
    "coo of a size by keyword": lambda x: x.lib.sparse_coo_tensor(size=(2, 3)),
    "coo of a dtype": lambda x: x.lib.sparse_coo_tensor(x.i, [1, 2, 3], dtype=x.lib.float64),
    "coo of float indices": lambda x: x.lib.sparse_coo_tensor(x.i.float(), x.v),
    "coo that is coalesced": lambda x: x.lib.sparse_coo_tensor(
        x.i, x.v, (2, 3), is_coalesced=True, check_invariants=True
    ).is_coalesced(),
    "coo requires grad": lambda x: x.lib.sparse_coo_tensor(x.i, x.v, requires_grad=True),
    "coo with history": lambda x: x.lib.sparse_coo_tensor(x.i, x.v.clone().requires_grad_()),
    "coo without elements": lambda x: x.lib.sparse_coo_tensor([[], []], []),
    "coo of trusted parts": lambda x: x.lib.ops.aten._sparse_coo_tensor_unsafe(x.i, x.v, (2, 3)),
    "coo parts are looked at": lambda x: x.lib._validate_sparse_coo_tensor_args(x.i, x.v, (2, 3)),
    "csr parts are looked at": lambda x: x.lib._validate_sparse_compressed_tensor_args(
        x.csr.crow_indices(),
        x.csr.col_indices(),
        x.csr.values(),
        x.csr.shape,
        x.lib.sparse_csr,
    ),
    "coo of sparse and dense dimensions": lambda x: x.lib.ops.aten._sparse_coo_tensor_with_dims(
        1, 1, [2, 3], layout=x.lib.sparse_coo
    ),
    "resized as another": lambda x: x.coo.clone().resize_as_sparse_(x.twice),
    "said to be coalesced": lambda x: x.coo.clone()._coalesced_(True).is_coalesced(),
    "sampled product": lambda x: x.lib.sparse.sampled_addmm(x.csr, x.right, x.right.t()),
    "sampled product by its operator": lambda x: x.lib.ops.aten.sparse_sampled_addmm(
        x.csr, x.right, x.right.t(), beta=0.5
    ),
    "gradient of an embedding": lambda x: x.lib.ops.aten.embedding_sparse_backward(
        x.lib.ones(3, 2), x.lib.tensor([1, 0, 1]), 4, -1, False
    ),
    "hybrid": lambda x: x.hybrid,
    "meta": lambda x: x.lib.empty((2, 3), layout=x.lib.sparse_coo, device="meta"),
    "what coo says": lambda x: (
        x.coo._nnz(),
        x.hybrid.sparse_dim(),
        x.hybrid.dense_dim(),
        x.coo.is_coalesced(),
        x.coo.is_sparse,
        x.coo.is_sparse_csr,
        x.coo.numel(),
        x.coo.dim(),
        len(x.coo),
        x.coo.stride(),
        x.coo.is_contiguous(),
        x.dense.sparse_dim(),
        x.dense.dense_dim(),
        x.csr.is_sparse,
        x.csr.is_sparse_csr,
        x.csr._nnz(),
        x.coo.requires_grad,
        x.coo.element_size(),
        x.coo._dimI(),
        x.coo._dimV(),
    ),
    "coalesce": lambda x: (x.twice.coalesce(), x.hybrid.coalesce(), x.ints.coalesce()),
    "coalesce bool": lambda x: x.twice.bool().coalesce(),
    "indices": lambda x: x.twice.coalesce().indices(),
    "values": lambda x: x.twice.coalesce().values(),
    "_indices": lambda x: (x.twice._indices(), x.twice._values()),
    "to_dense": lambda x: [
        t.to_dense() for t in (x.coo, x.twice, x.hybrid, x.ints, x.z, x.csr, x.csc, x.bsr, x.bsc)
    ],
    "to_sparse": lambda x: (x.dense.to_sparse(), x.dense.to_sparse(1), x.coo.to_sparse()),
    "to_sparse of a number": lambda x: x.lib.tensor(3.0).to_sparse(),
    "to_sparse by layout": lambda x: [
        x.dense.to_sparse(layout=x.lib.sparse_csr),
        x.coo.to_sparse(layout=x.lib.strided),
        x.square.to_sparse(layout=x.lib.sparse_bsr, blocksize=(2, 2)),
    ],
    "between compressed layouts": lambda x: [
        x.csr.to_sparse_csc(),
        x.csc.to_sparse_csr(),
        x.csr.to_sparse_bsr((2, 2)),
        x.csr.to_sparse(),
        x.csc.to_sparse_coo(),
        x.bsr.to_sparse(),
        x.coo.coalesce().to_sparse_csr(),
        x.coo.coalesce().to_sparse_csc(),
    ],
    "compressed": lambda x: (x.csr, x.csc, x.bsr, x.bsc),
    "parts of compressed": lambda x: (
        x.csr.crow_indices(),
        x.csr.col_indices(),
        x.csc.ccol_indices(),
        x.csc.row_indices(),
        x.bsr.values(),
    ),
    "batched csr": lambda x: x.lib.ones(2, 2, 2).to_sparse_csr(),
    "csr with dense dims": lambda x: x.lib.ones(2, 2, 2).to_sparse_csr(dense_dim=1),
    "makers of compressed": lambda x: [
        x.lib.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2, 3]),
        x.lib.sparse_csc_tensor([0, 2, 3], [0, 2, 1], [1.0, 2, 3], (4, 2)),
        x.lib.sparse_bsr_tensor([0, 1, 2], [0, 1], x.lib.ones(2, 2, 2)),
        x.lib.sparse_bsc_tensor([0, 1, 2], [0, 1], x.lib.ones(2, 2, 2), dtype=x.lib.float64),
        x.lib.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=x.lib.sparse_csr),
        x.lib.sparse_csr_tensor(
            x.lib.tensor([0, 1], dtype=x.lib.int32), x.lib.tensor([0], dtype=x.lib.int32), [1.0]
        ).crow_indices(),
    ],
    "factories": lambda x: [
        x.lib.zeros(2, 3, layout=x.lib.sparse_coo),
        x.lib.empty(2, 3, layout=x.lib.sparse_coo),
        x.lib.zeros(2, 3, layout=x.lib.sparse_csr),
        x.lib.zeros_like(x.coo),
        x.lib.zeros_like(x.hybrid),
        x.lib.empty_like(x.coo),
        x.lib.zeros_like(x.dense, layout=x.lib.sparse_coo),
        x.lib.zeros_like(x.csr),
        x.coo.new_zeros(2),
        x.coo.new_empty(2, 2),
    ],
    "copies": lambda x: [
        x.twice.clone(),
        x.coo.detach(),
        x.coo.double(),
        x.coo.to(x.lib.int64),
        x.coo.cpu(),
        x.csr.clone(),
        x.csr.double(),
        x.bsr.half(),
        x.coo.bool(),
    ],
    "copy_": lambda x: x.lib.zeros(2, 3, layout=x.lib.sparse_coo).copy_(x.twice),
    "zero_": lambda x: (x.coo.clone().zero_(), x.csr.clone().zero_()),
    "sparse_mask": lambda x: (
        x.dense.sparse_mask(x.coo),
        x.dense.sparse_mask(x.twice),
        x.square.sparse_mask(x.csr),
    ),
    "resized": lambda x: (
        x.lib.zeros(2, 3, layout=x.lib.sparse_coo).sparse_resize_((3, 3), 2, 0),
        x.coo.clone().sparse_resize_((4, 3), 2, 0),
        x.coo.clone().sparse_resize_and_clear_((3, 3), 1, 1),
    ),
    "sums with numbers": lambda x: (x.coo * 2, 2 * x.coo, x.coo / 2, x.ints * 2, x.csr * 2),
    "coo + coo": lambda x: (x.coo + x.twice, x.coo + x.coo, x.coo - x.twice, x.hybrid + x.hybrid),
    "coo + coo with alpha": lambda x: x.lib.add(x.coo, x.twice.coalesce(), alpha=3),
    "dense + coo": lambda x: (
        x.dense + x.twice,
        x.dense - x.coo,
        x.lib.add(x.dense, x.coo, alpha=2),
    ),
    "dense += coo": lambda x: x.dense.clone().add_(x.twice, alpha=-0.5),
    "transposed dense += coo": lambda x: x.dense.t().contiguous().t().add_(x.twice),
    "coo += coo": lambda x: x.coo.clone().add_(x.twice),
    "coo *= number": lambda x: x.coo.clone().mul_(3),
    "coo * coo": lambda x: (x.coo * x.twice, x.hybrid * x.hybrid),
    "coo * dense": lambda x: (x.coo * x.dense, x.dense * x.coo, x.coo * x.lib.tensor(2.0)),
    "promotes": lambda x: (x.ints * 1.5, x.ints + x.coo, x.ints / 2),
    "floor_divide": lambda x: (x.ints // 2, x.coo.div(2, rounding_mode="floor")),
    "csr + csr": lambda x: (x.csr + x.csr, x.csr + x.square, x.square + x.csr),
    "csr * csr": lambda x: (x.csr * x.csr, x.csr * x.square),
    "unary": lambda x: [
        getattr(x.twice, name)()
        for name in "abs neg sin tan tanh sinh asinh atan sqrt expm1 log1p relu sign sgn ceil "
        "floor round trunc frac isnan isinf signbit erf".split()
    ],
    "unary of csr": lambda x: [getattr(x.csr, name)() for name in "abs neg sin sqrt relu".split()],
    "in place": lambda x: [getattr(x.coo.coalesce(), name)() for name in ("sin_", "neg_", "abs_")],
    "powers": lambda x: (x.coo**2, x.twice.pow(3), x.twice.square()),
    "sum": lambda x: (x.twice.sum(), x.twice.sum(0), x.twice.sum(-1), x.ints.sum(), x.csr.sum()),
    "sum keepdim": lambda x: x.twice.sum(0, keepdim=True),
    "sparse.sum": lambda x: [
        x.lib.sparse.sum(x.twice),
        x.lib.sparse.sum(x.twice, 0),
        x.lib.sparse.sum(x.twice, (0, 1)),
        x.lib.sparse.sum(x.hybrid, 1),
        x.lib.sparse.sum(x.hybrid, 0),
        x.lib.sparse.sum(x.twice, dtype=x.lib.float64),
        x.lib.sparse.sum(x.twice, 1, dtype=x.lib.float64),
    ],
    "csr sum keepdim": lambda x: (
        x.csr.sum(1, keepdim=True).to_dense(),
        x.csr.sum(0, keepdim=True).to_dense(),
    ),
    "norm": lambda x: (x.coo.norm(), x.coo.any()),
    "transposes": lambda x: (
        x.coo.t(),
        x.coo.T,
        x.coo.mT,
        x.twice.transpose(0, 1),
        x.coo.permute(1, 0),
    ),
    "transposes of compressed": lambda x: (x.csr.t(), x.csc.transpose(0, 1), x.bsr.t()),
    "select": lambda x: (
        x.coo[0],
        x.coo[1, 2],
        x.coo[:, 1],
        x.coo[-1],
        x.hybrid[1],
        x.hybrid[:, 1],
    ),
    "select of csr": lambda x: (x.csr[0], x.csr[0, 2], x.csr[:, 0]),
    "None in an index": lambda x: x.coo[None],
    "index_select": lambda x: (
        x.coo.index_select(0, x.lib.tensor([1, 1])),
        x.coo.index_select(1, x.lib.tensor([2, 0])),
        x.hybrid.index_select(1, x.lib.tensor([1])),
    ),
    "unsqueeze": lambda x: (x.coo.unsqueeze(0), x.coo.unsqueeze(1), x.hybrid.unsqueeze(-1)),
    "cat": lambda x: (
        x.lib.cat([x.coo, x.twice]),
        x.lib.cat([x.coo, x.twice], 1),
        x.lib.cat([x.hybrid, x.hybrid], 1),
        x.lib.stack([x.coo, x.coo]),
    ),
    "unbind": lambda x: (list(x.coo), x.coo.unbind(1)),
    "narrow_copy": lambda x: x.coo.narrow_copy(1, 1, 2),
    "mm": lambda x: [
        x.lib.mm(x.twice, x.dense.t()),
        x.coo @ x.dense.t(),
        x.dense @ x.coo.t(),
        x.csr @ x.right,
        x.csc @ x.right,
        x.bsr @ x.right,
        x.right.t() @ x.csr,
        x.z @ x.z.to_dense().t(),
        x.coo.half() @ x.dense.t().half(),
        x.ints @ x.ints.to_dense().t(),
    ],
    "sparse @ sparse": lambda x: (
        x.coo @ x.twice.t(),
        x.lib.sparse.mm(x.coo, x.coo.t()),
        x.csr @ x.csr,
    ),
    "sparse.mm": lambda x: [
        x.lib.sparse.mm(x.twice, x.dense.t()),
        x.lib.sparse.mm(x.dense, x.coo.t()),
        x.lib.sparse.mm(x.csr, x.right),
    ],
    "mv": lambda x: (
        x.lib.mv(x.twice, x.lib.ones(3)),
        x.coo @ x.lib.ones(3),
        x.lib.ones(2) @ x.coo,
        x.csr @ x.lib.ones(4),
        x.lib.addmv(x.lib.ones(4), x.csr, x.lib.ones(4)),
    ),
    "addmm": lambda x: (
        x.lib.addmm(x.lib.ones(2, 2), x.coo, x.dense.t(), beta=0.5, alpha=2),
        x.lib.sparse.addmm(x.lib.ones(2, 2), x.coo, x.dense.t(), beta=0.5, alpha=2),
        x.lib.addmm(x.lib.ones(4, 2), x.csr, x.right),
    ),
    "products as sparse": lambda x: (
        x.lib.smm(x.coo, x.dense.t()),
        x.lib.hspmm(x.coo, x.dense.t()),
        x.lib.sspaddmm(x.lib.zeros(2, 2).to_sparse(), x.coo, x.dense.t(), beta=0.5, alpha=2),
    ),
    "bmm": lambda x: x.lib.bmm(
        x.lib.stack([x.coo, x.twice.coalesce()]), x.lib.stack([x.dense.t(), x.dense.t() * 2])
    ),
    "linear": lambda x: (
        x.lib.nn.functional.linear(x.dense, x.coo),
        x.lib.nn.functional.linear(x.right.t(), x.csr),
    ),
    "sampled_addmm": lambda x: x.lib.sparse.sampled_addmm(
        x.csr, x.right, x.right.t(), beta=0.5, alpha=2.0
    ),
    "reduced products": lambda x: [
        x.lib.sparse.mm(x.csr, x.right, how) for how in ("sum", "mean", "amax", "amin")
    ],
    "softmax": lambda x: [
        f(t.double(), dim)
        for f in (x.lib.sparse.softmax, x.lib.sparse.log_softmax)
        for t in (x.twice, x.hybrid)
        for dim in (0, 1)
    ],
    "is_same_size": lambda x: x.coo.is_same_size(x.twice),
    "spdiags": lambda x: x.lib.sparse.spdiags(
        x.lib.arange(9).reshape(3, 3), x.lib.tensor([0, -1, 2]), (3, 3)
    ),
    "old constructors": lambda x: (
        x.lib.sparse.FloatTensor(x.i, x.v, x.lib.Size([2, 3])),
        x.lib.sparse.FloatTensor(2, 3),
    ),
    "complex": lambda x: (x.z.abs(), x.z * 2, x.z.coalesce().conj().to_dense()),
}


def _grads(*names):
    """Gradients of the named inputs; `f` gives a result, which is made strided and weighed."""

    def case(f):
        def run(x):
            for name in names:
                setattr(x, name, getattr(x, name).detach().clone().requires_grad_())
            found = f(x)
            found = found if found.layout == x.lib.strided else found.to_dense()
            weights = x.lib.arange(1.0, found.numel() + 1).reshape(found.shape)
            (found * weights).sum().backward()
            return [getattr(x, name).grad for name in names]

        return run

    return case


GRADIENTS = {
    name: _grads(*inputs.split())(f)
    for name, (inputs, f) in {
        "values": ("v", lambda x: x.lib.sparse_coo_tensor(x.i, x.v, (2, 3))),
        "values of csr": (
            "v",
            lambda x: x.lib.sparse_csr_tensor([0, 2, 3], [0, 2, 1], x.v, (2, 3)),
        ),
        "to_dense": ("twice", lambda x: x.twice),
        "to_dense of csr": ("csr", lambda x: x.csr),
        "to_sparse": ("dense", lambda x: x.dense.to_sparse() * 2),
        "to_sparse_csr": ("dense", lambda x: x.dense.to_sparse_csr()),
        "coalesced values": ("coo", lambda x: x.coo.coalesce().values()),
        "values of a csr": ("csr", lambda x: x.csr.values()),
        "sparse.mm": ("coo dense", lambda x: x.lib.sparse.mm(x.coo, x.dense.t())),
        "sparse.mm of uncoalesced": (
            "twice dense",
            lambda x: x.lib.sparse.mm(x.twice, x.dense.t()),
        ),
        "sparse.mm of csr": ("csr right", lambda x: x.lib.sparse.mm(x.csr, x.right)),
        "mm": ("coo dense", lambda x: x.lib.mm(x.coo, x.dense.t())),
        "mm of csr": ("csr right", lambda x: x.csr @ x.right),
        "mv": ("coo", lambda x: x.lib.mv(x.coo, x.lib.ones(3))),
        "sparse.sum": ("coo", lambda x: x.lib.sparse.sum(x.coo)),
        "sparse.sum of a dim": ("coo", lambda x: x.lib.sparse.sum(x.coo, 0)),
        "sparse.sum of a dense dim": ("hybrid", lambda x: x.lib.sparse.sum(x.hybrid, 1)),
        "sparse.sum of the sparse dim": ("hybrid", lambda x: x.lib.sparse.sum(x.hybrid, 0)),
        "softmax": ("coo", lambda x: x.lib.sparse.softmax(x.coo, 1)),
        "log_softmax": ("coo", lambda x: x.lib.sparse.log_softmax(x.coo, 0)),
        "number": ("coo", lambda x: x.coo * 2),
        "quotient": ("coo", lambda x: x.coo / 2),
        "product with dense": ("coo dense", lambda x: x.coo * x.dense),
        "product": ("coo", lambda x: x.coo * x.coo),
        "sum of two": ("coo", lambda x: x.coo + x.coo),
        "dense + sparse": ("dense coo", lambda x: x.dense + x.coo),
        "abs": ("twice", lambda x: x.twice.abs()),
        "relu": ("coo", lambda x: x.coo.relu()),
        "neg": ("coo", lambda x: -x.coo),
        "transpose": ("coo", lambda x: x.coo.t()),
        "square": ("coo", lambda x: x.coo**2),
        "sampled_addmm": (
            "csr right",
            lambda x: x.lib.sparse.sampled_addmm(x.csr, x.right, x.right.t(), beta=0.5, alpha=2.0),
        ),
        "sampled_addmm without self": (
            "csr right",
            lambda x: x.lib.sparse.sampled_addmm(x.csr, x.right, x.right.t(), beta=0, alpha=2.0),
        ),
        "reduce sum": ("csr right", lambda x: x.lib.sparse.mm(x.csr, x.right, "sum")),
        "reduce mean": ("csr right", lambda x: x.lib.sparse.mm(x.csr, x.right, "mean")),
        "reduce amax": ("csr right", lambda x: x.lib.sparse.mm(x.csr, x.right, "amax")),
        "reduce amin": ("csr right", lambda x: x.lib.sparse.mm(x.csr, x.right, "amin")),
        "sparse_mask": ("dense", lambda x: x.dense.sparse_mask(x.coo)),
        "embedding": (
            "right",
            lambda x: x.lib.nn.functional.embedding(
                x.lib.tensor([1, 1, 0, 3]), x.right, padding_idx=0, sparse=True
            ),
        ),
        "embedding_bag": (
            "right",
            lambda x: x.lib.nn.functional.embedding_bag(
                x.lib.tensor([1, 1, 0, 3]), x.right, x.lib.tensor([0, 1]), mode="mean", sparse=True
            ),
        ),
    }.items()
}

ERRORS = {
    "index too large": lambda x: x.lib.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=True),
    "negative index": lambda x: x.lib.sparse_coo_tensor([[-1]], [1.0]),
    "negative index with a size": lambda x: x.lib.sparse_coo_tensor(
        [[-1]], [1.0], (2,), check_invariants=True
    ),
    "too few values": lambda x: x.lib.sparse_coo_tensor([[0, 1]], [1.0]),
    "indices of one dimension": lambda x: x.lib.sparse_coo_tensor([0, 1], [1.0, 2.0]),
    "sizes of other dimensions": lambda x: x.lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 3)),
    "values of another width": lambda x: x.lib.sparse_coo_tensor(
        [[0, 1]], [[1.0, 2.0], [1.0, 2.0]], (2, 3)
    ),
    "negative size": lambda x: x.lib.sparse_coo_tensor((2, -3)),
    "huge size": lambda x: x.lib.sparse_coo_tensor((2**40, 2**40)),
    "not coalesced": lambda x: x.lib.sparse_coo_tensor(
        [[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True
    ),
    "indices of uncoalesced": lambda x: x.twice.indices(),
    "values of uncoalesced": lambda x: x.twice.values(),
    "_nnz of strided": lambda x: x.dense._nnz(),
    "is_coalesced of strided": lambda x: x.dense.is_coalesced(),
    "coalesce of strided": lambda x: x.dense.coalesce(),
    "values of strided": lambda x: x.dense.values(),
    "indices of csr": lambda x: x.csr.indices(),
    "row_indices of csr": lambda x: x.csr.row_indices(),
    "sparse + number": lambda x: x.coo + 1,
    "sparse + dense": lambda x: x.coo + x.dense,
    "sparse / sparse": lambda x: x.coo / x.coo,
    "sparse / dense": lambda x: x.coo / x.dense,
    "sums of other sizes": lambda x: x.coo + x.coo.t(),
    "cos": lambda x: x.coo.cos(),
    "exp": lambda x: x.coo.exp(),
    "power of zero": lambda x: x.coo**0,
    "view": lambda x: x.coo.view(6),
    "reshape": lambda x: x.coo.reshape(6),
    "cumsum": lambda x: x.coo.cumsum(0),
    "max": lambda x: x.coo.max(),
    "ones": lambda x: x.lib.ones(2, 3, layout=x.lib.sparse_coo),
    "storage": lambda x: x.coo.untyped_storage(),
    "data_ptr": lambda x: x.coo.data_ptr(),
    "numpy": lambda x: x.coo.numpy(),
    "tolist": lambda x: x.coo.tolist(),
    "item": lambda x: x.coo.item(),
    "index by tensor": lambda x: x.coo[x.lib.tensor([0, 1])],
    "select out of range": lambda x: x.coo[5],
    "to_sparse of no dims": lambda x: x.dense.to_sparse(0),
    "to_sparse of too many dims": lambda x: x.dense.to_sparse(3),
    "blocks that do not divide": lambda x: x.square.to_sparse_bsr((3, 2)),
    "mm of other sizes": lambda x: x.coo @ x.dense,
    "mm of other dtypes": lambda x: x.coo @ x.dense.t().double(),
    "reduce by prod": lambda x: x.lib.sparse.mm(x.csr, x.right, "prod"),
    "reduce of coo": lambda x: x.lib.sparse.mm(x.coo, x.dense.t(), "sum"),
    "softmax of csr": lambda x: x.lib.sparse.softmax(x.csr, 1),
    "strided layout": lambda x: x.lib.sparse_compressed_tensor(
        [0, 1], [0], [1.0], (1, 1), layout=x.lib.strided
    ),
    "columns too large": lambda x: x.lib.sparse_csr_tensor(
        [0, 2, 3], [0, 2, 1], [1.0, 2, 3], (2, 2), check_invariants=True
    ),
    "rows that do not begin at 0": lambda x: x.lib.sparse_csr_tensor(
        [1, 2, 3], [0, 2, 1], [1.0, 2, 3], (2, 3), check_invariants=True
    ),
    "rows that do not end at nnz": lambda x: x.lib.sparse_csr_tensor(
        [0, 2, 4], [0, 2, 1], [1.0, 2, 3], (2, 3), check_invariants=True
    ),
    "columns not sorted": lambda x: x.lib.sparse_csr_tensor(
        [0, 2, 3], [2, 0, 1], [1.0, 2, 3], (2, 3), check_invariants=True
    ),
    "csr of a vector": lambda x: x.lib.zeros(3, layout=x.lib.sparse_csr),
    "expand": lambda x: x.coo.expand(2, 2, 3),
    "copy of strided": lambda x: x.coo.copy_(x.dense),
    "copy into strided": lambda x: x.dense.copy_(x.coo),
    "sparse_resize_ that shrinks": lambda x: x.coo.sparse_resize_((1, 1), 2, 0),
    "csr sum without keepdim": lambda x: x.csr.sum(0),
}
