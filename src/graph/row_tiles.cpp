#include "graph/row_tiles.h"

#include <algorithm>
#include <memory>

#include "core/allocator.h"
#include "core/threads.h"
#include "graph/tile_scratch.h"

namespace facula {

using cpu::LoopOfCall;
using cpu::PieceReduction;

namespace {

constexpr int64_t tile_elements = 2048;
constexpr size_t most_scratch = 256 * 1024;  // a part of the second cache
constexpr int64_t reduction_grain = 32768;   // elements that a reducing task handles

// Memory of one thread while it runs tiles.
class Room {
 public:
  explicit Room(size_t bytes) : bytes_(bytes + 64) {
    memory_ = static_cast<char*>(cpu_allocate(bytes_));
  }
  ~Room() { cpu_free(memory_, bytes_); }
  Room(const Room&) = delete;
  char* get() const {
    const auto at = reinterpret_cast<uintptr_t>(memory_);
    return memory_ + ((at + 63) / 64 * 64 - at);
  }

 private:
  const size_t bytes_;
  char* memory_;
};

constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

RowTiles::RowTiles(const RowGroup& group)
    : group_(group),
      frame_(group.frame_),
      tile_(frame_.is_whole()
                ? tile_elements
                : std::clamp<int64_t>(tile_elements / frame_.row(), 1, frame_.rows())),
      row_(frame_.is_whole() ? 1 : frame_.row()) {
  static_assert(tile_elements % PieceReduction::multiple == 0);
}

RowTiles::Place RowTiles::place_of(Extent e, const Tensor& t) const {
  const auto item = static_cast<int64_t>(t.itemsize());
  Place p;
  if (e == Extent::Full) p.row_step = row_ * item;
  if (e == Extent::Row) p.row_step = item;
  if (e == Extent::Full || e == Extent::Column) p.step = item;
  return p;
}

RowTiles::Place RowTiles::memory_place(Extent e, const Tensor& t) const {
  Place p = place_of(e, t);
  p.where = Place::Memory;
  p.at = static_cast<char*>(t.data());
  return p;
}

// Whether a step's result is stored, and not in the scratch alone.
bool RowTiles::in_memory(const RowGroup::Step& s) const {
  return s.kept || (frame_.is_whole() && s.reduces());
}

bool RowTiles::make_steps(size_t& scratch_bytes) {
  const auto& from = group_.steps_;
  TileScratch full(most_scratch, tile_ * row_), rows(most_scratch, tile_);
  std::vector<size_t> offsets(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const RowGroup::Step& s = from[i];
    if (in_memory(s)) continue;
    TileScratch& room = s.extent == Extent::Full ? full : rows;
    const auto item = static_cast<int64_t>(s.out->itemsize());
    if (!room.take(item, s.last_use, static_cast<int>(i), offsets[i])) return false;
  }
  if (full.used() + rows.used() > most_scratch) return false;
  scratch_bytes = full.used() + rows.used();
  for (const RowGroup::Step& s : from)
    if (!s.call->writes() && in_memory(s)) (*s.out)->storage->allocate_pending();

  const auto made = [&](size_t i) {
    const RowGroup::Step& s = from[i];
    if (in_memory(s)) return memory_place(s.extent, *s.out);
    Place p = place_of(s.extent, *s.out);
    p.where = Place::Scratch;
    p.offset = offsets[i] + (s.extent == Extent::Full ? 0 : full.used());
    return p;
  };
  for (size_t i = 0; i < from.size(); ++i) {
    const RowGroup::Step& s = from[i];
    Step& to = steps_.emplace_back(Step{&s, 1 + s.inputs});
    to.place[0] = made(i);
    for (int k = 0; k < s.inputs; ++k) {
      const RowGroup::Operand& o = s.in[k];
      Place& p = to.place[1 + k];
      if (o.step >= 0)
        p = made(static_cast<size_t>(o.step));
      else if (o.tensor)
        p = memory_place(o.extent, *o.tensor);
      else
        p.at = const_cast<char*>(s.loop().in[k].cell);
      to.row_by_row |=
          s.extent == Extent::Full && (o.extent == Extent::Row || o.extent == Extent::Column);
    }
  }
  return true;
}

char* RowTiles::address(const Place& p, const Tile& tile) {
  if (p.where == Place::Scratch) return tile.scratch + p.offset;
  return p.where == Place::Memory ? p.at + tile.begin * p.row_step : p.at;
}

void RowTiles::run_loop(const Step& s, const Tile& tile) const {
  const LoopOfCall& loop = s.from->loop();
  char* at[1 + LoopOfCall::most_inputs];
  int64_t by[1 + LoopOfCall::most_inputs];
  const bool row = s.from->extent == Extent::Row;
  for (int k = 0; k < s.operands; ++k) {
    at[k] = address(s.place[k], tile);
    by[k] = row ? s.place[k].row_step : s.place[k].step;
  }
  if (!s.row_by_row) return loop.loop(at, by, row ? tile.rows : tile.rows * row_, loop.params);
  for (int64_t r = 0; r < tile.rows; ++r) {
    loop.loop(at, by, row_, loop.params);
    for (int k = 0; k < s.operands; ++k) at[k] += s.place[k].row_step;
  }
}

void RowTiles::run_step(const Step& s, const Tile& tile) const {
  if (!s.from->reduces()) return run_loop(s, tile);
  const cpu::RowReduction& r = s.from->call->reduction;
  const char* in = address(s.place[1], tile);
  char* out = address(s.place[0], tile);
  if (tile.rows == tile_) return r.loop(plan_, r.params, in, out, nullptr);
  r.loop(cpu::plan_rows(tile.rows, row_), r.params, in, out, nullptr);
}

// How many elements make a task.
int64_t RowTiles::elements_of_task() const {
  double tasks = 0;
  for (const Step& s : steps_)
    if (s.from->extent == Extent::Full || s.from->reduces())
      tasks +=
          1.0 / static_cast<double>(s.from->reduces() ? reduction_grain : s.from->loop().grain);
  return static_cast<int64_t>(1 / tasks);
}

void RowTiles::run_rows(size_t scratch_bytes) const {
  const int64_t tile = tile_ * row_;
  const int64_t grain = std::max<int64_t>(1, elements_of_task() / tile) * tile_;
  parallel_for(frame_.rows(), grain, [&](int64_t begin, int64_t end) {
    const Room room(scratch_bytes);
    for (; begin < end; begin += tile_) {
      const Tile t{begin, std::min(tile_, end - begin), room.get()};
      for (const Step& s : steps_) run_step(s, t);
    }
  });
}

const PieceReduction& RowTiles::pieces_of(const Step& s) { return *s.from->call->reduction.pieces; }

// Walks one part of the row: accumulators at the beginning of `room`, then the scratch of tiles.
// The sums' results go to their places in `results`, one for each part.
void RowTiles::run_part(const cpu::ReducePlan& plan, int64_t part, char* room, size_t sums,
                        const std::vector<char*>& results) const {
  char* mine = room;
  for (const Step& s : steps_) {
    if (!s.from->reduces()) continue;
    pieces_of(s).begin(mine, s.from->call->reduction.params);
    mine += aligned(pieces_of(s).room);
  }
  const int64_t end = std::min(frame_.row(), (part + 1) * plan.part_length);
  for (int64_t begin = part * plan.part_length; begin < end; begin += tile_) {
    const Tile t{begin, std::min(tile_, end - begin), room + sums};
    mine = room;
    for (const Step& s : steps_) {
      if (!s.from->reduces()) {
        run_loop(s, t);
        continue;
      }
      pieces_of(s).add(mine, address(s.place[1], t), t.rows);
      mine += aligned(pieces_of(s).room);
    }
  }
  mine = room;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].from->reduces()) continue;
    const PieceReduction& p = pieces_of(steps_[i]);
    p.end(mine, results[i] + static_cast<size_t>(part) * p.result);
    mine += aligned(p.room);
  }
}

