// Batching rules of normalisations.
#include "ops/norm/batch.h"

#include "ops/batch_tools.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"

namespace facula::batch {
// --- over batches: samples become channels

namespace {

void check_statistics(Batch& b) {
  const bool training = b.value(b.arg("training")).b;
  for (int i : {b.arg("running_mean"), b.arg("running_var")})
    check(!training || !is_given(b, i) || b.batched(i),
          "native_batch_norm: running_mean and running_var would be changed and must be batched as "
          "the "
          "input is (track_running_stats=False does without them)");
}

void join_vectors(Batch& b, int from, int to) {
  for (int i = from; i <= to; ++i)
    if (is_given(b, i)) b.set(i, joined(b, i));
}

Tensor rows(Batch& b, const Tensor& t) {
  return ops::reshape(t, {b.size(), b.size() ? t.numel() / b.size() : 0});
}

}  // namespace

void batch_norm(Batch& b) {
  check_statistics(b);
  Tensor statistics[2];
  for (int k = 0; k < 2; ++k)
    if (b.batched(3 + k)) statistics[k] = b.tensor(3 + k);
  b.set(0, folded_channels(with_batch(b, 0)));
  join_vectors(b, 1, 4);
  b.run();
  for (int k = 0; k < 2; ++k)
    if (statistics[k].defined()) ops::copy_(statistics[k], rows(b, b.tensor(3 + k)));
  b.set_result(0, unfolded_channels(b.result(0).as_tensor(), b.size()));
  for (int k = 1; k < 3; ++k) b.set_result(k, rows(b, b.result(k).as_tensor()));
}

void batch_norm_backward(Batch& b) {
  for (int i = 0; i < 2; ++i) b.set(i, folded_channels(with_batch(b, i)));
  join_vectors(b, 2, 6);
  b.run();
  if (b.result(0).is_tensor())
    b.set_result(0, unfolded_channels(b.result(0).as_tensor(), b.size()));
  for (int k = 1; k < 3; ++k)
    if (b.result(k).is_tensor()) b.set_result(k, rows(b, b.result(k).as_tensor()));
}

// --- over groups of channels: the scale and shift come after

namespace {

// A vector for the channels of [B, N, C, ...].
Tensor for_channels(Batch& b, int i, int64_t rank) {
  IntVec sizes(static_cast<size_t>(rank), 1);
  sizes[2] = b.tensor(i).size(-1);
  if (b.batched(i)) sizes[0] = b.size();
  return ops::reshape(b.tensor(i), sizes);
}

Tensor sum_but(const Tensor& t, int64_t kept) {
  IntVec others;
  for (int64_t d = 1; d < t.dim(); ++d)
    if (d != kept) others.push_back(d);
  return others.empty() ? t : ops::sum(t, IntList(others));
}

}  // namespace

void group_norm(Batch& b) {
  const Tensor x = with_batch(b, 0);
  const int64_t n = b.value(3).i * b.size();
  auto [out, mean, rstd] =
      ops::native_group_norm(folded(x), {}, {}, n, b.value(4).i, b.value(5).i, b.value(6).i,
                             b.value(7).as_scalar().to<double>());
  Tensor r = unfolded(out, b.size());
  if (is_given(b, 1)) r = ops::mul(r, for_channels(b, 1, r.dim()));
  if (is_given(b, 2)) r = ops::add(r, for_channels(b, 2, r.dim()));
  b.set_result(0, r);
  b.set_result(1, unfolded(mean, b.size()));
  b.set_result(2, unfolded(rstd, b.size()));
}

void group_norm_backward(Batch& b) {
  const bool* mask = b.value(b.arg("output_mask")).bools;
  const Tensor grad = with_batch(b, 0), x = with_batch(b, 1);
  const Tensor mean = with_batch(b, 2), rstd = with_batch(b, 3);
  const int64_t n = b.value(5).i * b.size(), groups = b.value(8).i;
  if (mask[0]) {
    const Tensor scaled = is_given(b, 4) ? ops::mul(grad, for_channels(b, 4, grad.dim())) : grad;
    const bool wanted[] = {true, false, false};
    auto [gx, gw, gb] = ops::native_group_norm_backward(
        folded(scaled), folded(x), folded(mean), folded(rstd), {}, n, b.value(6).i, b.value(7).i,
        groups, std::span<const bool>(wanted));
    b.set_result(0, unfolded(gx, b.size()));
  }
  if (mask[1]) {
    const IntVec by_group{x.size(0), x.size(1), groups, -1}, one{x.size(0), x.size(1), groups, 1};
    const Tensor centred = ops::sub(ops::reshape(x, by_group), ops::reshape(mean, one));
    const Tensor normal = ops::reshape(ops::mul(centred, ops::reshape(rstd, one)), x.sizes());
    b.set_result(1, sum_but(ops::mul(grad, normal), 2));
  }
  if (mask[2]) b.set_result(2, sum_but(grad, 2));
}

// --- over the last dimensions

namespace {

// A scale or shift of the last dimensions, batched or not, broadcastable to `rank` dimensions.
Tensor for_last(Batch& b, int i, int64_t rank) {
  return b.batched(i) ? padded(b.tensor(i), rank - 1) : b.tensor(i);
}

// Summed over what lies between the batch dimension and the last `kept` ones.
Tensor sum_between(const Tensor& t, int64_t kept) {
  IntVec between;
  for (int64_t d = 1; d < t.dim() - kept; ++d) between.push_back(d);
  return between.empty() ? t : ops::sum(t, IntList(between));
}

}  // namespace

void layer_norm(Batch& b) {
  const int weight = b.arg("weight"), bias = b.arg("bias");
  b.expand(0);
  const bool own = b.batched(weight) || (bias >= 0 && b.batched(bias));
  if (!own) return b.run();
  Tensor kept[2];
  const int64_t rank = b.tensor(0).dim();
  if (is_given(b, weight)) kept[0] = for_last(b, weight, rank);
  if (bias >= 0 && is_given(b, bias)) kept[1] = for_last(b, bias, rank);
  b.set(weight, Tensor());
  if (bias >= 0) b.set(bias, Tensor());
  b.run();
  Tensor r = b.result(0).as_tensor();
  if (kept[0].defined()) r = ops::mul(r, kept[0]);
  if (kept[1].defined()) r = ops::add(r, kept[1]);
  b.set_result(0, r);
}

void layer_norm_backward(Batch& b) {
  const int weight = b.arg("weight"), bias = b.arg("bias"), mean = b.arg("mean");
  const int mask_arg = b.arg("output_mask");
  const bool* mask = b.value(mask_arg).bools;
  const bool has_bias = b.info().results == 3;
  const int64_t last = static_cast<int64_t>(b.value(b.arg("normalized_shape")).length);
  const Tensor grad = with_batch(b, 0), x = with_batch(b, 1), rstd = with_batch(b, b.arg("rstd"));
  const Tensor centred = mean < 0 ? x : ops::sub(x, with_batch(b, mean));
  Tensor of_weight, of_bias;
  if (mask[1] && is_given(b, weight))
    of_weight = sum_between(ops::mul(grad, ops::mul(centred, rstd)), last);
  if (has_bias && mask[2]) of_bias = sum_between(grad, last);
  if (mask[0]) {
    if (is_given(b, weight)) b.set(0, ops::mul(grad, for_last(b, weight, grad.dim())));
    b.set(weight, Tensor());
    if (bias >= 0) b.set(bias, Tensor());
    static constexpr bool only_input[] = {true, false, false};
    b.set(mask_arg, std::span<const bool>(only_input, has_bias ? 3 : 2));
    b.run();
  }
  b.set_result(1, of_weight);
  if (has_bias) b.set_result(2, of_bias);
}

}  // namespace facula::batch
