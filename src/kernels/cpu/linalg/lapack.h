// LAPACK: the library, opened when it is first needed, and calls of its Fortran routines.
// lapack_factor.h has the routines of factors and solutions, by name and with types.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/complex.h"

namespace facula::cpu::lapack {

// Where an installed package keeps the library: a folder, or nothing where there is none. The
// Python binding sets this, and it may wait for the GIL.
using Locator = std::string (*)();
void set_locator(Locator locate);

// Opens the library unless it is open: what FACULA_LAPACK names, else that of the Python package
// scipy-openblas32, else the system's. RuntimeError where there is none. To be called before a
// parallel loop whose parts call routines: those run on threads that must not wait for the GIL.
void open();

// The address of a routine by its Fortran name ("dgetrf"). RuntimeError where the library lacks it.
void* routine(const std::string& name);

// The type of norms and singular values of matrices of T.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
constexpr char letter() {
  if constexpr (is_complex_v<T>) return std::is_same_v<Real<T>, float> ? 'c' : 'z';
  return std::is_same_v<Real<T>, float> ? 's' : 'd';
}

// The part of a routine's name that follows the letter of its type.
template <size_t N>
struct RoutineName {
  char text[N];
  consteval RoutineName(const char (&s)[N]) { std::copy_n(s, N, text); }
};

namespace detail {

// Fortran takes everything by address.
template <class A>
struct Passed {
  using type = A*;
  static type of(A& a) { return &a; }
};
template <class A>
struct Passed<A*> {
  using type = A*;
  static type of(A* a) { return a; }
};

// The length of a character argument, which Fortran wants behind all others: one for each.
template <class A>
auto lengths_of(const A&) {
  if constexpr (std::is_same_v<A, char>)
    return std::tuple<size_t>(1);
  else
    return std::tuple<>();
}

template <class... Passed, class... Length>
void invoke(void* address, std::tuple<Passed...> args, std::tuple<Length...> lengths) {
  const auto f = reinterpret_cast<void (*)(Passed..., Length...)>(address);
  std::apply(f, std::tuple_cat(args, lengths));
}

}  // namespace detail

// Calls the routine of element type T named `real`, or `complex` for complex elements, with all
// arguments but the last, info, whose value is returned.
template <RoutineName real, RoutineName complex, class T, class... Args>
int call(Args... args) {
  static std::atomic<void*> known{nullptr};
  void* address = known.load(std::memory_order_acquire);
  if (address == nullptr) {
    address = routine(std::string(1, letter<T>()) + (is_complex_v<T> ? complex.text : real.text));
    known.store(address, std::memory_order_release);
  }
  int info = 0;
  detail::invoke(address, std::tuple(detail::Passed<Args>::of(args)..., &info),
                 std::tuple_cat(detail::lengths_of(args)...));
  return info;
}
template <RoutineName name, class T, class... Args>
int call(Args... args) {
  return call<name, name, T>(args...);
}

// Elements that a routine said in work[0] it wants. Those of float may be rounded down.
template <class T>
size_t wanted(const T& said) {
  Real<T> n;
  if constexpr (is_complex_v<T>)
    n = said.re;
  else
    n = said;
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(n * (1 + Real<T>(1e-6)))));
}

// Runs f(work, size) twice: to ask for the size of the work space, then with that space.
template <class T, class F>
int with_work(F&& f) {
  T said(0);
  if (const int info = f(&said, -1)) return info;
  std::vector<T> work(wanted(said));
  return f(work.data(), static_cast<int>(work.size()));
}

}  // namespace facula::cpu::lapack
