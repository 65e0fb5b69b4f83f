// Tensors that a node keeps for its derivative.
#pragma once
#include <memory>
#include <string>

#include "core/autograd_meta.h"

namespace facula {

struct Node;

// What a pack hook made of a saved tensor.
struct PackedTensor {
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
  virtual void show_held(HeldVisitor&) const {}
};

// Hooks that tensors pass through on their way into and out of nodes.
struct SavedTensorHooks {
  virtual ~SavedTensorHooks() = default;
  virtual std::unique_ptr<PackedTensor> pack(const Tensor& t) = 0;
};

// The innermost hooks of this thread apply to what is saved next. Raises RuntimeError with the
// text of disable_saved_tensor_hooks where these are off.
void push_saved_tensor_hooks(std::shared_ptr<SavedTensorHooks> hooks);
void pop_saved_tensor_hooks();
// Null when there are none, or while pack runs.
std::shared_ptr<SavedTensorHooks> top_saved_tensor_hooks();

// Forbids hooks with a text for the error; returns the text of before. Empty allows them.
std::string disable_saved_tensor_hooks(std::string text);

// Hooks and their being forbidden, as another thread of the engine takes them over.
struct SavedTensorState;
std::shared_ptr<SavedTensorState> saved_tensor_state();  // a copy
std::shared_ptr<SavedTensorState> copied(const std::shared_ptr<SavedTensorState>& s);
std::shared_ptr<SavedTensorState> own_saved_tensor_state();  // the very state in force
void set_saved_tensor_state(const std::shared_ptr<SavedTensorState>& s);

// A saved tensor with the version it had. A result is kept without its history, which would be a
// cycle, and gets it back when read.
class SavedTensor {
 public:
  SavedTensor() {}
  // Raises RuntimeError for a tensor made in inference mode.
  SavedTensor(const Tensor& t, bool is_output);
  // The tensor; `owner` is the node whose result it was. Raises RuntimeError when the tensor was
  // changed in place since it was saved.
  Tensor unpack(const Ref<Node>& owner, const Node& saved_by) const;
  // Packs the tensor now. Raises RuntimeError when that was done before.
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
