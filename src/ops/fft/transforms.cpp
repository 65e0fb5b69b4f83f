// The three transforms that all others are made of: of complex numbers, from real ones and to them.
#include "ops/fft/transforms.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"
#include "core/threads.h"
#include "dispatch/batch_families.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// What results are divided by: nothing, the root of the number of elements, or that number.
enum class Normalization : int64_t { None, ByRoot, ByNumber };

// --- shapes

IntVec wrapped_dims(const std::string& op, IntSpan dim, const Tensor& self) {
  check_index(self.dim() > 0 || dim.empty(), op, "(): self has no dimensions; got dim ", str(dim));
  IntVec dims;
  for (int64_t d : dim) {
    const int64_t w = wrap_dim(d, self.dim());
    check(std::ranges::find(dims, w) == dims.end(), op, "(): FFT dims must be unique; got ",
          str(dim));
    dims.push_back(w);
  }
  return dims;
}

// Of the given sizes, dense: dimensions that are not transformed first, then those that are, each
// in the order of the input's strides, and last the one that changes between real and complex.
IntVec transformed_strides(IntSpan sizes, const Tensor& self, IntSpan dims, bool has_last) {
  const IntSpan strides = self.strides();
  const size_t sorted = dims.size() - (has_last ? 1 : 0);
  IntVec order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
  const size_t batch = order.size();
  for (int64_t d : dims) order.push_back(d);
  const auto longer = [&](int64_t a, int64_t b) { return strides[a] > strides[b]; };
  std::stable_sort(order.begin(), order.begin() + batch, longer);
  std::stable_sort(order.begin() + batch, order.begin() + batch + sorted, longer);
  IntVec result(sizes.size());
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    result[order[k]] = step;
    step = wrapping_mul(step, std::max<int64_t>(sizes[order[k]], 1));
  }
  return result;
}

void check_mode(const Meta& m, int64_t normalization) {
  check(normalization >= 0 && normalization <= 2, m.op_name(),
        "(): normalization must be 0 (none), 1 (by the root of n) or 2 (by n); got ",
        normalization);
}
void check_complex(const Meta& m, const Tensor& self) {
  check(is_complex(self.dtype()), m.op_name(), "(): self must be complex; got ",
        name(self.dtype()));
}
// The transformed dimensions, of which at least one must be named and none may be empty.
IntVec dims_with_last(const Meta& m, const Tensor& self, IntSpan dim) {
  check(!dim.empty(), m.op_name(), "(): dim must name at least one dimension; got none");
  return wrapped_dims(m.op_name(), dim, self);
}
void check_points(const Meta& m, int64_t n) {
  check(n >= 1, m.op_name(), "(): Invalid number of data points (", n, ") specified");
}

void meta_complex(Meta& m, const Tensor& self, IntSpan dim, int64_t normalization, bool) {
  check_complex(m, self);
  check_mode(m, normalization);
  if (dim.empty() || self.numel() == 0) return m.result_like(0, self, self.dtype());
  const IntVec dims = wrapped_dims(m.op_name(), dim, self);
  for (int64_t d : dims) check_points(m, self.sizes()[d]);
  m.result(0, self.sizes(), self.dtype(), transformed_strides(self.sizes(), self, dims, false));
}

void meta_from_real(Meta& m, const Tensor& self, IntSpan dim, int64_t normalization,
                    bool onesided) {
  check_type(is_floating(self.dtype()), m.op_name(), "(): self must be floating point; got ",
             name(self.dtype()));
  check_mode(m, normalization);
  const IntVec dims = dims_with_last(m, self, dim);
  for (int64_t d : dims) check_points(m, self.sizes()[d]);
  IntVec sizes(self.sizes());
  if (onesided) sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  m.result(0, sizes, complex_of(self.dtype()), transformed_strides(sizes, self, dims, true));
}

