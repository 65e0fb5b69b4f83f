#include "transforms/batch_loop.h"

#include <iostream>
#include <mutex>
#include <optional>
#include <set>

#include "core/device_generator.h"
#include "core/fork.h"
#include "core/interrupts.h"
#include "dispatch/backend.h"
#include "dispatch/mutations.h"
#include "dispatch/operator_text.h"
#include "dispatch/warnings.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {

namespace {

void warn_once(const OpCall& c) {
  static constinit ForkSafeMutex lock(ForkOrder::Warnings);
  static std::set<const Operator*> told;
  {
    std::lock_guard hold(lock);
    if (!told.insert(c.op).second) return;
  }
  warn(concat("vmap: ", c.op->name(),
              "() has no batching rule: it runs in a loop over the samples, a performance drop"));
}

void check_loopable(const Batch& b, const OpCall& c) {
  check(b.size() > 0, "vmap: ", *c.op,
        "() has no batching rule, and a loop over 0 samples knows no result shape");
  check(c.op->variant != Variant::Out && !c.info->view, "vmap: Batching rule not implemented for ",
        c.op->name(), ", and views and out= cannot be made by a loop over the samples");
  for (const Argument& r : c.info->schema.results)
    check(r.type.kind == TypeKind::Tensor, "vmap: ", *c.op,
          "() gives a number, which cannot differ from sample to sample "
          "(item() is one such call)");
  check(!(c.op->record->flags & shape_from_data), "vmap: ", *c.op,
        "() gives a result whose shape depends on the data, which may differ from sample to "
        "sample");
}

// The generator that a random operator draws from.
Generator& generator_of(const OpCall& c) {
  for (int i = 0; i < c.info->args; ++i)
    if (c.args[i].tag == Tag::Generator) return *c.args[i].generator;
  const Device d = result_device(c);
  return d.is_accelerator() ? default_generator(d) : default_generator();
}

// The arguments for one sample.
struct Sample {
  Value values[32];
  std::vector<Tensor> tensors;
  std::vector<std::vector<Tensor>> lists;

  Sample(const Batch& b, int64_t index) {
    const int n = b.info().args;
    tensors.reserve(static_cast<size_t>(n));
    lists.reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      values[i] = b.value(i);
      if (!b.batched(i)) continue;
      if (values[i].is_tensor()) {
        values[i] = pack(tensors.emplace_back(ops::select(b.tensor(i), 0, index)));
        continue;
      }
      std::vector<Tensor> list;
      for (const Tensor& t : values[i].as_tensors())
        list.push_back(t.defined() ? ops::select(t, 0, index) : t);
      values[i] = pack(std::span<const Tensor>(lists.emplace_back(std::move(list))));
    }
  }
};

Tensor stacked(const std::vector<Tensor>& parts) {
  if (!parts[0].defined()) return {};
  std::vector<Tensor> rows;
  for (const Tensor& t : parts) rows.push_back(ops::unsqueeze(t, 0));
  return ops::cat(rows, 0);
}

// Collects the results of all samples and stacks them into one tensor for each result.
class Gathered {
 public:
  explicit Gathered(const OpInfo& info)
      : info_(info), tensors_(info.results), lists_(info.results) {}
  void take(Value* results) {
    for (size_t k = 0; k < tensors_.size(); ++k) {
      if (is_argument(k)) continue;
      if (results[k].tag == Tag::TensorList)
        lists_[k].push_back(take_tensors(results[k]));
      else
        tensors_[k].push_back(take_tensor(results[k]));
    }
  }
  void give(Batch& b) {
    for (size_t k = 0; k < tensors_.size(); ++k) {
      if (is_argument(k)) continue;
      const int at = static_cast<int>(k);
      if (lists_[k].empty())
        b.set_result(at, stacked(tensors_[k]));
      else
        b.set_result(at, stacked_lists(lists_[k]));
    }
  }

 private:
  // A written argument is not stacked: the samples were written into it already.
  bool is_argument(size_t k) const { return written_argument(info_, static_cast<int>(k)) >= 0; }
  static std::vector<Tensor> stacked_lists(const std::vector<std::vector<Tensor>>& samples) {
    std::vector<Tensor> list;
    for (size_t e = 0; e < samples[0].size(); ++e) {
      std::vector<Tensor> parts;
      for (const auto& sample : samples) {
        check(sample.size() == samples[0].size(),
              "vmap: the samples of a batch gave lists of different lengths");
        parts.push_back(sample[e]);
      }
      list.push_back(stacked(parts));
    }
    return list;
  }
  const OpInfo& info_;
  std::vector<std::vector<Tensor>> tensors_;
  std::vector<std::vector<std::vector<Tensor>>> lists_;
};

}  // namespace

void run_loop(Batch& b, const OpCall& c, bool same_numbers) {
  check_loopable(b, c);
  warn_once(c);
  std::optional<Generator::State> start;
  if (same_numbers) start = generator_of(c).get_state();
  Gathered gathered(*c.info);
  for (int64_t i = 0; i < b.size(); ++i) {
    if (start) generator_of(c).set_state(*start);
    Sample sample(b, i);
    Results<8> results;
    call(*c.op, sample.values, results.slots);
    gathered.take(results.slots);
    poll_interrupts();
  }
  gathered.give(b);
}

}  // namespace facula
