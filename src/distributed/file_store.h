// A store that is a file, which processes share: the list of all requests that changed something.
#pragma once
#include <mutex>

#include "distributed/key_table.h"

namespace facula::distributed {

class FileStore : public Store {
 public:
  // With a world_size above 0 the last of the stores of a file removes it.
  FileStore(std::string path, int64_t world_size);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  StoreReply run(const StoreRequest& request) override;

 private:
  std::optional<StoreReply> try_once(const StoreRequest& request);
  void read_news(int file);

  const std::string path_;
  const bool removes_;
  const uint32_t generation_;
  std::mutex mutex_;
  KeyTable table_;
  uint64_t read_ = 0;   // bytes of the file that are in the table
  uint64_t inode_ = 0;  // which file that was
};

}  // namespace facula::distributed