void meta_to_real(Meta& m, const Tensor& self, IntSpan dim, int64_t normalization, int64_t n) {
  check_complex(m, self);
  check_mode(m, normalization);
  const IntVec dims = dims_with_last(m, self, dim);
  const int64_t last = dims.back();
  for (int64_t d : dims)
    if (d != last) check_points(m, self.sizes()[d]);
  check_points(m, n);
  check(self.sizes()[last] == n / 2 + 1, m.op_name(), "(): for last_dim_size ", n, " dimension ",
        last, " must be of size ", n / 2 + 1, "; got ", self.sizes()[last]);
  IntVec sizes(self.sizes());
  sizes[last] = n;
  m.result(0, sizes, real_of(self.dtype()), transformed_strides(sizes, self, dims, true));
}

// --- kernels: one pass for each dimension

// The factor of all passes together, for results of the given sizes.
double scale_of(int64_t normalization, IntSpan sizes, IntSpan dims) {
  double points = 1;
  for (int64_t d : dims) points *= static_cast<double>(sizes[d]);
  switch (static_cast<Normalization>(normalization)) {
    case Normalization::ByRoot:
      return 1 / std::sqrt(points);
    case Normalization::ByNumber:
      return 1 / points;
    case Normalization::None:
      break;
  }
  return 1;
}

// Complex passes along all dims, the last of which multiplies by `scale`.
void transform_dims(const Tensor& from, const Tensor& to, IntSpan dims, double scale,
                    bool forward) {
  const auto transform = FACULA_OF_ISA(transform_complex);
  for (size_t k = dims.size(); k-- > 0;) {
    const bool first = k + 1 == dims.size();
    transform(first ? from : to, to, dims[k], k == 0 ? scale : 1, forward);
  }
}

// Some of what is transformed by itself: indices from `begin` on in dimension `dim`, or all.
struct Part {
  int64_t dim = -1, begin = 0, count = 0;

  Tensor of(const Tensor& t) const {
    if (dim < 0) return t;
    IntVec sizes(t.sizes());
    sizes[dim] = count;
    return alias_tensor(t, sizes, t.strides(), t.storage_offset() + begin * t.strides()[dim]);
  }
};

// Calls body(part) for all of `out`: where it has several passes and is longer than a second cache,
// for parts that stay there from one pass to the next. Parts follow from the shape alone, whether
// threads share them out or work on each together.
template <class Body>
void for_each_part(const Tensor& out, IntSpan dims, const Body& body) {
  constexpr int64_t part_bytes = int64_t{256} << 10, second_cache = int64_t{1} << 20;
  const int64_t bytes = out.numel() * static_cast<int64_t>(itemsize(out.dtype()));
  int64_t batch = -1;
  for (int64_t d = 0; d < out.dim(); ++d)
    if (std::ranges::find(dims, d) == dims.end() && out.sizes()[d] > 1 &&
        (batch < 0 || out.strides()[d] > out.strides()[batch]))
      batch = d;
  if (dims.size() < 2 || batch < 0 || bytes <= 2 * second_cache) return body(Part());
  const int64_t size = out.sizes()[batch], one = bytes / size;
  if (one > second_cache) return body(Part());
  const int64_t step = std::max<int64_t>(1, part_bytes / one), parts = (size + step - 1) / step;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      body(Part{batch, p * step, std::min(step, size - p * step)});
  };
  if (parts >= num_threads())
    parallel_for(parts, 1, run);
  else
    run(0, parts);
}

void transform_complex(const Tensor& self, IntSpan dim, int64_t normalization, bool forward,
                       const Tensor& out) {
  if (dim.empty()) return cpu::copy(out, self);
  const IntVec dims = wrapped_dims("_fft_c2c", dim, self);
  const double scale = scale_of(normalization, self.sizes(), dims);
  for_each_part(out, dims, [&](const Part& part) {
    transform_dims(part.of(self), part.of(out), dims, scale, forward);
  });
}

void transform_from_real(const Tensor& self, IntSpan dim, int64_t normalization, bool,
                         const Tensor& out) {
  const IntVec dims = wrapped_dims("_fft_r2c", dim, self);
  const IntSpan others = IntSpan(dims).first(dims.size() - 1);
  const double scale = scale_of(normalization, self.sizes(), dims);
  const auto transform = FACULA_OF_ISA(transform_from_real);
  for_each_part(out, dims, [&](const Part& part) {
    const Tensor to = part.of(out);
    transform(part.of(self), to, dims.back(), scale);
    transform_dims(to, to, others, 1, true);
  });
}

