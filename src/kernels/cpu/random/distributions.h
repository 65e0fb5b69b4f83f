// Random fills whose values are those of PyTorch's x86 build, draw for draw.
//
// Every function takes the generator's mutex. It writes out[0..n) in the order in which the stream
// is consumed; for a non-contiguous tensor PyTorch visits elements in memory order (smallest stride
// innermost), so the caller fills a buffer and scatters it in that order. A complex tensor is
// filled as twice as many reals (with std / sqrt(2) for normals).
#pragma once
#include <cstdint>
#include <optional>

#include "core/dtype.h"
#include "core/random.h"

namespace facula::dist {

// Floating: float, double, Half, BFloat16. Arithmetic: those, bool, uint8_t and int8_t..int64_t.

// Uniform over [from, to). Floating.
template <class T>
void uniform(Generator& g, T* out, int64_t n, double from, double to);

// Normals. `contiguous` says whether the tensor is: for n >= 16 PyTorch then uses another
// algorithm, so the same seed gives other numbers. Floating.
template <class T>
void normal(Generator& g, T* out, int64_t n, double mean, double std, bool contiguous);

// One with probability p, else zero. Arithmetic.
template <class T>
void bernoulli_scalar(Generator& g, T* out, int64_t n, double p);

// out[i] is one with probability p[i]. T arithmetic, P floating.
// Throws RuntimeError when some p[i] is outside [0, 1].
template <class T, class P>
void bernoulli_each(Generator& g, T* out, const P* p, int64_t n);

// Integers of the type's whole non-negative range (up to 2^digits for floats). Arithmetic.
template <class T>
void random(Generator& g, T* out, int64_t n);

// Integers of [base, base + range), range > 0. Arithmetic, uint16_t, uint32_t, uint64_t.
template <class T>
void random_from_to(Generator& g, T* out, int64_t n, uint64_t range, int64_t base);

// Integers of all 64 bits. int64_t, float, double, BFloat16.
template <class T>
void random_full(Generator& g, T* out, int64_t n);

// What random_(from, to) of one dtype draws, after moving the ends to values the dtype holds.
struct RandomRange {
  uint64_t range = 0;
  int64_t base = 0;
  bool full = false;  // all 64 bits: random_full
  // An end is beyond the integers that the dtype holds exactly; PyTorch warns of each.
  bool inexact_from = false, inexact_last = false;
};
// `to` absent means up to the dtype's largest value. Throws RuntimeError for an empty range, for
// ends that the dtype cannot hold, and for dtypes without random integers.
RandomRange random_range(DType dtype, int64_t from, std::optional<int64_t> to);

// A permutation of 0..n-1. Arithmetic but bool; the caller checks that T holds n - 1.
template <class T>
void randperm(Generator& g, T* out, int64_t n);

// Exponential, Cauchy, log-normal: floating. Geometric: arithmetic but bool.
template <class T>
void exponential(Generator& g, T* out, int64_t n, double lambda);
template <class T>
void cauchy(Generator& g, T* out, int64_t n, double median, double sigma);
template <class T>
void log_normal(Generator& g, T* out, int64_t n, double mean, double std);
template <class T>
void geometric(Generator& g, T* out, int64_t n, double p);

// Poisson counts of the given rates. Floating. Throws RuntimeError for a negative rate.
template <class T>
void poisson(Generator& g, T* out, const T* rate, int64_t n);

// Binomial counts of count[i] trials with probability p[i]. float, double.
// Throws RuntimeError for a negative count or a p outside [0, 1].
template <class T>
void binomial(Generator& g, T* out, const T* count, const T* p, int64_t n);

// Gamma variates of shape alpha[i] and scale one. float, double.
template <class T>
void standard_gamma(Generator& g, T* out, const T* alpha, int64_t n);

// Each row of `alpha` (rows x n, contiguous) gives one Dirichlet sample. float, double.
template <class T>
void dirichlet(Generator& g, T* out, const T* alpha, int64_t rows, int64_t n);

// Weights of `rows` categorical distributions over `n` categories, and where they lie.
template <class T>
struct Weights {
  const T* data;
  int64_t rows, n;
  int64_t row_stride, stride;
};

// k category numbers a row, row after row, into out[rows * k]. Floating.
// Both throw RuntimeError for negative, infinite or NaN weights and for rows without weight.
template <class T>
void multinomial_with_replacement(Generator& g, int64_t* out, const Weights<T>& w, int64_t k);
template <class T>
void multinomial_without_replacement(Generator& g, int64_t* out, const Weights<T>& w, int64_t k);

}  // namespace facula::dist
