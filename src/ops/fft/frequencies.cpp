// Where coefficients stand: their frequencies, and the order with frequency zero in the middle.
#include "ops/fft/frequencies.h"

#include "dispatch/typed.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/fft/points.h"
#include "ops/shape/repeat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using Dtype = std::optional<DType>;
using Where = std::optional<Layout>;
using On = std::optional<Device>;
using Pin = std::optional<bool>;

DType frequency_dtype(const char* op, Dtype dtype) {
  const DType d = dtype.value_or(default_dtype());
  check(is_floating(d) || is_complex(d), op, "(): requires a floating point or complex dtype; got ",
        name(d));
  return d;
}

// 0, 1, ... of n samples that are d apart; with both signs those from n / 2 on less n.
Tensor frequencies(int64_t n, bool both_signs, double d, const Tensor& number) {
  if (both_signs) ops::sub_(ops::slice(number, 0, (n + 1) / 2), n);
  return ops::mul_(number, 1.0 / (static_cast<double>(n) * d));
}

Tensor fftfreq(int64_t n, double d, Dtype dtype, Where layout, On device, Pin pin) {
  check(n >= 0, "fft.fftfreq(): n must not be negative; got ", n);
  const DType type = frequency_dtype("fft.fftfreq", dtype);
  return frequencies(n, true, d, ops::arange(n, type, layout, device, pin));
}
Tensor rfftfreq(int64_t n, double d, Dtype dtype, Where layout, On device, Pin pin) {
  const DType type = frequency_dtype("fft.rfftfreq", dtype);
  return frequencies(n, false, d, ops::arange(n / 2 + 1, type, layout, device, pin));
}

template <bool back>
Tensor shifted(const Tensor& self, fft::Shape dim) {
  IntVec dims, shifts;
  if (dim)
    dims = IntVec(*dim);
  else
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  for (int64_t d : dims) {
    const int64_t n = self.sizes()[fft::existing_dim(self, d)];
    shifts.push_back(back ? (n + 1) / 2 : n / 2);
  }
  return ops::roll(self, shifts, dims);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(fft_fftfreq){
    .schema =
        "fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Frequencies of the n coefficients of fft.fft, for samples that are d apart.",
    .forms = function | out,
    .python_module = "fft",
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<fftfreq>,
};
OP(fft_rfftfreq){
    .schema =
        "fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Frequencies of the n / 2 + 1 coefficients of fft.rfft, for samples that are d apart.",
    .forms = function | out,
    .python_module = "fft",
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<rfftfreq>,
};
OP(fft_fftshift){
    .schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
    .doc = "Rolls dimensions, all unless dim is given, so that frequency zero comes to the middle.",
    .forms = function,
    .python_module = "fft",
    .composite = Composite::Implicit,
    .any = typed_kernel<shifted<false>>,
};
OP(fft_ifftshift){
    .schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
    .doc = "Inverse of fft.fftshift.",
    .forms = function,
    .python_module = "fft",
    .composite = Composite::Implicit,
    .any = typed_kernel<shifted<true>>,
};
