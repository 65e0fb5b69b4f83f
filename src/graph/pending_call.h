// A call whose kernel is put off.
#pragma once
#include <array>
#include <span>

#include "dispatch/backend.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/reduce/described_reduction.h"

namespace facula {

// The references to a tensor or storage that somebody can reach it by: without that of a Python
// object which only they keep alive.
uint32_t reaching_references(const ObjectCounted& c);
// Whether nobody but C++ refers to the Python object of `c`. A function of the binding.
extern std::atomic<bool (*)(const ObjectCounted& c)> object_is_ours;

// Calls whose tensors have fewer elements run when they are made: all they touch is in the cache,
// and putting them off would cost more than they do. Tests set it to 0.
extern std::atomic<int64_t> least_deferred;

// What results and versions depend on has been done; the kernel has not run.
struct PendingCall {
  SavedCall saved = {};  // holds the arguments
  const OpInfo* info = nullptr;
  Slot kernel = {};
  DType compute = DType::Undefined;
  LayerSet layers = {};
  static constexpr int most_results = 3;
  std::array<Tensor, most_results> results = {};  // undefined ones for what it does not make
  int result_count = 0;                           // 0 for a call that writes into its arguments
  cpu::LoopOfCall loop = {};                      // of calls whose kernel describes it, ...
  cpu::RowReduction reduction = {};               // or this

  bool writes() const { return info->mutated != 0; }
  std::span<const Tensor> made() const {
    return {results.data(), static_cast<size_t>(result_count)};
  }
  // The call as a kernel takes it, with borrowed results.
  OpCall prepared(Value* slots);
  // Sets `loop` or `reduction`. Raises what the kernel would.
  void describe();
  // Whether it may run in a group (graph/rows.h).
  bool joins() const { return loop.loop || reduction.loop; }
  // Gives the results memory, runs the kernel and lets everybody read them.
  void run();
};

}  // namespace facula
