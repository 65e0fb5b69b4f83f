// The last calls of this process to its groups: what, where, when it began and ended. They lie in
// memory of their own that the user's other processes find below /proc/PID/fd while this one hangs;
// nothing is left of it when the process ends. python -m facula.distributed.flight_recorder reads
// it (python/facula/distributed/flight_recorder/_memory.py knows the layout).
#pragma once
#include <atomic>

#include "distributed/engine.h"

namespace facula::distributed {

// Times are of CLOCK_MONOTONIC, and 0 for what has not happened yet.
struct FlightRecord {
  enum class State : uint8_t { Scheduled, Started, Ended, Failed };
  static constexpr int most_name = 48;

  std::atomic<uint64_t> version{0};  // odd while the record is written
  uint64_t id = 0;                   // among all calls of the process, from 1
  int64_t scheduled_ns = 0, started_ns = 0, ended_ns = 0;
  int64_t bytes = 0;           // that the rank contributes
  int32_t rank = 0, size = 0;  // of the group
  State state = State::Scheduled;
  char group[most_name] = {};
  char call[16] = {}, reduction[16] = {}, dtype[16] = {};
  CallRecord record;
};

struct FlightHeader {
  static constexpr char right_magic[9] = "FACULAFR";
  static constexpr uint32_t right_layout = 1;
  static constexpr int most_job = 64;

  char magic[8] = {};
  uint32_t layout = right_layout;
  uint32_t record_bytes = sizeof(FlightRecord);
  uint32_t records = 0;
  int32_t process = 0;
  int64_t clock_offset_ns = 0;     // what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC
  std::atomic<uint64_t> calls{0};  // that were made so far
  std::atomic<uint64_t> steps{0};  // of the process's optimizers
  // When the last was, and how long after the one before.
  std::atomic<int64_t> stepped_ns{0}, step_ns{0};
  std::atomic<int64_t> done{0}, total{0};  // of a loop that shows its progress; total -1 if unknown
  char job[most_job] = {};                 // which processes belong together
};

class FlightRecorder {
 public:
  // That of this process; null where FACULA_DISTRIBUTED_RECORDS is 0 or the system gives no memory.
  static FlightRecorder* get();

  // Notes a call that is to be made, and returns its number.
  uint64_t schedule(const CallRecord& call, const EngineOptions& group);
  void start(uint64_t id);
  void end(uint64_t id, bool failed);
  void count_step();
  void set_progress(int64_t done, int64_t total);
  void set_job(std::string_view name);
  // The file that the memory is.
  int descriptor() const { return descriptor_; }

 private:
  FlightRecorder(int descriptor, void* memory, uint32_t records);
  static FlightRecorder* make();
  FlightRecord& record_of(uint64_t id) const { return records_[id % capacity_]; }

  const int descriptor_;
  const uint32_t capacity_;
  FlightHeader* const header_;
  FlightRecord* const records_;
};

}  // namespace facula::distributed
