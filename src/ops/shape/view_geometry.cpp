#include "ops/shape/view_geometry.h"

#include <algorithm>

#include "core/cgroup.h"
#include "core/checked.h"
#include "dispatch/data_sizes.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula::geometry {
namespace {

LayerSet seeing(const Tensor& t) {
  const ThreadState& s = thread_state;
  const bool autograd = s.grad_enabled || s.forward_levels > 0;
  const LayerSet excluded = autograd ? s.exclude : s.exclude | Layer::Autograd;
  return (t->layers | s.include) - excluded - backend_layers;
}

}  // namespace

void check_parts_fit(int64_t count, const char* op) {
  constexpr int64_t bytes_each = 256;  // the header, its place in the list, what Python adds
  static const auto most = static_cast<int64_t>(usable_memory()) / bytes_each;
  check(count <= most, op, "(): expected at most ", most, " parts, for which there is memory; got ",
        count);
}

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

Bounds slice_bounds(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                    std::optional<int64_t> end, int64_t step) {
  check(step > 0, "slice step must be positive");
  const int64_t size = self.sizes()[dim];
  if (is_from_data(self, {start.value_or(0), end.value_or(0), step}))
    return {0,
            data_sizes->size_of_slice(dim, size, start.value_or(0), end.value_or(INT64_MAX), step)};
  auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t first = place(start.value_or(0)),
                last = std::max(first, place(end.value_or(INT64_MAX)));
  return {first, (last - first) / step + ((last - first) % step != 0)};
}

int64_t place_of_index(const Tensor& self, int64_t dim, int64_t index) {
  if (is_from_data(self, {index})) return 0;
  const int64_t n = self.sizes()[dim];
  check_index(index >= -n && index < n, "select(): index ", index,
              " out of range for tensor of size ", str(self.sizes()), " at dimension ", dim);
  return index < 0 ? index + n : index;
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
  // Elements of the input that are one place in memory share what came there.
  if (grad.numel() > 0 && may_self_overlap(size, stride)) {
    const DType real = real_of(grad.dtype());
    const Tensor times = ops::new_zeros(grad, {reach}, real);
    accumulate(times, ops::new_ones(grad, size, real), size, stride, offset - start);
    ops::div_(memory, ops::clamp_min(times, 1));
  }
  return ops::clone(ops::as_strided(memory, size, stride, offset - start));
}

Tensor as_strided_backward_gradient(Backward& b) {
  const IntSpan size = b.ints("size"), stride = b.ints("stride"), out_size = b.ints("out_size"),
                out_stride = b.ints("out_stride");
  const int64_t offset = b.integer("storage_offset"), out_offset = b.integer("out_offset");
  const int64_t start = std::min(offset, out_offset);
  const int64_t reach = std::max(offset - start + extent(size, stride),
                                 out_offset - start + extent(out_size, out_stride));
  const auto put = [&](const Tensor& t) {
    return ops::as_strided_backward(t, {reach}, {1}, 0, size, stride, offset - start);
  };
  Tensor memory = put(b.grad());
  if (may_self_overlap(size, stride))
    memory = ops::div(memory,
                      ops::clamp_min(put(ops::ones_like(b.grad(), real_of(b.grad().dtype()))), 1));
  return ops::as_strided(memory, out_size, out_stride, out_offset - start);
}

// --- complex numbers as pairs

Tensor view_as_real(const Tensor& self) {
  check_type(is_complex(self.dtype()), "view_as_real(): self must be complex; got ",
             name(self.dtype()));
  check(!self->conj,
        "view_as_real(): the conjugate bit must not be set; resolve_conj() makes a copy without "
        "it");
  IntVec sizes(self.sizes()), strides;
  for (int64_t s : self.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  Tensor t = alias_tensor(self, sizes, strides, 2 * self.storage_offset());
  t->dtype = real_of(self.dtype());
  return t;
}

Tensor view_as_complex(const Tensor& self) {
  check_type(!is_complex(self.dtype()), "view_as_complex(): self must be real; got ",
             name(self.dtype()));
  const DType d = self.dtype();
  check_kind(ErrorKind::NotImplemented,
             d == DType::Float16 || d == DType::Float32 || d == DType::Float64,
             "view_as_complex(): self must be float16, float32 or float64; got ", name(d));
  check(self.dim() > 0, "view_as_complex(): self must have a dimension; got a 0-dim tensor");
  check(self.sizes().back() == 2, "view_as_complex(): the last dimension must have size 2; got ",
        self.sizes().back());
  check(self.strides().back() == 1,
        "view_as_complex(): the last dimension must have stride 1; got ", self.strides().back());
  IntVec sizes(self.sizes().first(self.sizes().size() - 1)), strides;
  for (size_t d = 0; d < sizes.size(); ++d) {
    check(self.strides()[d] % 2 == 0,
          "view_as_complex(): strides before the last must be even; got ", self.strides()[d],
          " in dimension ", d);
    strides.push_back(self.strides()[d] / 2);
  }
  check(self.storage_offset() % 2 == 0, "view_as_complex(): the storage offset must be even; got ",
        self.storage_offset());
  Tensor t = alias_tensor(self, sizes, strides, self.storage_offset() / 2);
  t->dtype = complex_of(self.dtype());
  return t;
}

}  // namespace facula::geometry
