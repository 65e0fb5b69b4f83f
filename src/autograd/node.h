// Nodes of the autograd graph: what computes gradients of inputs from gradients of outputs.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "autograd/saved_tensor.h"
#include "core/allocator.h"
#include "core/autograd_meta.h"
#include "core/inline_vector.h"
#include "core/locks.h"
#include "core/stream.h"
#include "dispatch/rules.h"

namespace facula {

struct Node;
struct CopySlices;

// An input of a node: gradients that flow along the edge go to output `output_nr` of `node`.
struct Edge {
  Ref<Node> node;
  uint32_t output_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// What a gradient must look like: the shape, dtype and device of the forward result.
struct OutputMeta {
  OutputMeta() = default;
  OutputMeta(IntSpan s, DType t, Device d)
      : sizes(s), dtype(t), device(d), stream(d.is_accelerator() ? current_stream(d).id : 0) {}
  IntVec sizes;
  DType dtype = DType::Undefined;
  Device device;
  bool any_dtype = false;  // a gradient keeps the dtype that it has
  uint32_t stream = 0;     // of the device, that was current when the result was made
};

using Gradients = std::vector<Tensor>;
// Each may replace gradients; an undefined one stands for zero.
using PreHook = std::function<void(Gradients& grads)>;
using PostHook = std::function<void(Gradients& inputs, const Gradients& outputs)>;
using GradientHook = std::function<Tensor(const Tensor&)>;  // undefined result: unchanged

// `object`: the Python object that `call` owns one reference to, for the collector.
struct NodePreHook {
  uint64_t id;
  PreHook call;
  void* object;
};
struct NodePostHook {
  uint64_t id;
  PostHook call;
  void* object;
};
struct NodeTensorHook {
  uint64_t id;
  uint32_t output_nr;
  GradientHook call;
  void* object;
};

// What the binding keeps with a node: its `metadata`.
struct NodeMetadata {
  virtual ~NodeMetadata() = default;
  virtual void show_held(HeldVisitor& visitor) const = 0;
};

// What few nodes have. Copied out under the node's lock before anything of it is called.
struct NodeHooks {
  std::vector<NodePreHook> pre;
  std::vector<NodePostHook> post;
  std::vector<NodeTensorHook> tensor;
  std::vector<std::pair<uint32_t, TensorImpl*>> retained;  // outputs whose .grad is kept; weak
  std::unique_ptr<NodeMetadata> metadata;

  void show_held(HeldVisitor& visitor) const;
};

struct Node : GraphNode {
  Node();
  ~Node() override;
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
  // Whether a complex gradient of a real tensor stands for its real part.
  virtual bool takes_real_part() const { return false; }
  void forget(TensorImpl* t) override;
  void show_held(HeldVisitor& visitor) const override;

  // Hooks: before the node runs (on all gradients, or on that of one output), and after. They may
  // be added and removed while another thread runs the node.
  uint64_t add_pre_hook(PreHook hook, void* object = nullptr);
  uint64_t add_post_hook(PostHook hook, void* object = nullptr);
  uint64_t add_tensor_hook(uint32_t output_nr, GradientHook hook, void* object = nullptr);
  void remove_hook(uint64_t id);
  void retain_output(uint32_t output_nr, TensorImpl* t);
  bool has_hooks() const { return hooks_.load(std::memory_order_acquire) != nullptr; }
  // Made when first asked for.
  NodeHooks& hooks();
  NodeMetadata* metadata() const;

  SpinLock lock;  // of hooks and saved tensors
  const uint64_t sequence;
  InlineVector<Edge, 3> next;
  InlineVector<OutputMeta, 1> outputs;
  std::atomic<void*> python_object{nullptr};  // borrowed
  // Where this one changed a view in place: the node of the base, which owns it.
  CopySlices* around = nullptr;

 protected:
  explicit Node(uint64_t fixed_sequence);

