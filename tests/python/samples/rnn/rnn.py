"""Recurrent networks and packed sequences."""

from samples.common import Error, Op, Sample, T

X, H = T(4, 3, 2), T(1, 3, 5)


def params(gates, layers=1, bias=True, inputs=2, hidden=5):
    """Weights and biases of all layers, small enough that gates stay apart from their ends."""
    made = []
    for layer in range(layers):
        width = inputs if layer == 0 else hidden
        made += [
            T(gates * hidden, width, low=-1, high=1),
            T(gates * hidden, hidden, low=-1, high=1),
        ]
        if bias:
            made += [T(gates * hidden, low=-1, high=1), T(gates * hidden, low=-1, high=1)]
    return made


def batch_sizes(n, steps):
    """As many sequences at each step.

    PyTorch reads them without their strides; one dimension "transposed" is contiguous in all
    layouts.
    """
    return T(steps, dtype="int64", low=n, high=n, layout="transposed")


def network(gates, state, states):
    """Samples of one operator: padded, two layers, both directions, without biases, packed."""
    tail = (0.0, False)
    two = [T(2, *s.shape[1:]) for s in states]
    return [
        Sample(X, state(states), params(gates), True, 1, *tail, False, False),
        Sample(T(3, 4, 2), state(states), params(gates), True, 1, *tail, False, True),
        Sample(X, state(two), params(gates, 2), True, 2, *tail, False, False),
        Sample(X, state(two), params(gates) + params(gates), True, 1, *tail, True, False),
        Sample(X, state(states), params(gates, bias=False), False, 1, *tail, False, False),
    ]


def packed(gates, state, states):
    """Samples over packed rows, in one direction and both."""
    two = [T(2, *s.shape[1:]) for s in states]
    rows, sizes, weights = T(6, 2), batch_sizes(3, 2), params(gates)
    return [
        Sample(rows, sizes, state(states), weights, True, 1, 0.0, False, False),
        Sample(rows, sizes, state(two), weights + weights, True, 1, 0.0, False, True),
    ]


def one(states):
    return states[0]


def cell(gates):
    return [T(gates * 5, 2), T(gates * 5, 5)], [T(gates * 5), T(gates * 5)]


def cells(gates, state):
    """Samples of one operator of single steps."""
    weights, biases = cell(gates)
    return [
        Sample(T(3, 2), state, *weights, *biases),
        Sample(T(3, 2), state, *weights),
    ]


WIDE = [
    Error(RuntimeError, "input_size", Sample(T(3, 4), T(3, 5), T(5, 2), T(5, 5))),
    Error(RuntimeError, "batch size", Sample(T(2, 2), T(3, 5), T(5, 2), T(5, 5))),
    Error(RuntimeError, "2D", Sample(T(2), T(3, 5), T(5, 2), T(5, 5))),
]

NETWORKS = {
    "lstm": (4, list, [H, H]),
    "gru": (3, one, [H]),
    "rnn_tanh": (1, one, [H]),
    "rnn_relu": (1, one, [H]),
}

OPS = [
    *(Op(name, network(*row), method=False, tolerance=4) for name, row in NETWORKS.items()),
    # Batch sizes and lengths are data, which meta tensors lack.
    *(
        Op(name, packed(*row), method=False, tolerance=4, layouts=False)
        for name, row in NETWORKS.items()
    ),
    Op("lstm_cell", samples=cells(4, [T(3, 5), T(3, 5)]), method=False),
    Op("gru_cell", samples=cells(3, T(3, 5)), method=False),
    Op("rnn_tanh_cell", samples=cells(1, T(3, 5)), errors=WIDE, method=False),
    Op("rnn_relu_cell", samples=cells(1, T(3, 5)), errors=WIDE, method=False),
    Op(
        "_pack_padded_sequence",
        samples=[
            Sample(T(4, 3, 2), batch_sizes(4, 3), False),
            Sample(T(3, 4, 2), batch_sizes(2, 3), True),
            Sample(T(4, 3), batch_sizes(3, 3), False),
        ],
        errors=[
            Error(RuntimeError, "batch_size", Sample(T(4, 3, 2), batch_sizes(4, 2), False)),
            Error(RuntimeError, "greater than 0", Sample(T(4, 3), batch_sizes(0, 3), False)),
            Error(RuntimeError, "empty", Sample(T(4, 0), batch_sizes(1, 0), False)),
        ],
        dtypes="float int",
        method=False,
        layouts=False,
    ),
    Op(
        "_pad_packed_sequence",
        samples=[
            Sample(T(6, 2), batch_sizes(3, 2), False, 0, -1),
            Sample(T(6), batch_sizes(2, 3), True, 1.5, 5),
        ],
        dtypes="float",
        method=False,
        layouts=False,
    ),
    Op(
        "_C._nn.pad_sequence",
        samples=[
            Sample([T(2, 3), T(4, 3), T(1, 3)]),
            Sample([T(2), T(3)], True, 2.0, "left"),
        ],
        dtypes="float int",
        method=False,
    ),
]
