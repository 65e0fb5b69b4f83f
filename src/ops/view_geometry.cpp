#include "ops/view_geometry.h"

#include <algorithm>

#include "core/checked.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace facula::geometry {
namespace {

LayerSet seeing(const Tensor& t) {
  const ThreadState& s = thread_state;
  const bool autograd = s.grad_enabled || forward_levels.load(std::memory_order_relaxed) > 0;
  const LayerSet excluded = autograd ? s.exclude : s.exclude | Layer::Autograd;
  return (t->layers | s.include) - excluded - backend_layers;
}

}  // namespace

bool seen_by_backend_alone(const Tensor& t) { return seeing(t).empty(); }

bool seen_by_autograd_alone(const Tensor& t) {
  return (seeing(t) - Layer::Autograd - Layer::Conjugate - Layer::Negative - Layer::Autocast)
      .empty();
}

Tensor swapped(const Tensor& matrix) {
  const int64_t sizes[] = {matrix.sizes()[1], matrix.sizes()[0]};
  const int64_t strides[] = {matrix.strides()[1], matrix.strides()[0]};
  return alias_tensor(matrix, sizes, strides, matrix.storage_offset());
}

IntVec infer_size(IntSpan wanted, int64_t numel) {
  IntVec sizes(wanted);
  int64_t known = 1;
  int unknown = -1;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == -1) {
      check(unknown < 0, "reshape(): -1 may stand for one dimension; got it for several");
      unknown = static_cast<int>(d);
      continue;
    }
    check(wanted[d] >= 0, "invalid shape dimension ", wanted[d]);
    check(!__builtin_mul_overflow(known, wanted[d], &known), "shape '", str(wanted),
          "' is invalid for input of size ", numel);
  }
  if (unknown >= 0 && known > 0 && numel % known == 0) {
    sizes[unknown] = numel / known;
    return sizes;
  }
  check(!(unknown >= 0 && known == 0 && numel == 0),
        "cannot reshape tensor of 0 elements into shape ", str(wanted),
        ": any size could stand for -1");
  check(unknown < 0 && known == numel, "shape '", str(wanted), "' is invalid for input of size ",
        numel);
  return sizes;
}

// Contiguous strides of an empty view; those that are too large wrap, as PyTorch's do.
static IntVec strides_of_nothing(IntSpan sizes) {
  IntVec strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step = wrapping_mul(step, std::max<int64_t>(sizes[d], 1));
  }
  return strides;
}

std::optional<IntVec> view_strides(IntSpan sizes, IntSpan strides, IntSpan wanted) {
  if (std::ranges::find(sizes, 0) != sizes.end())
    return same_sizes(sizes, wanted) ? IntVec(strides) : strides_of_nothing(wanted);
  IntVec out(wanted.size());
  if (sizes.empty()) {
    for (int64_t& s : out) s = 1;
    return out;
  }
  // Chunks of old dimensions that lie next to each other in memory are filled with new dimensions.
  int64_t at = static_cast<int64_t>(wanted.size()) - 1;
  int64_t base = strides.back(), chunk = 1, filled = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    chunk *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk * base);
    if (!ends) continue;
    while (at >= 0 && (filled < chunk || wanted[at] == 1)) {
      out[at] = filled * base;
      filled *= wanted[at];
      --at;
    }
    if (filled != chunk) return std::nullopt;
    if (d > 0) {
      base = strides[d - 1];
      chunk = filled = 1;
    }
  }
  if (at != -1) return std::nullopt;
  return out;
}

IntVec wrap_dims(IntSpan dims, int64_t ndim) {
  IntVec wrapped;
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, ndim);
    check(std::ranges::find(wrapped, w) == wrapped.end(), "dim ", w,
          " appears multiple times in the list of dims");
    wrapped.push_back(w);
  }
  return wrapped;
}

Tensor copy_of_memory(const Tensor& self) {
  if (may_self_overlap(self.sizes(), self.strides())) return ops::clone(self);
  const int64_t reach = self.storage_offset() + extent(self.sizes(), self.strides());
  const Tensor memory = ops::new_zeros(self, {reach});
  const Tensor t = alias_tensor(memory, self.sizes(), self.strides(), self.storage_offset());
  return ops::copy_(t, self);
}

Bounds slice_bounds(std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
                    int64_t size) {
  check(step > 0, "slice step must be positive");
  auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t first = place(start.value_or(0)),
                last = std::max(first, place(end.value_or(INT64_MAX)));
  return {first, (last - first) / step + ((last - first) % step != 0)};
}

namespace {

// Adds grad into the elements of memory that the geometry names, some perhaps several times.
void accumulate(const Tensor& memory, const Tensor& grad, IntSpan size, IntSpan stride,
                int64_t offset) {
  if (!may_self_overlap(size, stride)) {
    ops::add_(ops::as_strided(memory, size, stride, offset), grad);
    return;
  }
  const IntSpan rest_size = size.subspan(1), rest_stride = stride.subspan(1);
  if (stride[0] == 0)
    return accumulate(memory, ops::sum(grad, IntList{0}), rest_size, rest_stride, offset);
  for (int64_t i = 0; i < size[0]; ++i)
    accumulate(memory, ops::select(grad, 0, i), rest_size, rest_stride, offset + i * stride[0]);
}

// One past the last element that the geometry touches.
int64_t end_of(IntSpan size, IntSpan stride, int64_t offset) {
  for (int64_t s : stride)
    check(s >= 0, "as_strided_backward(): strides must not be negative; got ", str(stride));
  check(size.size() == stride.size(),
        "as_strided_backward(): sizes and strides must have the same length; got ", str(size),
        " and ", str(stride));
  checked_numel(size);
  return checked_add(extent(size, stride), offset, "as_strided_backward(): the base's size");
}

}  // namespace

Tensor as_strided_backward(const Tensor& grad, IntSpan size, IntSpan stride, int64_t offset,
                           IntSpan out_size, IntSpan out_stride, int64_t out_offset) {
  check(offset >= 0 && out_offset >= 0,
        "as_strided_backward(): storage offsets must not be negative; got ", offset, " and ",
        out_offset);
  const int64_t start = std::min(offset, out_offset);
  const int64_t reach = std::max(end_of(size, stride, offset - start),
                                 end_of(out_size, out_stride, out_offset - start));
  const Tensor memory = ops::new_zeros(grad, {reach});
  if (grad.numel() > 0) accumulate(memory, grad, out_size, out_stride, out_offset - start);
  return ops::clone(ops::as_strided(memory, size, stride, offset - start));
}

}  // namespace facula::geometry
