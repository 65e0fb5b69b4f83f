// The library's one exception class; its kind says which Python exception it becomes.
#pragma once
#include <exception>
#include <sstream>
#include <string>

namespace facula {

enum class ErrorKind : uint8_t {
  Runtime,
  Type,
  Value,
  Index,
  Key,
  NotImplemented,
  Memory,
  Overflow,
  Import,
  Attribute,
  Assertion,
  LinAlg,
  StopIteration,
  Accelerator,  // an error that a device's library reported
  Python,       // a Python exception is set already; the text is a copy of its message
};

template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream s;
  (s << ... << args);
  return s.str();
}

class Error : public std::exception {
 public:
  template <class... Args>
  explicit Error(ErrorKind kind, const Args&... args) : kind_(kind), text_(concat(args...)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
  std::string text_;
};

[[noreturn]] void throw_error(ErrorKind kind, std::string text);

// check(ok, "op(): expected ", x): throws RuntimeError with the pieces joined when `ok` is false.
template <class... Args>
inline void check(bool ok, const Args&... args) {
  if (!ok) [[unlikely]]
    throw_error(ErrorKind::Runtime, concat(args...));
}
template <class... Args>
inline void check_kind(ErrorKind kind, bool ok, const Args&... args) {
  if (!ok) [[unlikely]]
    throw_error(kind, concat(args...));
}
template <class... Args>
inline void check_value(bool ok, const Args&... args) {
  check_kind(ErrorKind::Value, ok, args...);
}
template <class... Args>
inline void check_index(bool ok, const Args&... args) {
  check_kind(ErrorKind::Index, ok, args...);
}
template <class... Args>
inline void check_type(bool ok, const Args&... args) {
  check_kind(ErrorKind::Type, ok, args...);
}

}  // namespace facula
