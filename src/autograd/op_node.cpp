#include <algorithm>
#include <numeric>

#include "autograd/forward.h"
#include "autograd/variable.h"
#include "dispatch/running_calls.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// For a scope, the tensors that a node holds are in use on this thread: derivatives read sizes and
// memory of what was saved outside of any call. Costs nothing while no other thread can race.
class HeldInUse final : HeldVisitor {
 public:
  explicit HeldInUse(Node& node) {
    if (!calls_may_race()) return;
    {
      const std::lock_guard guard(node.lock);
      node.show_held(*this);
    }
    for (const Tensor& t : tensors_) values_.push_back(Value::of_tensor(t.get()));
    running_.emplace(values_.data(), static_cast<int>(values_.size()));
  }

 private:
  void tensor(const Tensor& t) override { tensors_.push_back(t); }
  void node(GraphNode*) override {}
  void object(void*) override {}

  std::vector<Tensor> tensors_;
  std::vector<Value> values_;
  std::optional<RunningCall> running_;
};

bool is_tensor_arg(const OpInfo& info, int i) {
  return (info.tensor_args | info.list_args) >> i & 1;
}

bool shares_memory_with_mutated(const OpCall& c, const Tensor& t) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const Value& v = c.args[std::countr_zero(bits)];
    if (v.is_tensor() && v.as_tensor()->storage == t->storage) return true;
  }
  return false;
}

// The arguments that the call writes but does not return, like the noise of rrelu_with_noise: they
// are saved after the call. A written argument that is returned is saved before, with its old
// value.
uint32_t written_results(const OpInfo& info) {
  uint32_t bits = info.results > 0 ? info.mutated & info.tensor_args : 0;
  for (int k = 0; k < info.results; ++k)
    if (info.alias_of[k] >= 0) bits &= ~(1u << info.alias_of[k]);
  return bits;
}

// The arguments in the order of their names, in which recorded programs have their derivatives.
std::vector<int> args_by_name(const OpInfo& info) {
  std::vector<int> order(static_cast<size_t>(info.base_args));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) -> const std::string& {
    return info.schema.args[static_cast<size_t>(i)].name;
  });
  return order;
}

// Whether a row that is wanted is not fused.
bool any_single_row(const OpInfo& info, const OpRecord& record, uint32_t wanted) {
  for (int i = 0; i < info.base_args; ++i) {
    const int row = info.derivative_of[i];
    if (row >= 0 && (wanted >> i & 1) && !record.derivatives[row].fused) return true;
  }
  return false;
}

// In forward mode, a dummy node for the edges of inputs with a tangent.
const Ref<Node>& tangent_mark() {
  struct Mark final : Node {
    Gradients apply(Gradients) override { return {}; }
    std::string name() const override { return "Tangent"; }
  };
  static const Ref<Node> mark = Ref<Node>::take(new Mark);
  return mark;
}

}  // namespace

// A tensor that the call will overwrite is saved as a copy with the same grad_fn, so that second
// derivatives reach the tensors that it was computed from.
Tensor OpNode::to_save(const OpCall& c, int arg, const Tensor& t) const {
  if (purpose_ == Purpose::Forward) return shares_memory_with_mutated(c, t) ? ops::clone(t) : t;
  if (!(c.info->mutated >> arg & 1)) return t;
  const Edge history = gradient_edge(t);
  const BelowAutograd guard;
  Tensor copy = ops::clone(t);
  return history ? with_edge(std::move(copy), history) : copy;
}

Edge OpNode::edge_to(const Tensor& t) const {
  if (purpose_ == Purpose::Backward) return gradient_edge(t);
  return has_tangent(t) ? Edge{tangent_mark(), 0} : Edge();
}

