// Arithmetic on sizes, strides and offsets that users choose: overflow raises instead of wrapping.
#pragma once
#include "core/error.h"
#include "core/small_vector.h"

namespace facula {

// RuntimeError "`what` overflowed: `a` `sign` `b`".
[[noreturn]] void throw_overflow(const char* what, int64_t a, char sign, int64_t b);

// a + b, a - b, a * b; RuntimeError that names `what` when int64 does not hold the result.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    throw_overflow(what, a, '+', b);
  return sum;
}
inline int64_t checked_sub(int64_t a, int64_t b, const char* what) {
  int64_t rest;
  if (__builtin_sub_overflow(a, b, &rest)) [[unlikely]]
    throw_overflow(what, a, '-', b);
  return rest;
}
inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
    throw_overflow(what, a, '*', b);
  return product;
}

// The sum or product of all numbers; RuntimeError that names `what` on overflow.
inline int64_t checked_sum(IntSpan numbers, const char* what) {
  int64_t sum = 0;
  for (int64_t n : numbers) sum = checked_add(sum, n, what);
  return sum;
}
inline int64_t checked_product(IntSpan numbers, const char* what) {
  int64_t product = 1;
  for (int64_t n : numbers) product = checked_mul(product, n, what);
  return product;
}

// a * b modulo 2^64, for strides and offsets that no element is reached by.
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// a * b, or INT64_MAX on overflow. Neither may be negative.
inline int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// a + b, or INT64_MAX on overflow. Neither may be negative.
inline int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// Strides of a tensor without gaps, whose dimensions are ordered by `fastest_first`. RuntimeError
// "Stride calculation overflowed", which only the sizes of an empty tensor can cause.
IntVec dense_strides(IntSpan sizes, IntSpan fastest_first);

}  // namespace facula
