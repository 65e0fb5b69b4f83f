// NCCL's functions. Values are those of its public header.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/half.h"
#include "distributed/engines/nccl/nccl_library.h"
#include "shared.h"

namespace toy_nccl {
namespace {

using facula::DType;
using facula::distributed::NcclConfig;
using facula::distributed::NcclId;
using facula::distributed::NcclOp;
using facula::distributed::NcclResult;
using facula::distributed::NcclType;
using facula::distributed::Reduction;
using CommRef = std::shared_ptr<Comm>;

constexpr int result(NcclResult r) { return static_cast<int>(r); }
constexpr int success = result(NcclResult::Success);

std::atomic<int> refused{0}, failure{0}, launches{0}, calls_given{0}, aborts{0}, destroys{0};
int min_ctas = NcclConfig::undefined, blocking = NcclConfig::undefined;

// What a thread has given since group_start().
struct Group {
  int depth = 0;
  CommRef comm;
  void* stream = nullptr;
  std::vector<Call> calls;
};
thread_local Group group;

template <class F>
F of_toy(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

template <class T>
T* on_host(T* p) {
  static const auto f = of_toy<void* (*)(void*)>("toy_on_host");
  return p ? static_cast<T*>(f(const_cast<std::remove_const_t<T>*>(p))) : nullptr;
}

DType dtype_of(NcclType type) {
  constexpr DType dtypes[] = {DType::Int8,     DType::UInt8,      DType::Int32,
                              DType::UInt32,   DType::Int64,      DType::UInt64,
                              DType::Float16,  DType::Float32,    DType::Float64,
                              DType::BFloat16, DType::Float8E4M3, DType::Float8E5M2};
  return dtypes[static_cast<int>(type)];
}

struct Work {
  CommRef comm;
  std::vector<Call> calls;
};
void run_work(void* context) {
  const std::unique_ptr<Work> work(static_cast<Work*>(context));
  Comm& comm = *work->comm;
  ++comm.running;
  if (!comm.aborted) run(comm, work->calls);
  --comm.running;
}

int launch() {
  if (group.calls.empty()) return success;
  static const auto give = of_toy<void (*)(int, void*, void (*)(void*), void*)>("toy_give");
  ++launches;
  auto* work = new Work{group.comm, std::move(group.calls)};
  group.calls.clear();
  work->comm->in_progress = 2;
  give(work->comm->device, group.stream, run_work, work);
  return result(NcclResult::InProgress);
}

int give(Call call, NcclOp op, CommRef* comm, void* stream) {
  if (refused > 0) {
    --refused;
    return result(NcclResult::InvalidArgument);
  }
  ++calls_given;
  constexpr Reduction reductions[] = {Reduction::Sum, Reduction::Product, Reduction::Max,
                                      Reduction::Min, Reduction::Avg};
  const auto number = static_cast<size_t>(op);
  call.reduction = number < 5 ? reductions[number] : Reduction::PremulSum;
  if (number >= 5) call.factor = (*comm)->factors[number - 5].second;
  call.from = on_host(call.from);
  call.to = on_host(call.to);
  group.calls.push_back(call);
  group.comm = *comm;
  group.stream = stream;
  return group.depth > 0 ? success : launch();
}

Call call_of(Kind kind, const void* from, void* to, size_t count, NcclType type, int peer = 0) {
  const DType dtype = dtype_of(type);
  return {kind, from, to, count * facula::itemsize(dtype), dtype, Reduction::Sum, 1, peer};
}

double number_of(DType dtype, const void* p) {
  if (dtype == DType::Float16) return static_cast<float>(*static_cast<const facula::Half*>(p));
  if (dtype == DType::BFloat16) return static_cast<float>(*static_cast<const facula::BFloat16*>(p));
  if (dtype == DType::Float32) return *static_cast<const float*>(p);
  return *static_cast<const double*>(p);
}

// Waits for the other ranks, as NCCL does beside a thread that does not block.
void arrive(const CommRef& comm) {
  comm->shared->arrived.fetch_add(1);
  while (comm->shared->arrived.load() < comm->size && !comm->aborted)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (comm->rank == 0) shm_unlink(comm->name.c_str());
  comm->arriving = false;
}

}  // namespace
}  // namespace toy_nccl

using namespace toy_nccl;

extern "C" {

int ncclGetVersion(int* version) {
  const char* wanted = std::getenv("TOY_NCCL_VERSION");
  *version = wanted ? std::atoi(wanted) : 23203;
  return success;
}

int ncclGetUniqueId(NcclId* id) {
  std::memset(id, 0, sizeof *id);
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::snprintf(id->bytes, sizeof id->bytes, "/toy_nccl_%d_%llx", getpid(),
                static_cast<unsigned long long>(now));
  return success;
}

int ncclCommInitRankConfig(CommRef** made, int size, NcclId id, int rank, NcclConfig* config) {
  if (config->magic != 0xcafebeef || config->size < 24 || size > most_ranks)
    return result(NcclResult::InvalidArgument);
  min_ctas = config->min_ctas;
  blocking = config->blocking;
  auto comm = std::make_shared<Comm>();
  comm->rank = rank;
  comm->size = size;
  comm->name = id.bytes;
  comm->device = of_toy<int (*)()>("toy_current_device")();
  comm->shared = open_shared(comm->name);
  if (!comm->shared) return result(NcclResult::SystemError);
  std::thread([comm] { arrive(comm); }).detach();
  *made = new CommRef(comm);
  return result(NcclResult::InProgress);
}

int ncclCommGetAsyncError(CommRef* comm, int* state) {
  Comm& c = **comm;
  *state = c.error ? c.error.load() : failure.load();
  if (*state != success) return success;
  if (c.arriving || (c.in_progress > 0 && c.in_progress-- > 0))
    *state = result(NcclResult::InProgress);
  return success;
}

int ncclCommFinalize(CommRef* comm) {
  (*comm)->in_progress = 1;
  return result(NcclResult::InProgress);
}
int ncclCommDestroy(CommRef* comm) {
  ++destroys;
  delete comm;
  return success;
}
int ncclCommAbort(CommRef* comm) {
  ++aborts;
  (*comm)->aborted = true;
  while ((*comm)->running > 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
  shm_unlink((*comm)->name.c_str());
  delete comm;
  return success;
}

const char* ncclGetErrorString(int r) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error"};
  return r >= 0 && r < 7 ? texts[r] : "unknown result code";
}
const char* ncclGetLastError(CommRef*) { return ""; }

int ncclGroupStart() {
  ++group.depth;
  return success;
}
int ncclGroupEnd() { return --group.depth > 0 ? success : launch(); }

int ncclRedOpCreatePreMulSum(NcclOp* op, void* factor, NcclType type, int, CommRef* comm) {
  const DType dtype = dtype_of(type);
  (*comm)->factors.emplace_back(dtype, number_of(dtype, factor));
  *op = static_cast<NcclOp>(4 + (*comm)->factors.size());
  return success;
}
int ncclRedOpDestroy(NcclOp, CommRef*) { return success; }

int ncclAllReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op, CommRef* comm,
                  void* stream) {
  return give(call_of(Kind::AllReduce, from, to, count, type), op, comm, stream);
}
int ncclReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op, int root,
               CommRef* comm, void* stream) {
  return give(call_of(Kind::Reduce, from, to, count, type, root), op, comm, stream);
}
int ncclBroadcast(const void* from, void* to, size_t count, NcclType type, int root, CommRef* comm,
                  void* stream) {
  return give(call_of(Kind::Broadcast, from, to, count, type, root), NcclOp::Sum, comm, stream);
}
int ncclAllGather(const void* from, void* to, size_t count, NcclType type, CommRef* comm,
                  void* stream) {
  return give(call_of(Kind::AllGather, from, to, count, type), NcclOp::Sum, comm, stream);
}
int ncclReduceScatter(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                      CommRef* comm, void* stream) {
  const auto ranks = static_cast<size_t>((*comm)->size);
  return give(call_of(Kind::ReduceScatter, from, to, count * ranks, type), op, comm, stream);
}
int ncclSend(const void* from, size_t count, NcclType type, int peer, CommRef* comm, void* stream) {
  return give(call_of(Kind::Send, from, nullptr, count, type, peer), NcclOp::Sum, comm, stream);
}
int ncclRecv(void* to, size_t count, NcclType type, int peer, CommRef* comm, void* stream) {
  return give(call_of(Kind::Receive, nullptr, to, count, type, peer), NcclOp::Sum, comm, stream);
}

// What the tests look at, and the switches that they set.
int toy_nccl_launches() { return launches; }
int toy_nccl_calls() { return calls_given; }
int toy_nccl_aborts() { return aborts; }
int toy_nccl_destroys() { return destroys; }
int toy_nccl_min_ctas() { return min_ctas; }
int toy_nccl_blocking() { return blocking; }
// The next calls are refused as invalid.
void toy_nccl_refuse(int calls) { refused = calls; }
// All communicators of this process have failed.
void toy_nccl_fail(int code) { failure = code; }
}
