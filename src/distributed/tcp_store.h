// A store on a server that ranks reach over TCP.
#pragma once
#include <memory>
#include <mutex>

#include "distributed/tcp_server.h"

namespace facula::distributed {

class TcpStore : public Store {
 public:
  TcpStore(std::string host, int port, Milliseconds timeout, std::shared_ptr<TcpServer> server);
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  StoreReply run(const StoreRequest& request) override;
  const std::string& host() const { return host_; }
  int port() const { return port_; }

 private:
  Socket take_connection(Deadline deadline);
  void give_back(Socket connection);
  StoreReply exchange(Socket& connection, const StoreRequest& request, Deadline deadline);
  [[noreturn]] void fail(const char* how) const;

  const std::string host_;
  const int port_;
  const std::shared_ptr<TcpServer> server_;  // null at all ranks but one
  // A connection carries one request at a time. Threads that call at once have one each, and so do
  // processes: connections that a child finds after a fork are its parent's.
  std::mutex mutex_;
  std::vector<Socket> idle_;
  uint32_t generation_;
};

// The server on a port. With `shares`, one of this process that is there already is used.
std::shared_ptr<TcpServer> tcp_server(int port, int listening, bool shares);

}  // namespace facula::distributed