OpNode::OpNode(const OpCall& c, uint32_t wanted, Purpose purpose)
    : call_(*c.op, c.args, 0), wanted_(wanted), purpose_(purpose) {
  const OpInfo& info = *c.info;
  find_kept(c);
  const uint32_t keep = kept_args_ & ~late_args_;
  for (int i = 0; i < info.base_args; ++i) {
    if (!is_tensor_arg(info, i)) continue;
    const Value& v = c.args[i];
    const bool save = keep >> i & 1, has_edge = info.derivative_of[i] >= 0;
    if (info.list_args >> i & 1) {
      keep_list(c, i, save);
      if (has_edge)
        for (const Tensor& t : v.as_tensors()) next.push_back(t.defined() ? edge_to(t) : Edge());
      continue;
    }
    if (v.is_tensor()) {
      const Tensor& t = v.as_tensor();
      TensorArg& a = tensors_.emplace_back(i, t.dtype(), t.sizes());
      if (save) a.saved = SavedTensor(to_save(c, i, t), false);
      if (info.view || info.reads_strides) {
        a.strides = IntVec(t.strides());
        a.offset = t.storage_offset();
      }
    }
    if (!has_edge || (v.is_number() && info.numbers_stand_apart)) continue;
    next.push_back(v.is_tensor() && (wanted >> i & 1) ? edge_to(v.as_tensor()) : Edge());
  }
}

// Finds which arguments and results must be saved for the rows that are needed.
void OpNode::find_kept(const OpCall& c) {
  const OpInfo& info = *c.info;
  for (uint32_t bits = wanted_; bits; bits &= bits - 1) {
    const int row = info.derivative_of[std::countr_zero(bits)];
    if (row < 0) continue;
    kept_args_ |= info.saved_args[row];
    kept_results_ |= info.saved_results[row];
  }
  if (kept_args_ & info.mutated) [[unlikely]]
    late_args_ = kept_args_ & written_results(info);
}

void OpNode::keep_list(const OpCall& c, int arg, bool save) {
  ListArg list{arg, {}, {}};
  for (const Tensor& t : c.args[arg].as_tensors()) {
    list.sizes.push_back(t.defined() ? IntVec(t.sizes()) : IntVec());
    if (save)
      list.saved.push_back(t.defined() ? SavedTensor(to_save(c, arg, t), false) : SavedTensor());
  }
  lists_.push_back(std::move(list));
}

const OpNode::TensorArg* OpNode::tensor_arg(int i) const {
  for (const TensorArg& t : tensors_)
    if (t.index == i) return &t;
  return nullptr;
}

const OpNode::ListArg* OpNode::list_arg(int i) const {
  for (const ListArg& l : lists_)
    if (l.index == i) return &l;
  return nullptr;
}

void OpNode::save_results(const OpCall& c) {
  for (uint32_t keep = kept_results_; keep; keep &= keep - 1) {
    const int k = std::countr_zero(keep);
    if (c.results[k].is_tensor())
      results_.emplace_back(k,
                            SavedTensor(c.results[k].as_tensor(), purpose_ == Purpose::Backward));
  }
  for (TensorArg& a : tensors_)
    if (late_args_ >> a.index & 1) a.saved = SavedTensor(c.tensor(a.index), false);
}

void OpNode::release_saved() {
  if (released_.exchange(true, std::memory_order_relaxed)) return;
  // Moved here under the lock and destroyed after unlocking, since that may run other code.
  InlineVector<SavedTensor, 4> freed;
  const std::lock_guard guard(lock);
  for (TensorArg& t : tensors_)
    if (t.saved.defined()) freed.push_back(std::move(t.saved));
  for (ListArg& l : lists_)
    for (SavedTensor& t : l.saved) freed.push_back(std::move(t));
  for (auto& [k, t] : results_) freed.push_back(std::move(t));
}

void OpNode::show_held(HeldVisitor& visitor) const {
  Node::show_held(visitor);
  for (const TensorArg& t : tensors_) t.saved.show_held(visitor);
  for (const ListArg& l : lists_)
    for (const SavedTensor& s : l.saved) s.show_held(visitor);
  for (const auto& [index, s] : results_) s.show_held(visitor);
}

