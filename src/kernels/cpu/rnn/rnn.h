// One direction of one recurrent layer over whole sequences: all steps' products with the input are
// one matrix product, and so are the gradients of the weights. Computed in float for half types.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// As mkldnn_rnn_layer and cuDNN number them.
enum class RnnMode : int64_t { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

struct RnnShape {
  int64_t gates;  // rows of the weights, in hidden sizes
  int64_t width;  // what is kept of a step for backward, the new state last, in hidden sizes
};
constexpr RnnShape rnn_shape(RnnMode mode) {
  if (mode == RnnMode::Lstm) return {4, 6};
  if (mode == RnnMode::Gru) return {3, 5};
  return {1, 1};
}

FACULA_PER_ISA(void rnn_layer(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh,
                              const Tensor& b_ih, const Tensor& b_hh, const Tensor& hx,
                              const Tensor& cx, bool reverse, IntSpan batch_sizes, int64_t mode,
                              int64_t hidden, int64_t layers, bool has_biases, bool bidirectional,
                              bool batch_first, bool train, const Tensor& output, const Tensor& hy,
                              const Tensor& cy, const Tensor& workspace);
               void rnn_layer_backward(
                   const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& hx,
                   const Tensor& cx, const Tensor& grad_output, const Tensor& grad_hy,
                   const Tensor& grad_cy, bool reverse, IntSpan batch_sizes, int64_t mode,
                   const Tensor& workspace, std::span<const bool> mask, const Tensor& grad_input,
                   const Tensor& grad_w_ih, const Tensor& grad_w_hh, const Tensor& grad_b_ih,
                   const Tensor& grad_b_hh, const Tensor& grad_hx, const Tensor& grad_cx);)
inline constexpr KernelRef rnn_layer_kernel = FACULA_BY_ISA(rnn_layer);
inline constexpr KernelRef rnn_layer_backward_kernel = FACULA_BY_ISA(rnn_layer_backward);

}  // namespace facula::cpu
