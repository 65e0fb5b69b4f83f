#include "kernels/cpu/attention/attention.h"

#include "core/threads.h"
#include "kernels/cpu/attention/blocks.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
inline constexpr int64_t score_pitch = packed_pitch<A>;  // between rows of scores

// The shape of one call; results and what they are made of.
struct Problem {
  const Tensor &query, &key, &value, &mask, &out, &logsumexp;
  double scale;
  bool causal;
  int64_t heads, length, others, width, group;  // group: heads of queries to one of keys

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, const Tensor& o,
          const Tensor& l, std::optional<double> s, bool c)
      : query(q),
        key(k),
        value(v),
        mask(m),
        out(o),
        logsumexp(l),
        scale(attention_scale(q, s)),
        causal(c) {
    heads = q.sizes()[1];
    length = q.sizes()[2];
    others = k.sizes()[2];
    width = q.sizes()[3];
    group = heads / k.sizes()[1];
  }
};

// The running softmax of at most B::rows rows.
template <class B>
class RowState {
 public:
  using A = typename B::Acc;
  static constexpr A lowest = -static_cast<A>(__builtin_inf());
  RowState() {
    for (A& m : most_) m = lowest;
    for (A& s : sum_) s = 0;
  }

  // Takes in the largest of more scores of each row. Together: an exponential by itself is as long
  // to wait for as a row of them.
  void raise(const A* tops, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const A before = most_[i], now = tops[i] > before ? tops[i] : before;
      const A factor = math::exp_coarse(before - now);
      factor_[i] = before == now ? A(1) : factor;
      most_[i] = now;
    }
  }
  // These scores become weights: columns [0, n) of a row, of which `visible` count; `left` is its
  // row of the left operand. Returns what earlier sums are to be multiplied with.
  A weigh(int64_t row, typename B::Packed* left, A* x, int64_t visible, int64_t n) {
    // Where every score so far is -infinity (or nan) their weights are 0 (or nan).
    const A most = most_[row] == lowest ? A(0) : most_[row];
    sum_[row] = sum_[row] * factor_[row] + B::exp_row(left, x, most, visible, n);
    return factor_[row];
  }
  A sum(int64_t row) const { return sum_[row]; }
  // The logarithms of the sums of exponentials.
  void log_of_sums(A* to, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) to[i] = most_[i] + static_cast<A>(math::log(sum_[i]));
  }

 private:
  A most_[B::rows], sum_[B::rows], factor_[B::rows];
};

template <class B>
class ForwardHead {
 public:
  using In = typename B::In;
  using A = typename B::Acc;
  using Packed = typename B::Packed;

  // Scratch memory of a thread.
  struct Workspace {
    explicit Workspace(const Problem& p)
        : depth(B::depth_of(p.width)),
          columns(round_up(p.width, B::width)),
          keys(round_up(p.others, B::width) * depth),
          values(round_up(p.others, B::block) / B::per_packed * columns),
          left(B::rows * B::pitch),
          weights(B::rows * B::pitch),
          scores(B::rows * score_pitch<A>),
          masks(p.mask.defined() ? B::rows * score_pitch<A> : 0),
          sums(B::rows * columns) {}
    int64_t depth, columns;
    Scratch<Packed> keys, values, left, weights;
    Scratch<A> scores, masks, sums;
  };

  ForwardHead(const Problem& p, const Workspace& room, int64_t batch, int64_t head)
      : p_(p),
        room_(room),
        query_(head_rows<const In>(p.query, batch, head)),
        key_(head_rows<const In>(p.key, batch, head / p.group)),
        value_(head_rows<const In>(p.value, batch, head / p.group)),
        out_(head_rows<In>(p.out, batch, head)),
        mask_(p.mask, batch, head) {
    const IntSpan st = p.logsumexp.strides();
    logsumexp_ = p.logsumexp.data<A>() + batch * st[0] + head * st[1];
    logsumexp_step_ = st[2];
  }

