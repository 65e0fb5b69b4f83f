// Collectives for engines that have nothing but messages: each is some exchanges, in which a rank
// sends a part to each other rank and receives one from each. The first tells what each rank calls,
// and holds the data itself if it is small.
#pragma once
#include <span>
#include <vector>

#include "distributed/engine.h"

namespace facula::distributed {

class PeerTable;

struct OutPart {
  const void* data = nullptr;
  size_t bytes = 0;
};
struct InPart {
  void* data = nullptr;
  size_t bytes = 0;
};

// What ranks send each other first.
struct Packet {
  static constexpr size_t most_bytes = 2048 - sizeof(CallRecord);

  CallRecord record;
  std::byte data[most_bytes];
};

class Exchanger {
 public:
  virtual ~Exchanger() = default;
  // Parts are by rank; those of no bytes are not sent, and that of the rank itself is ignored. Both
  // sides know the sizes. `call` is what errors name.
  virtual void exchange(const CallRecord& call, const std::vector<OutPart>& out,
                        const std::vector<InPart>& in) = 0;
  // Sends out[r] to rank r, and returns those of all ranks, which stay until the next exchange of
  // packets.
  virtual std::span<const Packet> exchange_packets(const CallRecord& call,
                                                   std::span<const Packet> out) = 0;
};

// Runs a collective: compares the calls of all ranks, and moves the data. Throws the same error at
// all ranks, and breaks the group, if they do not agree.
void run_by_exchange(Collective& call, const EngineOptions& options, PeerTable& peers,
                     Exchanger& exchanger);

}  // namespace facula::distributed
