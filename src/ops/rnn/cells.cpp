// One step of a recurrent network.
#include "ops/rnn/cells.h"

#include "dispatch/typed.h"
#include "ops/rnn/parts.h"

namespace facula {
namespace {

using rnn::Mode;

// PyTorch checks in this order, with these words, which name what a user has to look at.
void check_cell(const char* op, const Tensor& input, const Tensor& hidden, const Tensor& w_ih,
                int64_t hidden_size, const char* name) {
  check(input.dim() == 2, op, "(): Expected 2D input (batch x feature), but got ", input.dim(),
        "D input");
  check(hidden.dim() == 2, op, "(): Expected 2D ", name, " (batch x feature), but got ",
        hidden.dim(), "D");
  check(input.size(1) == w_ih.size(-1), op, "(): input has inconsistent input_size: got ",
        input.size(1), " expected ", w_ih.size(-1));
  check(input.size(0) == hidden.size(0), op, "(): Input batch size ", input.size(0),
        " doesn't match ", name, " batch size ", hidden.size(0));
  check(hidden.size(1) == hidden_size, op, "(): ", name, " has inconsistent hidden_size: got ",
        hidden.size(1), ", expected ", hidden_size);
}

void check_weights(const char* op, const Tensor& w_ih, const Tensor& w_hh) {
  check(w_ih.dim() == 2 && w_hh.dim() == 2, op, "(): w_ih and w_hh must be matrices; got shapes ",
        str(w_ih.sizes()), " and ", str(w_hh.sizes()));
}

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, std::span<const Tensor> hx,
                                     const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                                     const Tensor& b_hh) {
  check(hx.size() == 2, "lstm_cell(): expects two hidden states; got ", hx.size());
  check_weights("lstm_cell", w_ih, w_hh);
  const int64_t hidden = w_hh.size(1);
  check_cell("lstm_cell", input, hx[0], w_ih, hidden, "hidden0");
  check_cell("lstm_cell", input, hx[1], w_ih, hidden, "hidden1");
  const rnn::Weights w = {w_ih, w_hh, b_ih, b_hh, {}};
  const rnn::State after =
      rnn::step(Mode::Lstm, rnn::input_gates(input, w), {hx[0], hx[1]}, w).after;
  return {after.h, after.c};
}

constexpr const char* name_of(Mode mode) {
  return mode == Mode::Gru ? "gru_cell" : mode == Mode::Tanh ? "rnn_tanh_cell" : "rnn_relu_cell";
}

template <Mode mode>
Tensor cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
            const Tensor& b_ih, const Tensor& b_hh) {
  check_weights(name_of(mode), w_ih, w_hh);
  check_cell(name_of(mode), input, hx, w_ih, w_hh.size(1), "hidden0");
  const rnn::Weights w = {w_ih, w_hh, b_ih, b_hh, {}};
  return rnn::step(mode, rnn::input_gates(input, w), {hx, {}}, w).after.h;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(lstm_cell){
    .schema =
        "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> (Tensor, Tensor)",
    .doc = "One step of long short-term memory: the new state and cell.",
    .composite = Composite::Implicit,
    .any = typed_kernel<lstm_cell>,
};
OP(gru_cell){
    .schema =
        "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor",
    .doc = "One step of gated recurrent units: the new state.",
    .composite = Composite::Implicit,
    .any = typed_kernel<cell<rnn::Mode::Gru>>,
};
OP(rnn_tanh_cell){
    .schema =
        "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .doc = "tanh(w_ih input + b_ih + w_hh hx + b_hh).",
    .composite = Composite::Implicit,
    .any = typed_kernel<cell<rnn::Mode::Tanh>>,
};
OP(rnn_relu_cell){
    .schema =
        "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None) -> Tensor",
    .doc = "relu(w_ih input + b_ih + w_hh hx + b_hh).",
    .composite = Composite::Implicit,
    .any = typed_kernel<cell<rnn::Mode::Relu>>,
};
