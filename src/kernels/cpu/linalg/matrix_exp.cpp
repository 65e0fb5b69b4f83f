// By Taylor polynomials, scaling and squaring: Bader, Blanes and Casas, Computing the matrix
// exponential with an optimized Taylor polynomial approximation (2019). Their polynomials of
// degree 8, 12 and 18 take 3, 4 and 5 products, and no division.
#include "kernels/cpu/linalg/matrix_exp.h"

#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/scratch.h"
#include "kernels/cpu/matmul/gemm.h"

namespace facula::cpu::FACULA_ISA {
namespace {

enum Degree : int { One, Two, Four, Eight, Twelve, Eighteen, degrees };

// Up to which 1-norm of the matrix each degree has a backward error below the type's epsilon.
template <class R>
constexpr double largest_norm[degrees] = {2.220446049250313e-16, 2.580956802971767e-08,
                                          3.397168839976962e-04, 4.991228871115323e-02,
                                          2.996158913811580e-01, 1.090863719290036};
template <>
constexpr double largest_norm<float>[degrees] = {1.192092800768788e-07, 5.978858893805233e-04,
                                                 5.116619363445086e-02, 5.800524627688768e-01,
                                                 1.461661507209034,     3.010066362817634};

// Each row gives one factor's coefficients of I, A, A^2 and A^3.
constexpr double twelve[4][4] = {
    {9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740},
    {5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031,
     0.01108844528519167989},
    {0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968,
     0.00610700528898058230},
    {-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359}};
// The same, and of A^6.
constexpr double eighteen[5][5] = {
    {0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0},
    {0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
     -6.37898194594723280150e-04},
    {-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
     -6.98210122488052056106e-03, 3.34975017086070470649e-05},
    {-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
     2.95552570429315521194e-02, -1.39180257516060693404e-05},
    {0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05}};

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
  using type = R;
};

// One matrix at a time, n by n and row by row, in the scratch memory of one thread.
template <class T>
class Exponential {
  using R = typename RealOf<T>::type;

 public:
  explicit Exponential(int64_t n) : n_(n), area_(n * n), memory_(matrices * n * n) {
    for (int i = 0; i < matrices; ++i) room_[i] = memory_.get() + i * area_;
  }

  void run(const T* a, T* result) {
    const double norm = largest_column(a);
    if (!std::isfinite(norm)) return set(result, R(std::numeric_limits<double>::quiet_NaN()));
    int degree = One;
    while (degree < Eighteen && norm > largest_norm<R>[degree]) ++degree;
    if (norm <= largest_norm<R>[degree]) return polynomial(degree, a, result);
    const int halvings = static_cast<int>(std::ceil(std::log2(norm / largest_norm<R>[Eighteen])));
    T* scaled = room_[matrices - 1];
    const R scale = static_cast<R>(std::ldexp(1.0, -halvings));
    for (int64_t i = 0; i < area_; ++i) scaled[i] = a[i] * T(scale);
    polynomial(Eighteen, scaled, result);
    for (int i = 0; i < halvings; ++i) square(result);
  }

 private:
  static constexpr int matrices = 7;

  double largest_column(const T* a) const {
    double most = 0;
    for (int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += magnitude(a[i * n_ + j]);
      if (!(sum <= most)) most = sum;  // NaN too, and it stays
      if (std::isnan(most)) return most;
    }
    return most;
  }
  static double magnitude(T x) {
    if constexpr (is_complex_v<T>)
      return std::hypot(double(x.re), double(x.im));
    else
      return std::fabs(double(x));
  }
  void set(T* to, R value) const {
    for (int64_t i = 0; i < area_; ++i) to[i] = T(value);
  }
  void multiply(const T* a, const T* b, T* to) const {
    gemm<T>({n_, n_, n_, a, n_, 1, b, n_, 1, to, n_, 1});
  }
  void square(T* a) {
    T* copy = room_[0];
    for (int64_t i = 0; i < area_; ++i) copy[i] = a[i];
    multiply(copy, copy, a);
  }
  // to += value I
  void add_identity(T* to, double value) const {
    for (int64_t i = 0; i < n_; ++i) to[i * n_ + i] += T(R(value));
  }
  // to = c[0] I + c[1] p[1] + ...; `to` may be one of the powers.
  template <int terms>
  void combine(const double* c, const T* const* p, T* to) const {
    R factor[terms];
    for (int k = 1; k < terms; ++k) factor[k] = static_cast<R>(c[k]);
    for (int64_t i = 0; i < area_; ++i) {
      T sum = p[1][i] * T(factor[1]);
      for (int k = 2; k < terms; ++k) sum = sum + p[k][i] * T(factor[k]);
      to[i] = sum;
    }
    add_identity(to, c[0]);
  }
  void add(const T* a, T* to) const {
    for (int64_t i = 0; i < area_; ++i) to[i] = to[i] + a[i];
  }

