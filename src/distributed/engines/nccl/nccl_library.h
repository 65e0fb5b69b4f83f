// NCCL's library, opened when it is asked for: the part of its C interface that the engine calls.
// Values and layouts are NCCL's.
#pragma once
#include <climits>
#include <cstddef>
#include <string>

#include "distributed/engine.h"

namespace facula::distributed {

struct NcclComm;  // a communicator, which the library owns

struct NcclId {
  char bytes[128];
};

enum class NcclResult : int {
  Success = 0,
  CudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class NcclType : int {
  Int8 = 0,
  UInt8 = 1,
  Int32 = 2,
  UInt32 = 3,
  Int64 = 4,
  UInt64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  BFloat16 = 9,
  Float8e4m3 = 10,
  Float8e5m2 = 11,
};

// Numbers from 5 on are those of made reductions.
enum class NcclOp : int { Sum = 0, Product = 1, Max = 2, Min = 3, Avg = 4 };

// What a communicator is made with. Later versions have more fields behind these, and libraries
// take as many as `size` says.
struct NcclConfig {
  static constexpr int undefined = INT_MIN;

  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 0;
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int min_ctas = undefined;
  int max_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
  int traffic_class = undefined;
  const char* comm_name = nullptr;
  int collnet_enable = undefined;
  int cta_policy = undefined;
  int shrink_share = undefined;
  int nvls_ctas = undefined;
  int channels_per_net_peer = undefined;
  int nvlink_centric_scheduling = undefined;
  int graph_usage_mode = undefined;
  int rma_contexts = undefined;
  int max_p2p_peers = undefined;
};

struct NcclLibrary {
  // The library in this file, or the first one that the loader finds for an empty path. Opened
  // once; RuntimeError where it is not, or is too old.
  static const NcclLibrary& open(const std::string& path);

  std::string version_text() const;
  // NCCL's words for a result; with what it remembers of the last error.
  std::string text_of(NcclResult result, NcclComm* comm) const;

  int version = 0;  // 22304 is 2.23.4

  NcclResult (*get_version)(int*);
  NcclResult (*get_unique_id)(NcclId*);
  NcclResult (*comm_init)(NcclComm**, int size, NcclId, int rank, NcclConfig*);
  NcclResult (*comm_finalize)(NcclComm*);
  NcclResult (*comm_destroy)(NcclComm*);
  NcclResult (*comm_abort)(NcclComm*);
  NcclResult (*comm_async_error)(NcclComm*, NcclResult*);
  const char* (*error_string)(NcclResult);
  const char* (*last_error)(NcclComm*);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  // The factor is in the memory of the host (residence 1), and is read at once.
  NcclResult (*make_premul_sum)(NcclOp*, void* factor, NcclType, int residence, NcclComm*);
  NcclResult (*destroy_op)(NcclOp, NcclComm*);
  NcclResult (*all_reduce)(const void*, void*, size_t, NcclType, NcclOp, NcclComm*, void* stream);
  NcclResult (*reduce)(const void*, void*, size_t, NcclType, NcclOp, int root, NcclComm*,
                       void* stream);
  NcclResult (*broadcast)(const void*, void*, size_t, NcclType, int root, NcclComm*, void* stream);
  NcclResult (*all_gather)(const void*, void*, size_t, NcclType, NcclComm*, void* stream);
  NcclResult (*reduce_scatter)(const void*, void*, size_t, NcclType, NcclOp, NcclComm*,
                               void* stream);
  NcclResult (*send)(const void*, size_t, NcclType, int peer, NcclComm*, void* stream);
  NcclResult (*receive)(void*, size_t, NcclType, int peer, NcclComm*, void* stream);
};

}  // namespace facula::distributed
