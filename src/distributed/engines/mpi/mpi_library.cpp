#include "distributed/engines/mpi/mpi_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace facula::distributed {
namespace {

constexpr size_t most_piece_bytes = size_t{1} << 30;

// OpenMPI opens components that look for its symbols among those of the whole process.
void show_symbols() {
  Dl_info found;
  if (dladdr(reinterpret_cast<void*>(&MPI_Init), &found) != 0)
    dlopen(found.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

}  // namespace

void check_mpi(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int n = 0;
  MPI_Error_string(result, text, &n);
  throw DistributedError(concat(what, ": ", text));
}

MpiLibrary& MpiLibrary::get() {
  static auto* library = new MpiLibrary;  // stays: threads of groups may outlive static objects
  return *library;
}

MpiLibrary::MpiLibrary() {
  show_symbols();
  int started = 0, threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&started);
  if (started)
    MPI_Query_thread(&threads);
  else
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads),
              "MPI_Init_thread");
  check(threads >= MPI_THREAD_SERIALIZED,
        "init_process_group(): expected an MPI that several threads may call in turn");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world_, &rank_);
  MPI_Comm_size(world_, &size_);
  void* most = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
  if (known) most_tag_ = *static_cast<int*>(most);
  process_ = getpid();
  if (!started) std::atexit(&MpiLibrary::end);
}

// Waits for the other ranks. mpirun ends all ranks when one ends without having come here; that is
// what is left to do after an error (MPI_Abort of MPICH over UCX waits for the others).
void MpiLibrary::end() {
  MpiLibrary& library = get();
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended || library.process_ != getpid()) return;
  // The job's exit status is to be that of the rank that failed.
  if (library.lingers_) std::this_thread::sleep_for(std::chrono::seconds(2));
  if (library.ends_) MPI_Finalize();
}

// --- Transfer

Transfer::~Transfer() {
  if (!pieces_.empty()) cancel();
}

void Transfer::send(const void* data, size_t bytes, int to, int tag, MPI_Comm comm) {
  begun_ = true;
  const std::lock_guard lock(MpiLibrary::get().mutex());
  const auto* from = static_cast<const std::byte*>(data);
  do {
    const size_t n = std::min(bytes, most_piece_bytes);
    Piece& piece = pieces_.emplace_back();
    check_mpi(MPI_Isend(from, static_cast<int>(n), MPI_BYTE, to, tag, comm, &piece.request),
              "MPI_Isend");
    from += n;
    bytes -= n;
  } while (bytes > 0);
}

void Transfer::receive(void* data, size_t bytes, int from, int tag, MPI_Comm comm) {
  begun_ = true;
  const std::lock_guard lock(MpiLibrary::get().mutex());
  auto* to = static_cast<std::byte*>(data);
  do {
    const size_t n = std::min(bytes, most_piece_bytes);
    Piece& piece = pieces_.emplace_back();
    piece.receives = true;
    check_mpi(MPI_Irecv(to, static_cast<int>(n), MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag,
                        comm, &piece.request),
              "MPI_Irecv");
    to += n;
    bytes -= n;
  } while (bytes > 0);
}

bool Transfer::test(int* source) {
  const std::lock_guard lock(MpiLibrary::get().mutex());
  while (!pieces_.empty()) {
    int moved = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&pieces_.back().request, &moved, &status), "MPI_Test");
    if (!moved) return false;
    if (pieces_.back().receives) source_ = status.MPI_SOURCE;
    pieces_.pop_back();
  }
  if (source != nullptr) *source = source_;
  return true;
}

void Transfer::cancel() {
  const std::lock_guard lock(MpiLibrary::get().mutex());
  for (Piece& piece : pieces_) {
    if (piece.request == MPI_REQUEST_NULL) continue;
    if (piece.receives) MPI_Cancel(&piece.request);
    MPI_Request_free(&piece.request);
  }
  pieces_.clear();
}

}  // namespace facula::distributed
