#include "autograd/forward.h"

#include <algorithm>
#include <mutex>

#include "autograd/engine.h"
#include "autograd/variable.h"
#include "dispatch/forward.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// --- the tangents of the dual level, which are emptied when it ends

class DualLevel {
 public:
  bool on = false;
  void remember(const Ref<Tangent>& t) {
    std::lock_guard hold(lock_);
    if (!on) return;
    held_.push_back(t);
    if (held_.size() < 2 * after_last_sweep_ + 64) return;
    std::erase_if(held_, [](const Ref<Tangent>& h) { return h->use_count() == 1; });
    after_last_sweep_ = held_.size();
  }
  std::vector<Ref<Tangent>> end() {
    std::lock_guard hold(lock_);
    on = false;
    after_last_sweep_ = 0;
    return std::exchange(held_, {});
  }

 private:
  ForkSafeMutex lock_{ForkOrder::ForwardMode};
  std::vector<Ref<Tangent>> held_;
  size_t after_last_sweep_ = 0;
};
DualLevel& dual_level() {
  static auto* level = new DualLevel;
  return *level;
}

class ComputingTangent {
 public:
  ComputingTangent() : before_(std::exchange(thread_state.computing_tangent, true)) {}
  ~ComputingTangent() { thread_state.computing_tangent = before_; }
  ComputingTangent(const ComputingTangent&) = delete;

 private:
  const bool before_;
};

Tensor own_tangent(const Tensor& t) {
  const AutogradMeta* m = t->autograd;
  return m && m->tangent ? m->tangent->value : Tensor();
}

void attach(const Tensor& t, Tensor value) {
  AutogradMeta& m = autograd_meta(t);
  if (!m.tangent) {
    m.tangent = Ref<Tangent>::take(new Tangent);
    dual_level().remember(m.tangent);
  }
  m.tangent->value = std::move(value);
  t->layers |= Layer::Autograd;
}

void stop_at(const Tensor& t) {
  AutogradMeta& m = autograd_meta(t);
  if (!m.tangent) m.tangent = Ref<Tangent>::take(new Tangent);
  m.tangent->stopped = true;
}

bool is_stopped(const Tensor& t) { return t->autograd->tangent && t->autograd->tangent->stopped; }

// Takes the view that `t` is of its base, from the base's tangent.
Tensor view_of_tangent(const Tensor& t, const Tensor& base_tangent) {
  const ComputingTangent guard;
  if (const auto& replay = t->autograd->replay) return replay->apply(base_tangent);
  const int64_t offset =
      t.storage_offset() - t->autograd->base.storage_offset() + base_tangent.storage_offset();
  return ops::as_strided(base_tangent, t.sizes(), t.strides(), offset);
}

// --- the layout of a tangent

bool same_strides(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.sizes().size(); ++d)
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

// A tangent has its tensor's strides, so that the same view operator applies to both.
Tensor strided_as(const Tensor& t, const Tensor& tangent) {
  const bool bits_fit = (!tangent->conj || t->conj) && (!tangent->neg || t->neg);
  if (bits_fit && (same_strides(tangent, t) || may_self_overlap(t.sizes(), t.strides())))
    return tangent;
  const Tensor fresh = ops::new_empty_strided(tangent, t.sizes(), t.strides());
  return ops::copy_(fresh, tangent);
}

// A tangent of the tensor's dtype, sizes and strides.
Tensor laid_out_as(const Tensor& t, Tensor tangent) {
  if (is_complex(tangent.dtype()) && !is_complex(t.dtype())) tangent = ops::real(tangent);
  if (tangent.dtype() != t.dtype()) tangent = ops::_to_copy(tangent, t.dtype());
  if (!same_sizes(tangent.sizes(), t.sizes())) tangent = ops::expand(tangent, t.sizes());
  return strided_as(t, tangent);
}

