// Operations with a derivative of their own: the rules that Function follows in every language, and
// Function for C++.
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

// What a custom operation says of its results.
struct CustomResults {
  std::vector<Tensor> inputs;    // the tensors that it was called with
  std::vector<Tensor> outputs;   // undefined where a result is no tensor
  std::vector<Tensor> dirty;     // inputs that it changed
  std::vector<Tensor> constant;  // outputs without a gradient
};

// The outputs as the caller gets them: with `node` as history, or without one where it is null.
// Inputs that are returned as they are become views. RuntimeError where the rules of in-place
// changes are broken. `warn` is called with texts for the user.
std::vector<Tensor> attach_results(const Ref<Node>& node, const CustomResults& results,
                                   const std::function<void(const char*)>& warn = {});

// What forward leaves for backward.
class FunctionContext {
 public:
  // Keeps inputs or outputs of the operation for backward.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // The tensors that were kept. RuntimeError when they were changed since, or freed.
  std::vector<Tensor> saved() const;
  // Says that forward changed these inputs in place; they must be among its results.
  void mark_dirty(std::vector<Tensor> inputs) { results_.dirty = std::move(inputs); }
  // Says that these results carry no gradient.
  void mark_non_differentiable(std::vector<Tensor> outputs) {
    results_.constant = std::move(outputs);
  }
  // Whether undefined gradients come to backward as zeros; on by default.
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
  Node* node_ = nullptr;  // whose context this is
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

  // Before forward: what it is called with. Returns whether a graph is recorded.
  bool begin(std::vector<Tensor> inputs);
  // After forward: its results with their histories.
  std::vector<Tensor> end(std::vector<Tensor> outputs, bool recording);

  FunctionContext context;

 private:
  const std::string name_;
  const Backward backward_;
};

// "Square" for struct Square.
std::string type_text(const std::type_info& type);

// Base of operations with a derivative written in C++; see the top of this file. `forward` returns
// a Tensor or a vector of them. Arguments that are no tensors have no gradient in backward's
// result, which has one for each tensor argument.
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
