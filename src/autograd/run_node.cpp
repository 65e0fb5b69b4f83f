#include "autograd/run_node.h"

#include "autograd/anomaly.h"
#include "autograd/variable.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/reduce/reduce.h"

namespace facula {
namespace {

// Copies each hook before calling it, since hooks may be added and removed meanwhile.
template <class List>
List copied(Node& n, const List& list) {
  const std::lock_guard guard(n.lock);
  return list;
}

void run_leaf_hooks(Node& n, Gradients& grads) {
  const Tensor leaf = n.leaf();
  AutogradMeta& m = autograd_meta(leaf);
  // Loops by index, since a hook may add another.
  for (size_t i = 0; const auto hook = leaf_hook(m, &LeafHooks::gradient, i); ++i)
    if (Tensor t = hook->call(grads[0]); t.defined()) grads[0] = t;
}

// In anomaly mode.
void check_nan(const Node& n, const Gradients& out) {
  if (!anomaly_checks_nan.load(std::memory_order_relaxed)) return;
  const GradMode off(false);
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined() || !is_differentiable(out[i].dtype()) || out[i].is_meta()) continue;
    const Tensor any = ops::any(ops::isnan(out[i]), std::nullopt);
    check(!*any.data<bool>(), "Function '", n.name(), "' returned nan values in its output ", i);
  }
}

Gradients run_with_hooks(Node& n, Gradients grads, bool keep_saved) {
  for (const NodePreHook& h : copied(n, n.hooks().pre)) h.call(grads);
  const Gradients seen = grads;
  Gradients out = n.apply(std::move(grads));
  if (!keep_saved) n.release_saved();
  for (const NodePostHook& h : copied(n, n.hooks().post)) h.call(out, seen);
  return out;
}

Gradients run_plainly(Node& n, Gradients grads, bool keep_saved) {
  run_tensor_hooks(n, grads);
  if (n.has_hooks()) return run_with_hooks(n, std::move(grads), keep_saved);
  Gradients out = n.apply(std::move(grads));
  if (!keep_saved) n.release_saved();
  return out;
}

// In anomaly mode: reports where a failing node was made, and checks for NaN.
Gradients run_watched(Node& n, Gradients grads, bool keep_saved) {
  try {
    Gradients out = run_plainly(n, std::move(grads), keep_saved);
    check_nan(n, out);
    return out;
  } catch (...) {
    note_failed(n);
    throw;
  }
}

}  // namespace

void run_tensor_hooks(Node& n, Gradients& grads) {
  if (is_accumulator(n)) return run_leaf_hooks(n, grads);
  if (!n.has_hooks()) return;
  for (const NodeTensorHook& hook : copied(n, n.hooks().tensor))
    if (hook.output_nr < grads.size())
      if (Tensor t = hook.call(grads[hook.output_nr]); t.defined()) grads[hook.output_nr] = t;
  keep_gradients(n, grads);
}

Gradients run_node(Node& n, Gradients grads, bool keep_saved) {
  if (anomaly_enabled()) [[unlikely]]
    return run_watched(n, std::move(grads), keep_saved);
  return run_plainly(n, std::move(grads), keep_saved);
}

}  // namespace facula
