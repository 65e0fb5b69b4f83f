// The gradient of attention, block by block from the scores' logarithms of sums.
#include "core/threads.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/blocks.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu::FACULA_ISA {
namespace {

struct Problem {
  const Tensor &grad, &query, &key, &value, &out, &logsumexp, &mask;
  const Tensor &grad_query, &grad_key, &grad_value;
  double scale;
  bool causal;
  int64_t heads, length, others, width, group;  // group: heads of queries to one of keys
};

// Transposed blocks: rows are keys, columns queries. For each block of keys and of queries
//   P^T = e^(K Q^T scale + mask - logsumexp),  dV += P^T dO,
//   dS^T = P^T (V dO^T - delta) scale,         dK += dS^T Q,     dQ += dS K,
// where delta is the sum of dO O over a row. One job takes a head of keys and all that read it.
template <class B>
class BackwardHead {
 public:
  using In = typename B::In;
  using A = typename B::Acc;
  using Packed = typename B::Packed;
  static constexpr int64_t score_pitch = packed_pitch<A>;

  explicit BackwardHead(const Problem& p)
      : p_(p),
        depth_(B::depth_of(p.width)),
        columns_(round_up(p.width, B::width)),
        query_columns_(round_up(p.length, B::width) * depth_),
        grad_columns_(round_up(p.length, B::width) * depth_),
        query_rows_(round_up(p.length, B::block) / B::per_packed * columns_),
        grad_rows_(round_up(p.length, B::block) / B::per_packed * columns_),
        key_rows_(B::block / B::per_packed * columns_),
        keys_(B::block * B::pitch),
        values_(B::block * B::pitch),
        slopes_(B::block * B::pitch),
        left_(B::rows * B::pitch),
        weights_(B::rows * score_pitch),
        scores_(B::rows * score_pitch),
        masks_(p.mask.defined() ? B::rows * score_pitch : 0),
        delta_(p.length),
        logsumexp_(p.length),
        grad_query_(round_up(p.length, B::rows) * columns_),
        grad_key_(round_up(p.others, B::rows) * columns_),
        grad_value_(round_up(p.others, B::rows) * columns_) {}

  void run(int64_t batch, int64_t key_head) {
    clear(grad_key_.get(), p_.others * columns_);
    clear(grad_value_.get(), p_.others * columns_);
    const auto key = head_rows<const In>(p_.key, batch, key_head);
    const auto value = head_rows<const In>(p_.value, batch, key_head);
    for (int64_t head = key_head * p_.group; head < (key_head + 1) * p_.group; ++head) {
      pack_queries(batch, head);
      const HeadMask mask(p_.mask, batch, head);
      for (int64_t j = 0; j < p_.others; j += B::block) {
        const int64_t count = min_of(B::block, p_.others - j);
        B::pack_left(keys_.get(), key.row(j), key.step, count, p_.width);
        B::pack_left(values_.get(), value.row(j), value.step, count, p_.width);
        B::pack_rows(key_rows_.get(), key.row(j), key.step, count, p_.width);
        const int64_t first = p_.causal ? j / B::block * B::block : 0;
        for (int64_t i = first; i < p_.length; i += B::block)
          run_block(mask, i, min_of(B::block, p_.length - i), j, count);
      }
      write(p_.grad_query, batch, head, grad_query_.get(), p_.length);
    }
    write(p_.grad_key, batch, key_head, grad_key_.get(), p_.others);
    write(p_.grad_value, batch, key_head, grad_value_.get(), p_.others);
  }

 private:
  static void clear(A* to, int64_t count) {
    __builtin_memset(to, 0, static_cast<size_t>(count) * sizeof(A));
  }

