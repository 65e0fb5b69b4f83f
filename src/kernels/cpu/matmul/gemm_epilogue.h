// The epilogue of a product: alpha * sum + beta * c, then the activation if there is one, and one
// rounding to the type of the result.
#pragma once
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_pack.h"

namespace facula::cpu::FACULA_ISA {

// Applies a function to `n` elements in place: in a buffer of the caller that holds many, because
// who reads what was just stored waits until memory has taken all that was stored before.
template <class T>
inline void activate(Activation function, T* first, int64_t n) {
  char* const at = reinterpret_cast<char*>(first);
  char* const data[] = {at, at};
  constexpr int64_t steps[] = {sizeof(T), sizeof(T)};
  function(data, steps, n, nullptr);
}

// The same for a buffer with room for whole vectors, so that nothing is left to a loop for single
// elements.
template <class T>
inline void activate_padded(Activation function, T* first, int64_t n) {
  const int64_t padded = round_up(n, Simd<T>::lanes);
  for (int64_t i = n; i < padded; ++i) first[i] = T(0);
  activate(function, first, padded);
}

// alpha * sum + beta * c. A factor of one is left out: as a complex factor it would turn an
// infinity into a NaN.
template <class T, class S>
[[gnu::always_inline]] inline void store_sum(T* c, S sum, accumulate_t<T> alpha,
                                             accumulate_t<T> beta) {
  using Scalar = accumulate_t<T>;
  Scalar value = Convert<Scalar, S>::call(sum);
  if (!(alpha == Scalar(1))) value = alpha * value;
  if (beta == Scalar(1)) {
    value = value + Convert<Scalar, T>::call(*c);
  } else if (!(beta == Scalar(0))) {
    value = value + beta * Convert<Scalar, T>::call(*c);
  }
  *c = Convert<T, Scalar>::call(value);
}

// Whether the result is the sum.
template <class T>
bool is_plain(const GemmArgs<T>& g) {
  using Scalar = accumulate_t<T>;
  return g.alpha == Scalar(1) && g.beta == Scalar(0) && !g.activation;
}

// Elements of a row that are finished at a time.
inline constexpr int64_t epilogue_width = 512;

// value[j] = alpha * value[j] + beta * c[j], in loops of one kind each; n <= epilogue_width.
template <class T>
inline void blend(const GemmArgs<T>& g, accumulate_t<T>* value, const T* c, int64_t n) {
  using Scalar = accumulate_t<T>;
  if (!(g.alpha == Scalar(1)))
    for (int64_t j = 0; j < n; ++j) value[j] = g.alpha * value[j];
  if (g.beta == Scalar(0)) return;
  if (g.beta == Scalar(1) && g.c_cs == 1) {
    for (int64_t j = 0; j < n; ++j) value[j] = value[j] + Convert<Scalar, T>::call(c[j]);
    return;
  }
  Scalar old[epilogue_width];
  copy_row(old, c, g.c_cs, n);
  if (!(g.beta == Scalar(1)))
    for (int64_t j = 0; j < n; ++j) old[j] = g.beta * old[j];
  for (int64_t j = 0; j < n; ++j) value[j] = value[j] + old[j];
}

template <class T>
inline void store_row(const GemmArgs<T>& g, T* c, const accumulate_t<T>* value, int64_t n) {
  if (g.c_cs == 1) return copy_row(c, value, 1, n);
  for (int64_t j = 0; j < n; ++j) c[j * g.c_cs] = Convert<T, accumulate_t<T>>::call(value[j]);
}

// The whole result from sums that it overwrites: g.m rows `pitch` apart, all written, with room for
// a whole vector at the end; g.n <= epilogue_width.
template <class T>
void epilogue_block(const GemmArgs<T>& g, accumulate_t<T>* sums, int64_t pitch) {
  for (int64_t i = 0; i < g.m; ++i) blend(g, sums + i * pitch, g.c + i * g.c_rs, g.n);
  if (g.activation) activate_padded(g.activation, sums, g.m * pitch);
  for (int64_t i = 0; i < g.m; ++i) store_row(g, g.c + i * g.c_rs, sums + i * pitch, g.n);
}

template <class T, class SumAt>
void epilogue_piece(const GemmArgs<T>& g, T* c, int64_t count, const SumAt& sum) {
  alignas(vector_bytes) accumulate_t<T> value[epilogue_width];
  for (int64_t j = 0; j < count; ++j) value[j] = static_cast<accumulate_t<T>>(sum(j));
  blend(g, value, c, count);
  if (g.activation) activate_padded(g.activation, value, count);
  store_row(g, c, value, count);
}

// Row i of the result from its sums, which `sum` gives by column.
template <class T, class SumAt>
inline void epilogue_row(const GemmArgs<T>& g, int64_t i, const SumAt& sum) {
  T* c = g.c + i * g.c_rs;
  if constexpr (!is_complex_v<T>) {
    // Half types are converted many at a time.
    if (g.activation || !std::is_same_v<T, accumulate_t<T>>) {
      for (int64_t from = 0; from < g.n; from += epilogue_width)
        epilogue_piece(g, c + from * g.c_cs, min_of(epilogue_width, g.n - from),
                       [&](int64_t j) { return sum(from + j); });
      return;
    }
  }
  for (int64_t j = 0; j < g.n; ++j) store_sum(c + j * g.c_cs, sum(j), g.alpha, g.beta);
}

}  // namespace facula::cpu::FACULA_ISA
