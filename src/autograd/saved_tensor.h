// Tensors that a node saves for its derivative.
#pragma once
#include <memory>
#include <string>

#include "core/autograd_meta.h"

namespace facula {

struct Node;

// What a pack hook returned for a saved tensor.
struct PackedTensor {
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
  virtual void show_held(HeldVisitor&) const {}
};

// Hooks that run when a tensor is saved (pack) and when it is read again (PackedTensor::unpack).
struct SavedTensorHooks {
  virtual ~SavedTensorHooks() = default;
  virtual std::unique_ptr<PackedTensor> pack(const Tensor& t) = 0;
};

// Pushes hooks for tensors that this thread saves; only the innermost hooks run. RuntimeError with
// the text of disable_saved_tensor_hooks if hooks are disabled.
void push_saved_tensor_hooks(std::shared_ptr<SavedTensorHooks> hooks);
void pop_saved_tensor_hooks();
// Null if there are none, and while a pack hook runs.
std::shared_ptr<SavedTensorHooks> top_saved_tensor_hooks();

// Disables hooks with a text for the error, or enables them if it is empty; returns the old text.
std::string disable_saved_tensor_hooks(std::string text);

// The stack of hooks and the text that disables them, for threads of the engine to inherit.
struct SavedTensorState;
std::shared_ptr<SavedTensorState> saved_tensor_state();  // a copy
std::shared_ptr<SavedTensorState> copied(const std::shared_ptr<SavedTensorState>& s);
std::shared_ptr<SavedTensorState> own_saved_tensor_state();  // this thread's own, not a copy
void set_saved_tensor_state(const std::shared_ptr<SavedTensorState>& s);

// A saved tensor and its version at that time. A result of the node is saved without its grad_fn,
// since that would be a reference cycle; unpack() sets it again.
class SavedTensor {
 public:
  SavedTensor() {}
  // Raises RuntimeError for a tensor made in inference mode.
  SavedTensor(const Tensor& t, bool is_output);
  // Returns the tensor; `owner` is the node whose result it was. RuntimeError if the tensor was
  // changed in place since it was saved.
  Tensor unpack(const Ref<Node>& owner, const Node& saved_by) const;
  // Packs the tensor now. RuntimeError if it has hooks already.
  void register_hooks(const std::shared_ptr<SavedTensorHooks>& hooks, const Ref<Node>& owner);
  bool defined() const { return data_.defined() || packed_; }
  void show_held(HeldVisitor& visitor) const {
    if (data_.defined()) visitor.tensor(data_);
    if (packed_) show_packed(visitor);
  }
  void reset() {
    data_.reset();
    packed_.reset();
  }

 private:
  struct Packed;
  void pack(const Tensor& t, const std::shared_ptr<SavedTensorHooks>& hooks);
  void show_packed(HeldVisitor& visitor) const;
  void check_version(const Node& saved_by, const Ref<Node>& owner) const;
  Tensor with_history(const Tensor& t, const Ref<Node>& owner) const;

  Tensor data_;
  std::shared_ptr<Packed> packed_;
  uint32_t version_ = 0, output_nr_ = 0;
  bool is_output_ = false, is_leaf_ = false;
};

}  // namespace facula
