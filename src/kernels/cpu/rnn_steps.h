// The steps of a batch of sequences, laid one after the other as rows of a matrix, and the memory
// that both directions of a recurrent layer work in.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/norm_wide.h"

namespace facula::cpu::FACULA_ISA {

// Step t has the rows [begin(t), begin(t + 1)): the sequences that are long enough, longest first.
class Steps {
 public:
  Steps(const Tensor& input, IntSpan batch_sizes, bool reverse)
      : count_(batch_sizes.empty() ? input.size(0) : static_cast<int64_t>(batch_sizes.size())),
        reverse_(reverse),
        begin_(count_ + 1) {
    begin_[0] = 0;
    for (int64_t t = 0; t < count_; ++t)
      begin_[t + 1] =
          begin_[t] + (batch_sizes.empty() ? input.size(1) : batch_sizes[static_cast<size_t>(t)]);
  }
  int64_t count() const { return count_; }
  int64_t begin(int64_t t) const { return begin_.data()[t]; }
  int64_t size(int64_t t) const { return begin(t + 1) - begin(t); }
  int64_t rows() const { return begin(count_); }
  // The step that comes as number k on the way forward, and on the way backward.
  int64_t forward(int64_t k) const { return reverse_ ? count_ - 1 - k : k; }
  int64_t backward(int64_t k) const { return forward(count_ - 1 - k); }
  // The row of what came before sequence r's step t; negative where that is the initial state.
  int64_t before(int64_t t, int64_t r) const {
    const int64_t last = reverse_ ? t + 1 : t - 1;
    return last < 0 || last >= count_ || r >= size(last) ? -1 : begin(last) + r;
  }

 private:
  int64_t count_;
  bool reverse_;
  mutable Scratch<int64_t> begin_;
};

// Sequences that one thread takes through all steps. Weights that stay in a core's cache are best
// read by each thread for itself; larger ones are shared by one product of all sequences.
inline int64_t sequences_per_chunk(int64_t batch, int64_t weight_bytes) {
  constexpr int64_t least = 8, most_chunks = 16, cache = int64_t{3} << 19;
  if (weight_bytes > cache) return batch;
  const int64_t even = (batch + most_chunks - 1) / most_chunks;
  return even > least ? even : least;
}

template <class A>
void copy_rows(A* to, const A* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// C[m,n] = A B + beta C of matrices whose rows are contiguous in C and B.
template <class A>
void multiply(int64_t m, int64_t n, int64_t k, const A* a, int64_t a_rs, int64_t a_cs, const A* b,
              int64_t b_rs, int64_t b_cs, A* c, int64_t c_rs, A beta) {
  gemm<A>({m, n, k, a, a_rs, a_cs, b, b_rs, b_cs, c, c_rs, 1, A(1), beta});
}

// to[j] = the sum of column j: in short runs of rows, whose sums are added up.
template <class A>
void column_sums(const A* from, int64_t rows, int64_t columns, A* to) {
  constexpr int64_t block = 64, run = 64;
  parallel_for(columns, block, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) to[j] = 0;
    for (int64_t first = 0; first < rows; first += run) {
      A sums[block] = {};
      const int64_t last = first + run < rows ? first + run : rows;
      for (int64_t r = first; r < last; ++r)
        for (int64_t j = begin; j < end; ++j) sums[j - begin] += from[r * columns + j];
      for (int64_t j = begin; j < end; ++j) to[j] += sums[j - begin];
    }
  });
}

}  // namespace facula::cpu::FACULA_ISA
