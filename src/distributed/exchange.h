// Collectives for engines that have nothing but messages: each is some exchanges, in which a rank
// sends a part to each other rank and receives one from each. The first tells what each rank calls,
// and holds the data itself if it is small.
#pragma once
#include <memory>
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

// Memory of what ranks send each other first, a packet for each rank: its record, and data behind
// it.
class Packets {
 public:
  static constexpr size_t record_bytes = (sizeof(CallRecord) + 63) / 64 * 64;

  Packets(int ranks, size_t most_data);
  size_t all_bytes() const { return stride_ * ranks_; }
  size_t stride() const { return stride_; }
  std::byte* packet(size_t i) const { return memory_.get() + i * stride_; }
  const CallRecord& record(size_t i) const {
    return *reinterpret_cast<const CallRecord*>(packet(i));
  }
  const std::byte* data(size_t i) const { return packet(i) + record_bytes; }
  // Fills a packet; returns its bytes.
  size_t put(size_t i, const CallRecord& record, const OutPart& part);

 private:
  size_t ranks_, stride_;
  std::unique_ptr<std::byte[]> memory_;  // untouched until it is needed: packets are small mostly
};

class Exchanger {
 public:
  virtual ~Exchanger() = default;
  // Parts are by rank; those of no bytes are not sent, and that of the rank itself is ignored. Both
  // sides know the sizes. `call` is what errors name.
  virtual void exchange(const CallRecord& call, const std::vector<OutPart>& out,
                        const std::vector<InPart>& in) = 0;
  // How much data a packet can hold; the same at all ranks.
  virtual size_t most_packet_data() const = 0;
  // Sends each other rank the call, and out[r] to rank r. Returns the packets of all, which stay
  // until the next exchange of packets; that of the rank itself has no data.
  virtual const Packets& exchange_packets(const CallRecord& call,
                                          const std::vector<OutPart>& out) = 0;
};

// Runs a collective: compares the calls of all ranks, and moves the data. Throws the same error at
// all ranks, and breaks the group, if they do not agree.
void run_by_exchange(Collective& call, const EngineOptions& options, PeerTable& peers,
                     Exchanger& exchanger);

}  // namespace facula::distributed
