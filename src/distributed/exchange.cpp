#include "distributed/exchange.h"

#include <algorithm>
#include <cstring>

#include "distributed/bytes.h"
#include "distributed/call_text.h"
#include "distributed/peer_table.h"
#include "distributed/reduction.h"

namespace facula::distributed {
namespace {

// From this size on the ranks share the work of reducing and of sending.
constexpr size_t shared_work_bytes = 8 * 1024;

struct Run {
  Collective& call;
  const int rank, size;
  Exchanger& exchanger;
  const size_t ranks = static_cast<size_t>(size);
  const size_t me = static_cast<size_t>(rank);
  const size_t item = itemsize(call.record.dtype);
  const size_t bytes = static_cast<size_t>(call.record.count) * item;
  const bool is_root = call.record.root == rank;

  const std::byte* input(size_t i = 0) const {
    return static_cast<const std::byte*>(call.inputs[i]);
  }
  std::byte* output(size_t i = 0) const { return static_cast<std::byte*>(call.outputs[i]); }
  std::vector<OutPart> to_all(const void* data, size_t n) const { return {ranks, {data, n}}; }
  std::vector<OutPart> nothing_out() const { return std::vector<OutPart>(ranks); }
  std::vector<InPart> nothing_in() const { return std::vector<InPart>(ranks); }
  void exchange(const std::vector<OutPart>& out, const std::vector<InPart>& in) const {
    exchanger.exchange(call.record, out, in);
  }

  // Shares of a tensor, one for each rank; the last may be smaller or empty.
  size_t share_begin(size_t r) const {
    const size_t share = (bytes / item + ranks - 1) / ranks * item;
    return std::min(bytes, share * r);
  }
  size_t share_bytes(size_t r) const { return share_begin(r + 1) - share_begin(r); }

  void copy_own(void* to, const void* from, size_t n) const {
    if (to != from && n > 0) std::memmove(to, from, n);
  }

  // Receives `n` bytes of each other rank, sends each its part, and reduces in the order of ranks.
  void reduce_parts(const std::vector<OutPart>& out, const void* own, size_t n, void* to) const {
    std::vector<std::byte> received(n * ranks);
    std::vector<InPart> in = nothing_in();
    std::vector<const void*> sources;
    for (size_t r = 0; r < ranks; ++r) {
      in[r] = {received.data() + r * n, n};
      sources.push_back(r == me ? own : in[r].data);
    }
    exchange(out, in);
    reduce(call.record.reduction, call.record.dtype, call.factor, sources, to,
           static_cast<int64_t>(n / item));
  }

  void broadcast() const {
    const auto root = static_cast<size_t>(call.record.root);
    std::vector<OutPart> out = nothing_out();
    std::vector<InPart> in = nothing_in();
    if (bytes < shared_work_bytes || ranks <= 2) {
      if (is_root)
        out = to_all(output(), bytes);
      else
        in[root] = {output(), bytes};
      return exchange(out, in);
    }
    // The root sends each rank a share, and they pass their shares on.
    for (size_t r = 0; is_root && r < ranks; ++r)
      out[r] = {output() + share_begin(r), share_bytes(r)};
    if (!is_root) in[root] = {output() + share_begin(me), share_bytes(me)};
    exchange(out, in);
    share_out(true);
  }

  // Each rank has its share of the output; those who receive get all.
  void share_out(bool receives, bool to_root_only = false) const {
    const auto root = static_cast<size_t>(call.record.root);
    std::vector<OutPart> out = nothing_out();
    std::vector<InPart> in = nothing_in();
    for (size_t r = 0; r < ranks; ++r) {
      if (!to_root_only || r == root) out[r] = {output() + share_begin(me), share_bytes(me)};
      if (receives) in[r] = {output() + share_begin(r), share_bytes(r)};
    }
    exchange(out, in);
  }

