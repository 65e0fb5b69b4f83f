#include "autograd/variable.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "autograd/copy_slices.h"
#include "autograd/forward.h"
#include "autograd/node_watch.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"

namespace facula {
namespace {

std::atomic<uint64_t> next_hook{1};

// Whether the tensor is a view whose memory was changed after its grad_fn was set, and whose base
// requires grad.
bool stale_view(const Tensor& t) {
  const AutogradMeta& m = *t->autograd;
  return m.base.defined() &&
         m.view_version.load(std::memory_order_acquire) != t->current_version() &&
         requires_grad(m.base);
}

std::string name_of_operation(const std::string& node) {
  return node.substr(0, node.rfind("Backward"));
}

// Describes a view of a special kind, for the error when it is changed in place.
const char* kind_of(ViewKind kind) {
  switch (kind) {
    case ViewKind::MultiOutput:
      return "one of several views that one function returned";
    case ViewKind::Custom:
      return "a view that a custom Function returned, whose backward the change would bypass";
    case ViewKind::Inference:
      return "a view made in inference mode, which has no history to change";
    default:
      return "a view made in no_grad mode, of which nobody knows whether the change is meant to be "
             "recorded";
  }
}

[[noreturn]] void refuse_change(const Tensor& t, bool indirect) {
  const AutogradMeta& m = *t->autograd;
  std::string what = "a tensor";
  if (m.grad_fn) {
    const auto& node = static_cast<const Node&>(*m.grad_fn);
    what = concat("Output ", m.output_nr, " of ", name_of_operation(node.name()));
  }
  throw Error(ErrorKind::Runtime, what, " is a view and ",
              indirect ? "its base or another view of it has been" : "is being",
              " modified inplace, which is forbidden: it is ", kind_of(m.view_kind),
              ". clone() it, or work out of place");
}

// Moves retain_grad() of a tensor from its old node to its new one.
void move_retained(const Tensor& t, GraphNode* before, Node& now) {
  if (before) before->forget(t.get());
  now.retain_output(t->autograd->output_nr, t.get());
}

Edge way_from_base(const Tensor& t) {
  const AutogradMeta& m = *t->autograd;
  if (!m.replay) return {Ref<Node>::take(new ViewOfBase(m.base, t)), 0};
  const GradMode on(true);
  const Tensor again = m.replay->apply(m.base);
  return {grad_fn(again), again->autograd->output_nr};
}

// Gives a stale view a new grad_fn, a view of its base. If several threads do this at once, the
// node of the first one stays.
void renew_history(const Tensor& t) {
  AutogradMeta& m = *t->autograd;
  if (m.view_kind != ViewKind::Default) refuse_change(t, true);
  const uint32_t version = t->current_version();
  const Edge way = way_from_base(t);
  Ref<GraphNode> other = Ref<GraphNode>::share(way.node.get());  // after the swap, the old node
  {
    const std::lock_guard guard(m.lock);
    if (m.view_version.load(std::memory_order_relaxed) == version) return;
    m.grad_fn.swap(other);
    m.output_nr = way.output_nr;
    m.view_version.store(version, std::memory_order_release);
  }
  if (!t->layers.has(Layer::Autograd)) t->layers |= Layer::Autograd;
  if (m.retains_grad) move_retained(t, other.get(), *way.node);
  if (!m.replay) node_complete(way.node);
}

LeafHooks& own_leaf_hooks(const Tensor& t) {
  std::atomic<LeafHooks*>& hooks = autograd_meta(t).leaf_hooks;
  LeafHooks* there = hooks.load(std::memory_order_acquire);
  if (there) return *there;
  auto made = std::make_unique<LeafHooks>();
  if (hooks.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
    there = made.release();
  return *there;
}

// Removes a hook and returns it, so that the caller destroys it after unlocking.
template <class Hook>
std::vector<Hook> without(std::vector<Hook>& list, uint64_t id) {
  const auto at = std::ranges::stable_partition(list, [id](const Hook& h) { return h.id != id; });
  std::vector<Hook> out(std::make_move_iterator(at.begin()), std::make_move_iterator(at.end()));
  list.erase(at.begin(), at.end());
  return out;
}

}  // namespace

uint64_t new_hook_id() { return next_hook.fetch_add(1); }

bool requires_grad(const Tensor& t) {
  const AutogradMeta* m = t->autograd;
  if (!m) return false;
  // Asks the base before reading grad_fn, which another thread may be renewing for a view.
  return m->requires_grad || (m->base.defined() && requires_grad(m->base)) || m->grad_fn;
}

void set_requires_grad(const Tensor& t, bool on) {
  if (on) {
    check(is_differentiable(t.dtype()),
          "only Tensors of floating point and complex dtype can require gradients");
    check(!t->inference || thread_state.inference,
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  } else if (!t->autograd) {
    return;
  }
  if (!is_leaf(t)) {
    check(on,
          "you can only change requires_grad flags of leaf variables; detach() gives a tensor "
          "without "
          "history");
    return;
  }
  autograd_meta(t).requires_grad = on;
  if (on)
    t->layers |= Layer::Autograd;
  else if (!is_view(t) && !has_tangent(t))
    t->layers -= Layer::Autograd;
}

bool is_leaf(const Tensor& t) { return !t->autograd || !grad_fn(t); }

Ref<Node> grad_fn(const Tensor& t) {
  AutogradMeta* m = t->autograd;
  if (!m) return {};
  if (stale_view(t)) renew_history(t);
  auto* node = static_cast<Node*>(m->grad_fn.get());
  // A saved leaf that was packed and unpacked again has its AccumulateGrad here.
  if (node && is_accumulator(*node)) return {};
  return Ref<Node>::share(node);
}

Ref<Node> grad_accumulator(const Tensor& t) {
  AutogradMeta& m = autograd_meta(t);
  GraphNode* there = m.accumulator.load(std::memory_order_acquire);
  if (!there) {
    auto made = std::make_unique<AccumulateGrad>(t);
    // Another thread may have set one meanwhile.
    if (m.accumulator.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      there = made.release();
  }
  return static_cast<AccumulateGrad*>(there)->refer();
}

Edge gradient_edge(const Tensor& t) {
  if (Ref<Node> n = grad_fn(t)) return {std::move(n), t->autograd->output_nr};
  if (!requires_grad(t)) return {};
  if (GraphNode* unpacked = t->autograd->grad_fn.get())
    return {Ref<Node>::share(static_cast<Node*>(unpacked)), 0};
  return {grad_accumulator(t), 0};
}

Tensor with_edge(Tensor fresh, const Edge& edge) {
  AutogradMeta& m = autograd_meta(fresh);
  m.grad_fn = Ref<GraphNode>::share(edge.node.get());
  m.output_nr = edge.output_nr;
  m.view_version.store(fresh->current_version(), std::memory_order_relaxed);
  fresh->layers |= Layer::Autograd;
  return fresh;
}

void set_history(const Tensor& t, Ref<Node> node) {
  AutogradMeta& m = autograd_meta(t);
  m.output_nr = static_cast<uint32_t>(node->outputs.size());
  if (m.retains_grad) [[unlikely]]
    move_retained(t, m.grad_fn.get(), *node);
  m.view_version.store(t->current_version(), std::memory_order_release);
  node->outputs.emplace_back(t.sizes(), t.dtype(), t.device());
  m.grad_fn = Ref<GraphNode>::take(node.leak());
  t->layers |= Layer::Autograd;
}

void retain_grad(const Tensor& t) {
  check(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  const Ref<Node> node = grad_fn(t);
  if (!node || t->autograd->retains_grad) return;
  t->autograd->retains_grad = true;
  node->retain_output(t->autograd->output_nr, t.get());
}

Tensor read_grad(const Tensor& t) {
  AutogradMeta* m = t->autograd;
  if (!m) return {};
  const std::lock_guard guard(m->lock);
  return m->grad;
}

// The old gradient is destroyed after unlocking, since that may run other code.
void write_grad(const Tensor& t, Tensor grad) {
  AutogradMeta& m = autograd_meta(t);
  const std::lock_guard guard(m.lock);
  std::swap(m.grad, grad);
}

bool replace_grad(const Tensor& t, const Tensor& before, const Tensor& after) {
  AutogradMeta& m = autograd_meta(t);
  Tensor fresh = after;
  const std::lock_guard guard(m.lock);
  const bool same = m.grad.is_same(before);
  if (same) std::swap(m.grad, fresh);
  return same;
}

namespace {

// Adds to the .grad of a tensor with retain_grad(), which may be destroyed on another thread at any
// time: its destructor removes it from the node's list under the node's lock.
struct KeptGradient {
  Node& node;
  const std::pair<uint32_t, TensorImpl*> what;
  Tensor now;  // .grad when it was last read

  // False if the tensor was destroyed.
  bool read() {
    Tensor seen;
    const std::lock_guard guard(node.lock);
    if (!listed()) return false;
    const std::lock_guard meta(what.second->autograd->lock);
    seen = what.second->autograd->grad;
    std::swap(now, seen);
    return true;
  }
  // False if .grad was changed since read().
  bool write(Tensor sum) {
    const std::lock_guard guard(node.lock);
    if (!listed()) return true;
    const std::lock_guard meta(what.second->autograd->lock);
    if (!what.second->autograd->grad.is_same(now)) return false;
    std::swap(what.second->autograd->grad, sum);
    return true;
  }

 private:
  bool listed() const {
    const auto& list = node.hooks().retained;
    return std::find(list.begin(), list.end(), what) != list.end();
  }
};

}  // namespace

void keep_gradients(Node& n, const Gradients& grads) {
  std::vector<std::pair<uint32_t, TensorImpl*>> kept;
  {
    const std::lock_guard guard(n.lock);
    kept = n.hooks().retained;
  }
  for (const auto& what : kept) {
    if (what.first >= grads.size() || !grads[what.first].defined()) continue;
    const Tensor& grad = grads[what.first];
    KeptGradient to{n, what, {}};
    while (to.read())
      if (to.write(to.now.defined() ? ops::add(to.now, grad) : ops::clone(grad))) break;
  }
}

std::optional<DType> grad_dtype(const Tensor& t) {
  if (!t->autograd) return t.dtype();
  if (const Ref<Node> node = grad_fn(t)) {
    const OutputMeta& m = node->outputs[t->autograd->output_nr];
    if (m.any_dtype) return std::nullopt;
    return m.dtype;
  }
  const DType asked = t->autograd->grad_dtype;
  if (asked == any_grad_dtype) return std::nullopt;
  return asked == DType::Undefined ? t.dtype() : asked;
}

void set_grad_dtype(const Tensor& t, std::optional<DType> dtype) {
  check(is_leaf(t), "grad_dtype can only be set on leaf tensors.");
  AutogradMeta& m = autograd_meta(t);
  const Tensor grad = read_grad(t);
  check(!dtype || !grad.defined() || grad.dtype() == *dtype,
        "Tensor.grad_dtype: expected the dtype of the gradient that is there, ",
        grad.defined() ? name(grad.dtype()) : "", ", or .grad to be None; got ",
        dtype ? name(*dtype) : "");
  m.grad_dtype = dtype.value_or(any_grad_dtype);
  if (GraphNode* there = m.accumulator.load(std::memory_order_acquire))
    static_cast<AccumulateGrad*>(there)->take_geometry();
}

uint64_t add_hook(const Tensor& t, GradientHook hook, void* object) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  if (Ref<Node> n = grad_fn(t))
    return n->add_tensor_hook(t->autograd->output_nr, std::move(hook), object);
  const uint64_t id = new_hook_id();
  LeafHooks& hooks = own_leaf_hooks(t);
  const std::lock_guard guard(t->autograd->lock);
  hooks.gradient.push_back({id, std::move(hook)});
  return id;
}

uint64_t add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                  void* object) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  check(is_leaf(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  const uint64_t id = new_hook_id();
  LeafHooks& hooks = own_leaf_hooks(t);
  const std::lock_guard guard(t->autograd->lock);
  hooks.post_accumulate.push_back({id, std::move(hook), object});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  if (!t->autograd) return;
  if (LeafHooks* hooks = t->autograd->leaf_hooks.load(std::memory_order_acquire)) {
    std::vector<TensorHook> gradient;
    std::vector<PostAccumulateHook> post_accumulate;
    const std::lock_guard guard(t->autograd->lock);
    gradient = without(hooks->gradient, id);
    post_accumulate = without(hooks->post_accumulate, id);
  }
  if (Ref<Node> n = grad_fn(t)) n->remove_hook(id);
}

Tensor detached(const Tensor& t) {
  Tensor d = alias_tensor(t);
  d->shared_version = t->share_version();
  d->wrapped_number = t->wrapped_number;
  d->inference = t->inference;
  copy_tangent(t, d);
  return d;
}

void detach_in_place(const Tensor& t) {
  check(!is_view(t), "detach_(): a view cannot be detached in place; use detach()");
  if (!t->autograd) return;
  AutogradMeta& m = *t->autograd;
  if (m.grad_fn) m.grad_fn->forget(t.get());
  m.retains_grad = m.requires_grad = false;
  m.output_nr = 0;
  const Ref<GraphNode> old = std::move(m.grad_fn);
  t->layers -= Layer::Autograd;
}

void check_inplace(const Tensor& t, bool recording) {
  if (!recording || !t->autograd || !thread_state.grad_enabled) return;
  const AutogradMeta& m = *t->autograd;
  if (m.base.defined()) {
    if (m.view_kind != ViewKind::Default) refuse_change(t, false);
    check(!(requires_grad(t) && is_leaf(m.base)),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(requires_grad(t) && is_leaf(t)),
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& t, const Ref<Node>& node) {
  if (!is_view(t)) return set_history(t, node);
  const Tensor base = t->autograd->base;
  node->outputs.push_back({IntVec(t.sizes()), t.dtype(), t.device()});
  const auto whole = Ref<Node>::take(new CopySlices(base, t, node));
  set_history(base, whole);
  t->autograd->view_version = t->current_version() - 1;  // makes it a stale view, see renew_history
  t->layers |= Layer::Autograd;
  const Ref<Node> renewed = grad_fn(t);
  node_complete(whole);
}

}  // namespace facula
