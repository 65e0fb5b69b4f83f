// Short-time Fourier transforms: of windows that slide along a signal, and back.
#include "ops/fft/stft.h"

#include <algorithm>
#include <optional>

#include "dispatch/typed.h"
#include "dispatch/warn_once.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/fft/transforms.h"
#include "ops/meta_rules.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using Number = std::optional<int64_t>;
using Flag = std::optional<bool>;

constexpr int64_t not_normalized = 0, by_root = 1, by_number = 2;

// The lengths of a transform and its window.
struct Frames {
  int64_t n_fft, hop, window;
  Frames(int64_t n, Number hop_length, Number win_length)
      : n_fft(n), hop(hop_length.value_or(0)), window(win_length.value_or(n)) {
    if (!hop_length) hop = n / 4;
  }
  // How much of a window of n_fft elements lies before one that is shorter, in the middle of it.
  int64_t before() const { return (n_fft - window) / 2; }
  int64_t after() const { return n_fft - window - before(); }
};

void check_window(const char* op, const Tensor& input, const Tensor& window, const Frames& f) {
  check(f.window > 0 && f.window <= f.n_fft, op, "(): expected 0 < win_length <= n_fft; got ",
        f.window, " for n_fft ", f.n_fft);
  if (!window.defined()) return;
  check(window.dim() == 1 && window.sizes()[0] == f.window, op,
        "(): window must be one-dimensional and of win_length ", f.window, "; got sizes ",
        str(window.sizes()));
  check(window.device() == input.device(), op,
        "(): input and window must be on the same device; "
        "got ",
        str(input.device()), " and ", str(window.device()));
}

void warn_of_no_window(std::atomic<bool>& told, const char* op) {
  warn_once(told, concat(op,
                         "(): window is not given and counts as all ones, from which spectral "
                         "leakage follows; give hann_window(n_fft), or ones(n_fft) to say so"));
}

// The window with zeros around it to n_fft elements; ones stand for one that is not given.
// Undefined where all of it is ones.
Tensor whole_window(const Tensor& window, const Frames& f, const Tensor& like, DType dtype) {
  if (f.window == f.n_fft) return window;
  const Tensor given =
      window.defined() ? window : ops::ones({f.window}, dtype, std::nullopt, like.device());
  return ops::constant_pad_nd(given, {f.before(), f.after()});
}

bool complex_if_defined(const Tensor& t) { return t.defined() && is_complex(t.dtype()); }

// --- forward

Tensor spectra(const Tensor& frames, bool onesided, int64_t mode) {
  if (is_complex(frames.dtype())) return ops::_fft_c2c(frames, {-1}, mode, true);
  return ops::_fft_r2c(frames, {-1}, mode, onesided);
}

Tensor padded_around(const Tensor& signal, int64_t n, std::string_view mode) {
  const IntSpan sizes = signal.sizes();
  check(signal.dim() == 1 || signal.dim() == 2, "stft(): expected a 1D or 2D tensor; got sizes ",
        str(sizes));
  IntVec batched(3, 1);
  for (size_t k = 0; k < sizes.size(); ++k) batched[3 - sizes.size() + k] = sizes[k];
  const Tensor longer = ops::pad(ops::reshape(signal, batched), {n, n}, mode);
  return ops::reshape(longer, longer.sizes().last(sizes.size()));
}

void check_signal(const Tensor& self, const Tensor& window, const Frames& f) {
  check_kind(ErrorKind::NotImplemented, is_floating(self.dtype()) || is_complex(self.dtype()),
             "stft(): expected a floating point or complex tensor; got ", name(self.dtype()));
  check(self.dim() == 1 || self.dim() == 2, "stft(): expected a 1D or 2D tensor; got sizes ",
        str(self.sizes()));
  check(f.n_fft > 0 && f.n_fft <= self.size(-1), "stft(): expected 0 < n_fft <= ", self.size(-1),
        ", the length of the signal; got ", f.n_fft);
  check(f.hop > 0, "stft(): expected hop_length > 0; got ", f.hop);
  check_window("stft", self, window, f);
}

