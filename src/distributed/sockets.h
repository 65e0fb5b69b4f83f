// Sockets of TCP over IPv4 and IPv6: none of them blocks, and children that exec have none.
#pragma once
#include <string>
#include <utility>

#include "distributed/waits.h"

namespace facula::distributed {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// A listening socket on all addresses of this machine. Port 0 takes any that is free.
Socket listen_on(int port);
// One that somebody else has opened: makes it listen and not block.
Socket adopt_listening(int fd);
int port_of(const Socket& listening);
// Takes a connection that waits; one without a descriptor if none does.
Socket accept_from(const Socket& listening);
// Connects; tries again until the deadline, as the server may not have started yet.
Socket connect_to(const std::string& host, int port, Deadline deadline);
// Whether the socket becomes ready before the deadline. Ctrl-C ends the wait.
bool wait_readable(const Socket& socket, Deadline deadline);
bool wait_writable(const Socket& socket, Deadline deadline);

}  // namespace facula::distributed