void check_sizes(const Tensor& primal, const Tensor& tangent) {
  check(same_sizes(primal.sizes(), tangent.sizes()), "a tangent must have its tensor's sizes, ",
        str(primal.sizes()), "; got ", str(tangent.sizes()));
}

// Setting the tangent of a view also gives its base one, which is zero outside of the view; the
// view's tangent becomes a view of that.
Tensor through_base(const Tensor& t, const Tensor& tangent) {
  const Tensor& base = t->autograd->base;
  const Tensor whole = ops::new_empty_strided(tangent, base.sizes(), base.strides());
  ops::zero_(whole);
  attach(base, whole);
  const Tensor part = view_of_tangent(t, whole);
  ops::copy_(part, tangent);
  return part;
}

// --- results, in the order of their tensors

template <class F>
void for_each_result(const OpCall& c, F&& f) {
  for (int k = 0; k < c.info->results; ++k) {
    const Value& v = c.results[k];
    if (v.is_tensor()) f(v.as_tensor(), k);
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) f(t, k);
  }
}

bool is_changed(const OpCall& c, int k) {
  const int from = c.info->alias_of[k];
  return from >= 0 && (c.info->mutated >> from & 1);
}

bool carries_tangent(const OpCall& c, const Tensor& t, int k) {
  return is_differentiable(t.dtype()) &&
         (is_changed(c, k) || (c.info->differentiable_results >> k & 1));
}

bool any_result_carries_tangent(const OpCall& c) {
  bool any = c.info->mutated != 0;
  for_each_result(c, [&](const Tensor& t, int k) { any |= carries_tangent(c, t, k); });
  return any;
}

const Operator* pure_form(const OpCall& c) {
  if (!c.info->mutated) return c.op;
  const Operator* base = c.op->variant_of(Variant::Base);
  if (base && !base->info().mutated) return base;
  return c.op->variant_of(Variant::Functional);
}

// Whether each of these arguments has a row of its own with a local derivative.
bool all_local(const OpCall& c, uint32_t args) {
  for (; args; args &= args - 1) {
    const int row = c.info->derivative_of[std::countr_zero(args)];
    const Derivative& d = c.op->record->derivatives[row];
    if (!d.local || !d.inputs.list[1].empty()) return false;
  }
  return c.info->results == 1;
}

uint32_t with_rows(const OpInfo& info, uint32_t args) {
  uint32_t bits = 0;
  for (; args; args &= args - 1) {
    const int i = std::countr_zero(args);
    if (info.derivative_of[i] >= 0) bits |= 1u << i;
  }
  return bits;
}

bool shares_memory_with_mutated(const OpCall& c, const Tensor& t) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const Value& v = c.args[std::countr_zero(bits)];
    if (v.is_tensor() && v.as_tensor()->storage == t->storage) return true;
  }
  return false;
}

[[noreturn]] void no_forward_rule(const OpCall& c) {
  throw Error(ErrorKind::NotImplemented, c.info->schema.name,
              c.op->variant == Variant::Out
                  ? "(): out= has no derivative, but an argument has a tangent (forward mode)"
                  : "(): no rule of forward mode is implemented");
}

}  // namespace

Tensor tangent_of(const Tensor& t) {
  Tensor own = own_tangent(t);
  if (own.defined() || !is_view(t) || is_stopped(t)) return own;
  const Tensor whole = own_tangent(t->autograd->base);
  if (!whole.defined()) return {};
  attach(t, view_of_tangent(t, whole));
  return own_tangent(t);
}

bool has_tangent(const Tensor& t) {
  const AutogradMeta* m = t->autograd;
  if (!m) return false;
  return (m->tangent && m->tangent->value.defined()) ||
         (m->base.defined() && !is_stopped(t) && own_tangent(m->base).defined());
}

void copy_tangent(const Tensor& from, const Tensor& to) {
  if (forward_levels.load(std::memory_order_relaxed) == 0) return;
  if (Tensor value = tangent_of(from); value.defined()) attach(to, std::move(value));
}

