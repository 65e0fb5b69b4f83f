// What calls do, on the thread of a toy's stream.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "distributed/reduction.h"
#include "shared.h"

namespace toy_nccl {
namespace {

struct Aborted {};

template <class Done>
void wait(Comm& comm, Done&& done) {
  while (!done()) {
    if (comm.aborted) throw Aborted{};
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void meet(Comm& comm) {
  const uint32_t round = ++comm.rounds;
  comm.shared->met[comm.rank] = round;
  for (int r = 0; r < comm.size; ++r)
    wait(comm, [&] { return static_cast<int32_t>(comm.shared->met[r] - round) >= 0; });
}

// Calls step(begin, bytes) for the pieces of a call, between two meetings that all ranks have.
template <class Write, class Read>
void in_rounds(Comm& comm, size_t bytes, size_t piece, Write&& write, Read&& read) {
  size_t begin = 0;
  do {
    const size_t n = std::min(piece, bytes - begin);
    write(begin, n);
    meet(comm);
    read(begin, n);
    meet(comm);
    begin += n;
  } while (begin < bytes);
}

std::byte* at(void* p, size_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at(const void* p, size_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

void reduce_into(Comm& comm, const Call& c, void* to, size_t slot_offset, size_t n) {
  std::vector<const void*> parts;
  for (int r = 0; r < comm.size; ++r) parts.push_back(comm.shared->slots[r] + slot_offset);
  facula::distributed::reduce(c.reduction, c.dtype, c.factor, parts, to,
                              static_cast<int64_t>(n / facula::itemsize(c.dtype)));
}

void collective(Comm& comm, const Call& c) {
  std::byte* mine = comm.shared->slots[comm.rank];
  const auto put = [&](size_t begin, size_t n) { std::memcpy(mine, at(c.from, begin), n); };
  switch (c.kind) {
    case Kind::Broadcast:
      return in_rounds(
          comm, c.bytes, slot_bytes,
          [&](size_t begin, size_t n) {
            if (comm.rank == c.peer) put(begin, n);
          },
          [&](size_t begin, size_t n) {
            std::memcpy(at(c.to, begin), comm.shared->slots[c.peer], n);
          });
    case Kind::AllReduce:
    case Kind::Reduce:
      return in_rounds(comm, c.bytes, slot_bytes, put, [&](size_t begin, size_t n) {
        if (c.kind == Kind::AllReduce || comm.rank == c.peer)
          reduce_into(comm, c, at(c.to, begin), 0, n);
      });
    case Kind::AllGather:
      return in_rounds(comm, c.bytes, slot_bytes, put, [&](size_t begin, size_t n) {
        for (size_t r = 0; r < static_cast<size_t>(comm.size); ++r)
          std::memcpy(at(c.to, r * c.bytes + begin), comm.shared->slots[r], n);
      });
    case Kind::ReduceScatter: {
      const auto size = static_cast<size_t>(comm.size);
      const size_t part = c.bytes / size, piece = slot_bytes / size / 64 * 64;
      return in_rounds(
          comm, part, piece,
          [&](size_t begin, size_t n) {
            for (size_t r = 0; r < size; ++r)
              std::memcpy(mine + r * piece, at(c.from, r * part + begin), n);
          },
          [&](size_t begin, size_t n) {
            reduce_into(comm, c, at(c.to, begin), static_cast<size_t>(comm.rank) * piece, n);
          });
    }
    default:
      return;
  }
}

// Goes on with a message; returns whether anything has moved.
bool move(Comm& comm, const Call& c, size_t& moved) {
  if (moved == c.bytes) return false;
  const bool sends = c.kind == Kind::Send;
  Box& box = sends ? comm.shared->boxes[comm.rank][c.peer] : comm.shared->boxes[c.peer][comm.rank];
  if (box.full == sends) return false;
  if (sends) {
    box.bytes = std::min(box_bytes, c.bytes - moved);
    std::memcpy(box.data, at(c.from, moved), box.bytes);
  } else {
    std::memcpy(at(c.to, moved), box.data, std::min<size_t>(box.bytes, c.bytes - moved));
  }
  moved += std::min<size_t>(box.bytes, c.bytes - moved);
  box.full = sends;
  return true;
}

void messages(Comm& comm, const std::vector<Call>& calls) {
  std::vector<size_t> moved(calls.size());
  const auto is_done = [&] {
    for (size_t i = 0; i < calls.size(); ++i)
      if (moved[i] != calls[i].bytes) return false;
    return true;
  };
  // Of several messages one way the first goes first.
  const auto is_next = [&](size_t i) {
    for (size_t j = 0; j < i; ++j)
      if (calls[j].kind == calls[i].kind && calls[j].peer == calls[i].peer &&
          moved[j] != calls[j].bytes)
        return false;
    return true;
  };
  while (!is_done()) {
    bool any = false;
    for (size_t i = 0; i < calls.size(); ++i)
      if (is_next(i)) any |= move(comm, calls[i], moved[i]);
    if (comm.aborted) throw Aborted{};
    if (!any) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace

Shared* open_shared(const std::string& name) {
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0) return nullptr;
  const bool sized = ftruncate(file, sizeof(Shared)) == 0;
  void* p = sized ? mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                  : MAP_FAILED;
  close(file);
  return p == MAP_FAILED ? nullptr : static_cast<Shared*>(p);
}

void close_shared(Shared* shared) { munmap(shared, sizeof(Shared)); }

void run(Comm& comm, std::vector<Call>& calls) {
  try {
    std::vector<Call> of_pairs;
    for (const Call& c : calls)
      if (c.kind == Kind::Send || c.kind == Kind::Receive)
        of_pairs.push_back(c);
      else
        collective(comm, c);
    messages(comm, of_pairs);
  } catch (const Aborted&) {
    // The results are not written, and the stream goes on.
  }
}

}  // namespace toy_nccl
