// Recurrent layers backward.
#include "kernels/cpu/rnn/cells.h"
#include "kernels/cpu/rnn/rnn.h"
#include "kernels/cpu/rnn/steps.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// A: the type of the sums and of what was kept; In: that of products' operands.
template <class A, class In>
struct Backward {
  const Steps& steps;
  int64_t h, batch;
  const StepWeights<A, In>& weights;
  const A *hx, *cx, *kept;
  int64_t width;
  const A* grad_output;            // null: zero
  A *state, *cell;                 // gradients of the states, at last of the initial ones
  In *input_gates, *hidden_gates;  // of every row; the same memory where a cell has one product
  const A* zeros;                  // a row of them
};

template <class B>
auto state_before(const B& b, int64_t t, int64_t r) {
  const int64_t row = b.steps.before(t, r);
  return row < 0 ? b.hx + r * b.h : b.kept + ((row + 1) * b.width - 1) * b.h;
}

template <class B>
auto cell_before(const B& b, int64_t t, int64_t r) {
  const int64_t row = b.steps.before(t, r);
  return row < 0 ? b.cx + r * b.h : b.kept + ((row + 1) * b.width - 2) * b.h;
}

// The gradients of one row's gates; through `room` where products take another type.
template <class Cell, class A, class In>
void row_gradient(const Backward<A, In>& b, CellGradient<A> g, int64_t row, A* room) {
  const int64_t all = Cell::gates * b.h;
  In *inputs = b.input_gates + row * all, *hidden = b.hidden_gates + row * all;
  if constexpr (std::is_same_v<A, In>) {
    g.input_gates = inputs;
    g.hidden_gates = hidden;
    Cell::backward(g);
  } else {
    g.input_gates = room;
    g.hidden_gates = Cell::parts_products ? room + all : room;
    Cell::backward(g);
    copy_elements(inputs, g.input_gates, all);
    if constexpr (Cell::parts_products) copy_elements(hidden, g.hidden_gates, all);
  }
}

template <class Cell, class A, class In>
void step(const Backward<A, In>& b, int64_t t, int64_t begin, int64_t rows) {
  constexpr int64_t gates = Cell::gates, width = Cell::width;
  const int64_t h = b.h, first = b.steps.begin(t) + begin;
  parallel_for(rows, rows_per_chunk(width * h), [&](int64_t from, int64_t to) {
    const Scratch<A> room(std::is_same_v<A, In> ? 1 : 2 * gates * h);
    for (int64_t r = from; r < to; ++r) {
      const int64_t row = first + r, sequence = begin + r;
      row_gradient<Cell>(b,
                         {h, b.kept + row * width * h, state_before(b, t, sequence),
                          b.cx ? cell_before(b, t, sequence) : nullptr,
                          b.grad_output ? b.grad_output + row * h : b.zeros, b.state + sequence * h,
                          b.cell ? b.cell + sequence * h : nullptr, nullptr, nullptr},
                         row, room.get());
    }
  });
  b.weights.multiply(rows, b.hidden_gates + first * gates * h, gates * h, b.state + begin * h, h,
                     Cell::parts_products);
}

template <class Cell, class A, class In>
void run(const Backward<A, In>& b) {
  const int64_t bytes = b.h * Cell::gates * b.h * static_cast<int64_t>(sizeof(In));
  parallel_for(b.batch, sequences_per_chunk(b.batch, bytes), [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < b.steps.count(); ++k) {
      const int64_t t = b.steps.backward(k), last = min_of(end, b.steps.size(t));
      if (last > begin) step<Cell>(b, t, begin, last - begin);
    }
  });
}

template <class A, class In>
void run(const Backward<A, In>& b, RnnMode mode) {
  switch (mode) {
    case RnnMode::Lstm:
      return run<LstmCell<A>>(b);
    case RnnMode::Gru:
      return run<GruCell<A>>(b);
    case RnnMode::Tanh:
      return run<PlainCell<A, false>>(b);
    case RnnMode::Relu:
      return run<PlainCell<A, true>>(b);
  }
}

// --- gradients of the weights, from those of all rows' gates

// to = left^T right, of matrices whose rows are contiguous.
template <class A, class In>
void weight_gradient(const Tensor& to, const In* left, int64_t m, const In* right, int64_t n,
                     int64_t rows) {
  if (!to.defined()) return;
  if constexpr (std::is_same_v<A, In>) {
    const ConvertedResult<A> result(to);
    gemm<A>({m, n, rows, left, 1, m, right, n, 1, result.data(), n, 1});
    result.store();
  } else {
    gemm<In>({m, n, rows, left, 1, m, right, n, 1, to.data<In>(), n, 1});
  }
}

// Sums of columns: in short runs of rows, whose sums are added up.
template <class A, class In>
void bias_gradient(const Tensor& to, const In* gates, int64_t columns, int64_t rows) {
  const ConvertedResult<A> result(to);
  if (!result.data()) return;
  constexpr int64_t block = 64, run = 64;
  parallel_for(columns, block, [&](int64_t begin, int64_t end) {
    A total[block] = {};
    for (int64_t first = 0; first < rows; first += run) {
      A sums[block] = {};
      for (int64_t r = first; r < min_of(first + run, rows); ++r)
        for (int64_t j = begin; j < end; ++j)
          sums[j - begin] += Convert<A, In>::call(gates[r * columns + j]);
      for (int64_t j = 0; j < block; ++j) total[j] += sums[j];
    }
    for (int64_t j = begin; j < end; ++j) result.data()[j] = total[j - begin];
  });
  result.store();
}

