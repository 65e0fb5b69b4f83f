"""Encoders, decoders and attention layers in both libraries: values, gradients, masks, states."""

import copy
import warnings

import facula
import pytest
import torch

WIDTH, HEADS, SRC, TGT, BATCH = 8, 2, 5, 4, 3
LAYERS = [
    {},
    {"batch_first": True},
    {"norm_first": True},
    {"activation": "gelu", "bias": False},
    {"layer_norm_eps": 0.1, "batch_first": True, "norm_first": True},
]


def causal(lib, n):
    return lib.nn.Transformer.generate_square_subsequent_mask(n, dtype=lib.float64)


def padding(lib, n):
    """The last step of the first sequence is padding."""
    mask = lib.zeros(BATCH, n, dtype=lib.bool)
    mask[0, -1] = True
    return mask


MASKS = {
    "none": lambda lib: {},
    "causal": lambda lib: {"mask": causal(lib, SRC)},
    "causal, said so": lambda lib: {"mask": causal(lib, SRC), "is_causal": True},
    "bool": lambda lib: {"mask": lib.ones(SRC, SRC, dtype=lib.bool).triu(1)},
    "padding": lambda lib: {"src_key_padding_mask": padding(lib, SRC)},
    "both": lambda lib: {
        "mask": causal(lib, SRC).bool(),
        "src_key_padding_mask": padding(lib, SRC),
    },
}
DECODER_MASKS = {
    "none": lambda lib: {},
    "causal": lambda lib: {"tgt_mask": causal(lib, TGT)},
    "all": lambda lib: {
        "tgt_mask": causal(lib, TGT),
        "memory_mask": lib.zeros(TGT, SRC, dtype=lib.float64),
        "tgt_key_padding_mask": padding(lib, TGT).double(),
        "memory_key_padding_mask": padding(lib, SRC).double(),
    },
}


def quietly(call):
    """The result, without PyTorch's warnings about nested tensors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def inputs(lib, batch_first):
    lib.manual_seed(2)
    shapes = [(SRC, BATCH, WIDTH), (TGT, BATCH, WIDTH)]
    if batch_first:
        shapes = [(b, s, w) for s, b, w in shapes]
    return [lib.randn(*s, dtype=lib.float64).requires_grad_() for s in shapes]


def results_of(lib, model, output, leaves):
    """Output and gradients as nested lists."""
    leaves = [*leaves, *model.parameters()]
    grads = lib.autograd.grad((output * output).sum(), leaves, allow_unused=True)
    return [t for t in (output, *grads) if t is not None]


def assert_close(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a = torch.tensor(a.tolist(), dtype=torch.float64).reshape(a.shape)
        torch.testing.assert_close(a, b.detach(), rtol=1e-9, atol=1e-9)


def encoder(lib, options):
    lib.manual_seed(1)
    layer = lib.nn.TransformerEncoderLayer(WIDTH, HEADS, 16, dtype=lib.float64, **options)
    norm = lib.nn.LayerNorm(WIDTH, dtype=lib.float64)
    return quietly(lambda: lib.nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False))


def decoder(lib, options):
    lib.manual_seed(1)
    layer = lib.nn.TransformerDecoderLayer(WIDTH, HEADS, 16, dtype=lib.float64, **options)
    return lib.nn.TransformerDecoder(layer, 2)


def transformer(lib, options):
    lib.manual_seed(1)
    sizes = (WIDTH, HEADS, 1, 2, 16)
    return quietly(lambda: lib.nn.Transformer(*sizes, dtype=lib.float64, **options))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_encoder(options, masks, training):
    """Values and gradients; with dropout where it trains."""
    found = []
    for lib in (facula, torch):
        model = encoder(lib, options).train(training)
        src, _ = inputs(lib, options.get("batch_first"))
        output = quietly(lambda model=model, src=src, lib=lib: model(src, **MASKS[masks](lib)))
        found.append(results_of(lib, model, output, [src]))
    assert_close(*found)


@pytest.mark.parametrize("masks", DECODER_MASKS)
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_decoder(options, masks):
    found = []
    for lib in (facula, torch):
        model = decoder(lib, options)
        memory, tgt = inputs(lib, options.get("batch_first"))
        output = model(tgt, memory, **DECODER_MASKS[masks](lib))
        found.append(results_of(lib, model, output, [memory, tgt]))
    assert_close(*found)


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_transformer(options):
    found = []
    for lib in (facula, torch):
        model = transformer(lib, options)
        src, tgt = inputs(lib, options.get("batch_first"))
        output = quietly(
            lambda model=model, src=src, tgt=tgt, lib=lib: model(
                src, tgt, tgt_mask=causal(lib, TGT), tgt_is_causal=True
            )
        )
        found.append(results_of(lib, model, output, [src, tgt]))
    assert_close(*found)


@pytest.mark.parametrize("make", [encoder, decoder, transformer])
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_state_dict_and_repr(make, options):
    """Names, order and first values of parameters; repr; copies."""
    ours, theirs = make(facula, options), make(torch, options)
    assert repr(ours) == repr(theirs)
    assert [(k, v.tolist()) for k, v in ours.state_dict().items()] == [
        (k, v.tolist()) for k, v in theirs.state_dict().items()
    ]
    assert repr(copy.deepcopy(ours)) == repr(ours)


def test_single_sequences():
    """Without a batch."""
    found = []
    for lib in (facula, torch):
        model = transformer(lib, {}).eval()
        src, tgt = (t[:, 0] for t in inputs(lib, False))
        found.append([model(src, tgt)])
    assert_close(*found)


ERRORS = {
    "activation": lambda nn, lib: nn.TransformerEncoderLayer(4, 2, 8, activation="tanh"),
    "heads": lambda nn, lib: nn.TransformerEncoderLayer(4, 3, 8),
    "batches": lambda nn, lib: nn.Transformer(4, 2, 1, 1, 8)(lib.ones(3, 2, 4), lib.ones(3, 3, 4)),
    "widths": lambda nn, lib: nn.Transformer(4, 2, 1, 1, 8)(lib.ones(3, 2, 4), lib.ones(3, 2, 5)),
    "hint without mask": lambda nn, lib: nn.TransformerEncoderLayer(4, 2, 8)(
        lib.ones(3, 2, 4), is_causal=True
    ),
    "int mask": lambda nn, lib: nn.TransformerEncoderLayer(4, 2, 8)(
        lib.ones(3, 2, 4), src_mask=lib.ones(3, 3, dtype=lib.int32)
    ),
    "4-D": lambda nn, lib: nn.TransformerEncoderLayer(4, 2, 8)(lib.ones(3, 2, 4, 4)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    """The same classes."""
    found = []
    for lib in (facula, torch):
        with pytest.raises(Exception) as info:
            quietly(lambda lib=lib: ERRORS[name](lib.nn, lib))
        found.append(next(c for c in info.type.__mro__ if c.__module__ == "builtins"))
    assert found[0] is found[1]
