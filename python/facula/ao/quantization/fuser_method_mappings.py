"""Which rows of modules become one, and how."""

from __future__ import annotations

from facula import nn
from facula.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_linear_bn",
    "fuse_convtranspose_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]

_BY_DIM = {nn.Conv1d: "1d", nn.Conv2d: "2d", nn.Conv3d: "3d"}


def _intrinsic(kind):
    from facula.ao.nn import intrinsic

    return getattr(intrinsic, kind)


def _check_modes(layer, bn, what):
    if layer.training != bn.training:
        raise AssertionError(f"{what} both must be in the same mode (train or eval).")


def _check_trainable_norm(channels, bn, layer):
    if bn.num_features != channels:
        raise AssertionError(
            f"Output channel of {type(layer).__name__} must match num_features of "
            f"{type(bn).__name__}; got {channels} and {bn.num_features}"
        )
    if not bn.affine:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(
            f"Only support fusing {type(bn).__name__} with tracking_running_stats set to True"
        )


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution and its normalization as one.

    Args:
        is_qat (bool): whether the result is to be trained; else the weight takes the norm up.

    Raises:
        AssertionError: the two are in different modes, or do not fit.
    """
    _check_modes(conv, bn, "Conv and BN")
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_trainable_norm(conv.out_channels, bn, conv)
    dims = _BY_DIM.get(type(conv))
    if dims is None:
        raise NotImplementedError(
            f"fuse_conv_bn(): no module trains {type(conv).__name__} with its normalization"
        )
    return _intrinsic(f"ConvBn{dims}")(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """A convolution, its normalization and a ReLU as one; arguments as fuse_conv_bn's.

    Raises:
        AssertionError: the three are in different modes, or do not fit.
    """
    if not conv.training == bn.training == relu.training:
        raise AssertionError(
            "fuse_conv_bn_relu(): expected modules all in training mode or all in eval mode"
        )
    dims = _BY_DIM.get(type(conv))
    if dims is None:
        raise NotImplementedError(
            f"fuse_conv_bn_relu(): no module joins {type(conv).__name__} and what follows"
        )
    if not is_qat:
        return _intrinsic(f"ConvReLU{dims}")(fuse_conv_bn_eval(conv, bn), relu)
    _check_trainable_norm(conv.out_channels, bn, conv)
    return _intrinsic(f"ConvBnReLU{dims}")(conv, bn, relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer and its normalization as one; arguments as fuse_conv_bn's.

    Raises:
        AssertionError: the two are in different modes, or do not fit.
    """
    _check_modes(linear, bn, "Linear and BN")
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_trainable_norm(linear.out_features, bn, linear)
    return _intrinsic("LinearBn1d")(linear, bn)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """A transposed convolution with its normalization in the weight.

    Raises:
        AssertionError: the two are in different modes.
        Exception: the result is to be trained, which is not supported.
    """
    _check_modes(convt, bn, "ConvTranspose and BN")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _pair(kind):
    def fuse(is_qat, first, second):
        return _intrinsic(kind)(first, second)

    return fuse


_FUSERS = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _pair("LinearReLU"),
    (nn.BatchNorm2d, nn.ReLU): _pair("BNReLU2d"),
    (nn.BatchNorm3d, nn.ReLU): _pair("BNReLU3d"),
}
for _conv, _dims in _BY_DIM.items():
    _norm = getattr(nn, f"BatchNorm{_dims}")
    _FUSERS[_conv, _norm] = fuse_conv_bn
    _FUSERS[_conv, _norm, nn.ReLU] = fuse_conv_bn_relu
    _FUSERS[_conv, nn.ReLU] = _pair(f"ConvReLU{_dims}")
    _FUSERS[getattr(nn, f"ConvTranspose{_dims}"), _norm] = fuse_convtranspose_bn


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """The function that makes one module of several.

    Args:
        op_list (tuple): of classes. additional_fuser_method_mapping (dict): further functions, by
            such tuples.

    Raises:
        AssertionError: there is none.

    Example:
        >>> get_fuser_method((nn.Conv1d, nn.BatchNorm1d)).__name__
        'fuse_conv_bn'
    """
    found = {**_FUSERS, **(additional_fuser_method_mapping or {})}.get(op_list)
    if found is None:
        raise AssertionError(f"fuse_modules(): no function fuses {op_list}")
    return found


def get_fuser_method_new(op_pattern, fuser_method_mapping):
    """The function for a pattern, in a mapping from patterns.

    Raises:
        AssertionError: there is none.
    """
    found = fuser_method_mapping.get(op_pattern)
    if found is None:
        raise AssertionError(f"fuse_modules(): no function fuses {op_pattern}")
    return found
