#include "distributed/flight_recorder.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/environment.h"
#include "core/fork.h"
#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

constexpr size_t header_bytes = 4096;
constexpr uint32_t usual_records = 2048, most_records = 1u << 20;
static_assert(sizeof(FlightHeader) <= header_bytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
// flight_recorder/_memory.py reads these.
static_assert(sizeof(FlightRecord) == 384 && sizeof(FlightHeader) == 144);

int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

uint32_t records_asked() {
  const char* text = environment_value("FACULA_DISTRIBUTED_RECORDS");
  if (!text) return usual_records;
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  check_value(*end == '\0' && n >= 0 && n <= most_records,
              "FACULA_DISTRIBUTED_RECORDS: expected a ", "number from 0 to ", most_records,
              "; got ", text);
  return static_cast<uint32_t>(n);
}

template <size_t N>
void copy_text(char (&to)[N], std::string_view from) {
  const size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

// A record that is written: others see that, or that it has changed since they read it.
class Writing {
 public:
  explicit Writing(FlightRecord& r) : version_(r.version) {
    version_.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Writing() { version_.fetch_add(1, std::memory_order_release); }
  Writing(const Writing&) = delete;

 private:
  std::atomic<uint64_t>& version_;
};

}  // namespace

FlightRecorder::FlightRecorder(int descriptor, void* memory, uint32_t records)
    : descriptor_(descriptor),
      capacity_(records),
      header_(new (memory) FlightHeader),
      records_(reinterpret_cast<FlightRecord*>(static_cast<char*>(memory) + header_bytes)) {
  std::memcpy(header_->magic, FlightHeader::right_magic, sizeof header_->magic);
  header_->records = records;
  header_->process = getpid();
  header_->clock_offset_ns = now_ns(CLOCK_REALTIME) - now_ns();
}

FlightRecorder* FlightRecorder::make() {
  const uint32_t records = records_asked();
  if (records == 0) return nullptr;
  const size_t bytes = header_bytes + records * sizeof(FlightRecord);
  const int descriptor = memfd_create("facula_flight_recorder", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  return new FlightRecorder(descriptor, memory, records);
}

// Never destroyed: threads of groups write until the process ends. A forked child makes its own.
FlightRecorder* FlightRecorder::get() {
  static std::mutex making;
  static std::atomic<FlightRecorder*> made{nullptr};
  static std::atomic<uint32_t> made_in{UINT32_MAX};  // generation of fork
  if (made_in.load(std::memory_order_acquire) == fork_generation())
    return made.load(std::memory_order_relaxed);
  const std::lock_guard lock(making);
  if (made_in.load(std::memory_order_acquire) != fork_generation()) {
    made.store(make(), std::memory_order_relaxed);
    made_in.store(fork_generation(), std::memory_order_release);
  }
  return made.load(std::memory_order_relaxed);
}

uint64_t FlightRecorder::schedule(const CallRecord& call, const EngineOptions& group) {
  const uint64_t id = header_->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  FlightRecord& r = record_of(id);
  const Writing writing(r);
  r.id = id;
  r.scheduled_ns = now_ns();
  r.started_ns = r.ended_ns = 0;
  r.bytes =
      call.dtype == DType::Undefined ? 0 : call.count * static_cast<int64_t>(itemsize(call.dtype));
  r.rank = group.rank;
  r.size = group.size;
  r.state = FlightRecord::State::Scheduled;
  copy_text(r.group, group.group);
  copy_text(r.call, name_of(call.call));
  copy_text(r.reduction, name_of(call.reduction));
  copy_text(r.dtype, call.dtype == DType::Undefined ? "" : name(call.dtype));
  r.record = call;
  return id;
}

void FlightRecorder::start(uint64_t id) {
  FlightRecord& r = record_of(id);
  if (r.id != id) return;  // the ring has come round
  const Writing writing(r);
  r.started_ns = now_ns();
  r.state = FlightRecord::State::Started;
}

void FlightRecorder::end(uint64_t id, bool failed) {
  FlightRecord& r = record_of(id);
  if (r.id != id) return;
  const Writing writing(r);
  r.ended_ns = now_ns();
  r.state = failed ? FlightRecord::State::Failed : FlightRecord::State::Ended;
}

void FlightRecorder::count_step() {
  const int64_t now = now_ns();
  const int64_t before = header_->stepped_ns.exchange(now, std::memory_order_relaxed);
  if (before) header_->step_ns.store(now - before, std::memory_order_relaxed);
  header_->steps.fetch_add(1, std::memory_order_relaxed);
}

void FlightRecorder::set_progress(int64_t done, int64_t total) {
  header_->total.store(total, std::memory_order_relaxed);
  header_->done.store(done, std::memory_order_relaxed);
}

void FlightRecorder::set_job(std::string_view name) { copy_text(header_->job, name); }

}  // namespace facula::distributed
