// Batching rules of convolutions.
#include "ops/conv/batch.h"

#include "ops/batch_tools.h"
#include "ops/conv/convolution.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduce/reduce.h"

namespace facula::batch {
namespace {

IntSpan ints(Batch& b, Name n) { return b.value(b.arg(n)).as_ints(); }

// A bias for the channels of [B, N, C, ...].
Tensor channel_vector(Batch& b, int i, int64_t rank) {
  const Tensor& v = b.tensor(i);
  IntVec sizes(static_cast<size_t>(rank), 1);
  sizes[2] = v.size(-1);
  if (b.batched(i)) sizes[0] = b.size();
  return ops::reshape(v, sizes);
}

Tensor convolve(Batch& b, const Tensor& x, const Tensor& w, const Tensor& bias, int64_t groups) {
  return ops::convolution(x, w, bias, ints(b, "stride"), ints(b, "padding"), ints(b, "dilation"),
                          b.value(b.arg("transposed")).b, ints(b, "output_padding"), groups);
}

}  // namespace

// With weights of their own, samples become groups of channels.
void convolution(Batch& b) {
  const int64_t groups = b.value(b.arg("groups")).i;
  const bool own_weights = b.batched(1), own_bias = b.batched(2);
  const Tensor x = with_batch(b, 0);
  const Tensor shared_bias = own_weights || own_bias ? Tensor() : optional_tensor(b, 2);
  Tensor r = own_weights
                 ? unfolded_channels(
                       convolve(b, folded_channels(x), folded(b.tensor(1)), {}, groups * b.size()),
                       b.size())
                 : unfolded(convolve(b, folded(x), b.tensor(1), shared_bias, groups), b.size());
  if (is_given(b, 2) && !shared_bias.defined()) r = ops::add(r, channel_vector(b, 2, r.dim()));
  b.set_result(0, r);
}

void convolution_backward(Batch& b) {
  const bool* mask = b.value(b.arg("output_mask")).bools;
  const int64_t groups = b.value(b.arg("groups")).i, n = b.size();
  const bool in_groups = b.batched(2) || mask[1];
  const Tensor grad = with_batch(b, 0), x = with_batch(b, 1);
  auto run = [&](const Tensor& g, const Tensor& in, const Tensor& w, int64_t count) {
    const bool wanted[] = {mask[0], mask[1], false};
    return ops::convolution_backward(g, in, w, std::nullopt, ints(b, "stride"), ints(b, "padding"),
                                     ints(b, "dilation"), b.value(b.arg("transposed")).b,
                                     ints(b, "output_padding"), count,
                                     std::span<const bool>(wanted));
  };
  if (in_groups && (mask[0] || mask[1])) {
    auto [gx, gw, unused] =
        run(folded_channels(grad), folded_channels(x), folded(with_batch(b, 2)), groups * n);
    if (mask[0]) b.set_result(0, unfolded_channels(gx, n));
    if (mask[1]) b.set_result(1, unfolded(gw, n));
  } else if (mask[0]) {
    auto [gx, gw, unused] = run(folded(grad), folded(x), b.tensor(2), groups);
    b.set_result(0, unfolded(gx, n));
  }
  if (!mask[2]) return;
  IntVec others{1};
  for (int64_t d = 3; d < grad.dim(); ++d) others.push_back(d);
  b.set_result(2, ops::sum(grad, IntList(others)));
}

}  // namespace facula::batch
