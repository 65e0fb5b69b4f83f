// The blocks of one device; core/device_allocator.h is implemented with it.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/device_allocator.h"
#include "core/device_table.h"

namespace facula {

class DeviceCache {
 public:
  explicit DeviceCache(Device device) : device_(device), table_(running_table(device)) {}

  void* allocate(size_t bytes, uint32_t stream);
  void release(void* data);
  void record_stream(const void* data, Stream s);
  void describe(const void* data, DType dtype, IntSpan sizes) noexcept;
  void empty();

  DeviceMemoryStats stats();
  void reset_peaks();
  void reset_totals();
  void set_fraction(double fraction);
  double fraction();
  MemoryInfo info() const;

  void begin_capture();
  std::vector<void*> end_capture();

 private:
  // A part of a segment. A segment is one raw allocation, whose parts are linked in order.
  struct Block {
    Block(char* d, size_t n, uint32_t s, BlockPool p) : data(d), bytes(n), stream(s), pool(p) {}
    char* data;
    size_t bytes;
    uint32_t stream;
    BlockPool pool;
    bool in_use = false;
    size_t requested = 0;
    Block *before = nullptr, *after = nullptr;
    std::vector<Stream> other_streams;  // from record_stream
    size_t waits = 0;                   // events that must finish before it is free
    DType dtype = DType::Undefined;
    std::vector<int64_t> sizes;
    bool is_split() const { return before || after; }
  };
  struct Smaller {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      if (a->stream != b->stream) return a->stream < b->stream;
      if (a->bytes != b->bytes) return a->bytes < b->bytes;
      return a->data < b->data;
    }
  };
  using FreeBlocks = std::set<Block*, Smaller>;
  struct Waiting {
    std::unique_ptr<DeviceEvent> event;
    Block* block;
  };

  FreeBlocks& free_blocks(BlockPool p) { return p == BlockPool::Small ? small_ : large_; }
  Block* find_free(size_t bytes, uint32_t stream, BlockPool pool);
  Block* new_segment(size_t bytes, uint32_t stream, BlockPool pool);
  void* raw_allocate(size_t bytes);
  void split(Block* b, size_t bytes);
  void make_free(Block* b);
  void absorb(Block* into, Block* neighbour);
  void wait_for_streams(Block* b);
  void take_passed_events();
  void wait_for_all();
  void return_segments();
  [[noreturn]] void fail(size_t bytes, size_t segment);
  std::string largest_blocks() const;
  static void change(PooledCounter& c, BlockPool pool, int64_t by);
  template <class F>
  void for_each_counter(F f);

  std::mutex mutex_;
  const Device device_;
  const DeviceTable& table_;
  FreeBlocks small_, large_;
  std::unordered_map<const void*, Block*> in_use_;
  std::deque<Waiting> waiting_;
  std::vector<void*>* captured_ = nullptr;
  std::vector<void*> captured_blocks_;
  DeviceMemoryStats stats_;
  double fraction_ = 1;
  size_t limit_ = SIZE_MAX;
};

}  // namespace facula
