// Window functions for signals.
#include "ops/create/windows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/loop/convert.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

using Dtype = std::optional<DType>;
using Where = std::optional<Layout>;
using On = std::optional<Device>;
using Pin = std::optional<bool>;

void meta_window(Meta& m, int64_t length, Dtype dtype) {
  const bool into = m.call.op->variant == Variant::Out;
  const DType d = into ? m.call.args[m.call.info->base_args].as_tensor().dtype()
                       : dtype.value_or(default_dtype());
  check(is_floating(d), m.op_name(), " expects floating point dtypes, got: ", name(d));
  check(length >= 0, m.op_name(), "(): window_length must not be negative; got ", length);
  m.result(0, {&length, 1}, d);
}

// Fills a window of which value(i, n) is element i of n; a periodic one is the first part of a
// symmetric one that is longer by one.
template <class F>
void fill_window(const Tensor& out, bool periodic, F&& value) {
  const int64_t length = out.numel(), n = periodic ? length + 1 : length;
  if (length == 0) return;
  const Tensor wide = empty_tensor({&length, 1}, DType::Float64);
  for (int64_t i = 0; i < length; ++i)
    wide.data<double>()[i] =
        length == 1 ? 1.0 : value(static_cast<double>(i), static_cast<double>(n - 1));
  cpu::copy(out, wide);
}

double cosine(double i, double last, double cycles) {
  return std::cos(2 * std::numbers::pi * cycles * i / last);
}

void fill_bartlett(const Tensor& out, bool periodic) {
  fill_window(out, periodic, [](double i, double last) { return 1 - std::abs(2 * i / last - 1); });
}
void fill_hamming(const Tensor& out, bool periodic, double alpha, double beta) {
  fill_window(out, periodic,
              [=](double i, double last) { return alpha - beta * cosine(i, last, 1); });
}
void fill_hann(const Tensor& out, bool periodic) { fill_hamming(out, periodic, 0.5, 0.5); }
void fill_blackman(const Tensor& out, bool periodic) {
  fill_window(out, periodic, [](double i, double last) {
    // Ends that rounding would put below zero are zero.
    return std::max(0.0, 0.42 - 0.5 * cosine(i, last, 1) + 0.08 * cosine(i, last, 2));
  });
}
void fill_kaiser(const Tensor& out, bool periodic, double beta) {
  const double scale = std::cyl_bessel_i(0.0, std::abs(beta));
  fill_window(out, periodic, [=](double i, double last) {
    const double x = 2 * i / last - 1;
    return std::cyl_bessel_i(0.0, std::abs(beta) * std::sqrt(std::max(0.0, 1 - x * x))) / scale;
  });
}

void meta_plain(Meta& m, int64_t length, Dtype dtype, Where, On, Pin) {
  meta_window(m, length, dtype);
}
void meta_periodic(Meta& m, int64_t length, bool, Dtype dtype, Where, On, Pin) {
  meta_window(m, length, dtype);
}
void meta_number(Meta& m, int64_t length, bool, double, Dtype dtype, Where, On, Pin) {
  meta_window(m, length, dtype);
}
void meta_two_numbers(Meta& m, int64_t length, bool, double, double, Dtype dtype, Where, On, Pin) {
  meta_window(m, length, dtype);
}

