// Exceptions to error codes and back, at the border of the C interface.
#pragma once
#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "facula/c.h"

namespace facula::c_api {

// Stores the exception that is being handled as this thread's last error; its code.
facula_status note_exception();
// Throws what a callback's code says: the very exception where it passed one on.
void raise(facula_status code);
// Forgets the last error, so that a callback's code cannot be taken for an older one's.
void forget_error();

template <class F>
facula_status guarded(F&& body) {
  try {
    body();
    return FACULA_OK;
  } catch (...) {
    return note_exception();
  }
}

// Runs a callback and throws what it reports.
template <class F, class... Args>
void run_callback(F function, Args... args) {
  forget_error();
  if (const facula_status code = function(args...); code != FACULA_OK) [[unlikely]]
    raise(code);
}

template <class T>
T* given(T* pointer, const char* function, const char* what) {
  check_type(pointer != nullptr, function, "(): expected ", what, "; got a null pointer");
  return pointer;
}

// A copy of a struct of the caller's, as far as its size goes; what is missing is zero.
template <class T>
T read_struct(const T* from, const char* function) {
  given(from, function, "a struct");
  constexpr uint32_t least = 2 * sizeof(uint32_t);
  check_value(from->size >= least, function, "(): expected the struct's size in its first field; ",
              "got ", from->size);
  T copy{};
  std::memcpy(static_cast<void*>(&copy), from, std::min<size_t>(from->size, sizeof(T)));
  return copy;
}

}  // namespace facula::c_api
