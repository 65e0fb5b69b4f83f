#include "kernels/cpu/quantized/arithmetic.h"

#include <cmath>

#include "core/threads.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t grain = 32768;  // values that a thread takes at once

// Rounds as dequantization, the operator on floats and quantization do one after the other.
template <QuantizedOperation operation, bool relu, class T>
void run(const T* x, const T* y, int64_t n, const AffineNumbers& a, const AffineNumbers& b,
         const AffineResult& how, T* result) {
  const float a_scale = a.scale, a_zero = a.zero_point, b_scale = b.scale, b_zero = b.zero_point;
  const float inverse = 1.0f / how.scale, zero = how.zero_point;
  const float least = how.least, greatest = how.greatest;
  for (int64_t i = 0; i < n; ++i) {
    const float left = (static_cast<float>(x[i]) - a_zero) * a_scale;
    const float right = (static_cast<float>(y[i]) - b_zero) * b_scale;
    float v = operation == QuantizedOperation::Add ? left + right : left * right;
    if constexpr (relu) v = v < 0.0f ? 0.0f : v;
    v = std::nearbyint(v * inverse) + zero;
    v = v < greatest ? v : greatest;
    v = v > least ? v : least;
    result[i] = static_cast<T>(static_cast<int32_t>(v));
  }
}

}  // namespace

void quantized_binary(QuantizedOperation operation, DType type, const AffineNumbers& a,
                      const AffineNumbers& b, int64_t n, const AffineResult& how, void* result) {
  dispatch<int8_t, uint8_t>(type, "quantized_binary", [&]<class T>(Type<T>) {
    using enum QuantizedOperation;
    const auto function = operation == Add ? (how.relu ? run<Add, true, T> : run<Add, false, T>)
                          : how.relu       ? run<Multiply, true, T>
                                           : run<Multiply, false, T>;
    const T *x = static_cast<const T*>(a.integers), *y = static_cast<const T*>(b.integers);
    T* to = static_cast<T*>(result);
    parallel_for(n, grain, [=, &a, &b, &how](int64_t begin, int64_t end) {
      function(x + begin, y + begin, end - begin, a, b, how, to + begin);
    });
  });
}

}  // namespace facula::cpu::FACULA_ISA
