// The engine for ranks on one machine.
//
// Collectives go in rounds. In a round each rank writes what others need into its slot, all meet,
// and each reads what it needs. Slots alternate between two halves, so one meeting a round is
// enough: whoever writes a half again has met all who were to read it.
#include <algorithm>

#include "distributed/arena.h"
#include "distributed/bytes.h"
#include "distributed/call_text.h"
#include "distributed/messages.h"
#include "distributed/reduction.h"

namespace facula::distributed {
namespace {

// From this size on ranks share the work of a reduction, for the price of one more meeting.
constexpr int64_t shared_work_bytes = 8 * 1024;

class LocalEngine final : public Engine {
 public:
  explicit LocalEngine(const EngineOptions& options) : arena_(options), messages_(arena_) {}

  const char* name() const override { return "local"; }
  std::string address() override { return arena_.address(); }
  bool connect(const std::vector<std::string>& addresses) override {
    return arena_.connect(addresses);
  }
  void abort(const std::string& reason) override {
    arena_.put_error(concat("group '", arena_.options().group, "': ", reason));
    arena_.abort();
  }
  void leave(const std::string& error) override { arena_.leave(error); }
  void set_timeout(std::chrono::milliseconds timeout) override { arena_.set_timeout(timeout); }
  void beat() override { arena_.beat(); }
  std::string table() override { return arena_.table(); }
  uint64_t begin_send(const CallRecord& record, const void* data) override {
    return messages_.begin_send(record, data);
  }
  uint64_t begin_receive(const CallRecord& record, void* data) override {
    return messages_.begin_receive(record, data);
  }
  void pursue() override { messages_.pursue(); }
  int finish(uint64_t message) override { return messages_.finish(message); }
  bool test(uint64_t message) override { return messages_.test(message); }

  void run(Collective& call) override {
    arena_.check_broken();
    arena_.note_thread(call.record.thread);
    RankBlock& mine = arena_.mine();
    CallRecord& record = mine.calls[call.record.sequence & 1];
    record = call.record;
    mine.in_python_ms.store(0, std::memory_order_relaxed);
    compared_ = false;
    move(call);
    record.finished = 1;
    mine.in_python_ms.store(clock_ms(), std::memory_order_relaxed);
  }

 private:
  int rank() const { return arena_.rank(); }
  int size() const { return arena_.size(); }
  std::byte* slot(int r) const { return arena_.slot(r, round_); }
  std::byte* my_slot() const { return slot(rank()); }
  int64_t slot_bytes() const { return static_cast<int64_t>(arena_.slot_bytes()); }

  void move(Collective& call) {
    switch (call.record.call) {
      case Call::Broadcast:
        return broadcast(call);
      case Call::AllReduce:
        return all_reduce(call, true);
      case Call::Reduce:
        return all_reduce(call, call.record.root == rank());
      case Call::AllGather:
        return gather(call, true);
      case Call::Gather:
        return gather(call, call.record.root == rank());
      case Call::Scatter:
        return scatter(call);
      case Call::ReduceScatter:
        return reduce_scatter(call);
      case Call::AllToAll:
        return all_to_all(call);
      default:
        break;
    }
    meet(call);
    ++round_;
  }

  // Ends the writing part of a round: returns when all ranks have come. The caller adds one to
  // round_ when it has read. The first meeting of a call compares what the ranks called.
  void meet(const Collective& call) {
    const uint32_t target = round_ + 1;
    // Of ranks that come at once, the last one sees that all are there, and wakes those that sleep.
    arena_.mine().arrived.store(target, std::memory_order_seq_cst);
    int seen = 0;
    const auto all_arrived = [&] {
      while (seen < size() && has_arrived(seen, target)) ++seen;
      return seen == size();
    };
    if (all_arrived())
      arena_.ring_all();
    else
      arena_.wait(call.record, all_arrived, [&] { return missing(target); });
    if (!compared_) compare();
  }

  std::vector<int> missing(uint32_t target) const {
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r)
      if (!has_arrived(r, target)) ranks.push_back(r);
    return ranks;
  }

  bool has_arrived(int r, uint32_t target) const {
    return static_cast<int32_t>(arena_.block(r).arrived.load(std::memory_order_seq_cst) - target) >=
           0;
  }

