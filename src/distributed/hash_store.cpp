#include "distributed/hash_store.h"

#include "distributed/waits.h"

namespace facula::distributed {

StoreReply HashStore::run(const StoreRequest& request) {
  const Deadline deadline = deadline_after(request.timeout_ms);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (auto reply = table_.answer(request)) {
        if (KeyTable::may_change(request)) changed_.notify_all();
        return *reply;
      }
      const auto wait = next_wait(deadline);
      if (wait.count() == 0) return {StoreStatus::Timeout, 0, {}};
      changed_.wait_for(lock, wait);
    }
    check_interrupts();  // waits for the GIL, so not under the mutex
  }
}

}  // namespace facula::distributed