void RowTiles::run_pieces(size_t scratch_bytes) const {
  const cpu::ReducePlan plan = cpu::plan_one_row(frame_.row());
  std::vector<std::unique_ptr<Room>> rooms;
  std::vector<char*> results(steps_.size());
  size_t sums = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].from->reduces()) continue;
    const PieceReduction& p = pieces_of(steps_[i]);
    rooms.push_back(std::make_unique<Room>(static_cast<size_t>(plan.parts) * p.result));
    results[i] = rooms.back()->get();
    sums += aligned(p.room);
  }
  parallel_for(plan.parts, 1, [&](int64_t begin, int64_t end) {
    const Room room(sums + scratch_bytes);
    for (int64_t part = begin; part < end; ++part) run_part(plan, part, room.get(), sums, results);
  });
  for (size_t i = 0; i < steps_.size(); ++i)
    if (results[i])
      pieces_of(steps_[i]).finish(plan, steps_[i].from->call->reduction.params, results[i],
                                  steps_[i].place[0].at);
}

bool RowTiles::run() {
  size_t scratch_bytes = 0;
  if (!make_steps(scratch_bytes)) return false;
  if (frame_.is_whole()) {
    run_pieces(scratch_bytes);
    return true;
  }
  plan_ = cpu::plan_rows(tile_, row_);
  run_rows(scratch_bytes);
  return true;
}

}  // namespace facula
