// What batching rules share: merging the batch dimension into another, and splitting it off again.
#pragma once
#include "dispatch/batch.h"
#include "ops/create/creation.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula::batch {

// An argument with the batch dimension first, whether or not it is batched.
inline Tensor with_batch(Batch& b, int i) {
  b.expand(i);
  return b.tensor(i);
}
inline bool is_given(Batch& b, int i) { return b.value(i).is_tensor(); }
// An optional Tensor argument; undefined for None.
inline Tensor optional_tensor(Batch& b, int i) { return is_given(b, i) ? b.tensor(i) : Tensor(); }

// Sizes of a tensor from dimension `from` on, behind `first`.
inline IntVec sizes_behind(std::initializer_list<int64_t> first, const Tensor& t, int64_t from) {
  IntVec sizes(first);
  for (int64_t n : t.sizes().subspan(static_cast<size_t>(from))) sizes.push_back(n);
  return sizes;
}

// [B, N, ...] to [B * N, ...] and back.
inline Tensor folded(const Tensor& t) {
  return ops::reshape(t, sizes_behind({t.size(0) * t.size(1)}, t, 2));
}
inline Tensor unfolded(const Tensor& t, int64_t n) {
  const int64_t rest = n ? t.size(0) / n : 0;
  return ops::reshape(t, sizes_behind({n, rest}, t, 1));
}
// [B, N, C, ...] to [N, B * C, ...] and back.
inline Tensor folded_channels(const Tensor& t) {
  const Tensor swapped = ops::movedim(t, 0, 1);
  return ops::reshape(swapped, sizes_behind({t.size(1), t.size(0) * t.size(2)}, t, 3));
}
inline Tensor unfolded_channels(const Tensor& t, int64_t n) {
  const int64_t rest = n ? t.size(1) / n : 0;
  return ops::movedim(ops::reshape(t, sizes_behind({t.size(0), n, rest}, t, 2)), 1, 0);
}
// A vector for each sample, as one vector: [B, C] to [B * C].
inline Tensor joined(Batch& b, int i) {
  return is_given(b, i) ? ops::reshape(with_batch(b, i), {-1}) : Tensor();
}

// [B, ...] to [B, N], N the elements of a sample.
inline Tensor flat_samples(const Tensor& t) {
  return ops::reshape(t, {t.size(0), t.size(0) ? t.numel() / t.size(0) : 0});
}

// Puts dimensions of size one behind the batch dimension until there are `rank` others.
Tensor padded(const Tensor& t, int64_t rank);
// The dimensions behind the batch dimension.
inline IntVec sample_dims(const Tensor& t) {
  IntVec dims;
  for (int64_t d = 1; d < t.dim(); ++d) dims.push_back(d);
  return dims;
}

}  // namespace facula::batch
