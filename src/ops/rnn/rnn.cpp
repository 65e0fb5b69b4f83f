// Recurrent networks: layers of one or two directions over whole sequences.
#include "ops/rnn/rnn.h"

#include <algorithm>

#include "core/checked.h"
#include "dispatch/modes_watch.h"
#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/random/dropout.h"
#include "ops/rnn/layer.h"
#include "ops/rnn/parts.h"
#include "ops/shape/cat.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using rnn::LayerResult;
using rnn::Mode;
using rnn::State;
using rnn::Weights;

// A call of any of the operators: input (steps, batch, inputs), or the rows of all steps with the
// number of rows of each.
struct Network {
  Mode mode;
  const char* op;
  std::span<const Tensor> params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
  IntVec batch_sizes;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct Result {
  Tensor output, h, c;
};

// --- arguments

std::vector<Weights> weights_of(const Network& n, bool projected) {
  const size_t each = (n.has_biases ? 4 : 2) + (projected ? 1 : 0);
  check(n.layers > 0, n.op, "(): num_layers must be positive; got ", n.layers);
  const int64_t wanted = checked_mul(n.layers, n.directions(), "the number of recurrent layers");
  check(n.params.size() % each == 0 && static_cast<int64_t>(n.params.size() / each) >= wanted, n.op,
        "(): params must hold ", each, " tensors for each of ", wanted,
        " layers and directions; got ", n.params.size());
  std::vector<Weights> all;
  for (size_t at = 0; at < n.params.size(); at += each) {
    Weights w = {n.params[at], n.params[at + 1], {}, {}, {}};
    if (n.has_biases) {
      w.b_ih = n.params[at + 2];
      w.b_hh = n.params[at + 3];
    }
    if (projected) w.w_hr = n.params[at + each - 1];
    all.push_back(w);
  }
  return all;
}

std::vector<State> states_of(const Network& n, const Tensor& h, const Tensor& c) {
  const auto parts = [&](const Tensor& t) {
    check(t.dim() == 3, n.op, "(): initial states must be (layers, batch, hidden); got shape ",
          str(t.sizes()));
    check(t.size(0) >= n.layers * n.directions(), n.op, "(): there must be a state for each of ",
          n.layers * n.directions(), " layers and directions; got ", t.size(0));
    return ops::unbind(t, 0);
  };
  const std::vector<Tensor> hidden = parts(h);
  const std::vector<Tensor> cells = c.defined() ? parts(c) : std::vector<Tensor>();
  check(cells.empty() || cells.size() == hidden.size(), n.op,
        "(): both initial states must have one number of layers; got ", hidden.size(), " and ",
        cells.size());
  std::vector<State> all;
  for (size_t i = 0; i < hidden.size(); ++i)
    all.push_back({hidden[i], cells.empty() ? Tensor() : cells[i]});
  return all;
}

// --- which way a layer is run

bool is_plain(const Tensor& t) {
  const DeviceType device = t.device().type;
  return (device == DeviceType::CPU || device == DeviceType::Meta) &&
         !t->layers.has(Layer::Subclass);
}

bool autocasts() {
  const bool on = thread_state.autocast.enabled >> autocast_slot(DeviceType::CPU) & 1;
  return on && !thread_state.exclude.has(Layer::Autocast);
}

// Padded sequences, and packed ones of one length, which PyTorch takes for padded ones.
bool has_one_length(const Network& n) {
  return std::ranges::all_of(n.batch_sizes, [&](int64_t b) { return b == n.batch_sizes[0]; });
}

// The fused layer serves plain tensors of one floating dtype. Where others look on (transforms,
// modes) or autocast would cast parts, it is run where PyTorch has it: LSTM in float32 and
// bfloat16, over sequences of one length.
bool fuses(const Network& n, const Tensor& input, const State& s, const Weights& w) {
  if (w.w_hr.defined() || thread_state.interpreters || !is_floating(input.dtype())) return false;
  const bool as_pytorch = n.mode == Mode::Lstm && has_one_length(n) &&
                          (input.dtype() == DType::Float32 || input.dtype() == DType::BFloat16);
  const bool casts = autocasts();
  if (!as_pytorch && (modes_watch() || casts)) return false;
  for (const Tensor* t : {&input, &s.h, &s.c, &w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh}) {
    if (!t->defined()) continue;
    const bool cast = casts && (t->dtype() == DType::Float32 || t->dtype() == DType::BFloat16);
    const bool fits = (t->dtype() == input.dtype() || cast) && is_plain(*t) &&
                      t->device().type == input.device().type;
    if (!fits) return false;
  }
  return true;
}

Tensor bias_or_zeros(const Tensor& bias, const Tensor& weight) {
  return bias.defined() ? bias : ops::new_zeros(weight, IntList{weight.size(0)});
}

// Errors of shapes name the function that was called, not the fused layer.
void check_layer(const Network& n, const Tensor& input, const State& s, const Weights& w) {
  const auto sized = [&](const Tensor& t, const char* name, std::initializer_list<int64_t> wanted) {
    check(!t.defined() || same_sizes(t.sizes(), IntList(wanted)), n.op, "(): ", name,
          " must have sizes ", str(IntList(wanted)), "; got ",
          str(t.defined() ? t.sizes() : IntSpan()));
  };
  const int64_t batch = n.batch_sizes.empty() ? input.size(1) : n.batch_sizes[0];
  const int64_t hidden = s.h.size(1),
                gates = checked_mul(cpu::rnn_shape(n.mode).gates, hidden, "rnn(): the gates");
  sized(s.h, "an initial state", {batch, hidden});
  sized(s.c, "an initial state of cells", {batch, hidden});
  sized(w.w_ih, "a weight of the input", {gates, input.size(-1)});
  sized(w.w_hh, "a weight of the state", {gates, hidden});
  sized(w.b_ih, "a bias", {gates});
  sized(w.b_hh, "a bias", {gates});
}

LayerResult run_layer(const Network& n, const Tensor& input, const State& s, const Weights& w,
                      bool reverse) {
  if (!fuses(n, input, s, w)) return rnn::layer(n.mode, input, n.batch_sizes, s, w, reverse);
  check_layer(n, input, s, w);
  const auto [output, h, c, workspace] = ops::mkldnn_rnn_layer(
      input, w.w_ih, w.w_hh, bias_or_zeros(w.b_ih, w.w_ih), bias_or_zeros(w.b_hh, w.w_hh), s.h,
      s.c.defined() ? s.c : s.h, reverse, n.batch_sizes, static_cast<int64_t>(n.mode), s.h.size(1),
      n.layers, n.has_biases, n.bidirectional, false, n.train || thread_state.grad_enabled);
  return {output, {h, s.c.defined() ? c : Tensor()}};
}

Result run(const Network& n, const Tensor& input, const Tensor& h, const Tensor& c) {
  const bool projected = c.defined() && h.dim() == 3 && c.dim() == 3 && h.size(2) != c.size(2);
  const std::vector<Weights> weights = weights_of(n, projected);
  const std::vector<State> initial = states_of(n, h, c);
  std::vector<Tensor> last_h, last_c;
  Tensor x = input;
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < n.directions(); ++direction) {
      const auto i = static_cast<size_t>(layer * n.directions() + direction);
      const LayerResult result = run_layer(n, x, initial[i], weights[i], direction == 1);
      outputs.push_back(result.output);
      last_h.push_back(result.last.h);
      if (c.defined()) last_c.push_back(result.last.c);
    }
    x = n.bidirectional ? ops::cat(outputs, outputs[0].dim() - 1) : outputs[0];
    if (n.train && n.dropout != 0 && layer + 1 < n.layers) x = ops::dropout(x, n.dropout, true);
  }
  return {x, ops::stack(last_h, 0), c.defined() ? ops::stack(last_c, 0) : Tensor()};
}

