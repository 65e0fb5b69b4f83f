#include "distributed/sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "distributed/store.h"

namespace facula::distributed {
namespace {

[[noreturn]] void fail_to_listen(int port) {
  throw StoreError(StoreError::Cause::Network, "TCPStore(): cannot listen on port ", port, ": ",
                   std::strerror(errno));
}

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

// Small messages go at once, and a machine that is gone is noticed within a minute.
void set_options_of_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

bool wait_for(const Socket& socket, short events, Deadline deadline) {
  while (true) {
    const auto wait = next_wait(deadline);
    pollfd one = {socket.fd(), events, 0};
    const int n = ::poll(&one, 1, static_cast<int>(wait.count()));
    if (n > 0) return true;
    if (n == 0 && wait.count() == 0) return false;
    check_interrupts();
  }
}

Socket try_listen(int family, int port) {
  Socket s(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (s.fd() < 0) return s;
  set_option(s.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  int status = 0;
  if (family == AF_INET6) {
    set_option(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_addr = in6addr_any;
    a.sin6_port = htons(static_cast<uint16_t>(port));
    status = ::bind(s.fd(), reinterpret_cast<sockaddr*>(&a), sizeof(a));
  } else {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = INADDR_ANY;
    a.sin_port = htons(static_cast<uint16_t>(port));
    status = ::bind(s.fd(), reinterpret_cast<sockaddr*>(&a), sizeof(a));
  }
  if (status < 0 || ::listen(s.fd(), SOMAXCONN) < 0) {
    const int error = errno;
    s = Socket();
    errno = error;
  }
  return s;
}

// One attempt at one address; sets `why` if it fails.
Socket try_address(const addrinfo& a, Deadline deadline, std::string& why) {
  Socket s(::socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol));
  if (s.fd() < 0) {
    why = std::strerror(errno);
    return s;
  }
  if (::connect(s.fd(), a.ai_addr, a.ai_addrlen) < 0 && errno != EINPROGRESS) {
    why = std::strerror(errno);
    return Socket();
  }
  if (!wait_writable(s, deadline)) {
    why = "no answer";
    return Socket();
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    why = std::strerror(error);
    return Socket();
  }
  set_options_of_connection(s.fd());
  return s;
}

Socket try_host(const std::string& host, int port, Deadline deadline, std::string& why) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (status != 0) {
    why = ::gai_strerror(status);
    return Socket();
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  for (const addrinfo* a = list; a; a = a->ai_next) {
    Socket s = try_address(*a, deadline, why);
    if (s.fd() >= 0) return s;
  }
  return Socket();
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket listen_on(int port) {
  Socket s = try_listen(AF_INET6, port);
  if (s.fd() < 0 && errno != EADDRINUSE) s = try_listen(AF_INET, port);  // a machine without IPv6
  if (s.fd() < 0) fail_to_listen(port);
  return s;
}

Socket adopt_listening(int fd) {
  Socket s(fd);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || ::listen(fd, SOMAXCONN) < 0)
    throw StoreError(StoreError::Cause::Network,
                     "TCPStore(): expected the descriptor of a bound socket; got ", fd, ": ",
                     std::strerror(errno));
  return s;
}

int port_of(const Socket& listening) {
  sockaddr_storage a{};
  socklen_t size = sizeof(a);
  ::getsockname(listening.fd(), reinterpret_cast<sockaddr*>(&a), &size);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&a);
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&a);
  return ntohs(a.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

Socket accept_from(const Socket& listening) {
  Socket s(::accept4(listening.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (s.fd() >= 0) set_options_of_connection(s.fd());
  return s;
}

Socket connect_to(const std::string& host, int port, Deadline deadline) {
  const auto start = Clock::now();
  std::string why = "no answer";
  auto pause = std::chrono::milliseconds(5);
  while (true) {
    Socket s = try_host(host, port, deadline, why);
    if (s.fd() >= 0) return s;
    check_interrupts();
    const auto left = next_wait(deadline);
    if (left.count() == 0) break;
    std::this_thread::sleep_for(std::min(left, pause));
    pause = std::min(2 * pause, std::chrono::milliseconds(100));
  }
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  throw StoreError(StoreError::Cause::Network, "TCPStore(): expected a store's server at ", host,
                   ":", port, "; got no connection within ", waited.count(), " ms (", why, ")");
}

bool wait_readable(const Socket& s, Deadline d) { return wait_for(s, POLLIN, d); }
bool wait_writable(const Socket& s, Deadline d) { return wait_for(s, POLLOUT, d); }

}  // namespace facula::distributed