  void pack_queries(int64_t batch, int64_t head) {
    const auto query = head_rows<const In>(p_.query, batch, head);
    const auto grad = head_rows<const In>(p_.grad, batch, head);
    const auto out = head_rows<const In>(p_.out, batch, head);
    const IntSpan st = p_.logsumexp.strides();
    const A* sums = p_.logsumexp.data<A>() + batch * st[0] + head * st[1];
    B::pack_columns(query_columns_.get(), query.data, query.step, p_.length, p_.width);
    B::pack_columns(grad_columns_.get(), grad.data, grad.step, p_.length, p_.width);
    for (int64_t i = 0; i < p_.length; i += B::block) {
      const int64_t count = min_of(B::block, p_.length - i), at = i / B::per_packed * columns_;
      B::pack_rows(query_rows_.get() + at, query.row(i), query.step, count, p_.width);
      B::pack_rows(grad_rows_.get() + at, grad.row(i), grad.step, count, p_.width);
    }
    for (int64_t i = 0; i < p_.length; ++i) {
      logsumexp_.get()[i] = sums[i * st[2]];
      delta_.get()[i] = dot_of<A>(grad.row(i), out.row(i), p_.width);
    }
    clear(grad_query_.get(), p_.length * columns_);
  }

  // Queries [i, i + queries) and keys [j, j + keys).
  void run_block(const HeadMask& mask, int64_t i, int64_t queries, int64_t j, int64_t keys) {
    for (int64_t row = 0; row < keys; row += B::rows)
      run_rows(mask, i, queries, j, row, min_of(B::rows, keys - row));
    const int64_t key_depth = B::depth_of(keys);
    for (int64_t row = 0; row < queries; row += B::rows) {
      const int64_t rows = min_of(B::rows, queries - row);
      const int64_t seen = p_.causal ? min_of(keys, i + row + rows - j) : keys;
      products_.run(rows, B::depth_of(seen), slopes_.get() + row * B::pitch, key_rows_.get(),
                    key_depth, 0, 0, p_.width, grad_query_.get() + (i + row) * columns_, columns_,
                    true);
    }
  }

  // Keys j + [row, row + rows) of a block.
  void run_rows(const HeadMask& mask, int64_t i, int64_t queries, int64_t j, int64_t row,
                int64_t rows) {
    // The first panel with a query that sees the first of these keys.
    const int64_t hidden = p_.causal ? max_of(int64_t{0}, j + row - i) : 0;
    const int64_t first = min_of(hidden / B::width * B::width, queries);
    clear_slopes(row, rows, first);
    if (first == queries) return;
    const int64_t panel = i * depth_, depth = B::depth_of(queries);
    products_.run(rows, depth_, keys_.get() + row * B::pitch, query_columns_.get() + panel, depth_,
                  0, first, queries, weights_.get(), score_pitch, false);
    weigh(mask, i, queries, j + row, rows, first);
    const Packed* left = B::as_left(weights_.get(), left_.get(), rows, queries);
    const int64_t at = i / B::per_packed * columns_, skip = first / B::per_packed;
    A* to_value = grad_value_.get() + (j + row) * columns_;
    add_over_queries(rows, depth, left, grad_rows_.get() + at, skip, to_value);
    products_.run(rows, depth_, values_.get() + row * B::pitch, grad_columns_.get() + panel, depth_,
                  0, first, queries, scores_.get(), score_pitch, false);
    slope(i, queries, j + row, rows, first);
    left = B::as_left(scores_.get(), left_.get(), rows, queries);
    A* to_key = grad_key_.get() + (j + row) * columns_;
    add_over_queries(rows, depth, left, query_rows_.get() + at, skip, to_key);
    B::transpose(slopes_.get() + first * B::pitch + row / B::per_packed, left + skip, rows,
                 queries - first);
  }

  // to += the product, from packed row `skip` on.
  void add_over_queries(int64_t rows, int64_t depth, const Packed* left, const Packed* right,
                        int64_t skip, A* to) const {
    for (int64_t at = skip; at < depth; at += B::run_depth)
      products_.run(rows, min_of(depth, at + B::run_depth), left, right, depth, at, 0, p_.width, to,
                    columns_, true);
  }

