#include "kernels/cpu/attention/attention.h"

#include "core/threads.h"
#include "kernels/cpu/attention/blocks.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {
namespace {

namespace math = scalar::math;

template <class A>
inline constexpr int64_t score_pitch = packed_pitch<A>;  // between rows of scores
constexpr int64_t sum_lanes = 16;

// x[i] = scale * x[i] (+ mask[i]); the largest.
template <class A>
A scale_row(A* __restrict x, const A* __restrict mask, A scale, int64_t n) {
  A most[sum_lanes];
  for (A& m : most) m = -static_cast<A>(__builtin_inf());
  if (mask != nullptr) {
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale + mask[i];
  } else {
    for (int64_t i = 0; i < n; ++i) x[i] *= scale;
  }
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes)
    for (int64_t l = 0; l < sum_lanes; ++l) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
  for (; i < n; ++i) most[0] = x[i] > most[0] ? x[i] : most[0];
  for (int64_t half = sum_lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l)
      most[l] = most[l + half] > most[l] ? most[l + half] : most[l];
  return most[0];
}

// x[i] = e^(x[i] - most); their sum.
template <class A>
A exp_row(A* __restrict x, A most, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = math::exp_coarse(x[i] - most);
  A sum[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes)
    for (int64_t l = 0; l < sum_lanes; ++l) sum[l] += x[i + l];
  for (int64_t l = 0; i + l < n; ++l) sum[l] += x[i + l];
  for (int64_t half = sum_lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

template <class In, class A>
[[gnu::always_inline]] inline A dot_of(const A* left, const In* right, int64_t n) {
  A sum[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes)
    for (int64_t l = 0; l < sum_lanes; ++l)
      sum[l] += left[i + l] * Convert<A, In>::call(right[i + l]);
  for (int64_t l = 0; i + l < n; ++l) sum[l] += left[i + l] * Convert<A, In>::call(right[i + l]);
  for (int64_t half = sum_lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

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

// The running softmax of at most max_tile_rows rows, and their sums of values.
template <class A>
struct RowState {
  A most[max_tile_rows], sum[max_tile_rows];
  RowState() {
    for (A& m : most) m = -static_cast<A>(__builtin_inf());
    for (A& s : sum) s = 0;
  }
};

// Scores become weights: those of columns [0, n) of row `row`, of which `visible` count. Returns
// what earlier sums are to be multiplied with.
template <class A>
A weigh_row(RowState<A>& state, int64_t row, A* x, const A* mask, A scale, int64_t visible,
            int64_t n) {
  const A most = scale_row(x, mask, scale, visible), before = state.most[row];
  const A now = most > before ? most : before;
  for (int64_t i = visible; i < n; ++i) x[i] = 0;
  if (now == -static_cast<A>(__builtin_inf())) {  // every score is that, or nan
    for (int64_t i = 0; i < visible; ++i) {
      x[i] = x[i] == now ? A(0) : x[i];
      state.sum[row] += x[i];
    }
    return 1;
  }
  const A factor = before == now ? A(1) : math::exp_coarse(before - now);
  state.sum[row] = state.sum[row] * factor + exp_row(x, now, visible);
  state.most[row] = now;
  return factor;
}

template <class B>
class ForwardHead {
 public:
  using In = typename B::In;
  using A = typename B::Acc;
  using Packed = typename B::Packed;

  // Scratch memory of a thread.
  struct Workspace {
    explicit Workspace(const Problem& p)
        : depth(ceil_div(p.width, B::per_packed)),
          columns(round_up(p.width, B::width)),
          keys(round_up(p.others, B::width) * depth),
          values(round_up(p.others, B::block) / B::per_packed * columns),
          left(max_tile_rows * B::pitch),
          weights(max_tile_rows * B::pitch),
          scores(max_tile_rows * score_pitch<A>),
          masks(p.mask.defined() ? max_tile_rows * score_pitch<A> : 0),
          sums(max_tile_rows * columns) {}
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
    for (int64_t row = begin; row < end; row += max_tile_rows)
      run_rows(row, min_of(int64_t{max_tile_rows}, end - row));
  }

 private:
  Packed* values(int64_t j) const { return room_.values.get() + j / B::per_packed * room_.columns; }

  void run_rows(int64_t row, int64_t rows) const {
    const Workspace& r = room_;
    B::pack_left(r.left.get(), query_.row(row), query_.step, rows, p_.width);
    RowState<A> state;
    const int64_t seen = p_.causal ? min_of(p_.others, row + rows) : p_.others;
    for (int64_t j = 0; j < seen; j += B::block) {
      const int64_t n = min_of(B::block, seen - j);
      products_.run(rows, r.depth, r.left.get(), r.keys.get() + j * r.depth, r.depth, 0, 0, n,
                    r.scores.get(), score_pitch<A>, false);
      weigh(state, row, rows, j, n);
      const Packed* weights = B::as_left(r.scores.get(), r.weights.get(), rows, n);
      const int64_t depth = ceil_div(min_of(B::block, packed_ - j), B::per_packed);
      products_.run(rows, ceil_div(n, B::per_packed), weights, values(j), depth, 0, 0, p_.width,
                    r.sums.get(), r.columns, j > 0);
    }
    write(state, row, rows, seen);
  }

  void weigh(RowState<A>& state, int64_t row, int64_t rows, int64_t j, int64_t n) const {
    const bool masked = mask_.data != nullptr;
    if (masked) mask_.copy<In>(room_.masks.get(), score_pitch<A>, row, j, rows, n, false);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t visible = p_.causal ? max_of(int64_t{0}, min_of(n, row + i - j + 1)) : n;
      const A* mask = masked ? room_.masks.get() + i * score_pitch<A> : nullptr;
      const A factor = weigh_row(state, i, room_.scores.get() + i * score_pitch<A>, mask,
                                 static_cast<A>(p_.scale), visible, n);
      if (j == 0 || factor == A(1)) continue;
      A* sums = room_.sums.get() + i * room_.columns;
      for (int64_t c = 0; c < p_.width; ++c) sums[c] *= factor;
    }
  }

  // Rows without a visible column are zeros.
  void write(RowState<A>& state, int64_t row, int64_t rows, int64_t seen) const {
    for (int64_t i = 0; i < rows; ++i) {
      A* sums = room_.sums.get() + i * room_.columns;
      const A total = seen == 0 ? A(0) : state.sum[i];
      const bool none = total == A(0);
      for (int64_t c = 0; c < p_.width; ++c) sums[c] = none ? A(0) : sums[c] / total;
      copy_row(out_.row(row + i), sums, 1, p_.width);
      logsumexp_[(row + i) * logsumexp_step_] =
          none ? A(0) : (state.most[i] + static_cast<A>(math::log(total)));
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
    for (int64_t j = 0; j < seen; ++j) x[j] = dot_of<In, A>(left, key.row(j), p.width);
    if (p.mask.defined()) mask.copy<In>(masks.get(), seen, i, 0, 1, seen, false);
    RowState<A> state;
    weigh_row(state, 0, x, p.mask.defined() ? masks.get() : nullptr, static_cast<A>(p.scale), seen,
              seen);
    for (int64_t j = 0; j < seen; ++j) {
      const In* from = value.row(j);
      for (int64_t c = 0; c < p.width; ++c) sums[c] += x[j] * Convert<A, In>::call(from[c]);
    }
    const A total = state.sum[0];
    for (int64_t c = 0; c < p.width; ++c) sums[c] = total == A(0) ? A(0) : sums[c] / total;
    copy_row(out.row(i), sums, 1, p.width);
    logsumexp[i * st[2]] = total == A(0) ? A(0) : state.most[0] + math::log(total);
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
      max_of(round_up(ceil_div(p.length, wanted), max_tile_rows), int64_t{8 * max_tile_rows});
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