  // Rows [begin, end).
  void run(int64_t begin, int64_t end) {
    packed_ = p_.causal ? min_of(p_.others, end) : p_.others;
    B::pack_columns(room_.keys.get(), key_.data, key_.step, packed_, p_.width);
    for (int64_t j = 0; j < packed_; j += B::block)
      B::pack_rows(values(j), value_.row(j), value_.step, min_of(B::block, packed_ - j), p_.width);
    for (int64_t row = begin; row < end; row += B::rows) run_rows(row, min_of(B::rows, end - row));
  }

 private:
  A* scores(int64_t i) const { return room_.scores.get() + i * score_pitch<A>; }
  Packed* values(int64_t j) const { return room_.values.get() + j / B::per_packed * room_.columns; }

  void run_rows(int64_t row, int64_t rows) const {
    const Workspace& r = room_;
    B::pack_left(r.left.get(), query_.row(row), query_.step, rows, p_.width);
    RowState<B> state;
    const int64_t seen = p_.causal ? min_of(p_.others, row + rows) : p_.others;
    for (int64_t j = 0; j < seen; j += B::block) {
      const int64_t n = min_of(B::block, seen - j);
      products_.run(rows, r.depth, r.left.get(), r.keys.get() + j * r.depth, r.depth, 0, 0, n,
                    r.scores.get(), score_pitch<A>, false);
      weigh(state, row, rows, j, n);
      const Packed* weights = B::as_left(r.scores.get(), r.weights.get(), rows, n);
      const int64_t depth = B::depth_of(min_of(B::block, packed_ - j));
      products_.run(rows, B::depth_of(n), weights, values(j), depth, 0, 0, p_.width, r.sums.get(),
                    r.columns, j > 0);
    }
    write(state, row, rows, seen);
  }

  void weigh(RowState<B>& state, int64_t row, int64_t rows, int64_t j, int64_t n) const {
    const bool masked = mask_.data != nullptr;
    if (masked) mask_.copy<In>(room_.masks.get(), score_pitch<A>, row, j, rows, n, false);
    const auto visible = [&](int64_t i) {
      return p_.causal ? max_of(int64_t{0}, min_of(n, row + i - j + 1)) : n;
    };
    A tops[B::rows];
    for (int64_t i = 0; i < rows; ++i) {
      const A* mask = masked ? room_.masks.get() + i * score_pitch<A> : nullptr;
      tops[i] = scale_row(scores(i), mask, static_cast<A>(p_.scale), visible(i));
    }
    state.raise(tops, rows);
    for (int64_t i = 0; i < rows; ++i) {
      const A factor = state.weigh(i, room_.weights.get() + i * B::pitch, scores(i), visible(i), n);
      if (j == 0 || factor == A(1)) continue;
      A* sums = room_.sums.get() + i * room_.columns;
      for (int64_t c = 0; c < p_.width; ++c) sums[c] *= factor;
    }
  }

  // Rows without a visible column are zeros.
  void write(RowState<B>& state, int64_t row, int64_t rows, int64_t seen) const {
    A logs[B::rows];
    state.log_of_sums(logs, rows);
    for (int64_t i = 0; i < rows; ++i) {
      const A total = seen == 0 ? A(0) : state.sum(i);
      const bool none = total == A(0);
      if (none) {
        __builtin_memset(out_.row(row + i), 0, static_cast<size_t>(p_.width) * sizeof(In));
      } else {
        B::write_row(out_.row(row + i), room_.sums.get() + i * room_.columns, total, p_.width);
      }
      logsumexp_[(row + i) * logsumexp_step_] = none ? A(0) : logs[i];
    }
  }

  const Problem& p_;
  const Workspace& room_;
  HeadRows<const In> query_, key_, value_;
  HeadRows<In> out_;
  HeadMask mask_;
  A* logsumexp_;
  int64_t logsumexp_step_, packed_ = 0;  // packed_: keys that were
  BlockProducts<B> products_;
};