  void polynomial(int degree, const T* a, T* to) {
    if (degree == Eighteen) return degree_eighteen(a, to);
    if (degree == Twelve) return degree_twelve(a, to);
    if (degree == Eight) return degree_eight(a, to);
    if (degree == Four) return degree_four(a, to);
    if (degree == Two) return degree_two(a, to);
    for (int64_t i = 0; i < area_; ++i) to[i] = a[i];
    add_identity(to, 1);
  }
  void degree_two(const T* a, T* to) {
    const double c[] = {1, 1, 0.5};
    multiply(a, a, room_[0]);
    const T* p[] = {nullptr, a, room_[0]};
    combine<3>(c, p, to);
  }
  // I + A + A^2 (I/2 + A/6 + A^2/24)
  void degree_four(const T* a, T* to) {
    T *a2 = room_[0], *inner = room_[1];
    multiply(a, a, a2);
    const T* p[] = {nullptr, a, a2};
    const double c[] = {1.0 / 2, 1.0 / 6, 1.0 / 24};
    combine<3>(c, p, inner);
    multiply(a2, inner, to);
    add(a, to);
    add_identity(to, 1);
  }
  // I + A + y A^2 + (x3 A^2 + B) (x4 I + x5 A + x6 A^2 + x7 B) with B = A^2 (x1 A + x2 A^2).
  void degree_eight(const T* a, T* to) {
    const double root = std::sqrt(177.0), x3 = 2.0 / 3;
    const double inner[] = {0, x3 * (1 + root) / 88, x3 * (1 + root) / 352};
    const double left[] = {0, x3, 1};
    const double right[] = {(-271 + 29 * root) / (315 * x3), 11 * (-1 + root) / (1260 * x3),
                            11 * (-9 + root) / (5040 * x3), (89 - root) / (5040 * x3 * x3)};
    const double rest[] = {1, 1, (857 - 58 * root) / 630, 1};
    T *a2 = room_[0], *b = room_[1], *first = room_[2], *second = room_[3];
    multiply(a, a, a2);
    const T* p[] = {nullptr, a, a2, b};
    combine<3>(inner, p, first);
    multiply(a2, first, b);
    const T* of_left[] = {nullptr, a2, b};
    combine<3>(left, of_left, first);
    combine<4>(right, p, second);
    multiply(first, second, b);
    combine<4>(rest, p, to);
  }
  // B1 + (B2 + C) C with C = B3 + B4^2.
  void degree_twelve(const T* a, T* to) {
    T *a2 = room_[0], *a3 = room_[1], *c = room_[2], *b = room_[3];
    multiply(a, a, a2);
    multiply(a2, a, a3);
    const T* p[] = {nullptr, a, a2, a3};
    combine<4>(twelve[3], p, b);
    multiply(b, b, to);
    combine<4>(twelve[2], p, c);
    add(to, c);
    combine<4>(twelve[1], p, b);
    add(c, b);
    multiply(b, c, to);
    combine<4>(twelve[0], p, b);
    add(b, to);
  }
  // B2 + (B3 + C) C with C = B1 B5 + B4.
  void degree_eighteen(const T* a, T* to) {
    T *a2 = room_[0], *a3 = room_[1], *a6 = room_[2], *b = room_[3], *c = room_[4], *d = room_[5];
    multiply(a, a, a2);
    multiply(a2, a, a3);
    multiply(a3, a3, a6);
    const T* p[] = {nullptr, a, a2, a3, a6};
    combine<5>(eighteen[0], p, b);
    combine<5>(eighteen[4], p, d);
    multiply(b, d, c);
    combine<5>(eighteen[3], p, b);
    add(b, c);
    combine<5>(eighteen[2], p, b);
    add(c, b);
    multiply(b, c, to);
    combine<5>(eighteen[1], p, b);
    add(b, to);
  }

  int64_t n_, area_;
  Scratch<T> memory_;
  T* room_[matrices];
};

template <class T>
void exponentials(const Tensor& from, const Tensor& to) {
  const int64_t n = from.size(-1), area = n * n, count = area == 0 ? 0 : from.numel() / area;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / (area * n + 1));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    Exponential<T> one(n);
    for (int64_t i = begin; i < end; ++i)
      one.run(from.data<T>() + i * area, to.data<T>() + i * area);
  });
}

// Whether a matrix that is passed on as it stands is what the loops above expect.
bool stands_ready(const Tensor& t, DType dtype) {
  return t.dtype() == dtype && t.is_contiguous() && !t->conj && !t->neg;
}

}  // namespace

void matrix_exp(const Tensor& self, const Tensor& result) {
  const DType d = self.dtype();
  const DType in = d == DType::Float16 || d == DType::BFloat16 ? DType::Float32 : d;
  Tensor from = self, to = result;
  if (!stands_ready(self, in)) copy(from = empty_tensor(self.sizes(), in), self);
  if (!stands_ready(result, in)) to = empty_tensor(result.sizes(), in);
  dispatch<float, double, ComplexTypes>(in, "matrix_exp",
                                        [&]<class T>(Type<T>) { exponentials<T>(from, to); });
  if (!to.is_same(result)) copy(result, to);
}

}  // namespace facula::cpu::FACULA_ISA
