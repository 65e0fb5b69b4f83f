// Backward: the context of a record's derivative rules; autograd/op_node.cpp implements it.
#pragma once
#include <string_view>
#include <vector>

#include "dispatch/call.h"

namespace facula {

// The name of an argument or result, hashed at compile time.
struct Name {
  uint32_t hash;
  std::string_view text;
  template <size_t N>
  consteval Name(const char (&s)[N]) : hash(name_hash({s, N - 1})), text(s, N - 1) {}
  // The text must outlive the name.
  static Name at_run_time(std::string_view s) { return Name(name_hash(s), s); }

 private:
  constexpr Name(uint32_t h, std::string_view s) : hash(h), text(s) {}
};

class OpNode;

// What a derivative rule sees: the gradients of the results, the tensors that its row saved, the
// other arguments, and the sizes of every tensor argument. Reading a tensor that its row did not
// save raises.
class Backward {
 public:
  Backward(OpNode& node, std::span<const Tensor> grads) : node_(node), grads_(grads) {}

  const OpNode& node() const { return node_; }
  // The gradient of result i. It can be undefined only for operators with several results.
  const Tensor& grad(int i = 0) const { return grads_[static_cast<size_t>(i)]; }
  // A saved tensor argument or result; undefined if the argument was None.
  Tensor operator[](Name n) const;
  Tensor result(int i = 0) const;
  std::vector<Tensor> tensors(Name n) const;  // a saved list of tensors
  const Value& value(Name n) const;           // a non-tensor argument
  int64_t integer(Name n) const { return value(n).as_scalar().to<int64_t>(); }
  double number(Name n) const { return value(n).as_scalar().to<double>(); }
  Scalar scalar(Name n) const { return value(n).as_scalar(); }
  bool flag(Name n) const { return value(n).b; }
  IntSpan ints(Name n) const { return value(n).is_none() ? IntSpan() : value(n).as_ints(); }
  std::string_view text(Name n) const { return value(n).as_str(); }
  bool is_none(Name n) const { return value(n).is_none(); }
  // Whether a Tensor argument was given as a Python number.
  bool is_number(Name n) const { return value(n).is_number(); }
  // Sizes of a tensor argument, available even if the tensor was not saved.
  IntSpan sizes(Name n) const;
  // Strides and offset of a view's base, for operators that make views.
  IntSpan strides(Name n) const;
  int64_t storage_offset(Name n) const;
  DType dtype(Name n) const;
  std::vector<IntVec> list_sizes(Name n) const;
  // Whether the gradient of an input is needed.
  bool needs(Name n) const;
  bool needs(Name n, size_t element) const;
  // For fused rules: the gradient of an input; undefined means zero.
  void set(Name n, Tensor grad);
  void set(Name n, std::vector<Tensor> grads);

 private:
  friend class OpNode;
  int arg_index(Name n) const;
  OpNode& node_;
  std::span<const Tensor> grads_;
  std::vector<Tensor>* outputs_ = nullptr;
};

}  // namespace facula
