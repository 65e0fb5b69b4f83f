#include "ops/fft/points.h"

#include <algorithm>

#include "ops/create/copy.h"
#include "ops/meta_rules.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"

namespace facula::fft {

int64_t normalization(const Norm& norm, bool forward) {
  constexpr int64_t none = 0, by_root = 1, by_number = 2;
  const std::string_view mode = norm.value_or("backward");
  if (mode == "ortho") return by_root;
  check(mode == "backward" || mode == "forward", "Invalid normalization mode: \"", mode,
        "\"; expected \"backward\", \"ortho\" or \"forward\"");
  return (mode == "forward") == forward ? by_number : none;
}

Tensor promoted(const Tensor& self, bool complex) {
  const DType d = float_of(self.dtype());
  const bool full = d == DType::Float32 || d == DType::Float64;
  const bool half = d == DType::Float16 && !self.device().is_cpu();
  check_kind(ErrorKind::NotImplemented, full || half || is_complex(d), "Unsupported dtype ",
             info(d).legacy_name, " on ", str(self.device()),
             ": a transform is of float32, float64, complex64 or complex128");
  return ops::to(self, complex ? complex_of(d) : d);
}

int64_t existing_dim(const Tensor& self, int64_t dim) {
  check_index(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, self.dim());
}

void check_points(int64_t n) {
  check(n >= 1, "Invalid number of data points (", n, ") specified; expected at least 1");
}

Tensor resized(const Tensor& self, IntSpan dims, IntSpan sizes) {
  Tensor cut = self;
  const size_t rank = static_cast<size_t>(self.dim());
  IntVec pad(2 * rank);
  bool longer = false;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = dims[k], more = sizes[k] - self.sizes()[d];
    if (more < 0) cut = ops::slice(cut, d, 0, sizes[k]);
    if (more <= 0) continue;
    pad[2 * (rank - 1 - static_cast<size_t>(d)) + 1] = more;  // of the last dimension first
    longer = true;
  }
  return longer ? ops::constant_pad_nd(cut, pad) : cut;
}

namespace {

IntVec chosen_dims(const Tensor& self, const Shape& s, const Shape& dim) {
  IntVec dims;
  if (dim) {
    for (int64_t d : *dim) {
      const int64_t w = existing_dim(self, d);
      check(std::ranges::find(dims, w) == dims.end(), "FFT dims must be unique; got ", str(*dim));
      dims.push_back(w);
    }
    check(!s || s->size() == dims.size(),
          "When given, dim and shape arguments must have the same length; got ", str(*dim));
    return dims;
  }
  const int64_t count = s ? static_cast<int64_t>(s->size()) : self.dim();
  check(count <= self.dim(), "Got shape with ", count, " values but input tensor only has ",
        self.dim(), " dimensions.");
  for (int64_t d = self.dim() - count; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Extent extent_of(const Tensor& self, const Shape& s, const Shape& dim, bool halved) {
  Extent e{chosen_dims(self, s, dim), {}};
  for (size_t k = 0; k < e.dims.size(); ++k) {
    const bool given = s && (*s)[k] != -1, last = k + 1 == e.dims.size();
    const int64_t size = self.sizes()[e.dims[k]];
    e.sizes.push_back(given ? (*s)[k] : halved && last ? 2 * (size - 1) : size);
    check_points(e.sizes.back());
  }
  return e;
}

}  // namespace facula::fft
