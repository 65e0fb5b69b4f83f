#include "autograd/node.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/forward.h"

namespace facula {
namespace {

// Later nodes run first in backward; accumulation into leaves runs as soon as it can.
thread_local constinit uint64_t next_sequence __attribute__((tls_model("initial-exec"))) = 0;
constexpr uint64_t accumulate_sequence = UINT64_MAX;

}  // namespace

Node::Node() : sequence(next_sequence++) {}

void destroy(Node* n) { destroy(static_cast<GraphNode*>(n)); }

void Node::forget(TensorImpl* t) {
  std::erase_if(retained, [t](const auto& r) { return r.second == t; });
}

void Node::show_held(HeldVisitor& visitor) const {
  for (const Edge& e : next)
    if (e) visitor.node(e.node.get());
}

void AccumulateGrad::show_held(HeldVisitor& visitor) const { visitor.tensor(variable_); }

AccumulateGrad::AccumulateGrad(const Tensor& v) : Node(accumulate_sequence), variable_(v) {
  outputs.push_back({IntVec(v.sizes()), v.dtype(), v.device()});
}

AccumulateGrad::~AccumulateGrad() {
  if (!variable_->autograd) return;
  GraphNode* self = this;
  variable_->autograd->accumulator.compare_exchange_strong(self, nullptr);
}

Gradients AccumulateGrad::apply(Gradients grads) {
  Tensor fresh = std::move(grads[0]);
  if (!fresh.defined()) return {};
  AutogradMeta& m = autograd_meta(variable_);
  for (const TensorHook& h : m.hooks)
    if (Tensor t = h.call(fresh); t.defined()) fresh = t;
  m.grad = accumulate_leaf(m.grad, std::move(fresh), variable_);
  for (const PostAccumulateHook& h : m.post_accumulate_hooks) h.call(variable_);
  return {};
}

SavedTensor::SavedTensor(const Tensor& t, bool is_output)
    : version_(t->current_version()), is_output_(is_output) {
  check(!t->inference, "Inference tensors cannot be saved for backward. To work around you can make "
        "a clone to get a normal tensor and use it in autograd.");
  if (!is_output) {
    data_ = t;
    return;
  }
  data_ = alias_tensor(t);
  data_->shared_version = t->share_version();
  if (t->autograd) output_nr_ = t->autograd->output_nr;
  copy_tangent(t, data_);
}

Tensor SavedTensor::unpack(const Ref<Node>& owner, const Node& saved_by) const {
  if (!data_.defined()) return {};
  const uint32_t now = data_->current_version();
  if (now != version_)
    throw Error(ErrorKind::Runtime, "one of the variables needed for gradient computation has been modified by an inplace operation: [",
        info(data_.dtype()).legacy_name, "Tensor ", str(data_.sizes()), "], which was saved by ", saved_by.name(),
        ", is at version ", now, "; expected version ", version_,
        " instead. Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with torch.autograd.set_detect_anomaly(True).");
  if (!is_output_ || !owner) return data_;
  Tensor t = alias_tensor(data_);
  t->shared_version = data_->shared_version;
  AutogradMeta& m = autograd_meta(t);
  m.grad_fn = Ref<GraphNode>::share(owner.get());
  m.output_nr = output_nr_;
  t->layers |= Layer::Autograd;
  copy_tangent(data_, t);
  return t;
}

}  // namespace facula
