#include "distributed/tcp_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/fork.h"
#include "distributed/store_message.h"

namespace facula::distributed {

TcpServer::TcpServer(Socket listening)
    : listening_(std::move(listening)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port_(port_of(listening_)),
      generation_(fork_generation()) {
  check(wake_.fd() >= 0, "TCPStore(): cannot make an event descriptor");
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TcpServer::~TcpServer() {
  if (fork_generation() != generation_) {
    thread_.detach();  // it runs in the parent only
    return;
  }
  const uint64_t one = 1;
  while (::write(wake_.fd(), &one, sizeof(one)) < 0 && errno == EINTR) continue;
  thread_.join();
}

void TcpServer::serve() {
  while (true) {
    wait_for_events();
    uint64_t ended = 0;
    if (::read(wake_.fd(), &ended, sizeof(ended)) > 0) return;
    accept_all();
    for (auto& c : connections_) {
      read_from(c);
      write_to(c);
    }
    answer_waiting();
    std::erase_if(connections_, [](const Connection& c) { return c.gone; });
  }
}

void TcpServer::wait_for_events() {
  std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0}, {listening_.fd(), POLLIN, 0}};
  auto first = Deadline::max();
  for (const auto& c : connections_) {
    const auto events = static_cast<short>(c.out.empty() ? POLLIN : POLLIN | POLLOUT);
    polled.push_back({c.socket.fd(), events, 0});
    if (c.waiting) first = std::min(first, c.until);
  }
  int wait = -1;
  if (first != Deadline::max()) {
    const auto left = std::chrono::ceil<Milliseconds>(first - Clock::now()).count();
    wait = static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
  }
  ::poll(polled.data(), polled.size(), wait);
}

void TcpServer::accept_all() {
  while (true) {
    Socket s = accept_from(listening_);
    if (s.fd() >= 0) {
      connections_.emplace_back().socket = std::move(s);
      continue;
    }
    // Out of descriptors: the next connection stays in the queue, and would wake us at once.
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(Milliseconds(20));
    return;
  }
}

void TcpServer::read_from(Connection& c) {
  char bytes[16384];
  while (!c.gone) {
    const ssize_t n = ::recv(c.socket.fd(), bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      c.gone = true;
      return;
    }
    c.in.append(bytes, static_cast<size_t>(n));
    if (n < static_cast<ssize_t>(sizeof(bytes))) break;
  }
  take_messages(c);
}

void TcpServer::take_messages(Connection& c) {
  std::string_view rest = c.in;
  if (!c.greeted) {
    const auto begun = rest.substr(0, tcp_greeting.size());
    c.gone = !tcp_greeting.starts_with(begun);
    if (c.gone || begun.size() < tcp_greeting.size()) return;
    c.greeted = true;
    rest.remove_prefix(tcp_greeting.size());
  }
  while (const auto length = message_length(rest)) {
    c.gone = *length > most_message;
    if (c.gone || rest.size() - message_head < *length) break;
    StoreRequest request;
    c.gone = !read_message(rest.substr(message_head, *length), request);
    if (c.gone) break;
    rest.remove_prefix(message_head + *length);
    handle(c, std::move(request));
  }
  c.in.erase(0, c.in.size() - rest.size());
}

void TcpServer::handle(Connection& c, StoreRequest request) {
  c.waiting.reset();
  if (const auto answer = table_.answer(request)) {
    changed_ = changed_ || KeyTable::may_change(request);
    reply(c, *answer);
    return;
  }
  c.until = deadline_after(request.timeout_ms);
  c.waiting = std::move(request);
}

// Answers those whose wait is over, in the order in which they connected. An answer may change the
// table, too: then all are asked again.
void TcpServer::answer_waiting() {
  const auto now = Clock::now();
  do {
    const bool changed = std::exchange(changed_, false);
    for (auto& c : connections_) {
      if (c.gone || !c.waiting) continue;
      const auto answer = changed ? table_.answer(*c.waiting) : std::nullopt;
      if (!answer && now < c.until) continue;
      changed_ = changed_ || (answer && KeyTable::may_change(*c.waiting));
      c.waiting.reset();
      reply(c, answer.value_or(StoreReply{StoreStatus::Timeout, 0, {}}));
    }
  } while (changed_);
}

void TcpServer::reply(Connection& c, const StoreReply& r) {
  c.out += message_of(r);
  write_to(c);
}

void TcpServer::write_to(Connection& c) {
  while (!c.gone && !c.out.empty()) {
    const ssize_t n = ::send(c.socket.fd(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) {
      c.gone = true;
      return;
    }
    c.out.erase(0, static_cast<size_t>(n));
  }
}

}  // namespace facula::distributed
