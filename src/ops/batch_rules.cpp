// Batching rules that operators of several families share. Inside a rule the batching level is off;
// batched tensors are values with the batch dimension first.
#include <algorithm>

#include "dispatch/batch.h"
#include "dispatch/batch_families.h"
#include "ops/batch_tools.h"
#include "ops/create/copy.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula::batch {

Tensor padded(const Tensor& t, int64_t rank) {
  const int64_t missing = rank - (t.dim() - 1);
  if (missing <= 0) return t;
  IntVec sizes(t.sizes());
  for (int64_t k = 0; k < missing; ++k) sizes.insert(1, 1);
  return ops::reshape(t, sizes);
}

namespace {

template <class F>
void for_each_tensor_arg(Batch& b, F&& f) {
  for (int i = 0; i < b.info().args; ++i)
    if (b.value(i).is_tensor()) f(i);
}

int64_t highest_rank(Batch& b) {
  int64_t rank = 0;
  for_each_tensor_arg(b, [&](int i) { rank = std::max(rank, b.rank(i)); });
  return rank;
}

// A batched scalar weighs in type promotion as a scalar, though its value has a dimension: where
// that would change the result, it is converted first.
void keep_promotion(Batch& b, int64_t rank) {
  if (rank == 0 || b.info().mutated) return;
  Promotion promotion;
  bool batched_scalar = false;
  for (int i = 0; i < b.info().args; ++i) {
    const Value& v = b.value(i);
    const bool scalar = v.is_tensor() && b.batched(i) && b.rank(i) == 0;
    batched_scalar |= scalar;
    if (scalar)
      promotion.add(empty_tensor({}, v.tensor->dtype, {DeviceType::Meta, -1}));
    else if (v.is_tensor())
      promotion.add(v);
    else if (v.is_number() &&
             b.info().schema.args[static_cast<size_t>(i)].type.kind == TypeKind::Tensor)
      promotion.add(v);
  }
  if (!batched_scalar) return;
  const DType wanted = promotion.result();
  for_each_tensor_arg(b, [&](int i) {
    const bool scalar = b.batched(i) && b.rank(i) == 0;
    if (scalar && promote(wanted, b.tensor(i).dtype()) != wanted)
      b.set(i, ops::to(b.tensor(i), wanted));
  });
}

// --- arguments that name dimensions

// The argument that a list of the record names, the first unless said otherwise; -1 for none.
int named(Batch& b, const Names& list, int place = 0) {
  return list.list[place].empty() ? -1 : b.info().schema.index_of(list.list[place]);
}
int first_dim_arg(Batch& b) { return named(b, b.op().record->dims); }

// Calls f(argument) for each that names dimensions.
template <class F>
void for_each_dim_arg(Batch& b, F&& f) {
  for (int i = 0; i < b.info().args; ++i)
    if (b.op().record->dims.has(b.info().schema.args[static_cast<size_t>(i)].name)) f(i);
}

void shift(Batch& b, int i, int64_t rank) {
  const Value& v = b.value(i);
  if (v.tag == Tag::Int) return b.set(i, wrap_dim(v.i, rank) + 1);
  if (v.tag != Tag::IntList) return;
  IntVec shifted;
  for (int64_t d : v.as_ints()) shifted.push_back(wrap_dim(d, rank) + 1);
  b.set(i, std::move(shifted));
}

int first_batched(Batch& b) {
  for (int i = 0; i < b.info().args; ++i)
    if (b.batched(i)) return i;
  return 0;
}

bool only_self_batched(Batch& b) {
  for (int i = 1; i < b.info().args; ++i)
    if (b.batched(i)) return false;
  // roll without dims rolls the elements of the whole tensor.
  const int at = first_dim_arg(b);
  return at < 0 || b.value(at).tag != Tag::IntList || b.value(at).length > 0;
}

// Of scalars: the dimension of size one that was added for the operator is removed again.
void squeeze_results(Batch& b) {
  for (int k = 0; k < b.info().results; ++k)
    if (b.result(k).is_tensor() && b.result(k).as_tensor().dim() >= 2)
      b.set_result(k, ops::squeeze(b.result(k).as_tensor(), 1));
}

// Scalars take dim 0 or -1 as if they had one dimension.
void run_dims(Batch& b) {
  const int64_t rank = b.rank(first_batched(b));
  if (rank == 0)
    for_each_tensor_arg(b, [&](int i) {
      if (b.batched(i) && b.tensor(i).dim() == 1) b.set(i, ops::unsqueeze(b.tensor(i), 1));
    });
  b.run();
  if (rank == 0) squeeze_results(b);
}

}  // namespace