template <void (*F)(const Tensor&, bool)>
void plain(int64_t, Dtype, Where, On, Pin, const Tensor& out) {
  F(out, true);
}
template <void (*F)(const Tensor&, bool)>
void chosen(int64_t, bool periodic, Dtype, Where, On, Pin, const Tensor& out) {
  F(out, periodic);
}
void hamming_default(const Tensor& out, bool periodic) { fill_hamming(out, periodic, 0.54, 0.46); }
void hamming_alpha(int64_t, bool periodic, double alpha, Dtype, Where, On, Pin, const Tensor& out) {
  fill_hamming(out, periodic, alpha, 0.46);
}
void hamming_alpha_beta(int64_t, bool periodic, double alpha, double beta, Dtype, Where, On, Pin,
                        const Tensor& out) {
  fill_hamming(out, periodic, alpha, beta);
}
void kaiser_default(const Tensor& out, bool periodic) { fill_kaiser(out, periodic, 12.0); }
void kaiser_beta(int64_t, bool periodic, double beta, Dtype, Where, On, Pin, const Tensor& out) {
  fill_kaiser(out, periodic, beta);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(bartlett_window){
    .schema =
        "bartlett_window(int window_length, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Bartlett (triangular) window, periodic.",
    .flags = factory,
    .meta = typed_meta<meta_plain>,
    .cpu = typed_kernel<plain<&fill_bartlett>>,
};
OP(bartlett_window_periodic){
    .schema =
        "bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Bartlett (triangular) window, periodic or symmetric.",
    .flags = factory,
    .meta = typed_meta<meta_periodic>,
    .cpu = typed_kernel<chosen<&fill_bartlett>>,
};
OP(hann_window){
    .schema =
        "hann_window(int window_length, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Hann window, periodic.",
    .flags = factory,
    .meta = typed_meta<meta_plain>,
    .cpu = typed_kernel<plain<&fill_hann>>,
};
OP(hann_window_periodic){
    .schema =
        "hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Hann window, periodic or symmetric.",
    .flags = factory,
    .meta = typed_meta<meta_periodic>,
    .cpu = typed_kernel<chosen<&fill_hann>>,
};
OP(hamming_window){
    .schema =
        "hamming_window(int window_length, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Hamming window, periodic.",
    .flags = factory,
    .meta = typed_meta<meta_plain>,
    .cpu = typed_kernel<plain<&hamming_default>>,
};
OP(hamming_window_periodic){
    .schema =
        "hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Hamming window, periodic or symmetric.",
    .flags = factory,
    .meta = typed_meta<meta_periodic>,
    .cpu = typed_kernel<chosen<&hamming_default>>,
};
OP(blackman_window){
    .schema =
        "blackman_window(int window_length, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Blackman window, periodic.",
    .flags = factory,
    .meta = typed_meta<meta_plain>,
    .cpu = typed_kernel<plain<&fill_blackman>>,
};
OP(blackman_window_periodic){
    .schema =
        "blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Blackman window, periodic or symmetric.",
    .flags = factory,
    .meta = typed_meta<meta_periodic>,
    .cpu = typed_kernel<chosen<&fill_blackman>>,
};
OP(kaiser_window){
    .schema =
        "kaiser_window(int window_length, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Kaiser window with beta 12, periodic.",
    .flags = factory,
    .meta = typed_meta<meta_plain>,
    .cpu = typed_kernel<plain<&kaiser_default>>,
};
OP(kaiser_window_periodic){
    .schema =
        "kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Kaiser window with beta 12, periodic or symmetric.",
    .flags = factory,
    .meta = typed_meta<meta_periodic>,
    .cpu = typed_kernel<chosen<&kaiser_default>>,
};
OP(hamming_window_periodic_alpha){
    .schema =
        "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, "
        "ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The generalised Hamming window with coefficients alpha and 0.46.",
    .flags = factory,
    .meta = typed_meta<meta_number>,
    .cpu = typed_kernel<hamming_alpha>,
};
OP(hamming_window_periodic_alpha_beta){
    .schema =
        "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float "
        "beta, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The generalised Hamming window with coefficients alpha and beta.",
    .flags = factory,
    .meta = typed_meta<meta_two_numbers>,
    .cpu = typed_kernel<hamming_alpha_beta>,
};
OP(kaiser_window_beta){
    .schema =
        "kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? "
        "dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The Kaiser window with shape parameter beta.",
    .flags = factory,
    .meta = typed_meta<meta_number>,
    .cpu = typed_kernel<kaiser_beta>,
};