  void compare() {
    compared_ = true;
    const uint64_t sequence =
        std::max(arena_.mine().calls[0].sequence, arena_.mine().calls[1].sequence);
    records_.clear();
    for (int r = 0; r < size(); ++r) records_.push_back(&arena_.block(r).calls[sequence & 1]);
    const bool same = std::all_of(records_.begin(), records_.end(),
                                  [&](const CallRecord* c) { return agree(*records_[0], *c); });
    if (!same) arena_.fail(disagreement(records_, arena_.options().group));
  }

  void broadcast(Collective& call) {
    const int root = call.record.root;
    auto* data = static_cast<std::byte*>(call.outputs[0]);
    for_pieces(bytes_of(call), slot_bytes(), [&](int64_t begin, size_t n) {
      if (rank() == root) copy_bytes(my_slot(), data + begin, n);
      meet(call);
      if (rank() != root) copy_bytes(data + begin, slot(root), n);
      ++round_;
    });
  }

  void gather(Collective& call, bool receives) {
    const auto* input = static_cast<const std::byte*>(call.inputs[0]);
    for_pieces(bytes_of(call), slot_bytes(), [&](int64_t begin, size_t n) {
      copy_bytes(my_slot(), input + begin, n);
      if (receives) {
        auto* own = static_cast<std::byte*>(call.outputs[static_cast<size_t>(rank())]) + begin;
        if (own != input + begin) copy_bytes(own, input + begin, n);
      }
      meet(call);
      for (int r = 0; receives && r < size(); ++r)
        if (r != rank())
          copy_bytes(static_cast<std::byte*>(call.outputs[static_cast<size_t>(r)]) + begin, slot(r),
                     n);
      ++round_;
    });
  }

  // Parts of a slot, one for each rank that reads it.
  int64_t part_bytes() const { return slot_bytes() / size() / 64 * 64; }
  std::byte* part(int from, int to) const { return slot(from) + to * part_bytes(); }

  void scatter(Collective& call) {
    const int root = call.record.root;
    auto* output = static_cast<std::byte*>(call.outputs[0]);
    for_pieces(bytes_of(call), part_bytes(), [&](int64_t begin, size_t n) {
      for (int r = 0; rank() == root && r < size(); ++r)
        copy_bytes(part(root, r),
                   static_cast<const std::byte*>(call.inputs[static_cast<size_t>(r)]) + begin, n);
      meet(call);
      copy_bytes(output + begin, part(root, rank()), n);
      ++round_;
    });
  }

  void reduce_scatter(Collective& call) {
    const int64_t item = item_bytes(call);
    auto* output = static_cast<std::byte*>(call.outputs[0]);
    for_pieces(bytes_of(call), part_bytes() / item * item, [&](int64_t begin, size_t n) {
      for (int r = 0; r < size(); ++r)
        if (r != rank()) copy_bytes(part(rank(), r), input_part(call, r) + begin, n);
      meet(call);
      sources_.clear();
      for (int r = 0; r < size(); ++r)
        sources_.push_back(r == rank() ? input_part(call, r) + begin : part(r, rank()));
      reduce(call.record.reduction, call.record.dtype, call.factor, sources_, output + begin,
             static_cast<int64_t>(n) / item);
      ++round_;
    });
  }

  void all_reduce(Collective& call, bool receives) {
    const int64_t bytes = bytes_of(call);
    if (bytes <= shared_work_bytes || size() == 1) return small_all_reduce(call, receives);
    const int64_t item = item_bytes(call);
    for_pieces(bytes, slot_bytes() / item * item, [&](int64_t begin, size_t n) {
      shared_all_reduce(call, begin, static_cast<int64_t>(n) / item, receives);
    });
  }

  void small_all_reduce(Collective& call, bool receives) {
    const int64_t item = item_bytes(call);
    const auto* input = static_cast<const std::byte*>(call.inputs[0]);
    for_pieces(bytes_of(call), slot_bytes() / item * item, [&](int64_t begin, size_t n) {
      copy_bytes(my_slot(), input + begin, n);
      meet(call);
      sources_.clear();
      for (int r = 0; r < size(); ++r) sources_.push_back(slot(r));
      if (receives)
        reduce(call.record.reduction, call.record.dtype, call.factor, sources_,
               static_cast<std::byte*>(call.outputs[0]) + begin, static_cast<int64_t>(n) / item);
      ++round_;
    });
  }

