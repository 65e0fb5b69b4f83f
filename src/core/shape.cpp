// Geometry helpers declared in tensor.h.
#include <algorithm>

#include "core/checked.h"
#include "core/tensor.h"

namespace facula {

ListText::operator std::string() const {
  std::string s = "[";
  for (size_t i = 0; i < list.size(); ++i) s += (i ? ", " : "") + std::to_string(list[i]);
  return s + "]";
}

std::ostream& operator<<(std::ostream& to, const ListText& text) { return to << std::string(text); }

IntVec contiguous_strides(IntSpan sizes) {
  IntVec order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
  return dense_strides(sizes, order);
}

IntVec strides_for(IntSpan sizes, MemoryFormat f) {
  const bool last = (f == MemoryFormat::ChannelsLast && sizes.size() == 4) ||
                    (f == MemoryFormat::ChannelsLast3d && sizes.size() == 5);
  if (!last) return contiguous_strides(sizes);
  IntVec order{1};
  for (size_t d = sizes.size() - 1; d >= 2; --d) order.push_back(static_cast<int64_t>(d));
  order.push_back(0);
  return dense_strides(sizes, order);
}

// Whether channels are the fastest dimension. A tensor with one channel or one pixel has both
// formats; it counts as channels-last only if its strides are exactly those.
static bool looks_channels_last(IntSpan sizes, IntSpan strides) {
  int64_t least = 0;
  if (strides[1] == 0) return false;
  const size_t n = sizes.size();
  for (size_t i = 0; i < n; ++i) {
    const size_t d = i == 0 ? 1 : (i == n - 1 ? 0 : n - i);
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1) least = saturating_mul(least, sizes[d]);
  }
  return true;
}

MemoryFormat suggested_format(const Tensor& t) {
  if (t.dim() == 4 && looks_channels_last(t.sizes(), t.strides()))
    return MemoryFormat::ChannelsLast;
  if (t.dim() == 5 && looks_channels_last(t.sizes(), t.strides()))
    return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

// Whether the strides are those of a contiguous tensor; it must have elements.
static bool lies_in_order(IntSpan sizes, IntSpan strides) {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected = wrapping_mul(expected, sizes[d]);
  }
  return true;
}

// Dimensions of more than one element, from the smallest stride up.
static IntVec dims_by_stride(IntSpan sizes, IntSpan strides) {
  IntVec order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    size_t at = 0;
    while (at < order.size() && strides[order[at]] <= strides[d]) ++at;
    order.insert(at, static_cast<int64_t>(d));
  }
  return order;
}

bool is_dense_non_overlapping(IntSpan sizes, IntSpan strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return true;
  if (lies_in_order(sizes, strides)) return true;
  int64_t expected = 1;
  for (int64_t d : dims_by_stride(sizes, strides)) {
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool may_self_overlap(IntSpan sizes, IntSpan strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return false;
  int64_t reach = 0;
  for (int64_t d : dims_by_stride(sizes, strides)) {
    if (strides[d] <= reach) return true;
    reach += strides[d] * (sizes[d] - 1);
  }
  return false;
}

// Which of two dimensions has the smaller stride in the inputs: negative for a, positive for b, 0
// if they do not tell.
static int faster(IntSpan sizes, std::span<const Tensor* const> inputs, int64_t a, int64_t b) {
  const int64_t n = static_cast<int64_t>(sizes.size());
  for (const Tensor* t : inputs) {
    const int64_t extra = n - t->dim();
    auto step = [&](int64_t d) {
      return d < extra || t->sizes()[d - extra] == 1 ? 0 : t->strides()[d - extra];
    };
    const int64_t x = step(a), y = step(b);
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

IntVec elementwise_strides(IntSpan sizes, std::span<const Tensor* const> inputs) {
  bool contiguous = true;
  for (const Tensor* t : inputs) contiguous &= t->is_contiguous() && same_sizes(t->sizes(), sizes);
  if (contiguous) return contiguous_strides(sizes);
  const int n = static_cast<int>(sizes.size());
  IntVec order;  // fastest first
  for (int d = n - 1; d >= 0; --d) order.push_back(d);
  for (int i = 1; i < n; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      const int which = faster(sizes, inputs, order[j], order[at]);
      if (which < 0) break;
      if (which == 0) continue;
      std::swap(order[j], order[at]);
      at = j;
    }
  }
  return dense_strides(sizes, order);
}

int64_t checked_numel(IntSpan sizes) {
  for (int64_t s : sizes)
    check(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", str(sizes));
  int64_t n = 1;
  // Multiplies in order, as PyTorch does, so that sizes before a 0 may overflow too.
  for (int64_t s : sizes)
    check(!__builtin_mul_overflow(n, s, &n),
          "Storage size calculation overflowed with sizes=", str(sizes));
  return n;
}

int64_t extent(IntSpan sizes, IntSpan strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    int64_t step;
    const bool over = __builtin_sub_overflow(sizes[d], 1, &step) ||
                      __builtin_mul_overflow(step, strides[d], &step) ||
                      __builtin_add_overflow(last, step, &last);
    check(!over, "Storage size calculation overflowed with sizes=", str(sizes),
          " and strides=", str(strides));
  }
  check(last != INT64_MAX, "Storage size calculation overflowed with sizes=", str(sizes));
  return last + 1;
}

int64_t wrap_unusual_dim(int64_t dim, int64_t ndim) {
  const int64_t n = std::max<int64_t>(ndim, 1);
  if (dim < -n || dim >= n) [[unlikely]]
    throw Error(ErrorKind::Index, "Dimension out of range (expected to be in range of [", -n, ", ",
                n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

int64_t wrap_unusual_index(int64_t dim, int64_t ndim) {
  check_index(ndim > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_unusual_dim(dim, ndim);
}

IntVec broadcast_sizes(IntSpan a, IntSpan b) {
  const size_t n = std::max(a.size(), b.size());
  IntVec out(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = i < n - a.size() ? 1 : a[i - (n - a.size())];
    const int64_t y = i < n - b.size() ? 1 : b[i - (n - b.size())];
    check(x == y || x == 1 || y == 1, "The size of tensor a (", x,
          ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Overlap memory_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || !(a->storage == b->storage)) return Overlap::None;
  const auto wide = [](const Tensor& t) { return static_cast<int64_t>(t.itemsize()); };
  const int64_t a0 = a.storage_offset() * wide(a), b0 = b.storage_offset() * wide(b);
  const int64_t a1 = a0 + extent(a.sizes(), a.strides()) * wide(a);
  const int64_t b1 = b0 + extent(b.sizes(), b.strides()) * wide(b);
  if (a1 <= b0 || b1 <= a0) return Overlap::None;
  const bool same = a0 == b0 && a.dtype() == b.dtype() && same_sizes(a.sizes(), b.sizes()) &&
                    same_sizes(a.strides(), b.strides());
  if (same) return Overlap::Full;
  const bool dense = is_dense_non_overlapping(a.sizes(), a.strides()) &&
                     is_dense_non_overlapping(b.sizes(), b.strides());
  // If one is not dense, the ranges overlap but the elements may interleave, which is costly to
  // find out.
  return dense ? Overlap::Partial : Overlap::None;
}

}  // namespace facula
