// Forward: the context of a record's forward-mode rule; autograd/forward.cpp runs the rules.
#pragma once
#include <vector>

#include "dispatch/rules.h"

namespace facula {

// What a rule sees: the arguments as they were before the call, their tangents, and the results.
// Operators that the rule calls do not compute tangents of this level.
class Forward {
 public:
  Forward(const OpCall& call, const Operator& base, SavedCall& args,
          const std::vector<std::vector<Tensor>>& tangents)
      : call_(call), base_(base), args_(args), tangents_(tangents) {}

  const Operator& op() const { return base_; }
  const OpInfo& info() const { return base_.info(); }
  // Index of an argument by name; RuntimeError where there is none.
  int arg(Name n) const;
  const Value& value(int i) const { return args_.args()[i]; }
  const Value& value(Name n) const { return value(arg(n)); }
  const Tensor& primal(int i) const { return value(i).as_tensor(); }
  const Tensor& primal(Name n) const { return primal(arg(n)); }
  // The tangent of an argument; undefined means zero.
  const Tensor& tangent(int i) const { return tangents_[static_cast<size_t>(i)][0]; }
  const Tensor& tangent(Name n) const { return tangent(arg(n)); }
  const Tensor& result(int k = 0) const { return call_.results[k].as_tensor(); }
  // The operator's first result with one argument replaced.
  Tensor run_with(int i, const Tensor& t) const;
  // Sets the tangent of result k; results that are not set have none.
  void set(int k, Tensor t);
  std::vector<Tensor> take() { return std::move(results_); }

 private:
  const OpCall& call_;
  const Operator& base_;
  SavedCall& args_;
  const std::vector<std::vector<Tensor>>& tangents_;
  std::vector<Tensor> results_;
};

}  // namespace facula
