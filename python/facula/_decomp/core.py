"""The operators that `core_aten_decompositions` takes apart, by name."""

from __future__ import annotations

_NAMES = """
addbmm addcdiv addcmul addmv addr aminmax baddbmm binary_cross_entropy
binary_cross_entropy_backward celu clamp_max clamp_min count_nonzero deg2rad diagonal_backward dot
elu elu_backward embedding_dense_backward empty_like eye fill frac gelu_backward glu glu_backward
hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh_backward heaviside
huber_loss huber_loss_backward index_add index_copy leaky_relu_backward lerp linspace
log_sigmoid_backward log_sigmoid_forward _log_softmax_backward_data logaddexp logaddexp2 logsumexp
masked_fill mish mish_backward mse_loss mse_loss_backward mv nan_to_num nansum
native_batch_norm_backward native_dropout_backward native_layer_norm_backward new_empty new_full
new_ones new_zeros nll_loss_backward nll_loss_forward ones ones_like pixel_shuffle pixel_unshuffle
prelu rad2deg relu6 roll rot90 rrelu_with_noise rsub select_backward select_scatter selu sgn
sigmoid_backward silu silu_backward sinc slice_backward smooth_l1_loss smooth_l1_loss_backward
soft_margin_loss soft_margin_loss_backward _softmax_backward_data softplus softplus_backward
softshrink special_entr special_xlog1py square stack std std_mean t tanh_backward threshold
threshold_backward trace transpose tril triu unbind unfold_copy unsafe_split var_mean vdot xlogy
zero zeros zeros_like split
"""
CORE = _NAMES.split()
