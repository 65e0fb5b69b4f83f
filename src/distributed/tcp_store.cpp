#include "distributed/tcp_store.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "core/fork.h"
#include "distributed/store_message.h"

namespace facula::distributed {

// A server that was stopped does not answer: this long after the request's own time it counts as
// gone.
constexpr Milliseconds grace(5000);

TcpStore::TcpStore(std::string host, int port, Milliseconds timeout,
                   std::shared_ptr<TcpServer> server)
    : host_(std::move(host)),
      port_(server ? server->port() : port),
      server_(std::move(server)),
      generation_(fork_generation()) {
  give_back(take_connection(deadline_after(timeout.count())));
}

TcpStore::~TcpStore() = default;

Socket TcpStore::take_connection(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(generation_, fork_generation()) != fork_generation()) idle_.clear();
    if (!idle_.empty()) {
      Socket s = std::move(idle_.back());
      idle_.pop_back();
      return s;
    }
  }
  Socket s = connect_to(host_, port_, deadline);
  if (::send(s.fd(), tcp_greeting.data(), tcp_greeting.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(tcp_greeting.size()))
    fail("closed the connection");
  return s;
}

void TcpStore::give_back(Socket connection) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

void TcpStore::fail(const char* how) const {
  throw StoreError(StoreError::Cause::Network, "TCPStore(): the store's server at ", host_, ":",
                   port_, " ", how, "; the process that runs it may have ended");
}

StoreReply TcpStore::exchange(Socket& s, const StoreRequest& request, Deadline deadline) {
  const Bytes message = message_of(request);
  std::string_view rest = message;
  while (!rest.empty()) {
    const ssize_t n = ::send(s.fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      rest.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) fail("closed the connection");
    if (!wait_writable(s, deadline)) fail("does not answer");
  }
  Bytes in;
  char bytes[16384];
  while (true) {
    const ssize_t n = ::recv(s.fd(), bytes, sizeof(bytes), 0);
    if (n > 0) {
      in.append(bytes, static_cast<size_t>(n));
      const auto length = message_length(in);
      if (!length || in.size() - message_head < *length) continue;
      StoreReply reply;
      if (!read_message(std::string_view(in).substr(message_head), reply))
        fail("sent something that is no answer");
      return reply;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) fail("closed the connection");
    if (!wait_readable(s, deadline)) fail("does not answer");
  }
}

StoreReply TcpStore::run(const StoreRequest& request) {
  const Deadline deadline = deadline_after(request.timeout_ms) + grace;
  // The server was there before: it answers within this time, or is gone.
  constexpr int64_t reconnect_ms = 1000;
  Socket connection = take_connection(std::min(deadline, deadline_after(reconnect_ms)));
  // If this throws, the connection is closed: an answer may still be on its way.
  StoreReply reply = exchange(connection, request, deadline);
  give_back(std::move(connection));
  return reply;
}

std::shared_ptr<TcpServer> tcp_server(int port, int listening, bool shares) {
  static std::mutex mutex;
  static auto& servers = *new std::map<int, std::weak_ptr<TcpServer>>();
  const std::lock_guard lock(mutex);
  if (shares && port != 0) {
    if (auto server = servers[port].lock()) return server;
  }
  auto server =
      std::make_shared<TcpServer>(listening >= 0 ? adopt_listening(listening) : listen_on(port));
  if (shares) servers[server->port()] = server;
  return server;
}

}  // namespace facula::distributed
