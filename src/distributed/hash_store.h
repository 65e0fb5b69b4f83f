// A store for the threads of one process.
#pragma once
#include <condition_variable>
#include <mutex>

#include "distributed/key_table.h"

namespace facula::distributed {

class HashStore : public Store {
 public:
  StoreReply run(const StoreRequest& request) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  KeyTable table_;
};

}  // namespace facula::distributed