  void clear_slopes(int64_t row, int64_t rows, int64_t queries) {
    const int64_t count = B::depth_of(rows);
    for (int64_t q = 0; q < queries; ++q)
      for (int64_t k = 0; k < count; ++k)
        slopes_.get()[q * B::pitch + row / B::per_packed + k] = Packed(0);
  }

  // Scores become weights, zeros where a query does not see the key.
  void weigh(const HeadMask& mask, int64_t i, int64_t queries, int64_t key, int64_t rows,
             int64_t first) {
    const A scale = static_cast<A>(p_.scale);
    const bool masked = mask.data != nullptr;
    if (masked) mask.copy<In>(masks_.get(), score_pitch, i, key, queries, rows, true);
    for (int64_t r = 0; r < rows; ++r) {
      const A* more = masked ? masks_.get() + r * score_pitch : nullptr;
      B::weigh_row(left_.get() + r * B::pitch, weights_.get() + r * score_pitch, more,
                   logsumexp_.get() + i, scale, span_of(i, queries, key + r, first));
    }
  }

  void slope(int64_t i, int64_t queries, int64_t key, int64_t rows, int64_t first) {
    const A scale = static_cast<A>(p_.scale);
    for (int64_t r = 0; r < rows; ++r)
      B::slope_row(left_.get() + r * B::pitch, scores_.get() + r * score_pitch,
                   weights_.get() + r * score_pitch, delta_.get() + i, scale,
                   span_of(i, queries, key + r, first));
  }

  // The queries of a block that see a key.
  RowSpan span_of(int64_t i, int64_t queries, int64_t key, int64_t first) const {
    return {first, queries, p_.causal ? min_of(queries, key - i) : 0};
  }

  void write(const Tensor& to, int64_t batch, int64_t head, const A* from, int64_t rows) const {
    const auto out = head_rows<In>(to, batch, head);
    for (int64_t i = 0; i < rows; ++i) copy_row(out.row(i), from + i * columns_, 1, p_.width);
  }

  const Problem& p_;
  int64_t depth_, columns_;
  Scratch<Packed> query_columns_, grad_columns_, query_rows_, grad_rows_, key_rows_, keys_, values_,
      slopes_, left_;
  Scratch<A> weights_, scores_, masks_, delta_, logsumexp_, grad_query_, grad_key_, grad_value_;
  BlockProducts<B> products_;
};

template <class B>
void backward(const Problem& p) {
  const int64_t key_heads = p.heads / p.group;
  const int64_t cost = max_of(p.length * p.others * p.width * p.group, int64_t{1});
  const int64_t grain = max_of((int64_t{1} << 16) / cost, int64_t{1});
  parallel_for(p.query.sizes()[0] * key_heads, grain, [&](int64_t begin, int64_t end) {
    BackwardHead<B> head(p);
    for (int64_t job = begin; job < end; ++job) head.run(job / key_heads, job % key_heads);
  });
}

// The loops walk through rows element by element.
Tensor with_contiguous_rows(const Tensor& t) { return t.strides().back() == 1 ? t : contiguous(t); }

}  // namespace

void flash_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                              double, bool causal, const Tensor& mask, std::optional<double> scale,
                              const Tensor& grad_query, const Tensor& grad_key,
                              const Tensor& grad_value) {
  if (query.numel() == 0 || key.numel() == 0) return;
  const int64_t heads = query.sizes()[1];
  const Tensor g = with_contiguous_rows(grad), o = with_contiguous_rows(out);
  const Problem p{g,
                  query,
                  key,
                  value,
                  o,
                  logsumexp,
                  mask,
                  grad_query,
                  grad_key,
                  grad_value,
                  attention_scale(query, scale),
                  causal,
                  heads,
                  query.sizes()[2],
                  key.sizes()[2],
                  query.sizes()[3],
                  heads / key.sizes()[1]};
  visit_blocks(query.dtype(), [&]<class B>(Type<B>) { backward<B>(p); });
}

}  // namespace facula::cpu::FACULA_ISA
