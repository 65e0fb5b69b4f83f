// Batching rules of convolutions, embeddings and losses.
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/convolution.h"
#include "ops/copy.h"
#include "ops/embedding.h"
#include "ops/index.h"
#include "ops/pointwise_other.h"
#include "ops/range.h"
#include "ops/reduce.h"
#include "ops/scatter.h"
#include "transforms/batch_tools.h"

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

// --- embeddings: tables one below the other

namespace {

Tensor shifted_indices(Batch& b, const Tensor& indices, int64_t rows) {
  IntVec ones(indices.sizes().size(), 1);
  ones[0] = b.size();
  const Tensor starts = ops::mul(ops::arange(b.size(), indices.dtype()), rows);
  return ops::add(indices, ops::reshape(starts, ones));
}

}  // namespace

void embedding(Batch& b) {
  if (!b.batched(0)) return b.run();
  const bool plain = b.value(b.arg("padding_idx")).i < 0 && !b.value(b.arg("scale_grad_by_freq")).b;
  if (!plain) return b.loop();
  const Tensor& table = b.tensor(0);
  const Tensor at = shifted_indices(b, with_batch(b, 1), table.size(1));
  b.set_result(0, ops::embedding(folded(table), at));
}

void embedding_backward(Batch& b) {
  const int64_t rows = b.value(b.arg("num_weights")).i, pad = b.value(b.arg("padding_idx")).i;
  const Tensor grad = with_batch(b, 0);
  const Tensor at = shifted_indices(b, with_batch(b, 1), rows);
  const Tensor joined_rows = ops::embedding_dense_backward(grad, at, rows * b.size(), -1,
                                                           b.value(b.arg("scale_grad_by_freq")).b);
  const Tensor r = unfolded(joined_rows, b.size());
  if (pad >= 0) ops::zero_(ops::select(r, 1, pad));
  b.set_result(0, r);
}

// --- losses of two tensors

namespace {

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

void line_up(Batch& b, int from) {
  int64_t rank = 0;
  for (int i = 0; i < b.info().args; ++i)
    if (is_given(b, i)) rank = std::max(rank, b.rank(i));
  for (int i = from; i < b.info().args; ++i)
    if (is_given(b, i) && b.batched(i)) b.set(i, padded(b.tensor(i), rank));
}

Tensor reduced(const Tensor& t, int64_t reduction) {
  if (reduction == None || t.dim() == 1) return t;
  const IntVec dims = sample_dims(t);
  return reduction == Mean ? ops::mean(t, IntList(dims)) : ops::sum(t, IntList(dims));
}

}  // namespace

void loss(Batch& b) {
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i;
  line_up(b, 0);
  b.set(at, static_cast<int64_t>(None));
  b.run();
  b.set_result(0, reduced(b.result(0).as_tensor(), reduction));
}

void loss_backward(Batch& b) {
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i;
  line_up(b, 0);
  const Tensor self = with_batch(b, 1), target = with_batch(b, 2);
  const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
  b.set(0, ops::expand(padded(with_batch(b, 0), static_cast<int64_t>(sizes.size()) - 1), sizes));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  if (reduction != Mean) return;
  const int64_t n = b.size() ? checked_numel(sizes) / b.size() : 1;
  b.set_result(0, ops::div(b.result(0).as_tensor(), std::max<int64_t>(n, 1)));
}

// --- negative log-likelihood

namespace {

// Samples without a dimension of their own for examples are the examples.
Tensor joined_examples(Batch& b, int i, bool several) {
  const Tensor t = with_batch(b, i);
  return several ? folded(t) : t;
}

// What each example weighs in a mean.
Tensor weights_of(const Tensor& target, const Tensor& weight, int64_t ignored, DType dtype) {
  const Tensor counts = ops::to(ops::ne(target, ignored), dtype);
  if (!weight.defined()) return counts;
  const Tensor at = ops::where(ops::eq(target, ignored), ops::new_zeros(target, IntSpan()), target);
  const Tensor picked = ops::index_select(weight, 0, ops::reshape(at, {-1}));
  return ops::mul(ops::reshape(picked, target.sizes()), counts);
}

}  // namespace

void nll(Batch& b) {
  if (b.batched(2)) return b.loop();
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i, ignored = b.value(b.arg("ignore_index")).i;
  const bool several = b.rank(0) > 1;
  const Tensor self = with_batch(b, 0), target = with_batch(b, 1);
  const Tensor weights = weights_of(target, optional_tensor(b, 2), ignored, self.dtype());
  b.set(0, joined_examples(b, 0, several));
  b.set(1, joined_examples(b, 1, several));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  Tensor losses = b.result(0).as_tensor();
  if (several) losses = unfolded(losses, b.size());
  const Tensor total = reduced(weights, Sum);
  if (reduction != None) losses = reduced(losses, Sum);
  if (reduction == Mean) losses = ops::div(losses, total);
  b.set_result(0, losses);
  b.set_result(1, reduction == None ? ops::new_zeros(self, {b.size()}) : total);
}

void nll_backward(Batch& b) {
  if (b.batched(3)) return b.loop();
  const int at = b.arg("reduction"), total = b.arg("total_weight");
  const int64_t reduction = b.value(at).i;
  const bool several = b.rank(1) > 1;
  const Tensor target = with_batch(b, 2);
  Tensor grad = with_batch(b, 0);
  if (reduction != None) {
    if (reduction == Mean) grad = ops::div(grad, with_batch(b, total));
    grad = ops::expand(padded(grad, target.dim() - 1), target.sizes());
  }
  b.set(0, several ? folded(grad) : grad);
  b.set(1, joined_examples(b, 1, several));
  b.set(2, several ? folded(target) : target);
  b.set(total, ops::new_zeros(grad, IntSpan()));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  if (several) b.set_result(0, unfolded(b.result(0).as_tensor(), b.size()));
}

}  // namespace facula::batch