  // Each rank reduces its share of the piece, and all collect the shares. Lines of the cache belong
  // to one rank each.
  void shared_all_reduce(Collective& call, int64_t begin, int64_t count, bool receives) {
    const int64_t item = item_bytes(call);
    const int64_t share = (count * item / size() + 64) / 64 * 64 / item;
    const auto from = [&](int r) { return std::min(count, share * r) * item; };
    const auto end = [&](int r) { return r + 1 == size() ? count * item : from(r + 1); };
    const auto* input = static_cast<const std::byte*>(call.inputs[0]) + begin;
    const int64_t own = from(rank());
    for (int r = 0; r < size(); ++r)
      if (r != rank() && end(r) > from(r))
        copy_bytes(my_slot() + from(r), input + from(r), static_cast<size_t>(end(r) - from(r)));
    meet(call);
    sources_.clear();
    for (int r = 0; r < size(); ++r) sources_.push_back(r == rank() ? input + own : slot(r) + own);
    ++round_;
    reduce(call.record.reduction, call.record.dtype, call.factor, sources_, my_slot() + own,
           (end(rank()) - own) / item);
    meet(call);
    if (receives) {
      auto* output = static_cast<std::byte*>(call.outputs[0]) + begin;
      for (int r = 0; r < size(); ++r)
        copy_bytes(output + from(r), slot(r) + from(r), static_cast<size_t>(end(r) - from(r)));
    }
    ++round_;
  }

  // Counts of elements go first: they may differ for each pair of ranks.
  void all_to_all(Collective& call) {
    const auto n = static_cast<size_t>(size());
    auto* counts = reinterpret_cast<int64_t*>(my_slot());
    std::copy(call.sent.begin(), call.sent.end(), counts);
    std::copy(call.received.begin(), call.received.end(), counts + n);
    meet(call);
    std::vector<const int64_t*> rows;
    int64_t most = 0;
    for (int r = 0; r < size(); ++r) {
      rows.push_back(reinterpret_cast<const int64_t*>(slot(r)));
      most = std::max(most, *std::max_element(rows.back(), rows.back() + n));
    }
    const std::string wrong = disagreement_of_parts(rows, arena_.options().group);
    if (!wrong.empty()) arena_.fail(wrong);
    ++round_;
    const int64_t item = item_bytes(call);
    if (most == 0) return;
    for_pieces(most * item, part_bytes(), [&](int64_t begin, size_t) {
      const auto piece = [&](int64_t count) {
        return static_cast<size_t>(std::clamp<int64_t>(count * item - begin, 0, part_bytes()));
      };
      for (int r = 0; r < size(); ++r)
        if (const size_t bytes = piece(call.sent[static_cast<size_t>(r)]))
          copy_bytes(part(rank(), r), input_part(call, r) + begin, bytes);
      meet(call);
      for (int r = 0; r < size(); ++r)
        if (const size_t bytes = piece(call.received[static_cast<size_t>(r)]))
          copy_bytes(static_cast<std::byte*>(call.outputs[static_cast<size_t>(r)]) + begin,
                     part(r, rank()), bytes);
      ++round_;
    });
  }

  static const std::byte* input_part(const Collective& call, int r) {
    return static_cast<const std::byte*>(call.inputs[static_cast<size_t>(r)]);
  }
  static int64_t item_bytes(const Collective& call) {
    return static_cast<int64_t>(itemsize(call.record.dtype));
  }
  static int64_t bytes_of(const Collective& call) { return call.record.count * item_bytes(call); }

  // Calls step(begin, bytes) for pieces of at most `most` bytes; once where there is nothing, since
  // ranks meet in each call.
  template <class Step>
  static void for_pieces(int64_t bytes, int64_t most, Step&& step) {
    int64_t begin = 0;
    do {
      step(begin, static_cast<size_t>(std::min(most, bytes - begin)));
      begin += most;
    } while (begin < bytes);
  }

  Arena arena_;
  Messages messages_;
  uint32_t round_ = 0;
  bool compared_ = false;  // what the ranks call now
  std::vector<const CallRecord*> records_;
  std::vector<const void*> sources_;
};

}  // namespace

std::unique_ptr<Engine> new_local_engine(const EngineOptions& options) {
  return std::make_unique<LocalEngine>(options);
}

}  // namespace facula::distributed