// One row of queries against keys that are read where they lie: packing them would cost more than
// the products.
template <class In, class A>
void few_queries(const Problem& p, int64_t batch, int64_t head) {
  using B = RealBlocks<In, A>;
  constexpr int64_t widest = widest_attention_head;
  const auto query = head_rows<const In>(p.query, batch, head);
  const auto key = head_rows<const In>(p.key, batch, head / p.group);
  const auto value = head_rows<const In>(p.value, batch, head / p.group);
  const auto out = head_rows<In>(p.out, batch, head);
  const HeadMask mask(p.mask, batch, head);
  const IntSpan st = p.logsumexp.strides();
  A* logsumexp = p.logsumexp.data<A>() + batch * st[0] + head * st[1];
  const Scratch<A> scores(p.others), masks(p.mask.defined() ? p.others : 0);
  A* x = scores.get();
  for (int64_t i = 0; i < p.length; ++i) {
    const int64_t seen = p.causal ? min_of(p.others, i + 1) : p.others;
    A left[widest], sums[widest] = {};
    copy_row(left, query.row(i), 1, p.width);
    for (int64_t j = 0; j < seen; ++j) x[j] = dot_of<A>(left, key.row(j), p.width);
    if (p.mask.defined()) mask.copy<In>(masks.get(), seen, i, 0, 1, seen, false);
    RowState<B> state;
    const A* more = p.mask.defined() ? masks.get() : nullptr;
    const A most = scale_row(x, more, static_cast<A>(p.scale), seen);
    state.raise(&most, 1);
    state.weigh(0, nullptr, x, seen, seen);
    for (int64_t j = 0; j < seen; ++j) {
      const In* from = value.row(j);
      for (int64_t c = 0; c < p.width; ++c) sums[c] += x[j] * Convert<A, In>::call(from[c]);
    }
    const A total = state.sum(0);
    for (int64_t c = 0; c < p.width; ++c) sums[c] = total == A(0) ? A(0) : sums[c] / total;
    copy_row(out.row(i), sums, 1, p.width);
    A log = 0;
    if (total != A(0)) state.log_of_sums(&log, 1);
    logsumexp[i * st[2]] = log;
  }
}

template <class B>
void forward(const Problem& p) {
  using In = typename B::In;
  using A = typename B::Acc;
  const int64_t all = p.query.sizes()[0] * p.heads;
  if (p.length <= 2) {
    const int64_t cost = max_of(p.length * p.others * p.width, int64_t{1});
    const int64_t grain = max_of((int64_t{1} << 17) / cost, int64_t{1});
    return parallel_for(all, grain, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h) few_queries<In, A>(p, h / p.heads, h % p.heads);
    });
  }
  // Few heads are cut by their rows as well.
  const int64_t wanted = ceil_div(int64_t{16}, all);
  const int64_t rows =
      max_of(round_up(ceil_div(p.length, wanted), B::rows), 8 * int64_t{max_tile_rows});
  const int64_t cuts = ceil_div(p.length, rows);
  const int64_t cost = max_of(rows * p.others * p.width, int64_t{1});
  const int64_t grain = max_of((int64_t{1} << 17) / cost, int64_t{1});
  parallel_for(all * cuts, grain, [&](int64_t begin, int64_t end) {
    const typename ForwardHead<B>::Workspace room(p);
    for (int64_t job = begin; job < end; ++job) {
      const int64_t head = job / cuts, row = job % cuts * rows;
      ForwardHead<B>(p, room, head / p.heads, head % p.heads)
          .run(row, min_of(p.length, row + rows));
    }
  });
}

}  // namespace

void flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double,
                     bool causal, const Tensor& mask, std::optional<double> scale,
                     const Tensor& out, const Tensor& logsumexp) {
  if (out.numel() == 0) return;
  const Problem p(query, key, value, mask, out, logsumexp, scale, causal);
  visit_blocks(query.dtype(), [&]<class B>(Type<B>) { forward<B>(p); });
}

}  // namespace facula::cpu::FACULA_ISA