  void all_reduce() const {
    if (bytes < shared_work_bytes)
      return reduce_parts(to_all(input(), bytes), input(), bytes, output());
    std::vector<OutPart> out = nothing_out();
    for (size_t r = 0; r < ranks; ++r) out[r] = {input() + share_begin(r), share_bytes(r)};
    reduce_parts(out, input() + share_begin(me), share_bytes(me), output() + share_begin(me));
    share_out(true);
  }

  // The output of the other ranks stays as it is.
  void reduce_to_root() const {
    std::vector<OutPart> out = nothing_out();
    if (!is_root) out[static_cast<size_t>(call.record.root)] = {input(), bytes};
    if (!is_root) return exchange(out, nothing_in());
    reduce_parts(out, input(), bytes, output());
  }

  void gather(bool receives, bool to_root_only) const {
    std::vector<OutPart> out = nothing_out();
    std::vector<InPart> in = nothing_in();
    for (size_t r = 0; r < ranks; ++r) {
      if (!to_root_only || static_cast<int>(r) == call.record.root) out[r] = {input(), bytes};
      if (receives) in[r] = {output(r), bytes};
    }
    if (receives) copy_own(output(me), input(), bytes);
    exchange(out, in);
  }

  void scatter() const {
    std::vector<OutPart> out = nothing_out();
    std::vector<InPart> in = nothing_in();
    for (size_t r = 0; is_root && r < ranks; ++r) out[r] = {input(r), bytes};
    if (is_root)
      copy_own(output(), input(me), bytes);
    else
      in[static_cast<size_t>(call.record.root)] = {output(), bytes};
    exchange(out, in);
  }

  void reduce_scatter() const {
    std::vector<OutPart> out = nothing_out();
    for (size_t r = 0; r < ranks; ++r) out[r] = {input(r), bytes};
    reduce_parts(out, input(me), bytes, output());
  }

  void all_to_all() const {
    std::vector<OutPart> out = nothing_out();
    std::vector<InPart> in = nothing_in();
    for (size_t r = 0; r < ranks; ++r) {
      out[r] = {call.inputs[r], static_cast<size_t>(call.sent[r]) * item};
      in[r] = {call.outputs[r], static_cast<size_t>(call.received[r]) * item};
    }
    copy_own(call.outputs[me], call.inputs[me], out[me].bytes);
    exchange(out, in);
  }

