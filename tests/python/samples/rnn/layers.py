"""Samples of src/ops/rnn: one layer by its own operator, and the backward of packing."""

from samples.common import Op, Sample, T, aten
from samples.rnn.rnn import batch_sizes

X, STATE = T(3, 2, 4), T(2, 5)
WEIGHTS = T(20, 4, low=-1, high=1), T(20, 5, low=-1, high=1)
BIASES = T(20, low=-1, high=1), T(20, low=-1, high=1)
LSTM = 2

OPS = [
    # The last result is scratch memory, of another size in PyTorch.
    Op(
        "mkldnn_rnn_layer",
        [
            Sample(X, *WEIGHTS, *BIASES, STATE, STATE, False, [], LSTM, 5, 1, True, False, False, t)
            for t in (False,)
        ],
        dtypes="float32",
        grad=False,
        tolerance=8,
        beyond_torch="it has no half types here",
    ),
    aten(
        "_pack_padded_sequence_backward",
        [
            Sample(T(6, 4), [2, 3, 4], batch_sizes(3, 2), False),
            Sample(T(6, 4), [3, 2, 4], batch_sizes(3, 2), True),
        ],
        dtypes="full",
    ),
]
