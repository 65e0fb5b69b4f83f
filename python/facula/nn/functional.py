"""Functions of neural networks: activations, convolutions, pooling, norms, losses.

A name is looked up at its first use and kept here. What is a plain operator is the operator itself,
so that a call costs no Python frame.
"""

from __future__ import annotations

from facula import _C, _missing

_C._lazy_module(__name__)

_FILES = {
    "activation": "celu elu glu gumbel_softmax hardsigmoid hardswish hardtanh leaky_relu "
    "log_softmax mish relu relu6 rrelu selu sigmoid silu softmax softmin softsign "
    "tanh tanhshrink threshold _get_softmax_dim _threshold",
    "attention": "multi_head_attention_forward _canonical_mask _check_key_padding_mask "
    "_in_projection _in_projection_packed _mha_shape_check _none_or_dtype",
    "dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "grouped": "grouped_mm",
    "loss": "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy ctc_loss "
    "gaussian_nll_loss huber_loss kl_div l1_loss linear_cross_entropy mse_loss nll_loss "
    "poisson_nll_loss smooth_l1_loss soft_margin_loss",
    "margin": "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss triplet_margin_loss "
    "triplet_margin_with_distance_loss",
    "norm": "batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm "
    "_verify_batch_size _verify_spatial_size",
    "pooling": "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d adaptive_max_pool1d_with_indices "
    "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
    "fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices "
    "fractional_max_pool3d_with_indices lp_pool1d lp_pool2d lp_pool3d max_pool1d "
    "max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d _unpool_output_size",
    "scaled": "scaled_mm ScalingType SwizzleType",
    "sparse": "embedding embedding_bag _no_grad_embedding_renorm_",
    "vision": "affine_grid fold grid_sample interpolate pad unfold upsample upsample_bilinear "
    "upsample_nearest",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
# Public names that stand for an operator; where the two names differ, "name=operator".
_OPERATORS = (
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d "
    "conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity "
    "elu_ gelu hardshrink hardtanh_ leaky_relu_ linear logsigmoid=log_sigmoid "
    "native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu "
    "relu_ rrelu_ scaled_dot_product_attention selu_ softplus softshrink threshold_"
)
_OPERATOR_OF = dict(entry.partition("=")[::2] for entry in _OPERATORS.split())


def _operator(name):
    import facula

    found = getattr(facula._C._nn, name, None)
    return getattr(facula, name) if found is None else found


def __getattr__(name):
    if name in _FILE_OF:
        from importlib import import_module

        module = import_module(f"facula.nn._functional.{_FILE_OF[name]}")
        value = getattr(module, name)
        is_function = not name.startswith("_") and not isinstance(value, type)
        if is_function and not hasattr(value, "_by_method"):
            value = _C.overridable(value, __name__, *getattr(value, "_direct", ()))
    elif name in _OPERATOR_OF:
        value = _operator(_OPERATOR_OF[name] or name)
    else:
        raise _missing.attribute(__name__, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_OPERATOR_OF})