void pointwise(Batch& b) {
  const int64_t rank = highest_rank(b);
  keep_promotion(b, rank);
  for_each_tensor_arg(b, [&](int i) {
    if (b.batched(i) && b.rank(i) < rank) b.set(i, padded(b.tensor(i), rank));
  });
  b.run();
}

void dims(Batch& b) {
  const int64_t rank = b.value(0).is_tensor() ? b.rank(0) : b.rank(first_batched(b));
  for_each_tensor_arg(b, [&](int i) { b.expand(i); });
  for_each_dim_arg(b, [&](int i) { shift(b, i, rank); });
  run_dims(b);
}

void dims_of_self(Batch& b) {
  if (!only_self_batched(b)) return b.loop();
  for_each_dim_arg(b, [&](int i) { shift(b, i, b.rank(0)); });
  run_dims(b);
}

void leading(Batch& b) {
  if (!only_self_batched(b)) return b.loop();
  b.run();
}

void permutation(Batch& b) {
  const int at = first_dim_arg(b);
  shift(b, at, b.rank(0));
  IntVec order(b.value(at).as_ints());
  order.insert(0, 0);
  b.set(at, std::move(order));
  b.run();
}

void reduction(Batch& b) {
  const int64_t rank = b.rank(first_batched(b));
  const int at = first_dim_arg(b);
  if (at < 0) return dims(b);
  // An empty list means all dimensions; where the argument may also be None, which means all, an
  // empty list means none.
  const SchemaType& type = b.info().schema.args[static_cast<size_t>(at)].type;
  const bool empty_is_all = !(type.optional && type.list_size < 0);
  const bool empty = b.value(at).tag == Tag::IntList && b.value(at).length == 0;
  if (!b.value(at).is_none() && !(empty && empty_is_all)) return dims(b);
  IntVec every;
  for (int64_t d = 0; d < std::max<int64_t>(rank, 1); ++d) every.push_back(d + 1);
  b.set(at, std::move(every));
  run_dims(b);
}

void new_dim(Batch& b) {
  const int at = first_dim_arg(b);
  b.set(at, wrap_dim(b.value(at).i, b.rank(first_batched(b)) + 1) + 1);
  b.run();
}

void sizes(Batch& b) {
  const int at = named(b, b.op().record->sizes);
  IntVec wanted(b.value(at).as_ints());
  // With an empty batch, -1 could be anything: it is worked out from one sample.
  const IntSpan sample = b.tensor(first_batched(b)).sizes().subspan(1);
  const auto open = std::ranges::find(wanted, -1);
  if (open != wanted.end()) {
    int64_t known = 1;
    for (int64_t n : wanted)
      if (n != -1) known *= n;
    const int64_t have = checked_numel(sample);
    if (known > 0 && have % known == 0) *open = have / known;
  }
  if (const int strides = named(b, b.op().record->sizes, 1); strides >= 0) {
    IntVec longer(b.value(strides).as_ints());
    longer.insert(0, extent(wanted, longer));
    b.set(strides, std::move(longer));
  }
  wanted.insert(0, b.size());
  b.set(at, std::move(wanted));
  b.run();
}

void list_dims(Batch& b) {
  const int list = first_batched(b), at = first_dim_arg(b);
  const auto tensors = b.value(list).as_tensors();
  int64_t rank = 1;
  for (const Tensor& t : tensors) rank = std::max(rank, t.dim() - 1);
  shift(b, at, rank);
  // What cat skips, an empty tensor of one dimension, has two dimensions here.
  std::vector<Tensor> kept;
  for (const Tensor& t : tensors)
    if (t.dim() - 1 == rank || t.numel() != 0 || t.dim() != 2) kept.push_back(t);
  if (kept.size() != tensors.size()) b.set(list, std::move(kept));
  b.run();
}

void list_new_dim(Batch& b) {
  const int list = first_batched(b), at = first_dim_arg(b);
  b.set(at, wrap_dim(b.value(at).i, b.value(list).as_tensors()[0].dim()) + 1);
  b.run();
}

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

// --- images, volumes and sequences

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
    const bool joins = several || b.always_batched(i);
    const Tensor t = with_batch(b, i);
    if (joins) b.set(i, folded(t));
  }
  const int at = named(b, b.op().record->sizes);
  if (several && at >= 0 && b.value(at).tag == Tag::IntList && b.value(at).length > 0) {
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