void transform_to_real(const Tensor& self, IntSpan dim, int64_t normalization, int64_t,
                       const Tensor& out) {
  const IntVec dims = wrapped_dims("_fft_c2r", dim, self);
  const IntSpan others = IntSpan(dims).first(dims.size() - 1);
  Tensor half = self;
  if (!others.empty())
    half = empty_strided_tensor(self.sizes(), transformed_strides(self.sizes(), self, dims, true),
                                self.dtype());
  const double scale = scale_of(normalization, out.sizes(), dims);
  const auto transform = FACULA_OF_ISA(transform_to_real);
  for_each_part(out, dims, [&](const Part& part) {
    const Tensor from = part.of(half);
    transform_dims(part.of(self), from, others, 1, false);
    transform(from, part.of(out), dims.back(), scale);
  });
}

// --- derivatives

// Of the n / 2 + 1 coefficients of n real numbers, each but the first and, for an even n, the last
// stands for its conjugate too: those times `factor`.
Tensor with_twins_times(const Tensor& half, int64_t dim, int64_t n, double factor) {
  IntVec shape(static_cast<size_t>(half.dim()), 1);
  shape[dim] = n / 2 + 1;
  const Tensor factors = ops::ones({n / 2 + 1}, real_of(half.dtype()), std::nullopt, half.device());
  ops::fill_(ops::slice(factors, 0, 1, 1 + (n - 1) / 2), factor);
  return ops::mul(half, ops::reshape(factors, shape));
}

Tensor complex_gradient(Backward& b) {
  return ops::_fft_c2c(b.grad(), b.ints("dim"), b.integer("normalization"), !b.flag("forward"));
}

Tensor from_real_gradient(Backward& b) {
  const IntSpan dim = b.ints("dim"), sizes = b.sizes("self");
  const int64_t mode = b.integer("normalization");
  if (!b.flag("onesided")) return ops::real(ops::_fft_c2c(b.grad(), dim, mode, false));
  const int64_t last = wrap_dim(dim.back(), static_cast<int64_t>(sizes.size())), n = sizes[last];
  return ops::_fft_c2r(with_twins_times(b.grad(), last, n, 0.5), dim, mode, n);
}

Tensor to_real_gradient(Backward& b) {
  const IntSpan dim = b.ints("dim");
  const int64_t last = wrap_dim(dim.back(), static_cast<int64_t>(b.sizes("self").size()));
  const Tensor half = ops::_fft_r2c(b.grad(), dim, b.integer("normalization"), true);
  return with_twins_times(half, last, b.integer("last_dim_size"), 2);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_fft_c2c){
    .schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    .doc =
        "Discrete Fourier transform of complex numbers along dimensions; normalization divides by "
        "nothing (0), the root of their number (1) or their number (2).",
    .forms = function | out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_complex>,
    .cpu = typed_kernel<transform_complex>,
    .derivatives = {vjp("self", complex_gradient)},
    .node = "FftC2CBackward0",
    .batch = batch::dims,
};
OP(_fft_r2c){
    .schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    .doc =
        "Forward transform of real numbers; onesided gives the first n / 2 + 1 coefficients of the "
        "last dimension named, which the others follow from.",
    .forms = function | out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_from_real>,
    .cpu = typed_kernel<transform_from_real>,
    .derivatives = {vjp("self", from_real_gradient)},
    .node = "FftR2CBackward0",
    .batch = batch::dims,
};
OP(_fft_c2r){
    .schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    .doc =
        "Backward transform to real numbers, last_dim_size of them along the last dimension named, "
        "from the first half of the coefficients there.",
    .forms = function | out,
    .flags = linear | real_out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_to_real>,
    .cpu = typed_kernel<transform_to_real>,
    .derivatives = {vjp("self", to_real_gradient)},
    .node = "FftC2RBackward0",
    .batch = batch::dims,
};
