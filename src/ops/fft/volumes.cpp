// Transforms along several dimensions.
#include "ops/fft/volumes.h"

#include "dispatch/out_dtype.h"
#include "dispatch/typed.h"
#include "ops/complex/complex.h"
#include "ops/fft/points.h"
#include "ops/fft/transforms.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using namespace fft;

void check_real(const Tensor& self, const char* op) {
  check_type(!is_complex(self.dtype()), op, "(): expected a real input; got ", name(self.dtype()));
}
void check_some(const Extent& e, const char* op) {
  check(!e.dims.empty(), op, " must transform at least one axis; got none");
}
// All dimensions but the last.
IntSpan before_last(const IntVec& v) { return IntSpan(v).first(v.size() - 1); }

template <bool forward>
Tensor any(const Tensor& self, Shape s, Shape dim, Norm norm) {
  const Extent e = extent_of(self, s, dim);
  const Tensor input = resized(promoted(self, true), e.dims, e.sizes);
  return ops::_fft_c2c(input, e.dims, normalization(norm, forward), forward);
}

Tensor rfft(const Tensor& self, Shape s, Shape dim, Norm norm) {
  check_real(self, "fft.rfftn");
  const Extent e = extent_of(self, s, dim);
  check_some(e, "fft.rfftn()");
  const Tensor input = resized(promoted(self, false), e.dims, e.sizes);
  return ops::_fft_r2c(input, e.dims, normalization(norm, true), true);
}

// Half of the coefficients that `e` speaks of.
Tensor half_of(const Tensor& self, const Extent& e) {
  IntVec sizes = e.sizes;
  sizes.back() = sizes.back() / 2 + 1;
  return resized(promoted(self, true), e.dims, sizes);
}

Tensor irfft(const Tensor& self, Shape s, Shape dim, Norm norm) {
  const Extent e = extent_of(self, s, dim, true);
  check_some(e, "fft.irfftn()");
  return ops::_fft_c2r(half_of(self, e), e.dims, normalization(norm, false), e.sizes.back());
}

// The passes along the other dimensions go forward, so that the conjugate is taken between.
Tensor hfft(const Tensor& self, Shape s, Shape dim, Norm norm) {
  const Extent e = extent_of(self, s, dim, true);
  check_some(e, "fft.hfftn()");
  const int64_t mode = normalization(norm, true);
  Tensor half = half_of(self, e);
  if (e.dims.size() > 1) half = ops::_fft_c2c(half, before_last(e.dims), mode, true);
  return ops::_fft_c2r(ops::conj(half), {e.dims.back()}, mode, e.sizes.back());
}

Tensor ihfft(const Tensor& self, Shape s, Shape dim, Norm norm) {
  check_real(self, "fft.ihfftn");
  const Extent e = extent_of(self, s, dim);
  check_some(e, "fft.ihfftn()");
  const int64_t mode = normalization(norm, false);
  const Tensor input = resized(promoted(self, false), e.dims, e.sizes),
               half = ops::_fft_r2c(input, {e.dims.back()}, mode, true);
  if (e.dims.size() == 1) return ops::conj(half);
  return ops::_fft_c2c(ops::conj_physical(half), before_last(e.dims), mode, false);
}

// Of images, whose dimensions have a default.
template <Tensor (*transform)(const Tensor&, Shape, Shape, Norm)>
Tensor plane(const Tensor& self, Shape s, IntSpan dim, Norm norm) {
  return transform(self, s, dim, norm);
}

constexpr OpRecord along_several(KernelRef kernel, OpRecord r) {
  r.python_module = "fft";
  r.composite = Composite::Implicit;
  r.any = kernel;
  return r;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(fft_fftn)
along_several(
    typed_kernel<any<true>>,
    {
        .schema =
            "fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        .doc =
            "Discrete Fourier transform along several dimensions, all unless dim or s is given; s"
            " says how many points each has.",
        .forms = function | out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_ifftn)
along_several(
    typed_kernel<any<false>>,
    {
        .schema =
            "fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        .doc = "Inverse of fft.fftn.",
        .forms = function | out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_rfftn)
along_several(
    typed_kernel<rfft>,
    {
        .schema =
            "fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        .doc = "Transform of real numbers along several dimensions, of which the last keeps the "
               "first half of its coefficients.",
        .forms = function | out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_irfftn)
along_several(
    typed_kernel<irfft>,
    {
        .schema = "fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> "
                  "Tensor",
        .doc =
            "Inverse of fft.rfftn; the last dimension has 2 (size - 1) points unless s is given.",
        .forms = function | out,
        .flags = real_out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_hfftn)
along_several(
    typed_kernel<hfft>,
    {
        .schema =
            "fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        .doc = "Transform to real numbers of the first half of numbers that are conjugates of each "
               "other around the middle.",
        .forms = function | out,
        .flags = real_out,

    });
OP(fft_ihfftn)
along_several(typed_kernel<ihfft>, {
                                       .schema = "fft_ihfftn(Tensor self, SymInt[1]? s=None, "
                                                 "int[1]? dim=None, str? norm=None) -> Tensor",
                                       .doc = "Inverse of fft.hfftn.",
                                       .forms = function | out,

                                   });
OP(fft_fft2)
along_several(
    typed_kernel<plane<any<true>>>,
    {
        .schema = "fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) "
                  "-> Tensor",
        .doc = "The same as fft.fftn along two dimensions, the last ones unless dim is given.",
        .forms = function | out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_ifft2)
along_several(typed_kernel<plane<any<false>>>,
              {
                  .schema = "fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? "
                            "norm=None) -> Tensor",
                  .doc = "Inverse of fft.fft2.",
                  .forms = function | out,
                  .autocast_cpu = Autocast::Float32,
              });
OP(fft_rfft2)
along_several(
    typed_kernel<plane<rfft>>,
    {
        .schema = "fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) "
                  "-> Tensor",
        .doc = "The same as fft.rfftn along two dimensions, the last ones unless dim is given.",
        .forms = function | out,
        .autocast_cpu = Autocast::Float32,
    });
OP(fft_irfft2)
along_several(typed_kernel<plane<irfft>>,
              {
                  .schema = "fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? "
                            "norm=None) -> Tensor",
                  .doc = "Inverse of fft.rfft2.",
                  .forms = function | out,
                  .flags = real_out,
                  .autocast_cpu = Autocast::Float32,
              });
OP(fft_hfft2)
along_several(
    typed_kernel<plane<hfft>>,
    {
        .schema = "fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) "
                  "-> Tensor",
        .doc = "The same as fft.hfftn along two dimensions, the last ones unless dim is given.",
        .forms = function | out,
        .flags = real_out,

    });
OP(fft_ihfft2)
along_several(typed_kernel<plane<ihfft>>,
              {
                  .schema = "fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? "
                            "norm=None) -> Tensor",
                  .doc = "Inverse of fft.hfft2.",
                  .forms = function | out,

              });
