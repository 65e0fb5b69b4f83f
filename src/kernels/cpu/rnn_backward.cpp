// Recurrent layers backward.
#include "kernels/cpu/rnn.h"
#include "kernels/cpu/rnn_cells.h"
#include "kernels/cpu/rnn_steps.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
struct Backward {
  const Steps& steps;
  int64_t h, batch;
  const A *w_hh, *hx, *cx, *kept;
  int64_t width;
  const A* grad_output;           // null: zero
  A *state, *cell;                // gradients of the states, at last of the initial ones
  A *input_gates, *hidden_gates;  // of every row; the same memory where a cell has one product
  const A* zeros;                 // a row of them
};

template <class A>
const A* state_before(const Backward<A>& b, int64_t t, int64_t r) {
  const int64_t row = b.steps.before(t, r);
  return row < 0 ? b.hx + r * b.h : b.kept + ((row + 1) * b.width - 1) * b.h;
}

template <class A>
const A* cell_before(const Backward<A>& b, int64_t t, int64_t r) {
  const int64_t row = b.steps.before(t, r);
  return row < 0 ? b.cx + r * b.h : b.kept + ((row + 1) * b.width - 2) * b.h;
}

template <class Cell, class A>
void step(const Backward<A>& b, int64_t t, int64_t begin, int64_t rows) {
  constexpr int64_t gates = Cell::gates, width = Cell::width;
  const int64_t h = b.h, first = b.steps.begin(t) + begin;
  parallel_for(rows, chunk_of(8 * width * h), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      const int64_t row = first + r, sequence = begin + r;
      Cell::backward({h, b.kept + row * width * h, state_before(b, t, sequence),
                      b.cx ? cell_before(b, t, sequence) : nullptr,
                      b.grad_output ? b.grad_output + row * h : b.zeros, b.state + sequence * h,
                      b.cell ? b.cell + sequence * h : nullptr, b.input_gates + row * gates * h,
                      b.hidden_gates + row * gates * h});
    }
  });
  multiply<A>(rows, h, gates * h, b.hidden_gates + first * gates * h, gates * h, 1, b.w_hh, h, 1,
              b.state + begin * h, h, Cell::parts_products ? A(1) : A(0));
}

template <class Cell, class A>
void run(const Backward<A>& b) {
  const int64_t bytes = b.h * Cell::gates * b.h * static_cast<int64_t>(sizeof(A));
  parallel_for(b.batch, sequences_per_chunk(b.batch, bytes), [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < b.steps.count(); ++k) {
      const int64_t t = b.steps.backward(k), last = end < b.steps.size(t) ? end : b.steps.size(t);
      if (last > begin) step<Cell>(b, t, begin, last - begin);
    }
  });
}

template <class A>
void run(const Backward<A>& b, RnnMode mode) {
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

// The gradient of weights of `columns` inputs: gates^T times the inputs of all rows.
template <class A>
void weight_gradient(const Tensor& grad, const A* gates, int64_t outputs, const A* inputs,
                     int64_t columns, int64_t rows) {
  const WideResult<A> to(grad);
  if (!to.data()) return;
  multiply<A>(outputs, columns, rows, gates, 1, outputs, inputs, columns, 1, to.data(), columns,
              A(0));
  to.finish();
}

template <class A>
void bias_gradient(const Tensor& grad, const A* gates, int64_t outputs, int64_t rows) {
  const WideResult<A> to(grad);
  if (!to.data()) return;
  column_sums(gates, rows, outputs, to.data());
  to.finish();
}

// The state that each row's step started from.
template <class A>
void gather_states(const Backward<A>& b, A* to) {
  parallel_for(b.steps.count(), chunk_of(b.batch * b.h), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t r = 0; r < b.steps.size(t); ++r)
        copy_rows(to + (b.steps.begin(t) + r) * b.h, state_before(b, t, r), b.h);
  });
}

template <class A>
void start(const Tensor& grad, A* to, int64_t n) {
  const WideInput<A> from(grad);
  for (int64_t i = 0; i < n; ++i) to[i] = from.data() ? from.data()[i] : A(0);
}

template <class A>
void give(const Tensor& to, const A* from) {
  const WideResult<A> result(to);
  if (!result.data()) return;
  copy_rows(result.data(), from, to.numel());
  result.finish();
}

struct Operands {
  const Tensor &input, &w_ih, &w_hh, &hx, &cx, &grad_output, &grad_hy, &grad_cy, &workspace;
};
struct Gradients {
  const Tensor &input, &w_ih, &w_hh, &b_ih, &b_hh, &hx, &cx;
};

template <class A>
void layer(const Operands& o, const Steps& steps, RnnMode mode, const Gradients& to) {
  const int64_t h = o.hx.size(1), batch = o.hx.size(0), all = rnn_shape(mode).gates * h;
  const int64_t rows = steps.rows(), columns = o.input.size(-1);
  const bool lstm = mode == RnnMode::Lstm, parted = mode == RnnMode::Gru;
  const WideInput<A> x(o.input), wi(o.w_ih), wh(o.w_hh), hx(o.hx), cx(o.cx), grad(o.grad_output);
  Scratch<A> state(batch * h), cell(batch * h), gates(rows * all), others(parted ? rows * all : 0),
      zeros(h);
  start(o.grad_hy, state.data(), batch * h);
  start(o.grad_cy, cell.data(), batch * h);
  for (int64_t i = 0; i < h; ++i) zeros[i] = 0;
  const Backward<A> b = {steps,
                         h,
                         batch,
                         wh.data(),
                         hx.data(),
                         lstm ? cx.data() : nullptr,

                         reinterpret_cast<const A*>(o.workspace.data<uint8_t>()),
                         rnn_shape(mode).width,
                         grad.data(),
                         state.data(),
                         lstm ? cell.data() : nullptr,
                         gates.data(),
                         parted ? others.data() : gates.data(),
                         zeros.data()};
  run(b, mode);
  give(to.hx, state.data());
  if (lstm) give(to.cx, cell.data());
  if (to.input.defined()) {
    const WideResult<A> dx(to.input);
    multiply<A>(rows, columns, all, b.input_gates, all, 1, wi.data(), columns, 1, dx.data(),
                columns, A(0));
    dx.finish();
  }
  weight_gradient(to.w_ih, b.input_gates, all, x.data(), columns, rows);
  if (to.w_hh.defined()) {
    Scratch<A> before(rows * h);
    gather_states(b, before.data());
    weight_gradient(to.w_hh, b.hidden_gates, all, before.data(), h, rows);
  }
  bias_gradient(to.b_ih, b.input_gates, all, rows);
  if (to.b_hh.defined() && to.b_ih.defined() && !parted)
    copy(to.b_hh, to.b_ih);
  else
    bias_gradient(to.b_hh, b.hidden_gates, all, rows);
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
  if (input.dtype() == DType::Float64)
    layer<double>(o, steps, static_cast<RnnMode>(mode), to);
  else
    layer<float>(o, steps, static_cast<RnnMode>(mode), to);
}

}  // namespace facula::cpu::FACULA_ISA
