#include "kernels/cpu/reduce/distance.h"

#include <algorithm>
#include <cmath>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t lanes = 8;
constexpr int64_t work_per_chunk = 1 << 14;

template <class F>
void visit(DType d, const char* kernel, F&& f) {
  dispatch<float, double>(d, kernel, f);
}

// The sum of a fixed number of partial sums, of numbers or of vectors.
template <class V>
[[gnu::always_inline]] inline V sum_of_parts(const V* part) {
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// Adds up term(|a - b|, sum) with a fixed number of lanes, so that it vectorizes.
template <class T, class F>
T sum_of(const T* a, const T* b, int64_t n, F add) {
  T part[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) part[k] = add(std::abs(a[i + k] - b[i + k]), part[k]);
  for (int64_t k = 0; i < n; ++i, ++k) part[k] = add(std::abs(a[i] - b[i]), part[k]);
  return sum_of_parts(part);
}

template <class T>
T largest(const T* a, const T* b, int64_t n) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T d = std::abs(a[i] - b[i]);
    if (!(d <= most)) most = d;  // nan stays
    if (most != most) return most;
  }
  return most;
}

template <class T>
T distance(const T* a, const T* b, int64_t n, double p) {
  if (p == 2)
    return std::sqrt(sum_of(a, b, n, [](T d, T sum) { return multiply_add<T>(d, d, sum); }));
  if (p == 1) return sum_of(a, b, n, [](T d, T sum) { return sum + d; });
  if (p == 0) return sum_of(a, b, n, [](T d, T sum) { return sum + T(d != 0); });
  if (std::isinf(p)) return largest(a, b, n);
  const T power = static_cast<T>(p);
  const auto add = [power](T d, T sum) { return sum + std::pow(d, power); };
  return std::pow(sum_of(a, b, n, add), T(1) / power);
}

// Adds to `out` the gradient of grad * |a - b|_p by a.
template <class T>
void add_slope(const T* a, const T* b, int64_t n, double p, T grad, T distance, T* out) {
  const auto sign = [](T x) { return T((x > 0) - (x < 0)); };
  if (p == 0 || grad == 0) return;
  if (p == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] += grad * sign(a[i] - b[i]);
    return;
  }
  if (distance == 0) return;
  if (p == 2) {
    const T scale = grad / distance;
    for (int64_t i = 0; i < n; ++i) out[i] += scale * (a[i] - b[i]);
    return;
  }
  if (std::isinf(p)) {
    for (int64_t i = 0; i < n; ++i) {
      const T d = a[i] - b[i];
      if (std::abs(d) == distance) out[i] += grad * sign(d);
    }
    return;
  }
  const T power = static_cast<T>(p - 1), scale = grad / std::pow(distance, power);
  for (int64_t i = 0; i < n; ++i) {
    const T d = a[i] - b[i];
    if (d != 0) out[i] += scale * sign(d) * std::pow(std::abs(d), power);
  }
}

int64_t chunk_of(int64_t work) {
  return std::max<int64_t>(1, work_per_chunk / std::max<int64_t>(work, 1));
}

// Two operands with their batches broadcast and counted as one.
struct Pairs {
  Tensor x1, x2;
  int64_t batch, rows1, rows2, width;
};
Pairs pairs_of(const Tensor& x1, const Tensor& x2) {
  const auto head = [](const Tensor& t) {
    return t.sizes().first(static_cast<size_t>(t.dim() - 2));
  };
  const IntVec shared = broadcast_sizes(head(x1), head(x2));
  const auto spread = [&](const Tensor& t) {
    IntVec sizes(shared), strides(shared.size());
    const int64_t skipped = static_cast<int64_t>(shared.size()) - (t.dim() - 2);
    for (int64_t d = skipped; d < static_cast<int64_t>(shared.size()); ++d)
      strides[d] = t.sizes()[d - skipped] == 1 ? 0 : t.strides()[d - skipped];
    for (int64_t d = t.dim() - 2; d < t.dim(); ++d) {
      sizes.push_back(t.sizes()[d]);
      strides.push_back(t.strides()[d]);
    }
    return contiguous(alias_tensor(t, sizes, strides, t.storage_offset()));
  };
  int64_t batch = 1;
  for (int64_t n : shared) batch *= n;
  return {spread(x1), spread(x2), batch, x1.size(-2), x2.size(-2), x1.size(-1)};
}

// A vector of distances from `a` to the points that are the columns of b, `width` rows of a vector
// each; every one is summed as distance() does.
template <class T>
[[gnu::always_inline]] inline void euclidean_vector(const T* a, const T* b, int64_t width, T* out) {
  using S = Simd<T>;
  using V = typename S::Vec;
  V part[lanes] = {};
  const auto add = [&](int64_t i, int64_t k) {
    const V d = S::broadcast(a[i + k]) - S::load(b + (i + k) * S::lanes);
    part[k] = multiply_add<V>(d, d, part[k]);
  };
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
#pragma GCC unroll 8
    for (int64_t k = 0; k < lanes; ++k) add(i, k);
  }
