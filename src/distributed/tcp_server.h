// The server of TCPStore: one thread that answers the requests of all connections.
#pragma once
#include <atomic>
#include <list>
#include <thread>

#include "distributed/key_table.h"
#include "distributed/sockets.h"

namespace facula::distributed {

// What a client sends first, so that other programs that connect are turned away.
constexpr std::string_view tcp_greeting = "facula.s";

class TcpServer {
 public:
  explicit TcpServer(Socket listening);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  int port() const { return port_; }

 private:
  struct Connection {
    Socket socket;
    Bytes in, out;
    bool greeted = false;
    bool gone = false;
    std::optional<StoreRequest> waiting;  // until a change, or:
    Deadline until;
  };

  void serve();
  void wait_for_events();
  void accept_all();
  void read_from(Connection& c);
  void take_messages(Connection& c);
  void handle(Connection& c, StoreRequest request);
  void answer_waiting();
  void reply(Connection& c, const StoreReply& reply);
  void write_to(Connection& c);

  Socket listening_;
  Socket wake_;  // readable when the server is to end
  const int port_;
  const uint32_t generation_;
  bool changed_ = false;
  KeyTable table_;
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace facula::distributed
