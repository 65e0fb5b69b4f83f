// Nodes of the autograd graph: what computes gradients of inputs from gradients of outputs.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "core/autograd_meta.h"
#include "core/inline_vector.h"
#include "dispatch/rules.h"

namespace facula {

struct Node;

// An input of a node: gradients that flow along the edge go to output `output_nr` of `node`.
struct Edge {
  Ref<Node> node;
  uint32_t output_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// What a gradient must look like: the shape, dtype and device of the forward result.
struct OutputMeta {
  IntVec sizes;
  DType dtype = DType::Undefined;
  Device device;
};

using Gradients = std::vector<Tensor>;
struct NodePreHook {
  uint64_t id;
  std::function<void(Gradients& grads)> call;  // may replace elements
};
struct NodePostHook {
  uint64_t id;
  std::function<void(Gradients& inputs, const Gradients& outputs)> call;
};
struct NodeTensorHook {
  uint64_t id;
  uint32_t output_nr;
  std::function<Tensor(const Tensor&)> call;
};

struct Node : GraphNode {
  Node();
  // Nodes come and go with every operator: from the allocator's free lists.
  static void* operator new(size_t bytes) { return cpu_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }
  // One gradient per output in, one per edge out; an undefined tensor is zero.
  virtual Gradients apply(Gradients grads) = 0;
  // PyTorch's name for the node: "AddBackward0".
  virtual std::string name() const = 0;
  // Frees saved tensors; a later apply raises.
  virtual void release_saved() {}
  // The leaf that an accumulation node serves.
  virtual Tensor leaf() const { return {}; }
  void forget(TensorImpl* t) override;
  void show_held(HeldVisitor& visitor) const override;

  const uint64_t sequence;
  InlineVector<Edge, 3> next;
  InlineVector<OutputMeta, 1> outputs;
  std::vector<NodePreHook> pre_hooks;
  std::vector<NodePostHook> post_hooks;
  std::vector<NodeTensorHook> tensor_hooks;
  std::vector<std::pair<uint32_t, TensorImpl*>> retained;  // outputs whose .grad is kept; weak
  std::atomic<void*> python_object{nullptr};               // borrowed

 protected:
  explicit Node(uint64_t fixed_sequence) : sequence(fixed_sequence) {}
};
void destroy(Node* n);
uint64_t new_hook_id();

// Adds the tensor as the next output of the node and gives it this history.
void set_history(const Tensor& t, const Ref<Node>& node);

// Adds gradients into a leaf's .grad.
struct AccumulateGrad final : Node {
  explicit AccumulateGrad(const Tensor& variable);
  ~AccumulateGrad() override;
  Gradients apply(Gradients grads) override;
  std::string name() const override { return "AccumulateGrad"; }
  Tensor leaf() const override { return variable_; }
  void show_held(HeldVisitor& visitor) const override;

 private:
  Tensor variable_;
};

// A saved tensor with the version it had. A result is kept without its history, which would be a
// cycle, and gets it back when read.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const Tensor& t, bool is_output);
  // Raises RuntimeError when the tensor was changed in place since.
  Tensor unpack(const Ref<Node>& owner, const Node& saved_by) const;
  bool defined() const { return data_.defined(); }
  void reset() { data_.reset(); }
  void show_held(HeldVisitor& visitor) const {
    if (data_.defined()) visitor.tensor(data_);
  }

 private:
  Tensor data_;
  uint32_t version_ = 0, output_nr_ = 0;
  bool is_output_ = false;
};

// The node of any operator with a record.
class OpNode final : public Node {
 public:
  // `wanted`: bit per argument that needs a gradient. Saves inputs; results follow in save_results.
  // For forward mode, `wanted` are arguments with tangents: the node is used at once and dropped,
  // and what it saves keeps its history.
  enum class Purpose : uint8_t { Backward, Forward };
  OpNode(const OpCall& c, uint32_t wanted, Purpose purpose = Purpose::Backward);
  Gradients apply(Gradients grads) override;
  std::string name() const override;
  void release_saved() override;
  void save_results(const OpCall& c);
  void show_held(HeldVisitor& visitor) const override;

  const Operator& op() const { return *call_.op(); }
  Tensor saved_arg(int i) const;
  Tensor saved_result(int i) const;

 private:
  friend class Backward;
  struct TensorMeta {
    IntVec sizes;
    DType dtype = DType::Undefined;
  };
  // What is known of one tensor argument: its geometry, and what the call's rows save of it.
  struct TensorArg {
    int index = 0;
    DType dtype = DType::Undefined;
    IntVec sizes;
    SavedTensor saved;
    IntVec strides;  // of what a view was taken of
    int64_t offset = 0;
  };
  struct ListArg {
    int index = 0;
    std::vector<IntVec> sizes;
    std::vector<SavedTensor> saved;
  };
  uint32_t find_rows(const OpInfo& info) const;
  void keep_list(const OpCall& c, int arg, bool save);
  Tensor to_save(const OpCall& c, int arg, const Tensor& t) const;
  Edge edge_to(const Tensor& t) const;
  const TensorArg* tensor_arg(int i) const;
  const ListArg* list_arg(int i) const;
  size_t edge_of(int arg) const;
  void check_alive() const;
  Tensor run_row(Backward& b, int row);

  SavedCall call_;  // numbers, lists, strings; no tensors
  const uint32_t wanted_;
  const uint32_t rows_;  // of the derivative table that are needed
  const Purpose purpose_;
  bool released_ = false;
  InlineVector<TensorArg, 2> tensors_;
  std::vector<ListArg> lists_;
  std::vector<std::pair<int, SavedTensor>> results_;
};

}  // namespace facula
