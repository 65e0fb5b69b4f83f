// Calls of a group as a fused loop is asked for: described one by one, with the numbers that they
// read apart, so that another number needs no other code.
#pragma once
#include "graph/fused_loop.h"
#include "kernels/cpu/elementwise/pointwise.h"

namespace facula {

class LoopRequest {
 public:
  // The position of a new operand in memory.
  int add_memory(int64_t itemsize, FusedLoop::Stepping stepping);
  // Adds a call, whose operands in[k] are where a step or memory says, else the call's own numbers;
  // `stores` is the operand in memory that gets the result, or -1. False where no code is to be
  // made of it: the request is of no use then.
  bool add_step(const cpu::LoopOfCall& call, int64_t itemsize, int stores,
                const FusedLoop::Operand* in);
  // Code for it if there is some by now.
  CompiledLoop find() const;
  // What the code reads.
  const void* params() const { return params_.data(); }

 private:
  FusedLoop loop_;
  std::vector<char> params_;
};

}  // namespace facula