Result run_padded(const Network& n, const Tensor& input, const Tensor& h, const Tensor& c,
                  bool batch_first) {
  check_index(input.dim() == 3, n.op, "(): input must have 3 dimensions; got shape ",
              str(input.sizes()));
  const Tensor x = batch_first ? ops::transpose(input, 0, 1) : input;
  check(x.size(0) > 0, "Expected sequence length to be larger than 0 in RNN");
  Result r = run(n, x, h, c);
  if (batch_first)
    r.output =
        n.mode == Mode::Lstm ? ops::transpose(r.output, 0, 1) : ops::transpose_(r.output, 0, 1);
  return r;
}

Result run_packed(Network n, const Tensor& data, const Tensor& batch_sizes, const Tensor& h,
                  const Tensor& c) {
  n.batch_sizes = rnn::list_of(batch_sizes, n.op);
  check(data.dim() == 2, n.op, "(): packed data must be (rows, inputs); got shape ",
        str(data.sizes()));
  rnn::check_batch_sizes(n.batch_sizes, data.size(0), n.op);
  check(h.dim() == 3 && h.size(1) == n.batch_sizes[0], n.op, "(): initial states must be (layers, ",
        n.batch_sizes[0], ", hidden); got shape ", str(h.sizes()));
  return run(n, data, h, c);
}