void OpNode::check_alive() const {
  check(!released_.load(std::memory_order_relaxed),
        "Trying to backward through the graph a second time: its saved tensors are gone; keep them "
        "with "
        "retain_graph=True");
}

// Unpacks a copy, since another thread may release the node meanwhile.
Tensor OpNode::unpacked(const SavedTensor& saved) const {
  auto* self = const_cast<OpNode*>(this);
  self->lock.lock();
  const bool alive = !released_.load(std::memory_order_relaxed);
  const SavedTensor copy = alive ? saved : SavedTensor();
  self->lock.unlock();
  if (!alive) check_alive();
  return copy.unpack(Ref<Node>::share(self), *this);
}

Tensor OpNode::saved_arg(int i) const {
  const OpInfo& info = op().info();
  if (!(kept_args_ >> i & 1))
    throw Error(ErrorKind::Runtime, op().name(), ": its derivative reads '",
                info.schema.args[static_cast<size_t>(i)].name,
                "', which its row of the derivative table does not save");
  const TensorArg* t = tensor_arg(i);
  return t ? unpacked(t->saved) : Tensor();
}

Tensor OpNode::saved_result(int k) const {
  for (const auto& [index, t] : results_)
    if (index == k) return unpacked(t);
  check_alive();
  return {};
}

std::vector<Tensor> OpNode::saved_list(int i) const {
  std::vector<Tensor> list;
  const ListArg* arg = list_arg(i);
  if (!arg) return list;
  for (const SavedTensor& t : arg->saved) list.push_back(unpacked(t));
  return list;
}

size_t OpNode::edge_of(int arg) const {
  size_t at = 0;
  const OpInfo& info = op().info();
  for (int i = 0; i < arg; ++i) {
    if (!is_tensor_arg(info, i) || info.derivative_of[i] < 0) continue;
    if (info.numbers_stand_apart && number(i).is_number()) continue;
    const ListArg* list = info.list_args >> i & 1 ? list_arg(i) : nullptr;
    at += list ? list->sizes.size() : 1;
  }
  return at;
}

Tensor OpNode::run_row(Backward& b, int row) {
  const Derivative& d = op().record->derivatives[row];
  if (d.vjp) return d.vjp(b);
  const Tensor slope = d.local(b);
  if (!slope.defined()) return {};
  return ops::mul(b.grad(), is_complex(slope.dtype()) ? ops::conj(slope) : slope);
}

Gradients OpNode::apply(Gradients grads) {
  const OpInfo& info = op().info();
  const OpRecord& record = *op().record;
  if (kept_args_ | kept_results_) check_alive();
  if (std::ranges::none_of(grads, &Tensor::defined)) return Gradients(next.size());
  const HeldInUse saved(*this);
  // Results at the end may be missing or have no gradient.
  grads.resize(std::max<size_t>(grads.size(), info.results));
  Gradients out(next.size());
  Backward fused(*this, grads);
  fused.outputs_ = &out;
  // Rules that are not fused get zeros in place of undefined gradients.
  const auto made =
      grads.begin() + static_cast<std::ptrdiff_t>(std::min(grads.size(), outputs.size()));
  bool gaps = std::any_of(grads.begin(), made, [](const Tensor& g) { return !g.defined(); });
  if (gaps) gaps = any_single_row(info, record, wanted_);
  const Gradients filled = gaps ? with_zeros(grads) : Gradients();
  Backward single(*this, gaps ? filled : grads);
  uint32_t done = 0;
  const auto run = [&](int i) {
    const int row = info.derivative_of[i];
    if (row < 0 || !(wanted_ >> i & 1) || !is_tensor_arg(info, i)) return;
    if (record.derivatives[row].fused) {
      if (!(done >> row & 1)) record.derivatives[row].fused(fused);
      done |= 1u << row;
      return;
    }
    out[edge_of(i)] = run_row(single, row);
  };
  if (thread_state.modes) [[unlikely]]
    for (int i : args_by_name(info)) run(i);
  else
    for (int i = 0; i < info.base_args; ++i) run(i);
  return out;
}