// The state that each row's step started from.
template <class A, class In>
void gather_states(const Backward<A, In>& b, In* to) {
  parallel_for(b.steps.count(), rows_per_chunk(b.batch * b.h), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t r = 0; r < b.steps.size(t); ++r)
        copy_elements(to + (b.steps.begin(t) + r) * b.h, state_before(b, t, r), b.h);
  });
}

// --- the layer

template <class A>
void start(const Tensor& grad, A* to, int64_t n) {
  const ConvertedInput<A> from(grad);
  for (int64_t i = 0; i < n; ++i) to[i] = from.data() ? from.data()[i] : A(0);
}

template <class A>
void give(const Tensor& to, const A* from) {
  const ConvertedResult<A> result(to);
  if (!result.data()) return;
  copy_elements(result.data(), from, to.numel());
  result.store();
}

struct Operands {
  const Tensor &input, &w_ih, &w_hh, &hx, &cx, &grad_output, &grad_hy, &grad_cy, &workspace;
};
struct Gradients {
  const Tensor &input, &w_ih, &w_hh, &b_ih, &b_hh, &hx, &cx;
};

template <class A, class In>
void set_gradients(const Backward<A, In>& b, const Operands& o, const Gradients& to, int64_t all) {
  const int64_t rows = b.steps.rows(), columns = o.input.size(-1);
  const Operand<A, In> x(o.input), wi(o.w_ih);
  if (to.input.defined()) {
    const ConvertedResult<A> dx(to.input);
    multiply<A>(rows, columns, all, b.input_gates, all, wi.data(), columns, 1, dx.data(), columns);
    dx.store();
  }
  weight_gradient<A>(to.w_ih, b.input_gates, all, x.data(), columns, rows);
  if (to.w_hh.defined()) {
    const Scratch<In> before(rows * b.h);
    gather_states(b, before.get());
    weight_gradient<A>(to.w_hh, b.hidden_gates, all, before.get(), b.h, rows);
  }
  bias_gradient<A>(to.b_ih, b.input_gates, all, rows);
  if (to.b_hh.defined() && to.b_ih.defined() && b.hidden_gates == b.input_gates)
    copy(to.b_hh, to.b_ih);
  else
    bias_gradient<A>(to.b_hh, b.hidden_gates, all, rows);
}

template <class A, class In>
void layer(const Operands& o, const Steps& steps, RnnMode mode, const Gradients& to) {
  const int64_t h = o.hx.size(1), batch = o.hx.size(0), all = rnn_shape(mode).gates * h;
  const int64_t rows = steps.rows();
  const bool lstm = mode == RnnMode::Lstm, parted = mode == RnnMode::Gru;
  const Operand<A, In> wh(o.w_hh);
  const ConvertedInput<A> hx(o.hx), cx(o.cx), grad(o.grad_output);
  const Scratch<A> state(batch * h), cell(batch * h), zeros(h);
  const Scratch<In> gates(rows * all), others(parted ? rows * all : 1);
  const StepWeights<A, In> weights(wh.data(), h, 1, all, h);
  start(o.grad_hy, state.get(), batch * h);
  start(o.grad_cy, cell.get(), batch * h);
  for (int64_t i = 0; i < h; ++i) zeros.get()[i] = 0;
  const Backward<A, In> b = {steps,
                             h,
                             batch,
                             weights,
                             hx.data(),
                             lstm ? cx.data() : nullptr,
                             reinterpret_cast<const A*>(o.workspace.data<uint8_t>()),
                             rnn_shape(mode).width,
                             grad.data(),
                             state.get(),
                             lstm ? cell.get() : nullptr,
                             gates.get(),
                             parted ? others.get() : gates.get(),
                             zeros.get()};
  run(b, mode);
  give(to.hx, state.get());
  if (lstm) give(to.cx, cell.get());
  set_gradients(b, o, to, all);
}

}  // namespace

void rnn_layer_backward(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh,
                        const Tensor& hx, const Tensor& cx, const Tensor& grad_output,
                        const Tensor& grad_hy, const Tensor& grad_cy, bool reverse,
                        IntSpan batch_sizes, int64_t mode, const Tensor& workspace,
                        std::span<const bool>, const Tensor& grad_input, const Tensor& grad_w_ih,
                        const Tensor& grad_w_hh, const Tensor& grad_b_ih, const Tensor& grad_b_hh,
                        const Tensor& grad_hx, const Tensor& grad_cx) {
  const Steps steps(input, batch_sizes, reverse);
  const Operands o = {input, w_ih, w_hh, hx, cx, grad_output, grad_hy, grad_cy, workspace};
  const Gradients to = {grad_input, grad_w_ih, grad_w_hh, grad_b_ih, grad_b_hh, grad_hx, grad_cx};
  visit_rnn_types(input.dtype(), [&]<class A, class In>() {
    layer<A, In>(o, steps, static_cast<RnnMode>(mode), to);
  });
}

}  // namespace facula::cpu::FACULA_ISA