// --- the operators

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, std::span<const Tensor> hx,
                                              std::span<const Tensor> params, bool has_biases,
                                              int64_t layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first) {
  check(hx.size() == 2, "lstm(): expects two hidden states; got ", hx.size());
  const Result r = run_padded(
      {Mode::Lstm, "lstm", params, has_biases, layers, dropout, train, bidirectional, {}}, input,
      hx[0], hx[1], batch_first);
  return {r.output, r.h, r.c};
}
std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes,
                                             std::span<const Tensor> hx,
                                             std::span<const Tensor> params, bool has_biases,
                                             int64_t layers, double dropout, bool train,
                                             bool bidirectional) {
  check(hx.size() == 2, "lstm(): expects two hidden states; got ", hx.size());
  const Result r = run_packed(
      {Mode::Lstm, "lstm", params, has_biases, layers, dropout, train, bidirectional, {}}, data,
      batch_sizes, hx[0], hx[1]);
  return {r.output, r.h, r.c};
}

constexpr const char* name_of(Mode mode) {
  return mode == Mode::Gru ? "gru" : mode == Mode::Tanh ? "rnn_tanh" : "rnn_relu";
}

template <Mode mode>
std::tuple<Tensor, Tensor> input_of(const Tensor& input, const Tensor& hx,
                                    std::span<const Tensor> params, bool has_biases, int64_t layers,
                                    double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  const Result r = run_padded(
      {mode, name_of(mode), params, has_biases, layers, dropout, train, bidirectional, {}}, input,
      hx, {}, batch_first);
  return {r.output, r.h};
}
template <Mode mode>
std::tuple<Tensor, Tensor> data_of(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                   std::span<const Tensor> params, bool has_biases, int64_t layers,
                                   double dropout, bool train, bool bidirectional) {
  const Result r = run_packed(
      {mode, name_of(mode), params, has_biases, layers, dropout, train, bidirectional, {}}, data,
      batch_sizes, hx, {});
  return {r.output, r.h};
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(lstm_input){
    .schema =
        "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, "
        "Tensor)",
    .doc = "Long short-term memory over padded sequences: outputs, last states, last cells.",
    .composite = Composite::Selecting,
    .any = typed_kernel<lstm_input>,
};
OP(lstm_data){
    .schema =
        "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, "
        "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, "
        "Tensor)",
    .doc = "Long short-term memory over packed sequences: outputs, last states, last cells.",
    .composite = Composite::Selecting,
    .any = typed_kernel<lstm_data>,
};
OP(gru_input){
    .schema =
        "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .doc = "Gated recurrent units over padded sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<input_of<rnn::Mode::Gru>>,
};
OP(gru_data){
    .schema =
        "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
        "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    .doc = "Gated recurrent units over packed sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<data_of<rnn::Mode::Gru>>,
};
OP(rnn_tanh_input){
    .schema =
        "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .doc = "Recurrent tanh layers over padded sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<input_of<rnn::Mode::Tanh>>,
};
OP(rnn_tanh_data){
    .schema =
        "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool "
        "has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, "
        "Tensor)",
    .doc = "Recurrent tanh layers over packed sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<data_of<rnn::Mode::Tanh>>,
};
OP(rnn_relu_input){
    .schema =
        "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .doc = "Recurrent relu layers over padded sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<input_of<rnn::Mode::Relu>>,
};
OP(rnn_relu_data){
    .schema =
        "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool "
        "has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, "
        "Tensor)",
    .doc = "Recurrent relu layers over packed sequences: outputs and last states.",
    .composite = Composite::Selecting,
    .any = typed_kernel<data_of<rnn::Mode::Relu>>,
};
