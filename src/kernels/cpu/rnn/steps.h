// The steps of a batch of sequences, laid one after the other as rows of a matrix, and the matrix
// products that both directions of a recurrent layer are made of.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_pairs.h"
#include "kernels/cpu/norm/converted.h"
#include "kernels/cpu/simd/block_sizes.h"

namespace facula::cpu::FACULA_ISA {

// Step t has the rows [begin(t), begin(t + 1)): the sequences that are long enough, longest first.
class Steps {
 public:
  Steps(const Tensor& input, IntSpan batch_sizes, bool reverse)
      : count_(batch_sizes.empty() ? input.size(0) : static_cast<int64_t>(batch_sizes.size())),
        reverse_(reverse),
        begin_(count_ + 1) {
    begin_.get()[0] = 0;
    for (int64_t t = 0; t < count_; ++t)
      begin_.get()[t + 1] =
          begin(t) + (batch_sizes.empty() ? input.size(1) : batch_sizes[static_cast<size_t>(t)]);
  }
  int64_t count() const { return count_; }
  int64_t begin(int64_t t) const { return begin_.get()[t]; }
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
  Scratch<int64_t> begin_;
};

// Sequences that one thread takes through all steps. Weights that stay in a core's cache are best
// read by each thread for itself; larger ones are shared by one product of all sequences.
inline int64_t sequences_per_chunk(int64_t batch, int64_t weight_bytes) {
  constexpr int64_t least = 8, most_chunks = 16;
  if (weight_bytes > block_sizes().recurrent_weights) return batch;
  return max_of(least, ceil_div(batch, most_chunks));
}

// Rows per chunk of a loop over the gates of one step.
inline int64_t rows_per_chunk(int64_t gates) {
  return max_of(int64_t{1}, (int64_t{1} << 12) / max_of(gates, int64_t{1}));
}

template <class To, class From>
void copy_elements(To* to, const From* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = Convert<To, From>::call(from[i]);
}

// C[m,n] = A B in the type of the sums, where rows of C are contiguous.
template <class A, class In>
void multiply(int64_t m, int64_t n, int64_t k, const In* a, int64_t a_rs, const In* b, int64_t b_rs,
              int64_t b_cs, A* c, int64_t c_rs) {
  if constexpr (std::is_same_v<A, In>) {
    gemm<A>({m, n, k, a, a_rs, 1, b, b_rs, b_cs, c, c_rs, 1});
  } else {
    if (m > 0 && n > 0 && k > 0) pair_product({m, n, k, a, a_rs, 1, b, b_rs, b_cs, c, c_rs, 1, 0});
  }
}

// The right side (k, n) of the products of all steps, made ready once.
template <class A, class In>
class StepWeights {
 public:
  StepWeights(const A* b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n)
      : k_(k), n_(n), b_(b), b_rs_(b_rs), own_(b_cs == 1 ? 1 : k * n) {
    if (b_cs == 1) return;
    transpose(b, b_cs);
    b_ = own_.get();
    b_rs_ = n;
  }
  // C = A B, or C + A B.
  void multiply(int64_t m, const A* a, int64_t a_rs, A* c, int64_t c_rs, bool add) const {
    gemm<A>({m, n_, k_, a, a_rs, 1, b_, b_rs_, 1, c, c_rs, 1, A(1), A(add ? 1 : 0)});
  }

 private:
  void transpose(const A* b, int64_t b_cs) {
    constexpr int64_t block = 16;
    A* to = own_.get();
    parallel_for(k_, block, [&](int64_t begin, int64_t end) {
      for (int64_t first = 0; first < n_; first += block)
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = first; j < n_ && j < first + block; ++j)
            to[i * n_ + j] = b[i + j * b_cs];
    });
  }

  int64_t k_, n_;
  const A* b_;
  int64_t b_rs_;
  Scratch<A> own_;
};
template <>
class StepWeights<float, BFloat16> {
 public:
  StepWeights(const BFloat16* b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n)
      : panels_(b, b_rs, b_cs, k, n) {}
  void multiply(int64_t m, const BFloat16* a, int64_t a_rs, float* c, int64_t c_rs,
                bool add) const {
    panels_.multiply(m, a, a_rs, c, c_rs, add);
  }

 private:
  PairPanels panels_;
};

// Operands of products: as they are in bfloat16 where the processor multiplies pairs of it, else in
// the type of the sums.
template <class A, class In>
class Operand {
 public:
  explicit Operand(const Tensor& t) : tensor_(contiguous(t)) {}
  const In* data() const { return tensor_.data<In>(); }

 private:
  Tensor tensor_;
};
template <class A>
class Operand<A, A> : public ConvertedInput<A> {
 public:
  using ConvertedInput<A>::ConvertedInput;
};

// Calls f.template operator()<A, In>() with the type of the sums and that of the products.
template <class F>
void visit_rnn_types(DType d, F&& f) {
  if (d == DType::Float64) return f.template operator()<double, double>();
  if (d == DType::BFloat16 && has_pair_products) return f.template operator()<float, BFloat16>();
  dispatch<float, Half, BFloat16>(d, "rnn_layer",
                                  [&](auto) { f.template operator()<float, float>(); });
}

}  // namespace facula::cpu::FACULA_ISA
