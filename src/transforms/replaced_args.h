// The arguments of a call with some tensors replaced, for layers that call the operator again.
#pragma once
#include <algorithm>
#include <deque>
#include <vector>

#include "dispatch/call.h"

namespace facula {

// Calls f(const Tensor&, int arg) for every defined tensor among the arguments and in their lists.
template <class F>
void for_each_tensor(const OpInfo& info, const Value* args, F&& f) {
  for (int i = 0; i < info.args; ++i) {
    if (args[i].is_tensor()) f(args[i].as_tensor(), i);
    if (args[i].tag == Tag::TensorList)
      for (const Tensor& t : args[i].as_tensors())
        if (t.defined()) f(t, i);
  }
}

// Owns the replacements and borrows everything else from the call.
class ReplacedArgs {
 public:
  explicit ReplacedArgs(const OpCall& c) : count_(c.info->args) {
    std::copy_n(c.args, count_, values_);
  }
  // Replaces every defined tensor t of argument i by f(t, i).
  template <class F>
  ReplacedArgs(const OpCall& c, F&& f) : ReplacedArgs(c) {
    for (int i = 0; i < count_; ++i) {
      if (values_[i].is_tensor()) {
        const Tensor& before = c.args[i].as_tensor();
        Tensor now = f(before, i);
        if (!now.is_same(before)) set(i, std::move(now));
      } else if (values_[i].tag == Tag::TensorList) {
        std::vector<Tensor> list;
        for (const Tensor& t : c.args[i].as_tensors()) list.push_back(t.defined() ? f(t, i) : t);
        set(i, std::move(list));
      }
    }
  }
  ReplacedArgs(const ReplacedArgs&) = delete;

  Value* values() { return values_; }
  const Value& operator[](int i) const { return values_[i]; }
  const Tensor& tensor(int i) const { return values_[i].as_tensor(); }
  void set(int i, Tensor t) { values_[i] = pack(tensors_.emplace_back(std::move(t))); }
  void set(int i, std::vector<Tensor> list) {
    values_[i] = pack(std::span<const Tensor>(lists_.emplace_back(std::move(list))));
  }
  void set(int i, IntVec v) { values_[i] = pack(IntSpan(ints_.emplace_back(std::move(v)))); }
  void set(int i, const Value& v) { values_[i] = v; }

 private:
  int count_;
  Value values_[32];
  std::deque<Tensor> tensors_;
  std::deque<std::vector<Tensor>> lists_;
  std::deque<IntVec> ints_;
};

// An aten operator that is looked up at its first use; RuntimeError if the build lacks it.
class LazyOperator {
 public:
  constexpr LazyOperator(const char* name, const char* overload = "")
      : name_(name), overload_(overload) {}
  const Operator& get() {
    const Operator* op = found_.load(std::memory_order_acquire);
    if (op) return *op;
    op = find_operator("aten", name_, overload_);
    check(op != nullptr, "the operator aten::", name_, " is missing from this build");
    found_.store(op, std::memory_order_release);
    return *op;
  }

 private:
  const char *name_, *overload_;
  std::atomic<const Operator*> found_{nullptr};
};

}  // namespace facula
