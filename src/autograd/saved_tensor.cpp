#include "autograd/saved_tensor.h"

#include <vector>

#include "autograd/anomaly.h"
#include "autograd/copy_slices.h"
#include "autograd/forward.h"
#include "autograd/seen_program.h"
#include "autograd/variable.h"
#include "dispatch/mutations.h"
#include "ops/shape/view.h"

namespace facula {

struct SavedTensorState {
  std::vector<std::shared_ptr<SavedTensorHooks>> hooks;
  std::string forbidden;
  bool packing = false;
};

namespace {

// Null in the common case, so that saving a tensor reads only this pointer.
SavedTensorState*& in_force() { return thread_state.saved_tensors; }

struct StateOwner {
  std::shared_ptr<SavedTensorState> own;
};
StateOwner& state_owner() {
  thread_local StateOwner owner;
  return owner;
}
SavedTensorState& make_state() {
  StateOwner& owner = state_owner();
  if (!owner.own) owner.own = std::make_shared<SavedTensorState>();
  in_force() = owner.own.get();
  return *owner.own;
}

// "MulBackward0" -> "Mul"
std::string operation_of(std::string node_name) {
  const size_t at = node_name.rfind("Backward");
  const bool ends_so = at != std::string::npos &&
                       node_name.find_first_not_of("0123456789", at + 8) == std::string::npos;
  return ends_so ? node_name.substr(0, at) : node_name;
}

class Packing {
 public:
  Packing() : grad_(false) { make_state().packing = true; }
  ~Packing() { in_force()->packing = false; }