void warn_of_arguments(const Tensor& window, bool as_complex) {
  static constinit std::atomic<bool> told_of_window, told_of_real;
  if (!window.defined()) warn_of_no_window(told_of_window, "stft");
  if (!as_complex)
    warn_once(told_of_real,
              "stft(): return_complex=False is deprecated; give True, and take view_as_real() of "
              "the result where you need real numbers");
}

// Pieces of n_fft elements times the window, as (batch, frames, n_fft).
Tensor windowed(const Tensor& self, const Tensor& window, const Frames& f, bool align_to_window) {
  Tensor signal = self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
  // The first frame's window, not its zeros, begins with the signal.
  if (align_to_window) signal = ops::constant_pad_nd(signal, {f.before(), f.after()});
  const Tensor frames = ops::unfold(signal, -1, f.n_fft, f.hop);
  const Tensor whole = whole_window(window, f, self, self.dtype());
  return whole.defined() ? ops::mul(frames, whole) : frames;
}

Tensor stft(const Tensor& self, int64_t n_fft, Number hop_length, Number win_length,
            const Tensor& window, bool normalized, Flag onesided_or_default, Flag return_complex,
            Flag align_to_window) {
  const Frames f(n_fft, hop_length, win_length);
  const bool complex = is_complex(self.dtype()) || complex_if_defined(window);
  check(return_complex || complex, "stft(): expected return_complex for a real input; got None");
  check_signal(self, window, f);
  const bool onesided = onesided_or_default.value_or(!complex);
  check(!(onesided && complex),
        "stft(): expected onesided=False for a complex input or window; got True");
  const bool as_complex = return_complex.value_or(complex);
  warn_of_arguments(window, as_complex);
  const Tensor frames = windowed(self, window, f, align_to_window.value_or(false)),
               found = spectra(frames, onesided, normalized ? by_root : not_normalized);
  const Tensor result = ops::transpose(self.dim() == 1 ? ops::squeeze(found, 0) : found, -2, -1);
  return as_complex ? result : ops::view_as_real(result);
}

Tensor stft_center(const Tensor& self, int64_t n_fft, Number hop_length, Number win_length,
                   const Tensor& window, bool center, std::string_view pad_mode, bool normalized,
                   Flag onesided, Flag return_complex, Flag align_to_window) {
  check(!(center && align_to_window),
        "stft(): align_to_window is for center=False; got it with center=True");
  const Tensor signal = center ? padded_around(self, n_fft / 2, pad_mode) : self;
  return stft(signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
              align_to_window);
}

// --- back

void check_spectra(const Tensor& self, const Frames& f, bool onesided) {
  check(self.numel() > 0, "istft(): input tensor cannot be empty; got sizes ", str(self.sizes()));
  check(self.dim() == 2 || self.dim() == 3,
        "istft(): expected a tensor of 2 or 3 dimensions; got sizes ", str(self.sizes()));
  const int64_t expected = onesided ? f.n_fft / 2 + 1 : f.n_fft;
  check(self.size(-2) == expected, "istft(): expected ", expected, " frequencies for n_fft ",
        f.n_fft, onesided ? " and onesided=True" : " and onesided=False", "; got ", self.size(-2));
  check(f.hop > 0 && f.hop <= f.window, "istft(): expected 0 < hop_length <= win_length; got ",
        f.hop, " and ", f.window);
}

// Overlapping frames (..., frames, n_fft) added up.
Tensor overlapped(const Tensor& frames, int64_t hop) {
  const int64_t n_fft = frames.size(-1), length = n_fft + hop * (frames.size(-2) - 1);
  return ops::unfold_backward(frames, {frames.sizes()[0], length}, 1, n_fft, hop);
}

void check_envelope(const Tensor& envelope) {
  if (envelope.is_meta()) return;
  const bool nowhere_zero = ops::is_nonzero(ops::gt(ops::min(envelope), 1e-11));
  check(nowhere_zero,
        "istft(): the sum of squared windows must not vanish where the signal is "
        "wanted; got a window overlap add min of zero");
}

