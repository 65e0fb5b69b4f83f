"""Decompositions and solutions: batches of small matrices, and single ones of hundreds of rows."""

from bench.kernels.common import In, Table

BATCHES = ((1000, 3), (1000, 8), (1000, 16), (200, 32))
SINGLE = (128, 512)


def positive(m, x):
    """Symmetric positive definite matrices from any."""
    return x @ x.mT + x.shape[-1] * m.eye(x.shape[-1], dtype=x.dtype)


def regular(m, x):
    """Matrices that are far from singular: elements are at most 2."""
    return x + 4 * x.shape[-1] * m.eye(x.shape[-1], dtype=x.dtype)


# How each is called; the matrices are made outside of what is timed.
FACTORS = {
    "cholesky": (positive, lambda m, A: m.linalg.cholesky(A)),
    "lu_factor": (regular, lambda m, A: m.linalg.lu_factor(A)[0]),
    "qr": (regular, lambda m, A: m.linalg.qr(A)[1].abs()),
    "inv": (regular, lambda m, A: m.linalg.inv(A)),
    "det": (lambda m, x: x / 2, lambda m, A: m.linalg.det(A)),
    "eigvalsh": (positive, lambda m, A: m.linalg.eigvalsh(A)),
    "svdvals": (regular, lambda m, A: m.linalg.svdvals(A)),
    "matrix_exp": (lambda m, x: x / 8, lambda m, A: m.linalg.matrix_exp(A)),
}
SOLUTIONS = {
    "solve": (regular, lambda m, A, b: m.linalg.solve(A, b)),
    "solve_triangular": (
        regular,
        lambda m, A, b: m.linalg.solve_triangular(A, b, upper=True),
    ),
    "cholesky_solve": (positive, lambda m, A, b: m.cholesky_solve(b, A)),
}


def first_made(prepare):
    """Prepares the first input as `prepare` does, and leaves the others."""
    return lambda m, x, *others: (prepare(m, x), *others)


def decompositions():
    table = Table("linalg")
    for dtype in ("float32", "float64"):
        for count, n in BATCHES:
            for label, (prepare, function) in FACTORS.items():
                slow = label in ("eigvalsh", "svdvals", "matrix_exp")
                table.add(label, [In((count, n, n), dtype)], function,
                          prepare=first_made(prepare), full=slow or dtype == "float64")  # fmt: skip
            for label, (prepare, function) in SOLUTIONS.items():
                inputs = [In((count, n, n), dtype), In((count, n, 4), dtype)]
                table.add(
                    label, inputs, function, prepare=first_made(prepare), full=dtype == "float64"
                )
    for n in SINGLE:
        for label, (prepare, function) in FACTORS.items():
            table.add(label, [In((n, n))], function, prepare=first_made(prepare), full=n > 128)
        for label, (prepare, function) in SOLUTIONS.items():
            inputs = [In((n, n)), In((n, 4))]
            table.add(label, inputs, function, prepare=first_made(prepare), full=n > 128)
    return table.cases
