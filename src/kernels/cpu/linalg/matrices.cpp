#include "kernels/cpu/linalg/matrices.h"

#include <limits>

#include "core/error.h"
#include "kernels/cpu/linalg/parts.h"
#include "kernels/cpu/linalg/triangular.h"
#include "kernels/cpu/linalg/turned.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

constexpr int64_t small_area = 1024;

template <class T>
void turn_batch(const Tensor& to, const Tensor& from) {
  const int64_t m = from.size(-2), n = from.size(-1), area = m * n;
  for_each_part(matrix_count(from), area, [&](int64_t first, int64_t many) {
    FACULA_OF_ISA(turn_matrices<T>)
    (to.data<T>() + first * area, from.data<T>() + first * area, many, m, n);
  });
}

}  // namespace

int64_t matrix_count(const Tensor& t) {
  int64_t count = 1;
  for (int64_t n : batch_sizes(t)) count *= n;
  return count;
}

Tensor empty_columns(IntSpan sizes, DType dtype) {
  IntVec turned(sizes);
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return matrix_transposed(empty_tensor(turned, dtype));
}

bool stands_in_columns(const Tensor& t) {
  return matrix_transposed(t).is_contiguous() && !t->conj && !t->neg;
}

Tensor columns(const Tensor& t) {
  if (stands_in_columns(t)) return t;
  const Tensor made = empty_columns(t.sizes(), t.dtype());
  copy_to_columns(made, t);
  return made;
}

void copy_to_columns(const Tensor& to, const Tensor& from) {
  const bool plain = from.is_contiguous() && !from->conj && !from->neg &&
                     std::ranges::equal(from.sizes(), to.sizes()) && from.dtype() == to.dtype();
  const int64_t area = from.dim() < 2 ? 0 : from.size(-2) * from.size(-1);
  if (plain && area > 0 && area <= small_area) {
    if (to.dtype() == DType::Float32) return turn_batch<float>(to, from);
    if (to.dtype() == DType::Float64) return turn_batch<double>(to, from);
  }
  copy(to, from);
}

ColumnResult::ColumnResult(const Tensor& result)
    : result_(result),
      work_(stands_in_columns(result) ? result : empty_columns(result.sizes(), result.dtype())) {}

void ColumnResult::store() const {
  if (!work_.is_same(result_)) copy(result_, work_);
}

ContiguousResult::ContiguousResult(const Tensor& result)
    : result_(result),
      work_(result.is_contiguous() ? result : empty_tensor(result.sizes(), result.dtype())) {}

void ContiguousResult::store() const {
  if (!work_.is_same(result_)) copy(result_, work_);
}

std::vector<int64_t> batch_offsets(const Tensor& t, IntSpan sizes, int64_t item_dims) {
  std::vector<int64_t> offsets = {0};
  const int64_t own = t.dim() - item_dims, missing = static_cast<int64_t>(sizes.size()) - own;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    const size_t from = static_cast<size_t>(std::max<int64_t>(0, d - missing));
    const bool spread = d < missing || t.sizes()[from] == 1;
    const int64_t stride = spread ? 0 : t.strides()[from], n = sizes[static_cast<size_t>(d)];
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(n));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < n; ++i) next.push_back(base + i * stride);
    offsets.swap(next);
  }
  return offsets;
}

int lapack_size(int64_t n) {
  check(n <= std::numeric_limits<int>::max(), "LAPACK: expected sizes of matrices below 2^31; got ",
        n);
  return static_cast<int>(n);
}

}  // namespace facula::cpu
