"""Special functions: error functions, Bessel's, Airy's, gamma's kin, in both precisions."""

from bench.kernels.common import In, K, Table

# The range in which each is used; some have branches at its ends.
UNARY = {
    "erfinv": (-0.999, 0.999),
    "ndtr": (-4.0, 4.0),
    "ndtri": (0.001, 0.999),
    "log_ndtr": (-8.0, 4.0),
    "erfcx": (-2.0, 8.0),
    "entr": (0.0, 2.0),
    "logit": (0.001, 0.999),
    "digamma": (0.1, 20.0),
    "i0": (-10.0, 10.0),
    "i0e": (-10.0, 10.0),
    "i1": (-10.0, 10.0),
    "i1e": (-10.0, 10.0),
    "bessel_j0": (0.1, 20.0),
    "bessel_y1": (0.1, 20.0),
    "modified_bessel_k0": (0.1, 20.0),
    "scaled_modified_bessel_k1": (0.1, 20.0),
    "spherical_bessel_j0": (0.1, 20.0),
    "airy_ai": (-8.0, 4.0),
}
BINARY = {"gammainc": (0.1, 8.0), "zeta": (1.5, 6.0), "xlog1py": (0.1, 2.0)}


def special():
    """Functions of facula.special over 16 K elements."""
    table = Table("special")
    for dtype in ("float32", "float64"):
        for name, (low, high) in UNARY.items():
            one = In((16 * K,), dtype, low=low, high=high)
            table.add(name, [one], lambda m, x, name=name: getattr(m.special, name)(x))
        for name, (low, high) in BINARY.items():
            both = [In((16 * K,), dtype, low=low, high=high)] * 2
            table.add(name, both, lambda m, x, y, name=name: getattr(m.special, name)(x, y))
    return table.cases
