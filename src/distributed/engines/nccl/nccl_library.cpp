#include "distributed/engines/nccl/nccl_library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace facula::distributed {
namespace {

constexpr int oldest_version = 21400;  // the first whose communicators need not block

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  check(function != nullptr, "init_process_group(): expected NCCL's function ", name, "; got ",
        dlerror());
}

NcclLibrary load(const std::string& path) {
  const char* file = path.empty() ? "libnccl.so.2" : path.c_str();
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, "init_process_group(): expected NCCL's library; got ",
        library ? "" : dlerror());
  NcclLibrary n{};
  find(library, "ncclGetVersion", n.get_version);
  n.get_version(&n.version);
  check(n.version >= oldest_version, "init_process_group(): expected NCCL 2.14 or later; got ",
        n.version_text());
  find(library, "ncclGetUniqueId", n.get_unique_id);
  find(library, "ncclCommInitRankConfig", n.comm_init);
  find(library, "ncclCommFinalize", n.comm_finalize);
  find(library, "ncclCommDestroy", n.comm_destroy);
  find(library, "ncclCommAbort", n.comm_abort);
  find(library, "ncclCommGetAsyncError", n.comm_async_error);
  find(library, "ncclGetErrorString", n.error_string);
  find(library, "ncclGetLastError", n.last_error);
  find(library, "ncclGroupStart", n.group_start);
  find(library, "ncclGroupEnd", n.group_end);
  find(library, "ncclRedOpCreatePreMulSum", n.make_premul_sum);
  find(library, "ncclRedOpDestroy", n.destroy_op);
  find(library, "ncclAllReduce", n.all_reduce);
  find(library, "ncclReduce", n.reduce);
  find(library, "ncclBroadcast", n.broadcast);
  find(library, "ncclAllGather", n.all_gather);
  find(library, "ncclReduceScatter", n.reduce_scatter);
  find(library, "ncclSend", n.send);
  find(library, "ncclRecv", n.receive);
  return n;
}

}  // namespace

// Opened libraries stay: their threads may outlive their communicators.
const NcclLibrary& NcclLibrary::open(const std::string& path) {
  static std::mutex mutex;
  static auto* opened = new std::map<std::string, NcclLibrary>;
  const std::lock_guard lock(mutex);
  const auto it = opened->find(path);
  if (it != opened->end()) return it->second;
  return opened->emplace(path, load(path)).first->second;
}

std::string NcclLibrary::version_text() const {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::string NcclLibrary::text_of(NcclResult result, NcclComm* comm) const {
  std::string text = error_string(result);
  const char* last = last_error(comm);
  if (last != nullptr && *last != '\0') text += concat(" (", last, ")");
  return text;
}

}  // namespace facula::distributed
