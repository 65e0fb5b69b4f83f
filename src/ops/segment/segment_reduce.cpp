// Reductions of segments: consecutive runs of elements along one dimension.
#include "ops/segment/segment_reduce.h"

#include <limits>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/index/scatter.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// A reduction as scatter_reduce knows it, and the result of a segment without elements.
struct Reduction {
  std::string_view mode;
  double empty;
  bool mean = false;
};
Reduction reduction_named(std::string_view name) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (name == "sum") return {"sum", 0};
  if (name == "mean") return {"sum", std::numeric_limits<double>::quiet_NaN(), true};
  if (name == "prod") return {"prod", 1};
  if (name == "max" || name == "amax") return {"amax", -infinity};
  if (name == "min" || name == "amin") return {"amin", infinity};
  throw Error(ErrorKind::Runtime,
              std::string("segment_reduce(): expected reduce to be sum, mean, prod, max or min; ") +
                  "got " + std::string(name));
}

void check_counts(const Tensor& data, const Tensor& counts, const char* what, int64_t axis) {
  check_kind(
      ErrorKind::NotImplemented, counts.dtype() == DType::Int64 || counts.dtype() == DType::Int32,
      "segment_reduce(): expected ", what, " of dtype int64 or int32; got ", name(counts.dtype()));
  check(counts.dim() == axis + 1, "segment_reduce(): expected axis to be the last dimension of ",
        what, ", ", counts.dim() - 1, "; got ", axis);
  for (int64_t d = 0; d < axis; ++d)
    check(counts.size(d) == data.size(d), "segment_reduce(): expected ", what,
          " to have data's sizes before axis; got ", str(counts.sizes()), " for data of shape ",
          str(data.sizes()));
}

bool holds(const Tensor& everywhere) {
  return ops::item(ops::all(everywhere, std::nullopt)).to<bool>();
}

// Where segments begin and end: (..., segments + 1).
Tensor bounds_of(const Tensor& data, const Tensor& lengths, const Tensor& offsets, int64_t axis,
                 bool unsafe) {
  if (offsets.defined()) {
    check_counts(data, offsets, "offsets", axis);
    check(offsets.size(-1) > 0, "segment_reduce(): expected offsets with an end; got none");
    return offsets;
  }
  check(lengths.defined(), "segment_reduce(): expected lengths or offsets; got neither");
  check_counts(data, lengths, "lengths", axis);
  if (!unsafe && !lengths.is_meta()) {
    check(holds(ops::ge(lengths, 0)),
          "segment_reduce(): expected lengths of at least 0; got a negative one");
    check(holds(ops::eq(ops::sum(lengths, IntList{-1}), data.size(axis))),
          "segment_reduce(): expected lengths to add up to the ", data.size(axis),
          " elements along axis; got another sum");
  }
  IntVec first(lengths.sizes());
  first[static_cast<size_t>(axis)] = 1;
  const Tensor parts[] = {ops::new_zeros(lengths, first), lengths};
  return ops::cumsum(ops::cat(parts, -1), -1);
}

// t (..., n) with a dimension of size 1 for each that data has behind axis.
Tensor over_rest(Tensor t, const Tensor& data) {
  while (t.dim() < data.dim()) t = ops::unsqueeze(t, -1);
  return t;
}

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& offsets, int64_t dim, bool unsafe,
                      const std::optional<Scalar>& initial) {
  check_kind(ErrorKind::NotImplemented, is_floating(data.dtype()),
             "segment_reduce(): data must be floating point; got ", name(data.dtype()));
  check(!indices.defined(), "segment_reduce(): indices are not supported; give lengths or offsets");
  const Reduction r = reduction_named(reduce);
  const int64_t axis = wrap_dim(dim, data.dim());
  const Tensor bounds = bounds_of(data, lengths, offsets, axis, unsafe);
  const int64_t count = bounds.size(-1) - 1;

  // The segment of each element; `count` is that of elements in none.
  IntVec places(bounds.sizes());
  places[static_cast<size_t>(axis)] = data.size(axis);
  const Tensor place = ops::contiguous(ops::expand(
      ops::arange(data.size(axis), bounds.dtype(), std::nullopt, bounds.device()), places));
  const Tensor ends = ops::contiguous(ops::slice(bounds, -1, 1));
  const Tensor found = ops::searchsorted(ends, place, false, true);
  const Tensor segment = ops::where(ops::ge(place, ops::slice(bounds, -1, 0, 1)), found, count);

  IntVec sizes(data.sizes());
  sizes[static_cast<size_t>(axis)] = count + 1;
  const Scalar start = initial ? *initial : Scalar(r.mean ? 0.0 : r.empty);
  const Tensor into = ops::new_full(data, sizes, start);
  const Tensor index = ops::expand(over_rest(segment, data), data.sizes());
  const Tensor whole = ops::scatter_reduce(into, axis, index, data, r.mode);
  const Tensor reduced = ops::slice(whole, axis, 0, count);
  if (!r.mean) return ops::contiguous(reduced);
  const Tensor elements = over_rest(ops::sub(ends, ops::slice(bounds, -1, 0, count)), data);
  const Tensor means = ops::div(reduced, ops::clamp_min(elements, 1));
  return ops::where(ops::eq(elements, 0), initial ? *initial : Scalar(r.empty), means);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(segment_reduce){
    .schema =
        "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
        "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    .doc =
        "The sum, mean, product, largest or smallest element of each segment of data along axis; "
        "lengths (..., segments) or offsets (..., segments + 1) say where segments end.",
    .composite = Composite::Implicit,
    .any = typed_kernel<segment_reduce>,
};