// Replaces undefined gradients by zeros, except for results that are not differentiable.
Gradients OpNode::with_zeros(const Gradients& grads) const {
  Gradients complete = grads;
  for (size_t k = 0; k < complete.size() && k < outputs.size(); ++k) {
    const OutputMeta& m = outputs[k];
    if (complete[k].defined() || !is_differentiable(m.dtype)) continue;
    complete[k] = ops::zeros(m.sizes, m.dtype, std::nullopt, m.device);
  }
  return complete;
}

// --- class Backward

int Backward::arg_index(Name n) const {
  const Schema& s = node_.op().info().schema;
  for (size_t i = 0; i < s.args.size(); ++i)
    if (s.args[i].name_hash == n.hash) return static_cast<int>(i);
  throw Error(ErrorKind::Runtime, node_.op().name(), ": its derivative reads '", n.text,
              "', which is no argument");
}

Tensor Backward::operator[](Name n) const {
  const Schema& s = node_.op().info().schema;
  for (size_t i = 0; i < s.args.size(); ++i)
    if (s.args[i].name_hash == n.hash) return node_.saved_arg(static_cast<int>(i));
  const OpInfo& info = node_.op().info();
  for (int k = 0; k < info.own_results; ++k)
    if (info.result_names[k] == n.hash || (info.own_results == 1 && n.text == "result"))
      return node_.saved_result(k);
  throw Error(ErrorKind::Runtime, node_.op().name(), ": its derivative reads '", n.text,
              "', which is no argument or result");
}

Tensor Backward::result(int i) const { return node_.saved_result(i); }

std::vector<Tensor> Backward::tensors(Name n) const { return node_.saved_list(arg_index(n)); }

const Value& Backward::value(Name n) const { return node_.call_.args()[arg_index(n)]; }

IntSpan Backward::sizes(Name n) const {
  const OpNode::TensorArg* t = node_.tensor_arg(arg_index(n));
  return t ? IntSpan(t->sizes) : IntSpan();
}

IntSpan Backward::strides(Name n) const {
  const OpNode::TensorArg* t = node_.tensor_arg(arg_index(n));
  return t ? IntSpan(t->strides) : IntSpan();
}

int64_t Backward::storage_offset(Name n) const {
  const OpNode::TensorArg* t = node_.tensor_arg(arg_index(n));
  return t ? t->offset : 0;
}

DType Backward::dtype(Name n) const {
  const int i = arg_index(n);
  if (const OpNode::TensorArg* t = node_.tensor_arg(i)) return t->dtype;
  const Value& v = node_.call_.args()[i];
  return v.tag == Tag::DType ? v.dtype : DType::Undefined;
}

std::vector<IntVec> Backward::list_sizes(Name n) const {
  const OpNode::ListArg* list = node_.list_arg(arg_index(n));
  return list ? list->sizes : std::vector<IntVec>();
}

bool Backward::needs(Name n) const { return node_.wanted_ >> arg_index(n) & 1; }

bool Backward::needs(Name n, size_t element) const {
  return static_cast<bool>(node_.next[node_.edge_of(arg_index(n)) + element]);
}

void Backward::set(Name n, Tensor grad) {
  (*outputs_)[node_.edge_of(arg_index(n))] = std::move(grad);
}

void Backward::set(Name n, std::vector<Tensor> grads) {
  const size_t at = node_.edge_of(arg_index(n));
  for (size_t k = 0; k < grads.size(); ++k) (*outputs_)[at + k] = std::move(grads[k]);
}

}  // namespace facula
