// What calls write: which arguments, which results they are, and how a layer that computes the new
// values some other way hands them over. The latest changes of a thread, for errors that name them.
#pragma once
#include <string>

#include "dispatch/call.h"

namespace facula {

// --- written arguments and results

inline bool is_written(const OpInfo& info, int arg) { return info.mutated >> arg & 1; }

// The written argument that result k is, or -1 where the result is a tensor of its own.
inline int written_argument(const OpInfo& info, int k) {
  const int from = info.alias_of[k];
  return from >= 0 && is_written(info, from) ? from : -1;
}

// f(tensor, argument) for every tensor that the call writes, those in lists too.
template <class F>
void for_each_written(const OpCall& c, F&& f) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    if (c.args[i].is_tensor()) f(c.tensor(i), i);
    if (c.args[i].tag == Tag::TensorList)
      for (const Tensor& t : c.args[i].as_tensors())
        if (t.defined()) f(t, i);
  }
}

// f(tensor, other) for every written tensor and what stands in its place among `others`, arguments
// that a layer gave to the layers below.
template <class F>
void for_each_written_pair(const OpCall& c, const Value* others, F&& f) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    if (c.args[i].is_tensor()) f(c.tensor(i), others[i].as_tensor());
    if (c.args[i].tag != Tag::TensorList) continue;
    for (size_t k = 0; k < c.args[i].length; ++k)
      if (c.args[i].tensors[k].defined()) f(c.args[i].tensors[k], others[i].tensors[k]);
  }
}

// In `spare` of a result's slot: the caller holds on to its arguments until it has read the result,
// and no layer puts others in their places. A result that is an argument is lent then, not counted.
inline constexpr uint16_t lends_argument = 1;

// RuntimeError: an argument requires grad, and what is written into out= has no history.
[[noreturn]] void refuse_out_gradient(const OpCall& c);

// Makes the results that are written arguments those very tensors.
void give_written(OpCall& c);

// Counts a change of every written tensor, for layers below which it is not done.
void bump_written(const OpCall& c);

// Hands over what pure_form(*c.op) computed: store(to, fresh) for each written tensor, those of
// lists too. The call's results become the written arguments.
template <class F>
void store_written(OpCall& c, Value* computed, F&& store);
// RuntimeError where a list that is written has another length than what goes there.
void check_written_length(const OpCall& c, int arg, size_t computed);

template <class F>
void store_written(OpCall& c, Value* computed, F&& store) {
  const bool out = c.op->variant == Variant::Out;
  const int first = out ? c.info->base_args : 0, end = out ? c.info->args : 1;
  for (int i = first; i < end; ++i) {
    Value& from = computed[i - first];
    if (c.args[i].tag != Tag::TensorList) {
      if (const Tensor fresh = take_tensor(from); fresh.defined()) store(c.tensor(i), fresh);
      continue;
    }
    const std::vector<Tensor> list = take_tensors(from);
    check_written_length(c, i, list.size());
    for (size_t k = 0; k < list.size(); ++k) store(c.args[i].tensors[k], list[k]);
  }
  give_written(c);
}

// --- the latest changes of this thread

struct Mutation {
  const void* counter = nullptr;  // what counts the tensor's versions
  uint32_t version = 0;           // that the change led to
  const Operator* op = nullptr;   // null: no operator did it
  std::string line;               // of the source, where somebody gives lines
};

// Notes that `op` has just changed `t`. Costs a few stores; old entries are overwritten.
void note_mutation(const TensorImpl& t, const Operator* op);
// The change that made this version of the tensor; null when it is forgotten.
const Mutation* find_mutation(const TensorImpl& t, uint32_t version);

// Gives the source line of the caller's program. Null: lines are not noted.
using SourceLine = std::string (*)();
extern constinit std::atomic<SourceLine> source_line;

}  // namespace facula