// The part of the signal that is wanted: from the middle of the first frame on, where frames were
// centered. `known` is where what the frames say ends.
struct Part {
  int64_t begin, end, known;
  Part(const Frames& f, int64_t frames, bool center, Number length) {
    const int64_t all = f.n_fft + f.hop * (frames - 1);
    begin = center ? f.n_fft / 2 : 0;
    end = length ? begin + *length : center ? all - f.n_fft / 2 : all;
    known = std::min(end, all);
    check(begin < known, "istft(): expected a signal of at least one element; got ", end - begin);
  }
};

// The pieces of the signal, as (batch, frames, n_fft).
Tensor pieces_of(const Tensor& self, int64_t n_fft, bool onesided, bool complex, int64_t mode) {
  const Tensor batch = self.dim() == 2 ? ops::unsqueeze(self, 0) : self,
               by_frame = ops::transpose(batch, 1, 2);
  if (complex) return ops::_fft_c2c(by_frame, {-1}, mode, false);
  const Tensor half = onesided ? by_frame : ops::slice(by_frame, -1, 0, n_fft / 2 + 1);
  return ops::_fft_c2r(half, {-1}, mode, n_fft);
}

Tensor istft(const Tensor& self, int64_t n_fft, Number hop_length, Number win_length,
             const Tensor& window, bool center, bool normalized, Flag onesided_or_default,
             Number length, bool return_complex) {
  const Frames f(n_fft, hop_length, win_length);
  check_type(is_complex(self.dtype()),
             "istft(): expected complex numbers, as stft gives with return_complex=True; got ",
             name(self.dtype()));
  check_index(self.dim() >= 2, "istft(): expected a tensor of 2 or 3 dimensions; got sizes ",
              str(self.sizes()));
  const bool onesided = onesided_or_default.value_or(self.size(-2) != n_fft);
  check_spectra(self, f, onesided);
  check_window("istft", self, window, f);
  check(!(return_complex && onesided),
        "istft(): expected onesided=False with return_complex=True; got True");
  check(return_complex || !complex_if_defined(window),
        "istft(): a complex window needs return_complex=True; got False");
  const Part part(f, self.size(-1), center, length);
  static constinit std::atomic<bool> told_of_window;
  if (!window.defined()) warn_of_no_window(told_of_window, "istft");

  Tensor whole = whole_window(window, f, self, real_of(self.dtype()));
  if (!whole.defined())
    whole = ops::ones({n_fft}, real_of(self.dtype()), std::nullopt, self.device());
  const Tensor pieces =
      pieces_of(self, n_fft, onesided, return_complex, normalized ? by_root : by_number);
  const Tensor squares = ops::expand(ops::mul(whole, whole), {1, self.size(-1), n_fft});
  const Tensor envelope = ops::slice(overlapped(squares, f.hop), 1, part.begin, part.known);
  check_envelope(ops::abs(envelope));
  const Tensor sums = overlapped(ops::mul(pieces, whole), f.hop);
  Tensor signal = ops::div(ops::slice(sums, 1, part.begin, part.known), envelope);
  if (part.end > part.known) {
    static constinit std::atomic<bool> told_of_length;
    warn_once(told_of_length, concat("istft(): length is more than the frames reach, and zeros "
                                     "follow; got ",
                                     *length));
    signal = ops::constant_pad_nd(signal, {0, part.end - part.known});
  }
  return self.dim() == 2 ? ops::squeeze(signal, 0) : signal;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(stft){
    .schema =
        "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
        "window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, "
        "bool? align_to_window=None) -> Tensor",
    .doc = "The same as stft.center with center=False.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<stft>,
};
OP(stft_center){
    .schema =
        "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
        "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? "
        "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    .doc =
        "Transforms of n_fft points of a signal (..., length) times a window, every hop_length "
        "(n_fft / 4) points, as (..., frequencies, frames).",
    .forms = function,
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<stft_center>,
};
OP(istft){
    .schema =
        "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
        "window=None, bool center=True, bool normalized=False, bool? onesided=None, int? "
        "length=None, bool return_complex=False) -> Tensor",
    .doc =
        "The signal whose short-time transforms come nearest to (..., frequencies, frames), by "
        "least squares.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<istft>,
};