  void move() const {
    switch (call.record.call) {
      case Call::Broadcast:
        return broadcast();
      case Call::AllReduce:
        return all_reduce();
      case Call::Reduce:
        return reduce_to_root();
      case Call::AllGather:
        return gather(true, false);
      case Call::Gather:
        return gather(is_root, true);
      case Call::Scatter:
        return scatter();
      case Call::ReduceScatter:
        return reduce_scatter();
      case Call::AllToAll:
        return all_to_all();
      default:
        return;  // the exchange of records was the barrier
    }
  }
};

// Whether the data of a call goes with the packets. All ranks decide the same, as they have
// compared sizes then.
bool fits_in_packets(const Run& run) {
  const Call c = run.call.record.call;
  return c != Call::AllToAll && c != Call::Barrier && run.bytes <= run.exchanger.most_packet_data();
}

// What this rank gives each rank with its packet; nothing to those who do not need it.
std::vector<OutPart> given_with_packets(const Run& run) {
  std::vector<OutPart> out = run.nothing_out();
  if (!fits_in_packets(run)) return out;
  const Call c = run.call.record.call;
  if ((c == Call::Broadcast || c == Call::Scatter) && !run.is_root) return out;
  for (size_t r = 0; r < run.ranks; ++r) {
    const bool to_root = c == Call::Reduce || c == Call::Gather;
    if (to_root && static_cast<int>(r) != run.call.record.root) continue;
    const void* from = c == Call::Broadcast                             ? run.output()
                       : c == Call::Scatter || c == Call::ReduceScatter ? run.input(r)
                                                                        : run.input();
    out[r] = {from, run.bytes};
  }
  return out;
}

void finish_from_packets(const Run& run, const Packets& packets) {
  const Call c = run.call.record.call;
  const auto root = static_cast<size_t>(run.call.record.root);
  switch (c) {
    case Call::Broadcast:
    case Call::Scatter:
      if (!run.is_root) return copy_bytes(run.output(), packets.data(root), run.bytes);
      if (c == Call::Scatter) run.copy_own(run.output(), run.input(run.me), run.bytes);
      return;
    case Call::AllGather:
    case Call::Gather:
      if (c == Call::Gather && !run.is_root) return;
      run.copy_own(run.output(run.me), run.input(), run.bytes);
      for (size_t r = 0; r < run.ranks; ++r)
        if (r != run.me) copy_bytes(run.output(r), packets.data(r), run.bytes);
      return;
    default:
      break;
  }
  if (c == Call::Reduce && !run.is_root) return;
  std::vector<const void*> sources;
  for (size_t r = 0; r < run.ranks; ++r) sources.push_back(packets.data(r));
  sources[run.me] = run.input(c == Call::ReduceScatter ? run.me : 0);
  reduce(run.call.record.reduction, run.call.record.dtype, run.call.factor, sources, run.output(),
         run.call.record.count);
}

// Compares the sizes of the parts of AllToAll.
std::string compare_parts(const Run& run, const std::string& group) {
  std::vector<int64_t> counts = run.call.sent;
  counts.insert(counts.end(), run.call.received.begin(), run.call.received.end());
  std::vector<std::vector<int64_t>> all(run.ranks, counts);
  std::vector<InPart> in;
  std::vector<const int64_t*> rows;
  for (auto& one : all) {
    in.push_back({one.data(), one.size() * sizeof(int64_t)});
    rows.push_back(one.data());
  }
  run.exchange(run.to_all(counts.data(), counts.size() * sizeof(int64_t)), in);
  return disagreement_of_parts(rows, group);
}

// The text of the error, the same at all ranks, if they do not agree.
std::string compare_and_move(Collective& call, const EngineOptions& options, Exchanger& exchanger) {
  const Run run{call, options.rank, options.size, exchanger};
  const Packets& packets = exchanger.exchange_packets(call.record, given_with_packets(run));
  std::vector<const CallRecord*> records;
  for (size_t r = 0; r < run.ranks; ++r) records.push_back(&packets.record(r));
  std::string wrong = disagreement(records, options.group);
  if (!wrong.empty()) return wrong;
  if (fits_in_packets(run)) {
    finish_from_packets(run, packets);
    return {};
  }
  if (call.record.call == Call::AllToAll) {
    wrong = compare_parts(run, options.group);
    if (!wrong.empty()) return wrong;
  }
  run.move();
  return {};
}

}  // namespace

// Records are received as bytes, so they are made here, in memory that is not zero.
Packets::Packets(int ranks, size_t most_data)
    : ranks_(static_cast<size_t>(ranks)),
      stride_(record_bytes + (most_data + 63) / 64 * 64),
      memory_(std::make_unique_for_overwrite<std::byte[]>(ranks_ * stride_)) {
  for (size_t r = 0; r < ranks_; ++r) new (packet(r)) CallRecord;
}

size_t Packets::put(size_t i, const CallRecord& record, const OutPart& part) {
  std::memcpy(packet(i), &record, sizeof record);
  copy_bytes(packet(i) + record_bytes, part.data, part.bytes);
  return record_bytes + part.bytes;
}

void run_by_exchange(Collective& call, const EngineOptions& options, PeerTable& peers,
                     Exchanger& exchanger) {
  peers.check_usable();
  peers.begin(call.record);
  peers.note_thread(call.record.thread);
  const std::string wrong = compare_and_move(call, options, exchanger);
  // All ranks see it; those that wait for records yet are to hear the same, and not that this rank
  // has ended.
  if (!wrong.empty()) peers.fail(wrong);
  peers.end();
}

}  // namespace facula::distributed