 private:
  std::atomic<NodeHooks*> hooks_{nullptr};  // owned
};
void destroy(Node* n);
uint64_t new_hook_id();

// Adds the tensor as the next output of the node and gives it this history.
void set_history(const Tensor& t, Ref<Node> node);

// Adds gradients into a leaf's .grad. The leaf owns the node; while anything refers to the node, it
// holds the leaf in turn.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  // A reference; the leaf is alive.
  Ref<Node> refer();
  // What the node wants of gradients, as the leaf is now.
  void take_geometry();
  void on_unreferenced() override;
  Gradients apply(Gradients grads) override;
  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  Tensor leaf() const override { return Tensor::share(leaf_); }
  void show_held(HeldVisitor& visitor) const override;

 private:
  void drop_hooks();
  static void add(const Tensor& leaf, Tensor fresh);

  TensorImpl* const leaf_;
  OwnedMutex adding_;  // two threads may meet at one leaf
};
inline bool is_accumulator(const Node& n) { return n.sequence == UINT64_MAX; }

// The node of any operator with a record.
class OpNode final : public Node {
 public:
  // `wanted`: bit per argument that needs a gradient. Saves inputs; what the call makes follows in
  // save_results.
  // For forward mode, `wanted` are arguments with tangents: the node is used at once and dropped,
  // and what it saves keeps its history.
  enum class Purpose : uint8_t { Backward, Forward };
  OpNode(const OpCall& c, uint32_t wanted, Purpose purpose = Purpose::Backward);
  Gradients apply(Gradients grads) override;
  std::string name() const override;
  void release_saved() override;
  void save_results(const OpCall& c);
  void show_held(HeldVisitor& visitor) const override;
  bool takes_real_part() const override { return true; }

  const Operator& op() const { return *call_.op(); }
  Tensor saved_arg(int i) const;
  Tensor saved_result(int i) const;
  // The first of the edges of an argument that has any.
  size_t edge_of(int arg) const;

  bool keeps(int arg) const { return kept_args_ >> arg & 1; }
  bool saves_results() const { return (kept_results_ | late_args_) != 0; }

  // What the node shows of itself: `_saved_other`, `_raw_saved_self`.
  struct Field {
    enum Kind : uint8_t { Argument, Result, Sizes, Number } kind;
    int index;
    std::string name;  // of the argument or result
    bool list = false;
    size_t element = 0;  // of a list: which one raw_saved() gives
  };
  std::vector<Field> fields() const;
  std::vector<Tensor> saved_list(int i) const;
  const Value& number(int i) const { return call_.args()[i]; }
  IntVec saved_sizes(int i) const;
  // Null where the call had None.
  SavedTensor* raw_saved(const Field& f);
  size_t list_length(const Field& f) const;
  void check_alive() const;

 private:
  friend class Backward;
  struct TensorMeta {
    IntVec sizes;
    DType dtype = DType::Undefined;
  };
  // What is known of one tensor argument: its geometry, and what the call's rows save of it.
  struct TensorArg {
    // A constructor: an aggregate would be filled with zeros first.
    TensorArg(int i, DType d, IntSpan s) : index(i), dtype(d), sizes(s) {}
    int index = 0;
    DType dtype = DType::Undefined;
    IntVec sizes;
    SavedTensor saved;
    IntVec strides;  // of what a view was taken of, or a copy in the manner of one
    int64_t offset = 0;
  };
  struct ListArg {
    int index = 0;
    std::vector<IntVec> sizes;
    std::vector<SavedTensor> saved;
  };
  void find_kept(const OpCall& c);
  void keep_list(const OpCall& c, int arg, bool save);
  Tensor to_save(const OpCall& c, int arg, const Tensor& t) const;
  Edge edge_to(const Tensor& t) const;
  const TensorArg* tensor_arg(int i) const;
  const ListArg* list_arg(int i) const;
  Tensor unpacked(const SavedTensor& s) const;
  Gradients with_zeros(const Gradients& grads) const;
  Tensor run_row(Backward& b, int row);

  SavedCall call_;  // numbers, lists, strings; no tensors
  const uint32_t wanted_;
  uint32_t kept_args_ = 0, kept_results_ = 0;  // a bit each
  uint32_t late_args_ = 0;  // of those kept: what the call writes, as a result of its own
  const Purpose purpose_;
  std::atomic<bool> released_{false};
  InlineVector<TensorArg, 3> tensors_;
  std::vector<ListArg> lists_;
  std::vector<std::pair<int, SavedTensor>> results_;
};

}  // namespace facula
