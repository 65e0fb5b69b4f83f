// Recurrent layers forward.
#include "kernels/cpu/rnn/rnn.h"

#include "kernels/cpu/rnn/cells.h"
#include "kernels/cpu/rnn/steps.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// A: the type of the sums and of what is kept; In: that of products' operands and of the output.
template <class A, class In>
struct Forward {
  const Steps& steps;
  int64_t h, batch;
  const StepWeights<A, In>& weights;
  const A *b_ih, *b_hh;
  A* kept;
  In* output;
  A *hy, *cy;
  In* narrow;  // the states as products take them; hy itself where the types are one
};

// One step of the sequences [begin, begin + rows).
template <class Cell, class A, class In>
void step(const Forward<A, In>& f, A* hidden, int64_t t, int64_t begin, int64_t rows) {
  constexpr int64_t gates = Cell::gates, width = Cell::width;
  const int64_t h = f.h, first = f.steps.begin(t) + begin;
  A* kept = f.kept + first * width * h;
  if constexpr (Cell::parts_products)
    f.weights.multiply(rows, f.narrow + begin * h, h, hidden, gates * h, false);
  else
    f.weights.multiply(rows, f.narrow + begin * h, h, kept, width * h, true);
  parallel_for(rows, rows_per_chunk(width * h), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      const int64_t sequence = begin + r;
      A* state = f.hy + sequence * h;
      Cell::forward({h, kept + r * width * h, hidden + (Cell::parts_products ? r * gates * h : 0),
                     f.b_ih, f.b_hh, f.cy ? f.cy + sequence * h : nullptr, state});
      copy_elements(f.output + (first + r) * h, state, h);
      if constexpr (!std::is_same_v<A, In>) copy_elements(f.narrow + sequence * h, state, h);
    }
  });
}

template <class Cell, class A, class In>
void run(const Forward<A, In>& f) {
  const int64_t all = Cell::gates * f.h, bytes = f.h * all * static_cast<int64_t>(sizeof(In));
  parallel_for(f.batch, sequences_per_chunk(f.batch, bytes), [&](int64_t begin, int64_t end) {
    const Scratch<A> hidden(Cell::parts_products ? (end - begin) * all : 1);
    for (int64_t k = 0; k < f.steps.count(); ++k) {
      const int64_t t = f.steps.forward(k), last = min_of(end, f.steps.size(t));
      if (last > begin) step<Cell>(f, hidden.get(), t, begin, last - begin);
    }
  });
}

template <class A, class In>
void run(const Forward<A, In>& f, RnnMode mode) {
  switch (mode) {
    case RnnMode::Lstm:
      return run<LstmCell<A>>(f);
    case RnnMode::Gru:
      return run<GruCell<A>>(f);
    case RnnMode::Tanh:
      return run<PlainCell<A, false>>(f);
    case RnnMode::Relu:
      return run<PlainCell<A, true>>(f);
  }
}

template <class A>
void start(const Tensor& initial, A* state) {
  const ConvertedInput<A> from(initial);
  copy_elements(state, from.data(), initial.numel());
}

// The output in the operands' type, or in the sums' for other half types.
template <class A, class In>
class Output {
 public:
  explicit Output(const Tensor& t) : tensor_(t) {}
  In* data() const { return tensor_.data<In>(); }
  void store() const {}

 private:
  Tensor tensor_;
};
template <class A>
class Output<A, A> : public ConvertedResult<A> {
 public:
  using ConvertedResult<A>::ConvertedResult;
};

struct Operands {
  const Tensor &input, &w_ih, &w_hh, &b_ih, &b_hh, &hx, &cx;
};
struct Results {
  const Tensor &output, &hy, &cy, &workspace;
};

template <class A, class In>
void layer(const Operands& o, const Steps& steps, RnnMode mode, const Results& to) {
  const RnnShape shape = rnn_shape(mode);
  const int64_t h = o.hx.size(1), batch = o.hx.size(0), inputs = o.input.size(-1);
  const Operand<A, In> x(o.input), wi(o.w_ih), wh(o.w_hh);
  const ConvertedInput<A> bi(o.b_ih), bh(o.b_hh);
  const Output<A, In> out(to.output);
  const ConvertedResult<A> state(to.hy), cell(to.cy);
  const Scratch<A> own(to.workspace.numel() ? 1 : steps.rows() * shape.width * h);
  A* kept = to.workspace.numel() ? reinterpret_cast<A*>(to.workspace.data<uint8_t>()) : own.get();
  start(o.hx, state.data());
  if (mode == RnnMode::Lstm) start(o.cx, cell.data());
  const Scratch<In> narrow(std::is_same_v<A, In> ? 1 : batch * h);
  In* states = narrow.get();
  if constexpr (std::is_same_v<A, In>)
    states = state.data();
  else
    copy_elements(states, state.data(), batch * h);
  multiply<A>(steps.rows(), shape.gates * h, inputs, x.data(), inputs, wi.data(), 1, inputs, kept,
              shape.width * h);
  const StepWeights<A, In> weights(wh.data(), 1, h, h, shape.gates * h);
  const Forward<A, In> f = {
      steps,     h,    batch,      weights,      bi.data(),
      bh.data(), kept, out.data(), state.data(), mode == RnnMode::Lstm ? cell.data() : nullptr,
      states};
  run(f, mode);
  out.store();
  state.store();
  cell.store();
}

}  // namespace

void rnn_layer(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
               const Tensor& b_hh, const Tensor& hx, const Tensor& cx, bool reverse,
               IntSpan batch_sizes, int64_t mode, int64_t, int64_t, bool has_biases, bool, bool,
               bool, const Tensor& output, const Tensor& hy, const Tensor& cy,
               const Tensor& workspace) {
  const Steps steps(input, batch_sizes, reverse);
  const Tensor none;
  const Operands from = {input, w_ih, w_hh, has_biases ? b_ih : none, has_biases ? b_hh : none,
                         hx,    cx};
  visit_rnn_types(input.dtype(), [&]<class A, class In>() {
    layer<A, In>(from, steps, static_cast<RnnMode>(mode), {output, hy, cy, workspace});
  });
}

}  // namespace facula::cpu::FACULA_ISA