#pragma GCC unroll 8
  for (int64_t k = 0; k < lanes; ++k)
    if (i + k < width) add(i, k);
  S::store(out, sum_of_parts(part));
  for (int j = 0; j < S::lanes; ++j) out[j] = std::sqrt(out[j]);
}

// Distances of `rows` points to all those of b, some of which at a time stand in vectors.
template <class T>
void euclidean_rows(const T* a, int64_t rows, const T* b, int64_t others, int64_t width, T* out) {
  constexpr int64_t wide = Simd<T>::lanes;
  const Scratch<T> columns(width * wide);
  for (int64_t j = 0; j < others; j += wide) {
    const int64_t count = std::min(wide, others - j);
    if (count < wide) std::fill_n(columns.get(), width * wide, T(0));
    copy_transposed(columns.get(), wide, b + j * width, width, width, count);
    for (int64_t i = 0; i < rows; ++i) {
      T* to = out + i * others + j;
      if (count == wide) {
        euclidean_vector(a + i * width, columns.get(), width, to);
      } else {
        alignas(vector_bytes) T last[wide];
        euclidean_vector(a + i * width, columns.get(), width, last);
        std::copy_n(last, count, to);
      }
    }
  }
}

template <class T>
void euclidean_distances(const Pairs& s, T* out) {
  const T *a = s.x1.data<T>(), *b = s.x2.data<T>();
  // Standing a vector of points takes as long as a few rows.
  const int64_t block = std::min(s.rows1, std::max<int64_t>(16, chunk_of(s.rows2 * s.width)));
  const int64_t blocks = (s.rows1 + block - 1) / block;
  parallel_for(s.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t batch = job / blocks, row = job % blocks * block;
      euclidean_rows(a + (batch * s.rows1 + row) * s.width, std::min(block, s.rows1 - row),
                     b + batch * s.rows2 * s.width, s.rows2, s.width,
                     out + (batch * s.rows1 + row) * s.rows2);
    }
  });
}

// Position of the pair (i, j), i < j, in the list of pairs of n rows.
int64_t pair_number(int64_t i, int64_t j, int64_t n) { return i * n - i * (i + 1) / 2 + j - i - 1; }

}  // namespace

void cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>,
           const Tensor& out) {
  const Pairs s = pairs_of(x1, x2);
  visit(x1.dtype(), "cdist", [&]<class T>(Type<T>) {
    const T* a = s.x1.data<T>();
    const T* b = s.x2.data<T>();
    T* to = out.data<T>();
    if (p == 2 && s.rows1 >= 8 && s.rows2 >= lanes) return euclidean_distances(s, to);
    parallel_for(s.batch * s.rows1, chunk_of(s.rows2 * s.width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < s.rows2; ++j)
          to[i * s.rows2 + j] =
              distance(a + i * s.width, b + (i / s.rows1 * s.rows2 + j) * s.width, s.width, p);
    });
  });
}

void cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                    const Tensor& distances, const Tensor& out) {
  fill(out, 0);
  if (out.numel() == 0) return;
  const Pairs s = pairs_of(x1, x2);
  const Tensor g = contiguous(grad), known = contiguous(distances);
  visit(x1.dtype(), "cdist_backward", [&]<class T>(Type<T>) {
    const T* a = s.x1.data<T>();
    const T* b = s.x2.data<T>();
    parallel_for(s.batch * s.rows1, chunk_of(s.rows2 * s.width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < s.rows2; ++j) {
          const int64_t at = i * s.rows2 + j;
          add_slope(a + i * s.width, b + (i / s.rows1 * s.rows2 + j) * s.width, s.width, p,
                    g.data<T>()[at], known.data<T>()[at], out.data<T>() + i * s.width);
        }
    });
  });
}

void pdist(const Tensor& self, double p, const Tensor& out) {
  const Tensor x = contiguous(self);
  const int64_t n = x.sizes()[0], width = x.sizes()[1];
  visit(x.dtype(), "pdist", [&]<class T>(Type<T>) {
    const T* a = x.data<T>();
    parallel_for(n, chunk_of(n * width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = i + 1; j < n; ++j)
          out.data<T>()[pair_number(i, j, n)] = distance(a + i * width, a + j * width, width, p);
    });
  });
}

void pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& distances,
                    const Tensor& out) {
  fill(out, 0);
  const Tensor x = contiguous(self), g = contiguous(grad), known = contiguous(distances);
  const int64_t n = x.sizes()[0], width = x.sizes()[1];
  visit(x.dtype(), "pdist_backward", [&]<class T>(Type<T>) {
    const T* a = x.data<T>();
    parallel_for(n, chunk_of(n * width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < n; ++j) {
          if (i == j) continue;
          const int64_t at = pair_number(std::min(i, j), std::max(i, j), n);
          add_slope(a + i * width, a + j * width, width, p, g.data<T>()[at], known.data<T>()[at],
                    out.data<T>() + i * width);
        }
    });
  });
}

}  // namespace facula::cpu::FACULA_ISA