 private:
  GradMode grad_;
};

}  // namespace

void push_saved_tensor_hooks(std::shared_ptr<SavedTensorHooks> hooks) {
  SavedTensorState& s = make_state();
  check(s.forbidden.empty(), s.forbidden);
  s.hooks.push_back(std::move(hooks));
}
void pop_saved_tensor_hooks() {
  SavedTensorState* state = in_force();
  check(state && !state->hooks.empty(), "no hooks of saved tensors are on the stack");
  state->hooks.pop_back();
}
std::shared_ptr<SavedTensorHooks> top_saved_tensor_hooks() {
  // Hooks do not run for forward mode, which saves tensors only until the call is over.
  const SavedTensorState* state = in_force();
  if (!state || state->packing || state->hooks.empty() || thread_state.computing_tangent)
    return nullptr;
  return state->hooks.back();
}
std::string disable_saved_tensor_hooks(std::string text) {
  SavedTensorState& s = make_state();
  check(text.empty() || s.hooks.empty(), text);
  return std::exchange(s.forbidden, std::move(text));
}
std::shared_ptr<SavedTensorState> saved_tensor_state() {
  return in_force() ? std::make_shared<SavedTensorState>(*in_force()) : nullptr;
}
std::shared_ptr<SavedTensorState> copied(const std::shared_ptr<SavedTensorState>& s) {
  return s ? std::make_shared<SavedTensorState>(*s) : nullptr;
}
std::shared_ptr<SavedTensorState> own_saved_tensor_state() {
  return in_force() ? state_owner().own : nullptr;
}
void set_saved_tensor_state(const std::shared_ptr<SavedTensorState>& s) {
  state_owner().own = s;
  in_force() = s.get();
}

bool (*program_is_seen)() = nullptr;

namespace {
// Another tensor over the same values, without a grad_fn. For a class with __torch_dispatch__ the
// class makes it, since only it knows what its tensors hold; modes in Python are told of it.
bool is_seen() { return thread_state.modes && program_is_seen && program_is_seen(); }
Tensor plain_header(const Tensor& t) {
  return is_seen() || t->layers.has(Layer::Subclass) ? ops::detach(t) : alias_tensor(t);
}
}  // namespace

// The result of a pack hook, and the grad_fn that unpack() sets again.
struct SavedTensor::Packed {
  std::unique_ptr<PackedTensor> value;
  Edge edge;
};

SavedTensor::SavedTensor(const Tensor& t, bool is_output)
    : version_(t->current_version()), is_output_(is_output) {
  check(!t->inference, "Inference tensors cannot be saved for backward: got one of dtype ",
        name(t.dtype()), "; a clone() made outside of inference_mode can");
  if (t->autograd) output_nr_ = t->autograd->output_nr;
  if (in_force()) [[unlikely]]
    if (const auto hooks = top_saved_tensor_hooks()) {
      pack(t, hooks);
      return;
    }
  // A result without a grad_fn is no cycle: a mode that knows it meets it again.
  if (is_output && is_seen() && !requires_grad(t)) is_output_ = false;
  if (!is_output_) {
    data_ = t;
    return;
  }
  data_ = plain_header(t);
  data_->shared_version = t->share_version();
  copy_tangent(t, data_);
}

void SavedTensor::pack(const Tensor& t, const std::shared_ptr<SavedTensorHooks>& hooks) {
  const Packing guard;
  const uint32_t before = t->current_version();
  auto made = std::make_shared<Packed>();
  made->value = hooks->pack(t);
  check(before == t->current_version(),
        "a pack hook of saved tensors changed its input in place; it must leave it as it is");
  if (!is_output_ && requires_grad(t)) {
    is_leaf_ = is_leaf(t);
    made->edge = gradient_edge(t);
  }
  packed_ = std::move(made);
  data_.reset();
}

void SavedTensor::show_packed(HeldVisitor& visitor) const {
  if (packed_.use_count() > 1) return;  // something else holds it too
  packed_->value->show_held(visitor);
  if (packed_->edge) visitor.node(packed_->edge.node.get());
}

void SavedTensor::register_hooks(const std::shared_ptr<SavedTensorHooks>& hooks,
                                 const Ref<Node>& owner) {
  check(!packed_, "register_hooks(): this saved tensor has hooks already");
  check(data_.defined(), "register_hooks(): there is no tensor here, but None");
  const Tensor t = is_output_ ? with_history(data_, owner) : data_;
  pack(t, hooks);
}

void SavedTensor::check_version(const Node& saved_by, const Ref<Node>& owner) const {
  const uint32_t now = data_->current_version();
  if (now == version_) [[likely]]
    return;
  std::string text = concat(
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [torch.",
      info(data_.dtype()).legacy_name, "Tensor ", str(data_.sizes()), "]");
  const Ref<Node> made_by = is_output_ ? owner : grad_fn(data_);
  if (made_by)
    text += concat(", which is output ", output_nr_, " of ", operation_of(made_by->name()), ",");
  text += concat(" is at version ", now, "; expected version ", version_,
                 " instead. It was saved by ", saved_by.name());
  if (const std::string line = forward_line(saved_by); !line.empty()) text += " at " + line;
  if (const Mutation* m = find_mutation(*data_.get(), now)) {
    if (m->op) text += concat(", and last changed by ", m->op->name());
    if (!m->line.empty()) text += " at " + m->line;
  }
  text += ".";
  if (!anomaly_enabled()) text += " (set_detect_anomaly(True) shows the lines)";
  throw Error(ErrorKind::Runtime, text);
}

Tensor SavedTensor::with_history(const Tensor& t, const Ref<Node>& owner) const {
  if (!owner) return t;
  Tensor again = plain_header(t);
  if (data_.defined()) again->shared_version = data_->share_version();
  // A view that was changed in place gets its grad_fn from the base.
  const Edge edge = owner->around ? owner->around->edge_of_view() : Edge{owner, output_nr_};
  again = with_edge(std::move(again), edge);
  copy_tangent(t, again);
  return again;
}

Tensor SavedTensor::unpack(const Ref<Node>& owner, const Node& saved_by) const {
  if (packed_) {
    // Holds a reference, since the hook may run Python code that frees the graph.
    const std::shared_ptr<Packed> packed = packed_;
    Tensor t;
    {
      const GradMode off(false);
      t = packed->value->unpack();
    }
    if (is_output_) return with_history(t, owner);
    if (!packed->edge) return t;
    return with_edge(plain_header(t), packed->edge);
  }
  if (!data_.defined()) return {};
  check_version(saved_by, owner);
  return is_output_ ? with_history(data_, owner) : data_;
}

}  // namespace facula
