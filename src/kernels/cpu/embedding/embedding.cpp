#include "kernels/cpu/embedding/embedding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/scalar.h"
#include "core/threads.h"
#include "kernels/cpu/embedding/rows.h"
#include "kernels/cpu/index/index.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// Row numbers as 64-bit integers, each checked, in memory of our own.
struct RowNumbers {
  Tensor memory;
  size_t size() const { return static_cast<size_t>(memory.numel()); }
  const int64_t* begin() const { return memory.data<int64_t>(); }
  const int64_t* end() const { return begin() + size(); }
};

// Numbers that one task handles.
constexpr int64_t number_run = 16384;

RowNumbers row_numbers(const Tensor& indices, int64_t rows) {
  const RowNumbers numbers{contiguous(converted(indices, DType::Int64))};
  const int64_t* list = numbers.begin();
  parallel_for(numbers.memory.numel(), number_run, [&](int64_t begin, int64_t end) {
    check_index(FACULA_OF_ISA(are_rows)(list + begin, end - begin, rows),
                "index out of range in self");
  });
  return numbers;
}

// The table in parts of a power of two of rows, each summed by one task in the order of indices.
struct TableParts {
  static constexpr int64_t most = 16;
  int shift = 62;
  std::vector<int64_t> order;  // places in the list of indices, part by part
  std::vector<int64_t> starts;

  TableParts(std::span<const int64_t> numbers, int64_t rows, int64_t width)
      : order(numbers.size()) {
    if (numbers.size() * static_cast<size_t>(width) >= 65536)
      shift = std::bit_width(static_cast<uint64_t>((rows - 1) / most));
    starts.resize(static_cast<size_t>(((rows - 1) >> shift) + 2));
    const auto n = static_cast<int64_t>(numbers.size()), parts = count();
    // By runs of the list, which threads share: how many of a run belong to a part, and then where
    // the first of them stands.
    std::vector<int64_t> at(static_cast<size_t>((n + number_run - 1) / number_run * parts));
    const auto for_runs = [&](auto&& body) {
      parallel_for(n, number_run, [&](int64_t begin, int64_t end) {
        int64_t* run = at.data() + begin / number_run * parts;
        for (int64_t i = begin; i < end; ++i)
          body(i, run[numbers[static_cast<size_t>(i)] >> shift]);
      });
    };
    for_runs([](int64_t, int64_t& found) { ++found; });
    int64_t before = 0;
    for (int64_t part = 0; part < parts; ++part) {
      for (size_t k = static_cast<size_t>(part); k < at.size(); k += static_cast<size_t>(parts))
        before += std::exchange(at[k], before);
      starts[static_cast<size_t>(part) + 1] = before;
    }
    for_runs([&](int64_t i, int64_t& place) { order[static_cast<size_t>(place++)] = i; });
  }
  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
};

template <class T>
void sum_into_table(const T* grad, std::span<const int64_t> numbers,
                    const std::vector<int64_t>& counts, int64_t rows, int64_t width,
                    int64_t padding, T* out) {
  if (numbers.empty() || rows == 0) return;
  const TableParts parts(numbers, rows, width);
  parallel_for(parts.count(), 1, [&](int64_t begin, int64_t end) {
    const int64_t first = parts.starts[static_cast<size_t>(begin)],
                  last = parts.starts[static_cast<size_t>(end)];
    const RowSums<T> rows_of{grad,
                             parts.order.data() + first,
                             numbers.data(),
                             last - first,
                             width,
                             padding,
                             counts.empty() ? nullptr : counts.data()};
    FACULA_OF_ISA(add_rows<T>)(rows_of, out);
  });
}

}  // namespace

void embedding(const Tensor& weight, const Tensor& indices, const Tensor& out) {
  check_index(take_dense_rows(contiguous(weight), indices, out), "index out of range in self");
}

void embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t rows,
                              int64_t padding, bool scale_by_frequency, const Tensor& out) {
  if (!visit_floating(out.dtype(), [](auto) {}))
    not_implemented_for("embedding_backward", out.dtype());
  const RowNumbers numbers = row_numbers(indices, rows);
  std::vector<int64_t> counts;
  if (scale_by_frequency) {
    counts.resize(static_cast<size_t>(rows));
    for (int64_t n : numbers) ++counts[static_cast<size_t>(n)];
  }
  const DType wide = compute_of(out.dtype());
  const Tensor g = contiguous(grad.dtype() == wide ? grad : converted(grad, wide));
  const Tensor sum = out.dtype() == wide ? out : empty_tensor(out.sizes(), wide);
  fill(sum, 0);
  const int64_t width = rows > 0 ? out.numel() / rows : 0;
  dispatch<float, double>(wide, "embedding_backward", [&]<class T>(Type<T>) {
    sum_into_table<T>(g.data<T>(), {numbers.begin(), numbers.size()}, counts, rows, width, padding,
                      sum.data<T>());
  });
  if (!sum.is_same(out)) copy(out, sum);
}

void embedding_renorm(const Tensor& weight, const Tensor& indices, double max_norm,
                      double norm_type) {
  const RowNumbers checked = row_numbers(indices, weight.size(0));
  std::vector<int64_t> numbers(checked.begin(), checked.end());
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
  const DType wide = DType::Float64;
  for (int64_t n : numbers) {
    const Tensor row = alias_tensor(weight, weight.sizes().subspan(1), weight.strides().subspan(1),
                                    weight.storage_offset() + n * weight.stride(0));
    const Tensor values = converted(row, wide);
    double norm = 0;
    for (int64_t k = 0; k < values.numel(); ++k) {
      const double v = std::fabs(values.data<double>()[k]);
      if (std::isinf(norm_type))
        norm = std::max(norm, v);
      else
        norm += norm_type == 2 ? v * v : std::pow(v, norm_type);
    }
    if (!std::isinf(norm_type))
      norm = norm_type == 2 ? std::sqrt(norm) : std::pow(norm, 1 / norm_type);
    if (norm <= max_norm) continue;
    const double scale = max_norm / (norm + 1e-7);
    for (int64_t k = 0; k < values.numel(); ++k) values.data<double>()[k] *= scale;
    copy(row, values);
  }
}

}  // namespace facula::cpu
