// Recurrent layers forward.
#include "kernels/cpu/rnn.h"

#include "kernels/cpu/rnn_cells.h"
#include "kernels/cpu/rnn_steps.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
struct Forward {
  const Steps& steps;
  int64_t h, batch, inputs;
  const A *input, *w_ih, *w_hh, *b_ih, *b_hh;
  A *kept, *output, *hy, *cy;
};

// Columns become rows, so that the product of a step reads its weights as they lie.
template <class A>
void transpose_into(A* to, const A* from, int64_t rows, int64_t columns) {
  constexpr int64_t block = 16;
  parallel_for(columns, block, [&](int64_t begin, int64_t end) {
    for (int64_t first = 0; first < rows; first += block)
      for (int64_t j = begin; j < end; ++j)
        for (int64_t i = first; i < rows && i < first + block; ++i)
          to[j * rows + i] = from[i * columns + j];
  });
}

// One step of the sequences [begin, begin + rows).
template <class Cell, class A>
void step(const Forward<A>& f, const A* weights, A* hidden, int64_t t, int64_t begin,
          int64_t rows) {
  constexpr int64_t gates = Cell::gates, width = Cell::width;
  const int64_t h = f.h, first = f.steps.begin(t) + begin;
  A* kept = f.kept + first * width * h;
  if constexpr (Cell::parts_products)
    multiply<A>(rows, gates * h, h, f.hy + begin * h, h, 1, weights, gates * h, 1, hidden,
                gates * h, A(0));
  else
    multiply<A>(rows, gates * h, h, f.hy + begin * h, h, 1, weights, gates * h, 1, kept, width * h,
                A(1));
  parallel_for(rows, chunk_of(8 * width * h), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      A* state = f.hy + (begin + r) * h;
      Cell::forward({h, kept + r * width * h, hidden + (Cell::parts_products ? r * gates * h : 0),
                     f.b_ih, f.b_hh, f.cy ? f.cy + (begin + r) * h : nullptr, state});
      copy_rows(f.output + (first + r) * h, state, h);
    }
  });
}

template <class Cell, class A>
void run(const Forward<A>& f) {
  constexpr int64_t gates = Cell::gates, width = Cell::width;
  const int64_t h = f.h, all = gates * h;
  multiply<A>(f.steps.rows(), all, f.inputs, f.input, f.inputs, 1, f.w_ih, 1, f.inputs, f.kept,
              width * h, A(0));
  Scratch<A> weights(h * all);
  transpose_into(weights.data(), f.w_hh, all, h);
  const int64_t bytes = h * all * static_cast<int64_t>(sizeof(A));
  parallel_for(f.batch, sequences_per_chunk(f.batch, bytes), [&](int64_t begin, int64_t end) {
    Scratch<A> hidden(Cell::parts_products ? (end - begin) * all : 0);
    for (int64_t k = 0; k < f.steps.count(); ++k) {
      const int64_t t = f.steps.forward(k), last = end < f.steps.size(t) ? end : f.steps.size(t);
      if (last > begin) step<Cell>(f, weights.data(), hidden.data(), t, begin, last - begin);
    }
  });
}

template <class A>
void start(const Tensor& initial, A* state) {
  const WideInput<A> from(initial);
  copy_rows(state, from.data(), initial.numel());
}

template <class A>
void layer(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
           const Tensor& b_hh, const Tensor& hx, const Tensor& cx, const Steps& steps, RnnMode mode,
           const Tensor& output, const Tensor& hy, const Tensor& cy, const Tensor& workspace) {
  const int64_t h = hx.size(1), batch = hx.size(0);
  const WideInput<A> x(input), wi(w_ih), wh(w_hh), bi(b_ih), bh(b_hh);
  const WideResult<A> out(output), state(hy), cell(cy);
  Scratch<A> own(workspace.numel() ? 0 : steps.rows() * rnn_shape(mode).width * h);
  A* kept = workspace.numel() ? reinterpret_cast<A*>(workspace.data<uint8_t>()) : own.data();
  start(hx, state.data());
  if (mode == RnnMode::Lstm) start(cx, cell.data());
  const Forward<A> f = {steps,
                        h,
                        batch,
                        input.size(-1),
                        x.data(),
                        wi.data(),
                        wh.data(),
                        bi.data(),
                        bh.data(),
                        kept,
                        out.data(),
                        state.data(),
                        mode == RnnMode::Lstm ? cell.data() : nullptr};
  switch (mode) {
    case RnnMode::Lstm:
      run<LstmCell<A>>(f);
      break;
    case RnnMode::Gru:
      run<GruCell<A>>(f);
      break;
    case RnnMode::Tanh:
      run<PlainCell<A, false>>(f);
      break;
    case RnnMode::Relu:
      run<PlainCell<A, true>>(f);
      break;
  }
  out.finish();
  state.finish();
  cell.finish();
}

}  // namespace

void rnn_layer(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
               const Tensor& b_hh, const Tensor& hx, const Tensor& cx, bool reverse,
               IntSpan batch_sizes, int64_t mode, int64_t, int64_t, bool has_biases, bool, bool,
               bool, const Tensor& output, const Tensor& hy, const Tensor& cy,
               const Tensor& workspace) {
  const Steps steps(input, batch_sizes, reverse);
  const Tensor none;
  const auto go = [&]<class A>(A) {
    layer<A>(input, w_ih, w_hh, has_biases ? b_ih : none, has_biases ? b_hh : none, hx, cx, steps,
             static_cast<RnnMode>(mode), output, hy, cy, workspace);
  };
  if (input.dtype() == DType::Float64) return go(0.0);
  go(0.0f);
}

}  // namespace facula::cpu::FACULA_ISA
