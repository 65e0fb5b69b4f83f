"""Windows of signals."""

from bench.kernels.common import In, K, Table

WINDOWS = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 100.0},
    "gaussian": {"std": 100.0},
    "general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]},
    "hamming": {},
    "hann": {"sym": False},
    "kaiser": {"beta": 12.0},
    "nuttall": {},
}


def windows():
    """Windows of 512 and of 16 K numbers; the input only names the length."""
    table = Table("signal")
    for n in (512, 16 * K):
        for name, options in WINDOWS.items():

            def make(m, x, name=name, options=options):
                return getattr(m.signal.windows, name)(x.shape[0], **options)

            table.add(name, [In((n,))], make)
    return table.cases
