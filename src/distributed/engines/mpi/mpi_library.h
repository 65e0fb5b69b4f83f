// MPI in this process: started once, ended when the process ends well.
#pragma once
#include <mpi.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "distributed/engine.h"

namespace facula::distributed {

class MpiLibrary {
 public:
  // Starts MPI at the first call.
  static MpiLibrary& get();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int most_tag() const { return most_tag_; }
  MPI_Comm world() const { return world_; }
  // Held during each call of MPI: not every build of it stands several threads.
  std::mutex& mutex() { return mutex_; }
  // After an error between ranks nobody may wait for the others at the end.
  void forgo_end() { ends_ = false; }
  // Another rank ends with an error or has told of one, and mpirun ends all as soon as one has
  // ended: this one is not to be the first.
  void linger() { lingers_ = true; }
  bool ends() const { return ends_; }

 private:
  MpiLibrary();
  static void end();

  std::mutex mutex_;
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, most_tag_ = 32767, process_ = 0;
  std::atomic<bool> ends_{true}, lingers_{false};
};

// Throws with MPI's text for a result that is not success. `what` says what was tried.
void check_mpi(int result, const char* what);

// Data under way, in pieces that MPI's counts of 32 bits can tell. Forgotten receives write no
// more.
class Transfer {
 public:
  Transfer() = default;
  Transfer(Transfer&&) = default;
  Transfer& operator=(Transfer&&) = default;
  ~Transfer();

  void send(const void* data, size_t bytes, int to, int tag, MPI_Comm comm);
  void receive(void* data, size_t bytes, int from, int tag, MPI_Comm comm);
  // Whether all has moved. Of a receive from any rank `source` is then the rank.
  bool test(int* source = nullptr);
  bool is_begun() const { return begun_; }
  bool is_empty() const { return pieces_.empty(); }
  // For a receive whose message may never come.
  void cancel();

 private:
  struct Piece {
    MPI_Request request = MPI_REQUEST_NULL;
    bool receives = false;
  };
  std::vector<Piece> pieces_;
  int source_ = -1;
  bool begun_ = false;
};

}  // namespace facula::distributed
