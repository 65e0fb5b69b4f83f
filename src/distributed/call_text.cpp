#include "distributed/call_text.h"

#include <algorithm>

namespace facula::distributed {

const char* name_of(Call call) {
  static constexpr const char* names[] = {"none",           "barrier",    "broadcast", "all_reduce",
                                          "reduce",         "all_gather", "gather",    "scatter",
                                          "reduce_scatter", "all_to_all", "send",      "recv"};
  const auto i = static_cast<size_t>(call);
  return i < std::size(names) ? names[i] : "?";
}

const char* name_of(Reduction reduction) {
  static constexpr const char* names[] = {"sum",  "avg", "product", "min",       "max",
                                          "band", "bor", "bxor",    "premul_sum"};
  const auto i = static_cast<size_t>(reduction);
  return i < std::size(names) ? names[i] : "?";
}

int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

namespace {

bool reduces(Call c) {
  return c == Call::AllReduce || c == Call::Reduce || c == Call::ReduceScatter;
}

bool has_root(Call c) {
  return c == Call::Broadcast || c == Call::Reduce || c == Call::Gather || c == Call::Scatter ||
         c == Call::Send || c == Call::Receive;
}

}  // namespace

// The record may lie in memory that another process writes to: every length is bounded.
std::string text_of(const CallRecord& r) {
  std::string text = name_of(r.call);
  if (reduces(r.call)) text += concat("(", name_of(r.reduction));
  if (has_root(r.call)) {
    const bool message = r.call == Call::Send || r.call == Call::Receive;
    text += concat(reduces(r.call) ? ", " : "(", message ? "rank " : "root ", r.root);
    if (message && r.tag != 0) text += concat(", tag ", r.tag);
  }
  if (reduces(r.call) || has_root(r.call)) text += ")";
  if (r.call != Call::Barrier && info(r.dtype).name != nullptr) {
    text += concat(" ", facula::name(r.dtype), " [");
    const int shown = std::min<int>(r.ndim, CallRecord::most_sizes);
    for (int i = 0; i < shown; ++i) text += concat(i ? ", " : "", r.sizes[i]);
    text += r.ndim > shown ? ", ...]" : "]";
  }
  const std::string place(r.place, std::find(r.place, r.place + CallRecord::most_place, '\0'));
  return place.empty() ? text : concat(text, " at ", place);
}

bool agree(const CallRecord& a, const CallRecord& b) {
  if (a.sequence != b.sequence || a.call != b.call) return false;
  if (a.call == Call::Barrier) return true;
  if (a.dtype != b.dtype) return false;
  // The parts of AllToAll are compared by pairs.
  if (a.call != Call::AllToAll && a.count != b.count) return false;
  if (a.call != Call::AllToAll && a.detailed && b.detailed &&
      !(a.ndim == b.ndim && std::equal(std::begin(a.sizes), std::end(a.sizes), b.sizes)))
    return false;
  if (reduces(a.call) && a.reduction != b.reduction) return false;
  return !has_root(a.call) || a.root == b.root;
}

std::string disagreement(std::span<const CallRecord* const> calls, const std::string& group) {
  const bool all_agree = std::all_of(calls.begin(), calls.end(),
                                     [&](const CallRecord* c) { return agree(*calls[0], *c); });
  if (all_agree) return {};
  std::string text = concat("collectives of group '", group, "', number ", calls[0]->sequence,
                            ": expected the same call, dtype and size at all ranks; got");
  for (size_t rank = 0; rank < calls.size(); ++rank)
    text += concat("\n  rank ", rank, ": ", text_of(*calls[rank]));
  return text;
}

std::string disagreement_of_parts(std::span<const int64_t* const> rows, const std::string& group) {
  const size_t size = rows.size();
  for (size_t from = 0; from < size; ++from)
    for (size_t to = 0; to < size; ++to) {
      const int64_t sent = rows[from][to], expected = rows[to][size + from];
      if (sent != expected)
        return concat("all_to_all(): group '", group, "': rank ", to, " expected ", expected,
                      " elements of rank ", from, "; got ", sent);
    }
  return {};
}

}  // namespace facula::distributed
