// Batching rules of views, whole reductions, and operators on images, volumes and sequences.
#include "ops/reduce.h"
#include "ops/reduce_extrema.h"
#include "transforms/batch_tools.h"

namespace facula::batch {

// The geometry that the operator gives one sample, with the batch dimension in front.
void view_geometry(Batch& b) {
  const int self = b.info().alias_of[0];
  const Tensor whole = b.tensor(self);
  b.set(self, ops::select(whole, 0, 0));
  b.run();
  auto spread = [&](const Tensor& t) {
    IntVec sizes(t.sizes()), strides(t.strides());
    sizes.insert(0, b.size());
    strides.insert(0, whole.strides()[0]);
    return ops::as_strided(whole, sizes, strides, t.storage_offset());
  };
  const Value& v = b.result(0);
  if (v.is_tensor()) return b.set_result(0, spread(v.as_tensor()));
  std::vector<Tensor> list;
  for (const Tensor& t : v.as_tensors()) list.push_back(spread(t));
  b.set_result(0, std::move(list));
}

void squeeze(Batch& b) {
  const Tensor& t = b.tensor(0);
  IntVec dims;
  for (int64_t d = 1; d < t.dim(); ++d)
    if (t.size(d) == 1) dims.push_back(d);
  b.set_result(0, dims.empty() ? ops::alias(t) : ops::squeeze(t, IntList(dims)));
}

void repeat(Batch& b) {
  const int at = b.arg("repeats");
  IntVec times(b.value(at).as_ints());
  b.set(0, padded(b.tensor(0), static_cast<int64_t>(times.size())));
  times.insert(0, 1);
  b.set(at, std::move(times));
  b.run();
}

void whole(Batch& b) {
  const Tensor flat = ops::reshape(b.tensor(0), {b.size(), -1});
  const std::string& name = b.info().schema.name;
  if (name == "max") return b.set_result(0, ops::amax(flat, {1}));
  if (name == "min") return b.set_result(0, ops::amin(flat, {1}));
  const int at = b.arg("dtype");
  std::optional<DType> dtype;
  if (at >= 0 && !b.value(at).is_none()) dtype = b.value(at).dtype;
  b.set_result(0, ops::prod(flat, 1, false, dtype));
}

void arg_reduction(Batch& b) {
  const int dim = b.arg("dim"), keep = b.arg("keepdim");
  if (!b.value(dim).is_none()) return reduction(b);
  const int64_t rank = b.rank(0);
  b.set(0, ops::reshape(b.tensor(0), {b.size(), -1}));
  b.set(dim, 1);
  b.run();
  if (!b.value(keep).b || rank == 0) return;
  IntVec ones(static_cast<size_t>(rank) + 1, 1);
  ones[0] = b.size();
  if (b.result(0).as_tensor().dim() != rank + 1)
    for (int k = 0; k < b.info().results; ++k)
      b.set_result(k, ops::reshape(b.result(k).as_tensor(), ones));
}

void draw_rows(Batch& b) {
  if (b.rank(0) < 2) return b.run();
  b.set(0, folded(b.tensor(0)));
  b.run();
  b.set_result(0, unfolded(b.result(0).as_tensor(), b.size()));
}

namespace {

// Arguments of rank `spatial` + 2 have images of several samples: the batch joins them. With one
// dimension less the batch stands where those would.
void fold(Batch& b, int64_t spatial) {
  int64_t rank = 0;
  for (int i = 0; i < b.info().args; ++i)
    if (is_given(b, i) && rank < b.rank(i)) rank = b.rank(i);
  if (rank < spatial + 1) return b.loop();
  const bool several = rank > spatial + 1;
  for (int i = 0; i < b.info().args; ++i) {
    if (!is_given(b, i)) continue;
    // The random places of fractional pooling always have several.
    const bool joins =
        several || b.info().schema.args[static_cast<size_t>(i)].name == "random_samples";
    const Tensor t = with_batch(b, i);
    if (joins) b.set(i, folded(t));
  }
  if (const int at = b.arg("input_size"); at >= 0 && several) {
    IntVec sizes(b.value(at).as_ints());
    sizes[0] *= b.size();
    b.set(at, std::move(sizes));
  }
  b.run();
  for (int k = 0; several && k < b.info().results; ++k)
    if (b.result(k).is_tensor()) b.set_result(k, unfolded(b.result(k).as_tensor(), b.size()));
}

}  // namespace

void fold1d(Batch& b) { fold(b, 1); }
void fold2d(Batch& b) { fold(b, 2); }
void fold3d(Batch& b) { fold(b, 3); }

}  // namespace facula::batch
