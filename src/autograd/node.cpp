#include "autograd/node.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/engine.h"
#include "autograd/node_watch.h"
#include "autograd/variable.h"
#include "core/interrupts.h"

namespace facula {
namespace {

// Numbers nodes in the order in which they are made: later ones run first in backward.
// AccumulateGrad has the highest number, so it runs as soon as it can.
thread_local constinit uint64_t next_sequence __attribute__((tls_model("initial-exec"))) = 0;
constexpr uint64_t accumulate_sequence = UINT64_MAX;

}  // namespace

Node::Node() : Node(next_sequence++) {}
Node::Node(uint64_t fixed) : GraphNode(fixed == accumulate_sequence), sequence(fixed) {
  if (anomaly_enabled()) [[unlikely]]
    note_made(*this);
}
Node::~Node() { delete hooks_.load(std::memory_order_relaxed); }

void destroy(Node* n) { destroy(static_cast<GraphNode*>(n)); }

NodeHooks& Node::hooks() {
  if (NodeHooks* there = hooks_.load(std::memory_order_acquire)) return *there;
  auto* made = new NodeHooks;
  NodeHooks* other = nullptr;
  if (hooks_.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *other;
}

NodeMetadata* Node::metadata() const {
  const NodeHooks* h = hooks_.load(std::memory_order_acquire);
  return h ? h->metadata.get() : nullptr;
}

uint64_t Node::add_pre_hook(PreHook hook, void* object) {
  const uint64_t id = new_hook_id();
  NodeHooks& h = hooks();
  const std::lock_guard guard(lock);
  h.pre.push_back({id, std::move(hook), object});
  return id;
}
uint64_t Node::add_post_hook(PostHook hook, void* object) {
  const uint64_t id = new_hook_id();
  NodeHooks& h = hooks();
  const std::lock_guard guard(lock);
  h.post.push_back({id, std::move(hook), object});
  return id;
}
uint64_t Node::add_tensor_hook(uint32_t output_nr, GradientHook hook, void* object) {
  const uint64_t id = new_hook_id();
  NodeHooks& h = hooks();
  const std::lock_guard guard(lock);
  h.tensor.push_back({id, output_nr, std::move(hook), object});
  return id;
}

namespace {
// Removes a hook and returns it, so that the caller destroys it after unlocking.
template <class List>
List without(List& list, uint64_t id) {
  const auto same = [id](const auto& h) { return h.id == id; };
  const auto at = std::stable_partition(list.begin(), list.end(), std::not_fn(same));
  List out(std::make_move_iterator(at), std::make_move_iterator(list.end()));
  list.erase(at, list.end());
  return out;
}
}  // namespace

void Node::remove_hook(uint64_t id) {
  NodeHooks* h = hooks_.load(std::memory_order_acquire);
  if (!h) return;
  std::vector<NodePreHook> pre;
  std::vector<NodePostHook> post;
  std::vector<NodeTensorHook> tensor;
  const std::lock_guard guard(lock);
  pre = without(h->pre, id);
  post = without(h->post, id);
  tensor = without(h->tensor, id);
}

void Node::retain_output(uint32_t output_nr, TensorImpl* t) {
  NodeHooks& h = hooks();
  const std::lock_guard guard(lock);
  h.retained.emplace_back(output_nr, t);
}

void Node::forget(TensorImpl* t) {
  NodeHooks* h = hooks_.load(std::memory_order_acquire);
  if (!h) return;
  const std::lock_guard guard(lock);
  std::erase_if(h->retained, [t](const auto& r) { return r.second == t; });
}

void NodeHooks::show_held(HeldVisitor& visitor) const {
  const auto show = [&](const auto& hooks) {
    for (const auto& h : hooks)
      if (h.object) visitor.object(h.object);
  };
  show(pre);
  show(post);
  show(tensor);
  if (metadata) metadata->show_held(visitor);
}

void Node::show_held(HeldVisitor& visitor) const {
  for (const Edge& e : next)
    if (e) visitor.node(e.node.get());
  if (const NodeHooks* h = hooks_.load(std::memory_order_acquire)) h->show_held(visitor);
}

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node(accumulate_sequence), leaf_(leaf.get()) {
  outputs.emplace_back(leaf.sizes(), leaf.dtype(), leaf.device());
}

Ref<Node> AccumulateGrad::refer() {
  if (!retain()) return Ref<Node>::take(this);
  leaf_->retain();
  take_geometry();  // the leaf may have got data of another shape since the last use
  const auto self = Ref<Node>::take(this);
  node_complete(self);
  return self;
}

void AccumulateGrad::take_geometry() {
  OutputMeta& m = outputs[0];
  const DType asked = leaf_->autograd ? leaf_->autograd->grad_dtype : DType::Undefined;
  const bool any_dtype = asked == any_grad_dtype;
  const DType dtype = asked == DType::Undefined || any_dtype ? leaf_->dtype : asked;
  // Writes only what has changed, since other threads may be reading.
  if (!same_sizes(m.sizes, leaf_->sizes())) m.sizes = IntVec(leaf_->sizes());
  if (m.any_dtype != any_dtype) m.any_dtype = any_dtype;
  if (m.dtype != dtype) m.dtype = dtype;
  if (!(m.device == leaf_->device)) m.device = leaf_->device;
  const uint32_t stream = m.device.is_accelerator() ? current_stream(m.device).id : 0;
  if (m.stream != stream) m.stream = stream;
}

void AccumulateGrad::on_unreferenced() {
  if (has_hooks()) drop_hooks();
  Ref<TensorImpl>::take(leaf_).reset();  // this may destroy the leaf and, with it, this node
}

// Removes the hooks when nothing refers to the node any more.
void AccumulateGrad::drop_hooks() {
  NodeHooks dropped;  // destroyed after unlocking
  const std::lock_guard guard(lock);
  if (use_count() == 0) std::swap(dropped, hooks());
}

// Shows the leaf without adding a reference to it, which would distort the counts.
void AccumulateGrad::show_held(HeldVisitor& visitor) const {
  Node::show_held(visitor);
  Tensor leaf(Ref<TensorImpl>::take(leaf_));
  visitor.tensor(leaf);
  leaf.leak();
}

Gradients AccumulateGrad::apply(Gradients grads) {
  if (!grads[0].defined()) return {};
  const Tensor variable = leaf();
  {
    const std::lock_guard guard(adding_);
    const NoInterrupts whole;
    add(variable, std::move(grads[0]));
  }
  AutogradMeta& m = autograd_meta(variable);
  // Loops by index, since a hook may add another.
  for (size_t i = 0; const auto hook = leaf_hook(m, &LeafHooks::post_accumulate, i); ++i)
    hook->call(variable);
  return {};
}

// Tries again if the program sets .grad meanwhile; the gradient is then added to the new value.
void AccumulateGrad::add(const Tensor& leaf, Tensor fresh) {
  while (true) {
    const Tensor there = read_grad(leaf);
    Tensor grown = accumulate_leaf(there, std::move(fresh), leaf);
    if (grown.is_same(there) || replace_grad(leaf, there, grown)) return;
    if (!fresh.defined()) fresh = std::move(grown);
  }
}

}  // namespace facula
