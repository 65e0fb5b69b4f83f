// Collectives and messages as calls of NCCL.
#pragma once
#include <vector>

#include "distributed/engines/nccl/nccl_library.h"

namespace facula::distributed {

// Raises if NCCL cannot do this call.
void check_call(const NcclLibrary& nccl, const Collective& call);

// Gives calls to NCCL; one object for what stands between group_start() and group_end().
class NcclLauncher {
 public:
  NcclLauncher(const NcclLibrary& nccl, NcclComm* comm, int rank, void* stream)
      : nccl_(nccl), comm_(comm), rank_(rank), stream_(stream) {}
  // After group_end() has returned.
  ~NcclLauncher();
  NcclLauncher(const NcclLauncher&) = delete;

  // Before group_start(): makes the reduction of a call that has a factor.
  void prepare(const Collective& call);
  void give(const Collective& call);
  // The first failure since the beginning.
  NcclResult result() const { return result_; }

 private:
  void note(NcclResult result);
  void all_gather(const Collective& call);
  void reduce_scatter(const Collective& call);
  void send(const void* data, int64_t count, const Collective& call, int peer);
  void receive(void* data, int64_t count, const Collective& call, int peer);

  const NcclLibrary& nccl_;
  NcclComm* const comm_;
  const int rank_;
  void* const stream_;
  NcclResult result_ = NcclResult::Success;
  std::vector<NcclOp> made_;  // in the order of the calls that have a factor
  size_t used_ = 0;           // of them
};

}  // namespace facula::distributed