void set_tangent(const Tensor& t, Tensor tangent) {
  const ComputingTangent guard;
  check_sizes(t, tangent);
  if (tangent.is_same(t) || has_tangent(tangent)) tangent = ops::alias(tangent);
  if (Tensor own = tangent_of(t); own.defined()) {
    ops::copy_(own, tangent);
    return;
  }
  attach(t, laid_out_as(t, std::move(tangent)));
}

// --- the dual level

void enter_dual_level() {
  check(!dual_level().on, "enter_dual_level(): a level of forward mode is on; it cannot be nested");
  dual_level().on = true;
  add_forward_level(1);
}

void exit_dual_level() {
  check(dual_level().on, "exit_dual_level(): no level is on");
  for (const Ref<Tangent>& t : dual_level().end()) empty_tangent(t);
  add_forward_level(-1);
}

bool dual_level_on() { return dual_level().on; }

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  check(!has_tangent(primal), "make_dual(): the primal has a tangent already");
  check_sizes(primal, tangent);
  check(!has_tangent(tangent), "make_dual(): the tangent must not have a tangent of its own");
  const Tensor dual = ops::alias(primal);
  const ComputingTangent guard;
  attach(dual, strided_as(dual, tangent));
  return dual;
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& t) {
  Tensor tangent = tangent_of(t);
  if (!tangent.defined()) return {t, {}};
  Tensor primal = alias_tensor(t);
  primal->shared_version = t->share_version();
  if (const Ref<Node> node = grad_fn(t)) {
    AutogradMeta& m = autograd_meta(primal);
    m.grad_fn = Ref<GraphNode>::share(node.get());
    m.output_nr = t->autograd->output_nr;
    m.view_version = primal->current_version();
    primal->layers |= Layer::Autograd;
  }
  return {primal, std::move(tangent)};
}

// --- one call

ForwardPass::Way ForwardPass::way_of(const OpCall& c) const {
  const OpRecord& r = *c.op->record;
  if (c.op->variant == Variant::Out) no_forward_rule(c);
  if (c.info->view) return Way::SameOperator;
  if (r.flags & geometry_only) return Way::SameOperator;
  if (r.jvp && base_) return Way::Rule;
  if ((r.flags & linear) && base_) return Way::SameOperator;
  if (!c.info->differentiable) return Way::None;
  return all_local(c, with_rows(*c.info, duals_)) ? Way::Local : Way::Transpose;
}

void ForwardPass::begin(const OpCall& c) {
  for (int i = 0; i < c.info->args; ++i) {
    const Value& v = c.args[i];
    const bool one = v.is_tensor() && has_tangent(v.as_tensor());
    const bool some =
        v.tag == Tag::TensorList && std::ranges::any_of(v.as_tensors(), [](const Tensor& t) {
          return t.defined() && has_tangent(t);
        });
    if (one || some) duals_ |= 1u << i;
  }
  if (!duals_) return;
  tangents_.resize(c.info->args);
  for (int i = 0; i < c.info->args; ++i) {
    const Value& v = c.args[i];
    Tensors& list = tangents_[static_cast<size_t>(i)];
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors()) list.push_back(t.defined() ? tangent_of(t) : Tensor());
    else
      list.push_back(v.is_tensor() ? tangent_of(v.as_tensor()) : Tensor());
  }
  const ComputingTangent guard;
  base_ = pure_form(c);
  way_ = way_of(c);
  if (way_ == Way::Local || way_ == Way::Transpose)
    node_ = Ref<OpNode>::take(new OpNode(c, with_rows(*c.info, duals_), OpNode::Purpose::Forward));
  if (way_ != Way::Rule) return;
  args_ = SavedCall(*base_, c.args);
  for (int i = 0; i < c.info->args; ++i) {
    Value& v = args_.args()[i];
    if (!v.is_tensor() || !shares_memory_with_mutated(c, v.as_tensor())) continue;
    Tensor before = ops::clone(v.as_tensor());
    drop_copy(v);
    v = Value::of_tensor(before.leak());
  }
}

