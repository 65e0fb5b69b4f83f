#include "distributed/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/fork.h"
#include "distributed/store_message.h"
#include "distributed/waits.h"

namespace facula::distributed {
namespace {

constexpr const char* count_key = "refcount/";

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw StoreError(StoreError::Cause::Store, "FileStore(): cannot ", what, " ", path, ": ",
                   std::strerror(errno));
}

// The file, open and locked. Opened for each call: locks belong to an open file, and a forked child
// would share those of its parent.
class LockedFile {
 public:
  LockedFile(const std::string& path, bool writes) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail(path, "open");
    while (::flock(fd_, writes ? LOCK_EX : LOCK_SH) < 0) {
      if (errno == EINTR) continue;
      ::close(fd_);
      fail(path, "lock");
    }
  }
  ~LockedFile() { ::close(fd_); }
  LockedFile(const LockedFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

void write_all(int file, uint64_t at, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write to");
    bytes.remove_prefix(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
}

StoreRequest count_request(int64_t delta) { return {StoreCall::Add, delta, 0, {count_key}, {}}; }

}  // namespace

FileStore::FileStore(std::string path, int64_t world_size)
    : path_(std::move(path)), removes_(world_size > 0), generation_(fork_generation()) {
  try_once(count_request(1));
}

FileStore::~FileStore() {
  if (fork_generation() != generation_) return;  // the parent's
  try {
    const auto left = try_once(count_request(-1));
    if (removes_ && left && left->number == 0) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    // The file's folder may be gone by now, which is as good.
  }
}

// Takes in what others have added to the file.
void FileStore::read_news(int file) {
  struct stat info{};
  if (::fstat(file, &info) < 0) fail(path_, "read");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (info.st_ino != inode_ || size < read_) {  // another file of this name
    table_ = KeyTable();
    read_ = 0;
    inode_ = info.st_ino;
  }
  Bytes bytes(size - read_, '\0');
  for (size_t have = 0; have < bytes.size();) {
    const ssize_t n =
        ::pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(read_ + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "read");
    if (n == 0) bytes.resize(have);
    have += static_cast<size_t>(n);
  }
  std::string_view rest = bytes;
  while (const auto length = message_length(rest)) {
    if (rest.size() - message_head < *length)
      break;  // a writer was killed: overwritten by the next
    StoreRequest request;
    if (!read_message(rest.substr(message_head, *length), request))
      throw StoreError(StoreError::Cause::Store, "FileStore(): expected the file of a store; ",
                       path_, " is another");
    table_.answer(request);
    rest.remove_prefix(message_head + *length);
    read_ += message_head + *length;
  }
}

std::optional<StoreReply> FileStore::try_once(const StoreRequest& request) {
  const bool writes = KeyTable::may_change(request);
  const std::lock_guard lock(mutex_);
  const LockedFile file(path_, writes);
  read_news(file.fd());
  auto reply = table_.answer(request);
  if (!writes || !reply || reply->status != StoreStatus::Done) return reply;
  const Bytes message = message_of(request);
  const uint64_t inode =
      std::exchange(inode_, 0);  // if writing fails, the table is ahead: read anew
  write_all(file.fd(), read_, message, path_);
  read_ += message.size();
  if (::ftruncate(file.fd(), static_cast<off_t>(read_)) < 0) fail(path_, "write to");
  inode_ = inode;
  return reply;
}

StoreReply FileStore::run(const StoreRequest& request) {
  const Deadline deadline = deadline_after(request.timeout_ms);
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    if (auto reply = try_once(request)) return *reply;
    const auto left = next_wait(deadline);
    if (left.count() == 0) return {StoreStatus::Timeout, 0, {}};
    // Network file systems tell nobody of changes.
    std::this_thread::sleep_for(std::min(left, pause));
    pause = std::min(2 * pause, std::chrono::milliseconds(20));
    check_interrupts();
  }
}

}  // namespace facula::distributed
