"""Calls that must fail: shapes, dtypes, devices, indices and arguments that do not fit.

Each case is (call of a library, exception class, part of facula's message). The classes are
PyTorch's, which tests/differential/operators/test_errors.py checks.
"""

CASES = {
    # --- several things wrong: what is told first
    "missing before huge": (
        lambda m: m.narrow(m.ones(2, 3), 2**70),
        TypeError,
        "narrow\\(\\)",
    ),
    "huge": (lambda m: m.narrow(m.ones(2, 3), 0, 2**70, 1), ValueError, "Overflow"),
    "as_tensor by position": (lambda m: m.as_tensor([1.0], m.float64), TypeError, "as_tensor"),
    "from_dlpack": (lambda m: m.from_dlpack(object()), RuntimeError, "__dlpack__.*object"),
    "interpolate": (lambda m: m.nn.functional.interpolate("x"), AttributeError, "dim"),
    "broadcast_shapes": (lambda m: m.broadcast_shapes(object()), RuntimeError, "got object"),
    "unique": (lambda m: m.unique("x"), TypeError, "'input' \\(position 1\\) must be Tensor"),
    "softshrink": (
        lambda m: m.nn.functional.softshrink(m.ones(2), float("inf")),
        RuntimeError,
        "lambda must be in range",
    ),
    # --- numbers that norms and distances refuse
    "batch_norm eps below zero": (
        lambda m: m.nn.functional.batch_norm(m.ones(2, 3), None, None, training=True, eps=-1.0),
        ValueError,
        "eps must not be negative",
    ),
    "batch_norm eps zero in training": (
        lambda m: m.nn.functional.batch_norm(m.ones(2, 3), None, None, training=True, eps=0.0),
        ValueError,
        "nor zero in training",
    ),
    "batch_norm eps in evaluation": (
        lambda m: m.nn.functional.batch_norm(m.ones(2, 3), m.zeros(3), m.ones(3), eps=-1.0),
        ValueError,
        "eps must not be negative",
    ),
    "cosine_similarity eps": (
        lambda m: m.cosine_similarity(m.ones(2, 3), m.ones(2, 3), eps=-1.0),
        RuntimeError,
        "eps must be non-negative",
    ),
    "native_batch_norm of nothing": (
        lambda m: m.native_batch_norm(m.ones(0, 3), None, None, None, None, True, 0.1, 1e-5),
        RuntimeError,
        "without elements",
    ),
    # --- shapes
    "prelu weight": (
        lambda m: m.prelu(m.ones(3, 4), m.ones(1, 4)),
        RuntimeError,
        "weight must be a scalar or 1-D",
    ),
    "flash attention widths": (
        lambda m: flash(m, (2, 2, 3, 4), (2, 2, 3, 5)),
        RuntimeError,
        "of one batch and width",
    ),
    "flash attention dimensions": (
        lambda m: flash(m, (2, 3, 4), (2, 3, 4)),
        RuntimeError,
        "of one batch and width",
    ),
    "rnn_relu state": (
        lambda m: rnn_relu(m, m.ones(3, 2, 4), m.ones(1, 3, 5)),
        RuntimeError,
        "rnn_relu.*initial state must have sizes",
    ),
    "rnn_relu features": (
        lambda m: rnn_relu(m, m.ones(3, 2, 6), m.ones(1, 2, 5)),
        RuntimeError,
        "rnn_relu.*weight of the input must have sizes",
    ),
    "broadcast": (lambda m: m.ones(2, 3) + m.ones(4), RuntimeError, "must match the size"),
    "broadcast in place": (
        lambda m: m.ones(3).add_(m.ones(2, 3)),
        RuntimeError,
        "doesn't match the broadcast shape",
    ),
    "mm inner": (lambda m: m.ones(2, 3) @ m.ones(2, 3), RuntimeError, "2x3 and 2x3"),
    "mm vector": (lambda m: m.mm(m.ones(3), m.ones(3, 3)), RuntimeError, "must be a matrix"),
    "bmm batch": (
        lambda m: m.bmm(m.ones(2, 3, 4), m.ones(3, 4, 5)),
        RuntimeError,
        "[2, 4, 5]|batch",
    ),
    "matmul 0-dim": (
        lambda m: m.matmul(m.ones(()), m.ones(3)),
        RuntimeError,
        "must have a dimension",
    ),
    "dot": (lambda m: m.dot(m.ones(2), m.ones(3)), RuntimeError, "2.*3"),
    "view": (
        lambda m: m.ones(6).view(4),
        RuntimeError,
        "shape '\\[4\\]' is invalid for input of size 6",
    ),
    "view strides": (lambda m: m.ones(2, 3).t().view(6), RuntimeError, "reshape"),
    "two -1": (lambda m: m.ones(6).view(-1, -1), RuntimeError, "-1 may stand for one dimension"),
    "reshape": (lambda m: m.ones(6).reshape(5), RuntimeError, "shape '\\[5\\]' is invalid"),
    "expand": (lambda m: m.ones(3).expand(4), RuntimeError, "must match the existing size"),
    "expand fewer": (lambda m: m.ones(2, 3).expand(3), RuntimeError, "each of self's 2 dimensions"),
    "cat shapes": (
        lambda m: m.cat([m.ones(2, 3), m.ones(2, 4)]),
        RuntimeError,
        "must match except",
    ),
    "cat nothing": (lambda m: m.cat([]), ValueError, "non-empty"),
    "stack shapes": (lambda m: m.stack([m.ones(2), m.ones(3)]), RuntimeError, "equal size"),
    "split size": (lambda m: m.ones(3).split([1, 1]), RuntimeError, "must sum to 3"),
    "chunk 0": (lambda m: m.ones(3).chunk(0), RuntimeError, "chunks must be positive"),
    "negative size": (lambda m: m.zeros(-1), RuntimeError, "negative dimension -1"),
    "huge size": (lambda m: m.empty(2**62, 4), RuntimeError, "overflow"),
    "permute": (lambda m: m.ones(2, 3).permute(0), RuntimeError, "each of self's 2 dimensions"),
    "permute twice": (lambda m: m.ones(2, 3).permute(0, 0), RuntimeError, "must be different"),
    "unflatten": (
        lambda m: m.ones(6).unflatten(0, [4, 2]),
        RuntimeError,
        "don't multiply up|multiply",
    ),
    "as_strided": (
        lambda m: m.ones(3).as_strided((4,), (1,)),
        RuntimeError,
        "out of bounds for storage",
    ),
    "conv channels": (
        lambda m: m.conv2d(m.ones(1, 3, 5, 5), m.ones(2, 4, 3, 3)),
        RuntimeError,
        "to have 4 channels",
    ),
    "conv kernel": (
        lambda m: m.conv2d(m.ones(1, 3, 2, 2), m.ones(2, 3, 3, 3)),
        RuntimeError,
        "Kernel size can't be greater",
    ),
    "linear": (
        lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 5)),
        RuntimeError,
        "2x3 and 5x4",
    ),
    # --- dimensions and indices
    "sum dim": (
        lambda m: m.ones(2).sum(2),
        IndexError,
        "Dimension out of range .*\\[-1, 0\\], but got 2",
    ),
    "transpose": (lambda m: m.ones(2, 3).transpose(0, 2), IndexError, "Dimension out of range"),
    "squeeze": (lambda m: m.ones(2).squeeze(-3), IndexError, "Dimension out of range"),
    "unsqueeze": (lambda m: m.ones(2).unsqueeze(3), IndexError, "Dimension out of range"),
    "index": (
        lambda m: m.ones(3)[3],
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "index 0-dim": (lambda m: m.ones(())[0], IndexError, "0-dim tensor"),
    "too many indices": (lambda m: m.ones(3)[0, 0], IndexError, "too many indices"),
    "index list": (lambda m: m.ones(3)[[5]], IndexError, "out of bounds"),
    "index by float": (
        lambda m: m.ones(3)[m.ones(2)],
        IndexError,
        "int64, int32, uint8 or bool; got float32",
    ),
    "mask shape": (
        lambda m: m.ones(3)[m.ones(2, dtype=m.bool)],
        IndexError,
        "mask .2. for tensor .3.",
    ),
    "index shapes": (lambda m: m.ones(3, 3)[[0, 1], [0, 1, 2]], IndexError, "shape mismatch"),
    "step": (lambda m: m.ones(3)[::-1], ValueError, "step must be greater than zero"),
    "index by text": (lambda m: m.ones(3)["a"], (IndexError, TypeError), "."),
    "select": (lambda m: m.ones(3).select(0, 4), IndexError, "out of range"),
    "narrow": (lambda m: m.ones(3).narrow(0, 2, 2), RuntimeError, "exceeds dimension size"),
    "gather": (lambda m: m.gather(m.ones(3), 0, m.tensor([3])), RuntimeError, "out of bounds"),
    "gather dtype": (lambda m: m.gather(m.ones(3), 0, m.ones(1)), RuntimeError, "int64"),
    "index_select": (
        lambda m: m.index_select(m.ones(3), 0, m.tensor([7])),
        IndexError,
        "out of range",
    ),
    "set shape": (
        lambda m: m.ones(3).__setitem__(slice(0, 2), m.ones(3)),
        RuntimeError,
        "must match|shape mismatch",
    ),
    "embedding": (
        lambda m: m.nn.functional.embedding(m.tensor([9]), m.ones(3, 2)),
        IndexError,
        "index out of range",
    ),
    # --- dtypes
    "in-place cast": (lambda m: m.ones(3, dtype=m.int64).add_(1.5), RuntimeError, "can't be cast"),
    "out= cast": (
        lambda m: m.add(m.ones(3), 1, out=m.ones(3, dtype=m.int64)),
        RuntimeError,
        "can't be cast",
    ),
    "mm dtypes": (
        lambda m: m.ones(2, 2) @ m.ones(2, 2, dtype=m.float64),
        RuntimeError,
        "one dtype",
    ),
    "bool minus": (
        lambda m: m.ones(2, dtype=m.bool) - m.ones(2, dtype=m.bool),
        RuntimeError,
        "bool tensor|bitwise_xor|logical_xor",
    ),
    "negative of bool": (lambda m: -m.ones(2, dtype=m.bool), RuntimeError, "bool tensor"),
    "int requires grad": (
        lambda m: m.ones(2, dtype=m.int64).requires_grad_(),
        RuntimeError,
        "floating point",
    ),
    "integer power": (lambda m: m.ones(2, dtype=m.int64) ** -1, RuntimeError, "negative integer"),
    "linear dtypes": (
        lambda m: m.nn.Linear(2, 2)(m.ones(2, dtype=m.float64)),
        RuntimeError,
        "one dtype",
    ),
    "complex to float": (lambda m: float(m.tensor(1 + 1j)), RuntimeError, "without overflow"),
    # --- devices
    "no such device": (lambda m: m.ones(2, device="nothing"), RuntimeError, "nothing"),
    "meta with cpu": (lambda m: m.ones(2, device="meta") + m.ones(2), RuntimeError, "."),
    "read meta": (lambda m: m.ones(2, device="meta").tolist(), NotImplementedError, "meta"),
    "item of meta": (lambda m: m.ones((), device="meta").item(), RuntimeError, "meta"),
    # --- arguments
    "missing": (lambda m: m.add(m.ones(2)), TypeError, "add\\(\\)"),
    "unexpected": (lambda m: m.add(m.ones(2), 1, bogus=2), TypeError, "bogus"),
    "text for a tensor": (lambda m: m.add("x", 1), TypeError, "str"),
    "list for a tensor": (lambda m: m.exp([1.0]), TypeError, "Tensor.*list"),
    "float for a size": (lambda m: m.zeros(2.5), TypeError, "float"),
    "ragged": (lambda m: m.tensor([[1], [2, 3]]), ValueError, "length"),
    "tensor of text": (lambda m: m.tensor(["a"]), ValueError, "too many dimensions"),
    "large number": (lambda m: m.tensor(2**70), ValueError, "[Oo]verflow"),
    "no dtype": (lambda m: m.ones(2).to("x"), RuntimeError, "x"),
    "item": (lambda m: m.ones(2).item(), RuntimeError, "2 elements"),
    "truth": (lambda m: bool(m.ones(2)), RuntimeError, "ambiguous"),
    "truth of none": (lambda m: bool(m.ones(0)), RuntimeError, "ambiguous"),
    "len 0-dim": (lambda m: len(m.ones(())), TypeError, "0-d"),
    "int of several": (lambda m: int(m.ones(2)), (RuntimeError, ValueError), "."),
    "as an index": (lambda m: [1, 2][m.ones(())], TypeError, "holds one integer"),
    "arange": (lambda m: m.arange(0, 5, -1), RuntimeError, "from start to end"),
    "arange step": (lambda m: m.arange(0, 5, 0), RuntimeError, "nonzero"),
    "linspace": (lambda m: m.linspace(0, 1, -1), RuntimeError, "must not be negative"),
    "full without size": (lambda m: m.full(1), TypeError, "full\\(\\)"),
    "conv groups": (
        lambda m: m.conv2d(m.ones(1, 3, 5, 5), m.ones(2, 3, 3, 3), groups=2),
        RuntimeError,
        "6 channels",
    ),
    # --- gradients
    "backward twice": (lambda m: backward_twice(m), RuntimeError, "second time"),
    "backward of many": (
        lambda m: m.ones(2, requires_grad=True).mul(2).backward(),
        RuntimeError,
        "only for scalar outputs",
    ),
    "no graph": (lambda m: m.ones(1).backward(), RuntimeError, "does not require grad"),
    "leaf in place": (
        lambda m: m.ones(1, requires_grad=True).add_(1),
        RuntimeError,
        "leaf Variable",
    ),
    "numpy of grad": (lambda m: m.ones(1, requires_grad=True).numpy(), RuntimeError, "detach"),
    "changed since": (
        lambda m: changed_since_saved(m),
        RuntimeError,
        "modified by an inplace operation",
    ),
    "unused input": (lambda m: unused_input(m), RuntimeError, "not have been used|allow_unused"),
    "grad of wrong shape": (
        lambda m: m.ones(2, requires_grad=True).mul(2).backward(m.ones(3)),
        RuntimeError,
        "shape",
    ),
    "weight of a loss asks for a gradient": (
        lambda f: f.nn.functional.binary_cross_entropy(
            f.rand(3), f.rand(3), f.rand(3, requires_grad=True)
        ),
        RuntimeError,
        "'weight' has no derivative",
    ),
    "out= is an input of masked_select": (
        lambda f: (lambda x: f.masked_select(x, x > 0, out=x))(f.ones(3)),
        RuntimeError,
        "share memory",
    ),
    "out= of index_select overlaps itself": (
        lambda f: f.index_select(f.ones(3, 2), 1, f.tensor([0, 1]), out=f.empty(2).expand(3, 2)),
        RuntimeError,
        "one memory location twice",
    ),
    "out= of multinomial is not int64": (
        lambda f: f.multinomial(f.ones(1, 2), 2, out=f.empty(1, 2)),
        RuntimeError,
        "out= must have dtype int64",
    ),
}


def backward_twice(m):
    """The graph is gone after the first time."""
    y = (m.ones(1, requires_grad=True) * 2).exp().sum()
    y.backward()
    y.backward()


def changed_since_saved(m):
    """exp saves its result."""
    y = m.ones(1, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()


def unused_input(m):
    """A gradient for what had no part in the result."""
    x = m.ones(1, requires_grad=True)
    m.autograd.grad((x * 2).sum(), m.ones(1, requires_grad=True))


def flash(m, query, key):
    """The operator by blocks, with values like the keys."""
    call = m.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return call(m.ones(query), m.ones(key), m.ones(key))


def rnn_relu(m, input, state):
    """A layer of 4 inputs and 5 states."""
    weights = [m.ones(5, 4), m.ones(5, 5), m.ones(5), m.ones(5)]
    return m.rnn_relu(input, state, weights, True, 1, 0.0, False, False, False)