void ForwardPass::compute(OpCall& c) {
  const ComputingTangent guard;
  const Tensors found = tangents_of_results(c);
  size_t at = 0;
  for_each_result(c, [&](const Tensor& t, int k) {
    const Tensor tangent = at < found.size() ? found[at] : Tensor();
    ++at;
    if (!carries_tangent(c, t, k)) {
      if (c.info->view) stop_at(t);
      return;
    }
    if (c.op->record->flags & geometry_only) {
      if (tangent.defined()) attach(t, tangent);
    } else if (!is_changed(c, k)) {
      if (tangent.defined()) attach(t, laid_out_as(t, c.info->view ? tangent : owned(tangent)));
    } else if (const Tensor own = tangent_of(t); own.defined()) {
      tangent.defined() ? ops::copy_(own, tangent) : ops::zero_(own);
    } else if (tangent.defined()) {
      attach(t, is_view(t) ? through_base(t, tangent) : laid_out_as(t, tangent));
    }
  });
}

// Copies the tangent if it shares memory with that of an argument, which may be changed in place.
Tensor ForwardPass::owned(const Tensor& tangent) const {
  for (const Tensors& list : tangents_)
    for (const Tensor& given : list)
      if (given.defined() && given->storage == tangent->storage) return ops::clone(tangent);
  return tangent;
}

ForwardPass::Tensors ForwardPass::tangents_of_results(const OpCall& c) {
  switch (way_) {
    case Way::SameOperator:
      return by_same_operator(c);
    case Way::Rule:
      return by_rule(c);
    case Way::Local:
      return by_local_derivatives(c);
    case Way::Transpose:
      return by_transpose(c);
    case Way::None:
      break;
  }
  // Random numbers have a tangent of zero, and results such as indices have none.
  const bool known = (c.op->record->flags & random) || !any_result_carries_tangent(c);
  if (!known) no_forward_rule(c);
  return {};
}

// Calls the operator with the tangents as arguments, and zeros for inputs without one.
ForwardPass::Tensors ForwardPass::by_same_operator(const OpCall& c) {
  const bool geometry = c.op->record->flags & geometry_only, view = c.info->view;
  const Operator& op = geometry || view ? *c.op : *base_;
  Value args[32];
  Tensors zeros;
  zeros.reserve(32);
  std::vector<Tensors> lists(c.info->args);
  auto zero_of = [](const Tensor& t) {
    return ops::expand(ops::new_zeros(t, IntSpan()), t.sizes());
  };
  for (int i = 0; i < op.info().args; ++i) {
    const Value& v = c.args[i];
    const Tensors& tangent = tangents_[static_cast<size_t>(i)];
    args[i] = v;
    const bool input = c.info->derivative_of[i] >= 0 || (duals_ >> i & 1);
    if (!input) continue;
    if (v.is_number()) args[i] = Value::of_int(0);
    if (v.is_tensor()) {
      Tensor& t = zeros.emplace_back(tangent[0].defined() ? tangent[0] : zero_of(v.as_tensor()));
      if (geometry) t = ops::alias(t);
      args[i] = pack(t);
    }
    if (v.tag == Tag::TensorList) {
      Tensors& list = lists[static_cast<size_t>(i)];
      for (size_t e = 0; e < tangent.size(); ++e) {
        const Tensor& primal = v.as_tensors()[e];
        list.push_back(tangent[e].defined() || !primal.defined() ? tangent[e] : zero_of(primal));
      }
      args[i] = pack(std::span<const Tensor>(list));
    }
  }
  Results<8> results;
  call(op, args, results.slots);
  Tensors found;
  for (int k = 0; k < op.info().results; ++k) {
    Value& v = results.slots[k];
    if (v.tag == Tag::TensorList)
      std::ranges::move(take_tensors(v), std::back_inserter(found));
    else
      found.push_back(take_tensor(v));
  }
  return found;
}

