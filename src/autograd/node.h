// Nodes of the autograd graph, which compute gradients of inputs from gradients of outputs.
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

// The shape, dtype and device of a forward result, which its gradient must have too.
struct OutputMeta {
  OutputMeta() = default;
  OutputMeta(IntSpan s, DType t, Device d)
      : sizes(s), dtype(t), device(d), stream(d.is_accelerator() ? current_stream(d).id : 0) {}
  IntVec sizes;
  DType dtype = DType::Undefined;
  Device device;
  bool any_dtype = false;  // gradients are not cast
  uint32_t stream = 0;     // the device's current stream when the result was made
};

using Gradients = std::vector<Tensor>;
// Hooks may replace gradients; an undefined gradient means zero.
using PreHook = std::function<void(Gradients& grads)>;
using PostHook = std::function<void(Gradients& inputs, const Gradients& outputs)>;
using GradientHook = std::function<Tensor(const Tensor&)>;  // undefined result: unchanged

// `object` is the Python object that `call` owns a reference to; the cycle collector needs it.
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

// The binding's `metadata` attribute of a node.
struct NodeMetadata {
  virtual ~NodeMetadata() = default;
  virtual void show_held(HeldVisitor& visitor) const = 0;
};

// Hooks and metadata, which few nodes have. A hook is copied under the node's lock before it is
// called, so that the lock is not held while it runs.
struct NodeHooks {
  std::vector<NodePreHook> pre;
  std::vector<NodePostHook> post;
  std::vector<NodeTensorHook> tensor;
  std::vector<std::pair<uint32_t, TensorImpl*>> retained;  // outputs with retain_grad(); not owned
  std::unique_ptr<NodeMetadata> metadata;

  void show_held(HeldVisitor& visitor) const;
};

struct Node : GraphNode {
  Node();
  ~Node() override;
  // Every recorded call makes a node, so they come from the allocator's free lists.
  static void* operator new(size_t bytes) { return cpu_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }
  // Takes one gradient for each output and returns one for each edge; an undefined tensor is zero.
  virtual Gradients apply(Gradients grads) = 0;
  // PyTorch's name for the node: "AddBackward0".
  virtual std::string name() const = 0;
  // Frees the saved tensors; apply() raises afterwards.
  virtual void release_saved() {}
  // The leaf of an AccumulateGrad; undefined for other nodes.
  virtual Tensor leaf() const { return {}; }
  // Whether the node accepts a complex gradient for a real output and takes its real part.
  virtual bool takes_real_part() const { return false; }
  void forget(TensorImpl* t) override;
  void show_held(HeldVisitor& visitor) const override;

  // Adds a hook that runs before the node (on all its gradients, or on that of one output) or after
  // it. Hooks may be added and removed while another thread runs the node.
  uint64_t add_pre_hook(PreHook hook, void* object = nullptr);
  uint64_t add_post_hook(PostHook hook, void* object = nullptr);
  uint64_t add_tensor_hook(uint32_t output_nr, GradientHook hook, void* object = nullptr);
  void remove_hook(uint64_t id);
  void retain_output(uint32_t output_nr, TensorImpl* t);
  bool has_hooks() const { return hooks_.load(std::memory_order_acquire) != nullptr; }
  // The hooks, made at the first call.
  NodeHooks& hooks();
  NodeMetadata* metadata() const;

  SpinLock lock;  // guards hooks and saved tensors
  const uint64_t sequence;
  InlineVector<Edge, 3> next;
  InlineVector<OutputMeta, 1> outputs;
  std::atomic<void*> python_object{nullptr};  // borrowed
  // If this node changed a view in place: the CopySlices node of the base, which owns this one.
  CopySlices* around = nullptr;

 protected:
  explicit Node(uint64_t fixed_sequence);

 private:
  std::atomic<NodeHooks*> hooks_{nullptr};  // owned
};
void destroy(Node* n);
uint64_t new_hook_id();

// Adds the tensor as the next output of the node, and sets its grad_fn to the node.
void set_history(const Tensor& t, Ref<Node> node);

// The node that adds gradients to a leaf's .grad. The leaf owns it; while anything else refers to
// the node, the node keeps the leaf alive.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  // Returns a reference to the node; the leaf must be alive.
  Ref<Node> refer();
  // Updates what the node expects of gradients from the leaf's current geometry.
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
  OwnedMutex adding_;  // held while adding, since two threads may reach one leaf
};
inline bool is_accumulator(const Node& n) { return n.sequence == UINT64_MAX; }

// The node of any operator with a record.
class OpNode final : public Node {
 public:
  // `wanted` has one bit for each argument that needs a gradient. Saves the inputs; save_results()
  // follows after the call. For Purpose::Forward, `wanted` are the arguments with tangents: the
  // node is used at once and dropped, and the tensors that it saves keep their history.
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
  // The index of the first edge of an argument, which must have one.
  size_t edge_of(int arg) const;

  bool keeps(int arg) const { return kept_args_ >> arg & 1; }
  bool saves_results() const { return (kept_results_ | late_args_) != 0; }

  // An attribute of the node in Python, such as `_saved_other` and `_raw_saved_other`.
  struct Field {
    enum Kind : uint8_t { Argument, Result, Sizes, Number } kind;
    int index;
    std::string name;  // of the argument or result
    bool list = false;
    size_t element = 0;  // the element of a list that raw_saved() returns
  };
  std::vector<Field> fields() const;
  std::vector<Tensor> saved_list(int i) const;
  const Value& number(int i) const { return call_.args()[i]; }
  IntVec saved_sizes(int i) const;
  // Null if the argument was None.
  SavedTensor* raw_saved(const Field& f);
  size_t list_length(const Field& f) const;
  void check_alive() const;

 private:
  friend class Backward;
  struct TensorMeta {
    IntVec sizes;
    DType dtype = DType::Undefined;
  };
  // The geometry of a tensor argument, and the tensor itself if a derivative needs it.
  struct TensorArg {
    // Has a constructor because an aggregate would be zeroed first.
    TensorArg(int i, DType d, IntSpan s) : index(i), dtype(d), sizes(s) {}
    int index = 0;
    DType dtype = DType::Undefined;
    IntVec sizes;
    SavedTensor saved;
    IntVec strides;  // for operators that make views, or copies of views
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

  SavedCall call_;  // arguments other than tensors
  const uint32_t wanted_;
  uint32_t kept_args_ = 0, kept_results_ = 0;  // which of them are saved, one bit for each
  uint32_t late_args_ = 0;  // those of kept_args_ that the call writes: saved after it
  const Purpose purpose_;
  std::atomic<bool> released_{false};
  InlineVector<TensorArg, 3> tensors_;
  std::vector<ListArg> lists_;
  std::vector<std::pair<int, SavedTensor>> results_;
};

}  // namespace facula
