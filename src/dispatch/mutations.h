// In-place changes: which arguments a call writes and which results they are, how a layer stores
// new values that it computed out of place, and a record of a thread's latest changes for error
// texts.
#pragma once
#include <string>

#include "dispatch/call.h"

namespace facula {

// --- written arguments and results

inline bool is_written(const OpInfo& info, int arg) { return info.mutated >> arg & 1; }

// The written argument that result k returns, or -1 if the result is a new tensor.
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

// f(tensor, other) for every written tensor and the tensor in the same place of `others`, the
// arguments that a layer passed to the layers below.
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

// A flag that a caller sets in `spare` of a result's slot: it keeps its arguments until it has read
// the result. A result that is an argument may then be returned without counting a reference.
inline constexpr uint16_t lends_argument = 1;

// RuntimeError: out= does not support autograd, and an argument requires grad.
[[noreturn]] void refuse_out_gradient(const OpCall& c);

// Sets each result that is a written argument to that argument.
void give_written(OpCall& c);

// Bumps the version of every written tensor, for layers that do not pass the call down.
void bump_written(const OpCall& c);

// Stores what pure_form(*c.op) computed: calls store(to, fresh) for each written tensor, also of
// lists, and sets the call's results to the written arguments.
template <class F>
void store_written(OpCall& c, Value* computed, F&& store);
// RuntimeError if a list of tensors to write to has another length than the computed one.
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
  const void* counter = nullptr;  // identifies the tensor's version counter
  uint32_t version = 0;           // after the change
  const Operator* op = nullptr;   // null if no operator made the change
  std::string line;               // the source line, if source_line is set
};

// Records that `op` has just changed `t`; overwrites the oldest entry.
void note_mutation(const TensorImpl& t, const Operator* op);
// The change that led to this version of the tensor; null if it was overwritten since.
const Mutation* find_mutation(const TensorImpl& t, uint32_t version);

// Returns the source line of the user's program that is running. Null: lines are not recorded.
using SourceLine = std::string (*)();
extern constinit std::atomic<SourceLine> source_line;

}  // namespace facula
