// Places for the results of a group's steps in a thread's scratch, each until its last use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace facula {

class TileScratch {
 public:
  // `tile` elements of each result are held at a time.
  TileScratch(size_t bytes, int64_t tile) : bytes_(bytes), tile_(tile) {}

  // Finds a place for a result of `step` that `until` reads last; false where it is full.
  bool take(int64_t itemsize, int until, int step, size_t& at) {
    // Not a page apart, or loads would wait for stores to the same place of another page.
    const auto bytes = (static_cast<size_t>(tile_ * itemsize) + 63) / 64 * 64 + 5 * 64;
    for (Block& b : blocks_) {
      if (b.until >= step || b.bytes < bytes) continue;
      b.until = until;
      at = b.at;
      return true;
    }
    if (used_ + bytes > bytes_) return false;
    blocks_.push_back({used_, bytes, until});
    at = used_;
    used_ += bytes;
    return true;
  }
  size_t used() const { return used_; }

 private:
  struct Block {
    size_t at, bytes;
    int until;
  };
  const size_t bytes_;
  const int64_t tile_;
  size_t used_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace facula
