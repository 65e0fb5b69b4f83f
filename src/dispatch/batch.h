// Batch: the context of a batching rule; implemented by the layer that runs it
// (transforms/vmap.cpp).
#pragma once
#include <vector>

#include "dispatch/rules.h"

namespace facula {

// What a batching rule sees: the call, with each batched tensor replaced by the tensor of the level
// below, whose first dimension is the batch. The rule adjusts arguments to that extra dimension,
// such as `dim`, runs an operator on the level below, and sets each result.
class Batch {
 public:
  Batch(const OpCall& c, int64_t level, int64_t batch_size);
  ~Batch();
  Batch(const Batch&) = delete;

  const Operator& op() const { return *call_.op; }
  const OpInfo& info() const { return *call_.info; }
  int64_t size() const { return size_; }
  // Index of an argument by name, or -1.
  int arg(Name n) const;
  bool batched(int i) const { return batched_ >> i & 1; }
  // Whether the record lists the argument in `always_batched`.
  bool always_batched(int i) const {
    const std::string& name = info().schema.args[static_cast<size_t>(i)].name;
    return call_.op->record->always_batched.has(name);
  }
  bool any_batched() const { return batched_ != 0; }
  const Value& value(int i) const { return values_[i]; }
  const Tensor& tensor(int i) const { return values_[i].as_tensor(); }
  // The number of dimensions of a tensor argument without the batch dimension.
  int64_t rank(int i) const { return tensor(i).dim() - (batched(i) ? 1 : 0); }
  // Replaces an argument for run().
  void set(int i, Tensor t);
  void set(int i, std::vector<Tensor> list);
  void set(int i, IntVec v);
  void set(int i, int64_t v) { values_[i] = Value::of_int(v); }
  void set(int i, std::span<const bool> v) { values_[i] = pack(v); }  // borrowed
  // Adds the batch dimension to an argument that has none, without copying.
  void expand(int i);
  // Calls the operator on the level below with the current arguments; its results are batched.
  void run();
  // Instead of run(): calls the operator once for each sample.
  void loop();
  const Value& result(int k) const { return results_.slots[k]; }
  void set_result(int k, Tensor t);
  void set_result(int k, std::vector<Tensor> list);
  // Hands out the results: wrapped for this level, or the arguments that the call wrote to.
  void finish(Value* results);

 private:
  struct Kept;
  const OpCall& call_;
  int64_t level_, size_;
  uint32_t batched_ = 0;
  Value values_[32];
  Results<8> results_;
  Kept* kept_;
};

}  // namespace facula
