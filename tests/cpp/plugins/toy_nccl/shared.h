// The memory that the ranks of a communicator share, and the work that moves data through it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "distributed/engine.h"

namespace toy_nccl {

inline constexpr int most_ranks = 8;
inline constexpr size_t slot_bytes = 64 * 1024, box_bytes = 16 * 1024;

// From one rank to another, a piece at a time.
struct Box {
  std::atomic<uint32_t> full{0};
  uint64_t bytes = 0;
  std::byte data[box_bytes];
};

struct Shared {
  std::atomic<int> arrived{0};
  std::atomic<uint32_t> met[most_ranks];
  std::byte slots[most_ranks][slot_bytes];
  Box boxes[most_ranks][most_ranks];  // [from][to]
};

enum class Kind { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Receive };

struct Call {
  Kind kind;
  const void* from;
  void* to;
  size_t bytes;  // of `from`
  facula::DType dtype;
  facula::distributed::Reduction reduction;
  double factor;
  int peer;  // or root
};

struct Comm {
  int rank = 0, size = 0, device = 0;
  std::string name;
  Shared* shared = nullptr;
  uint32_t rounds = 0;
  std::atomic<bool> aborted{false};
  std::atomic<int> running{0};      // requests that a stream is at
  std::atomic<int> error{0};        // that an asynchronous failure has left
  std::atomic<int> in_progress{0};  // questions that are answered by "in progress"
  std::atomic<bool> arriving{true};
  std::vector<std::pair<facula::DType, double>> factors;  // of made reductions
};

Shared* open_shared(const std::string& name);
void close_shared(Shared* shared);

// Calls that were given together, as work of a stream; ends early where the communicator is
// aborted.
void run(Comm& comm, std::vector<Call>& calls);

}  // namespace toy_nccl