ForwardPass::Tensors ForwardPass::by_rule(const OpCall& c) {
  Forward f(c, *base_, args_, tangents_);
  c.op->record->jvp(f);
  return f.take();
}

ForwardPass::Tensors ForwardPass::by_local_derivatives(const OpCall& c) {
  node_->save_results(c);
  const Gradients none(1);
  Backward b(*node_, none);
  Tensor sum;
  for (uint32_t bits = with_rows(*c.info, duals_); bits; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    const Tensor slope = c.op->record->derivatives[c.info->derivative_of[i]].local(b);
    if (!slope.defined()) continue;
    const Tensor part = ops::mul(slope, tangents_[static_cast<size_t>(i)][0]);
    sum = sum.defined() ? ops::add(sum, part) : part;
  }
  return {sum};
}

// vjp(u) is linear in the cotangent u, so the derivative of <vjp(u), t> with respect to u maps an
// input tangent t to the result's tangent. The backward engine computes it.
ForwardPass::Tensors ForwardPass::by_transpose(const OpCall& c) {
  node_->save_results(c);
  BackwardOptions options;
  options.create_graph = thread_state.grad_enabled;
  options.allow_unused = true;
  options.accumulate = false;
  const GradMode recording(true);
  Gradients cotangents;
  Tensors inputs;
  std::vector<size_t> place;
  size_t results = 0;
  for_each_result(c, [&](const Tensor& t, int k) {
    Tensor u;
    if (carries_tangent(c, t, k)) {
      u = detached(ops::zeros_like(t));
      set_requires_grad(u, true);
      inputs.push_back(u);
      place.push_back(results);
    }
    ++results;
    // Rules refer to gradients by the number of the result, so missing results need a place too.
    if (c.results[k].is_tensor()) cotangents.resize(static_cast<size_t>(k));
    cotangents.push_back(std::move(u));
  });
  Tensors found(results);
  if (inputs.empty()) return found;
  const Gradients pulled = node_->apply(std::move(cotangents));
  Tensors roots, directions;
  for (int i = 0; i < c.info->base_args; ++i) {
    if (c.info->derivative_of[i] < 0 || !((c.info->tensor_args | c.info->list_args) >> i & 1))
      continue;
    const Tensors& list = tangents_[static_cast<size_t>(i)];
    for (size_t k = 0; k < list.size(); ++k) {
      const Tensor& tangent = list[k];
      if (!tangent.defined()) continue;  // also skips numbers, which may have no edge
      const Tensor& g = pulled[node_->edge_of(i) + k];
      if (!g.defined() || !requires_grad(g)) continue;
      Tensor t = same_sizes(g.sizes(), tangent.sizes()) ? tangent : ops::expand(tangent, g.sizes());
      if (t.dtype() != g.dtype()) t = ops::_to_copy(t, g.dtype());
      roots.push_back(g);
      directions.push_back(t);
    }
  }
  if (roots.empty()) return found;
  const Tensors tangents = run_backward(roots, directions, inputs, options);
  for (size_t k = 0; k < place.size(); ++k) found[place[k]] = tangents[k];
  return found;
}

// --- what rules see

int Forward::arg(Name n) const {
  const std::vector<Argument>& args = info().schema.args;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name_hash == n.hash) return static_cast<int>(i);
  throw Error(ErrorKind::Runtime, base_.name(), ": its rule of forward mode reads '", n.text,
              "', which is no argument");
}

Tensor Forward::run_with(int i, const Tensor& t) const {
  Value args[32];
  std::copy_n(args_.args(), info().args, args);
  args[i] = pack(t);
  Results<8> results;
  call(base_, args, results.slots);
  return take_tensor(results.slots[0]);
}

void Forward::set(int k, Tensor t) {
  if (results_.size() <= static_cast<size_t>(k)) results_.resize(static_cast<size_t>(k) + 1);
  results_[static_cast<size_t>(k)] = std::move(t);
}

}  // namespace facula
