// Custom operations with a backward function: Function for C++, and the rules for attaching results
// to the graph that it shares with Python's Function.
//
//   struct Square : facula::Function<Square> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x) {
//       ctx.save_for_backward({x});
//       return ops::mul(x, x);
//     }
//     static Gradients backward(FunctionContext& ctx, const Gradients& grads) {
//       return {ops::mul(ops::mul(grads[0], ctx.saved()[0]), 2)};
//     }
//   };
//   Tensor y = Square::apply(x);
#pragma once
#include <any>
#include <map>
#include <type_traits>

#include "autograd/variable.h"

namespace facula {

// The inputs and outputs of a custom operation.
struct CustomResults {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;   // undefined for results that are no tensors
  std::vector<Tensor> dirty;     // inputs that were changed in place
  std::vector<Tensor> constant;  // outputs that have no gradient
};

// Returns the outputs with `node` as grad_fn, or without a grad_fn if it is null. An input that is
// returned unchanged becomes a view. RuntimeError if the rules for in-place changes are broken.
// `warn` receives warnings for the user.
std::vector<Tensor> attach_results(const Ref<Node>& node, const CustomResults& results,
                                   const std::function<void(const char*)>& warn = {});

// What forward passes on to backward.
class FunctionContext {
 public:
  // Keeps inputs or outputs of the operation for backward.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // The saved tensors. RuntimeError if they were changed in place since, or freed.
  std::vector<Tensor> saved() const;
  // Says that forward changed these inputs in place; they must be among its results.
  void mark_dirty(std::vector<Tensor> inputs) { results_.dirty = std::move(inputs); }
  // Says that these results carry no gradient.
  void mark_non_differentiable(std::vector<Tensor> outputs) {
    results_.constant = std::move(outputs);
  }
  // Whether backward gets zeros for undefined gradients; on by default.
  void set_materialize_grads(bool on) { materialize_ = on; }
  // Whether the gradient of tensor argument i will be used.
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }
  // For anything else that backward needs.
  std::map<std::string, std::any> data;

 private:
  friend struct FunctionNode;
  std::vector<Tensor> to_save_;
  std::vector<SavedTensor> saved_;
  CustomResults results_;
  std::vector<bool> needs_;
  bool materialize_ = true, released_ = false;
  Node* node_ = nullptr;  // the node that owns this context
};

// The node of a C++ Function.
struct FunctionNode final : Node {
  using Backward = Gradients (*)(FunctionContext&, const Gradients&);
  FunctionNode(std::string name, Backward backward);
  Gradients apply(Gradients grads) override;
  std::string name() const override { return name_; }
  void release_saved() override;
  void show_held(HeldVisitor& visitor) const override {
    Node::show_held(visitor);
    for (const SavedTensor& s : context.saved_) s.show_held(visitor);
  }

  // Called before forward. Returns whether a graph is recorded.
  bool begin(std::vector<Tensor> inputs);
  // Called after forward. Returns the outputs with their grad_fn.
  std::vector<Tensor> end(std::vector<Tensor> outputs, bool recording);

  FunctionContext context;

 private:
  const std::string name_;
  const Backward backward_;
};

// "Square" for struct Square.
std::string type_text(const std::type_info& type);

// The base of custom operations in C++; see the top of this file. `forward` returns a Tensor or a
// vector of Tensors. `backward` returns one gradient for each Tensor argument, and none for others.
template <class Derived>
struct Function {
  template <class... Args>
  static auto apply(const Args&... args) {
    const auto node = Ref<FunctionNode>::take(
        new FunctionNode(type_text(typeid(Derived)) + "Backward", &Derived::backward));
    std::vector<Tensor> inputs;
    (add_tensor(inputs, args), ...);
    const bool recording = node->begin(std::move(inputs));
    using Result = std::decay_t<decltype(Derived::forward(node->context, args...))>;
    Result result;
    {
      const GradMode off(false);
      result = Derived::forward(node->context, args...);
    }
    if constexpr (std::is_same_v<Result, Tensor>)
      return node->end({std::move(result)}, recording)[0];
    else
      return node->end(std::move(result), recording);
  }

 private:
  template <class T>
  static void add_tensor(std::vector<Tensor>& to, const T& arg) {
    if constexpr (std::is_same_v<T, Tensor>) to.push_back(arg);
  }
};

}  // namespace facula
