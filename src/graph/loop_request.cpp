#include "graph/loop_request.h"

#include <cstring>

namespace facula {

int LoopRequest::add_memory(int64_t itemsize, FusedLoop::Stepping stepping) {
  loop_.memory.push_back({static_cast<uint8_t>(itemsize), stepping});
  return static_cast<int>(loop_.memory.size()) - 1;
}

bool LoopRequest::add_step(const cpu::LoopOfCall& call, int64_t itemsize, int stores,
                           const FusedLoop::Operand* in) {
  // Compilers part in the order in which they round a complex product's parts.
  if (!call.function || is_complex(call.compute)) return false;
  const size_t at = params_.size();
  params_.resize(at + FusedLoop::params_of_step);
  char* mine = params_.data() + at;
  std::memcpy(mine, call.params, sizeof(call.params));
  FusedLoop::Step& s = loop_.steps.emplace_back();
  s.function = call.function;
  s.compute = call.compute;
  s.by_number = call.by_number;
  s.inputs = static_cast<uint8_t>(call.inputs);
  s.itemsize = static_cast<uint8_t>(itemsize);
  s.stores = static_cast<int16_t>(stores);
  for (int k = 0; k < call.inputs; ++k) {
    s.in[k] = in[k];
    if (in[k].source != FusedLoop::Source::Number) continue;
    s.in[k].at = 0;
    std::memcpy(mine + FusedLoop::numbers_begin + static_cast<size_t>(k) * FusedLoop::number_size,
                call.in[k].cell, sizeof(call.in[k].cell));
  }
  return true;
}

CompiledLoop LoopRequest::find() const {
  const FindLoop find = find_compiled_loop.load(std::memory_order_relaxed);
  return find ? find(loop_) : nullptr;
}

}  // namespace facula
