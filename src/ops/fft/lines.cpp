// Transforms along one dimension.
#include "ops/fft/lines.h"

#include "dispatch/out_dtype.h"
#include "dispatch/typed.h"
#include "ops/fft/points.h"
#include "ops/fft/transforms.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using namespace fft;

void check_real(const Tensor& self, const char* op) {
  check_type(!is_complex(self.dtype()), op, "(): expected a real input; got ", name(self.dtype()));
}

// `input` along `dim` with as many elements as `n` points need.
Tensor with_points(const Tensor& input, int64_t dim, int64_t n) {
  return resized(input, {&dim, 1}, {&n, 1});
}

// Real numbers to the coefficients of `n` points, half of them or all; backward, their conjugates.
Tensor from_real(const Tensor& self, Points n, int64_t dim, const Norm& norm, bool forward,
                 bool onesided) {
  const Tensor input = promoted(self, false);
  const int64_t d = existing_dim(input, dim), points = n.value_or(input.sizes()[d]);
  check_points(points);
  const Tensor result =
      ops::_fft_r2c(with_points(input, d, points), {d}, normalization(norm, forward), onesided);
  return forward ? result : ops::conj(result);
}

// Half of the coefficients of `n` points to real numbers; forward, of their conjugates.
Tensor to_real(const Tensor& self, Points n, int64_t dim, const Norm& norm, bool forward) {
  const Tensor input = promoted(self, true);
  const int64_t d = existing_dim(input, dim), points = n.value_or(2 * (input.sizes()[d] - 1));
  check_points(points);
  const Tensor half = with_points(input, d, points / 2 + 1);
  return ops::_fft_c2r(forward ? ops::conj(half) : half, {d}, normalization(norm, forward), points);
}

template <bool forward>
Tensor any(const Tensor& self, Points n, int64_t dim, const Norm& norm) {
  if (!is_complex(self.dtype())) return from_real(self, n, dim, norm, forward, false);
  const Tensor input = promoted(self, true);
  const int64_t d = existing_dim(input, dim), points = n.value_or(input.sizes()[d]);
  check_points(points);
  return ops::_fft_c2c(with_points(input, d, points), {d}, normalization(norm, forward), forward);
}

Tensor rfft(const Tensor& self, Points n, int64_t dim, const Norm& norm) {
  check_real(self, "fft.rfft");
  return from_real(self, n, dim, norm, true, true);
}
Tensor ihfft(const Tensor& self, Points n, int64_t dim, const Norm& norm) {
  check_real(self, "fft.ihfft");
  return from_real(self, n, dim, norm, false, true);
}
template <bool forward>
Tensor real_result(const Tensor& self, Points n, int64_t dim, const Norm& norm) {
  return to_real(self, n, dim, norm, forward);
}

constexpr OpRecord along_one(KernelRef kernel, OpRecord r) {
  r.python_module = "fft";
  r.composite = Composite::Implicit;
  r.autocast_cpu = Autocast::Float32;
  r.any = kernel;
  return r;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(fft_fft)
along_one(
    typed_kernel<any<true>>,
    {
        .schema = "fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "Discrete Fourier transform along dim, of n points: self is cut, or continued "
               "with zeros.",
        .forms = function | out,
    });
OP(fft_ifft)
along_one(
    typed_kernel<any<false>>,
    {
        .schema = "fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "Inverse of fft.fft.",
        .forms = function | out,
    });
OP(fft_rfft)
along_one(
    typed_kernel<rfft>,
    {
        .schema = "fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "The first n / 2 + 1 coefficients of the transform of real numbers, which the "
               "others follow from.",
        .forms = function | out,
    });
OP(fft_irfft)
along_one(
    typed_kernel<real_result<false>>,
    {
        .schema = "fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "Inverse of fft.rfft: n real numbers, 2 (size - 1) unless n is given.",
        .forms = function | out,
        .flags = real_out,
    });
OP(fft_hfft)
along_one(
    typed_kernel<real_result<true>>,
    {
        .schema = "fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "Transform of n numbers that are conjugates of each other around the middle, "
               "of which self is the first half; the result is real.",
        .forms = function | out,
        .flags = real_out,
    });
OP(fft_ihfft)
along_one(
    typed_kernel<ihfft>,
    {
        .schema = "fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        .doc = "Inverse of fft.hfft.",
        .forms = function | out,
    });
