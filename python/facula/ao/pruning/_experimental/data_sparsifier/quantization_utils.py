"""Embeddings of a model, made sparse and quantized after training."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn
from facula.ao.quantization import convert, float_qparams_weight_only_qconfig, prepare

SUPPORTED_MODULES = {nn.Embedding, nn.EmbeddingBag}


def _fetch_all_embeddings(model):
    """Names and modules of a model's embeddings."""
    return [(name, m) for name, m in model.named_modules() if type(m) in SUPPORTED_MODULES]


def post_training_sparse_quantize(
    model, data_sparsifier_class, sparsify_first=True, select_embeddings=None, **sparse_config
):
    """Make the embeddings of a model sparse and quantize them, in place.

    Args:
        model (Module). data_sparsifier_class (type): a `BaseDataSparsifier`.
        sparsify_first (bool): zeros before quantization; else in the quantized weights, where a
            zero is the nearest number that the row can have.
        select_embeddings (list of Module): which ones; None: all.
        **sparse_config: options of the sparsifier.

    Raises:
        AssertionError: a module that is no embedding.
    """
    embeddings = _selected(model, select_embeddings)
    sparsifier = data_sparsifier_class(**sparse_config)
    if sparsify_first:
        for name, module in embeddings:
            sparsifier.add_data(name.replace(".", "_"), module)
        _squashed_step(sparsifier)
        for name, module in embeddings:
            sparse = sparsifier.get_data(name.replace(".", "_"), return_original=False)
            module.weight = nn.Parameter(sparse.detach())
        _quantize(model, embeddings)
        return
    _quantize(model, embeddings)
    quantized = [(name, fqn_to_module(model, name)) for name, _ in embeddings]
    for name, module in quantized:
        sparsifier.add_data(name.replace(".", "_"), module.weight().dequantize())
    _squashed_step(sparsifier)
    for name, module in quantized:
        sparse = sparsifier.get_data(name.replace(".", "_"), return_original=False)
        like = module.weight()
        weight = facula.quantize_per_channel(
            sparse,
            like.q_per_channel_scales(),
            like.q_per_channel_zero_points(),
            like.q_per_channel_axis(),
            like.dtype,
        )
        module.set_weight(weight)


def _selected(model, modules):
    if modules is None:
        return _fetch_all_embeddings(model)
    if any(type(module) not in SUPPORTED_MODULES for module in modules):
        raise AssertionError(
            "post_training_sparse_quantize(): expected Embedding or EmbeddingBag modules; "
            f"got {[type(module).__name__ for module in modules]}"
        )
    return [(module_to_fqn(model, module), module) for module in modules]


def _squashed_step(sparsifier):
    sparsifier.step()
    sparsifier.squash_mask()


def _quantize(model, embeddings):
    for _, module in embeddings:
        module.qconfig = float_qparams_weight_only_qconfig
    prepare(model, inplace=True)
    convert(model, inplace=True)
