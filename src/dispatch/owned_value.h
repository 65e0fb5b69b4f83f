// A value that owns what it refers to: a number, string, list of integers.
#pragma once
#include <utility>

#include "dispatch/call.h"

namespace facula {

class OwnedValue {
 public:
  explicit OwnedValue(const Value& v) : value_(own_copy(v)) {}
  OwnedValue(const OwnedValue& o) : value_(own_copy(o.value_)) {}
  OwnedValue(OwnedValue&& o) noexcept : value_(std::exchange(o.value_, Value())) {}
  OwnedValue& operator=(OwnedValue o) noexcept {
    std::swap(value_, o.value_);
    return *this;
  }
  ~OwnedValue() { drop_copy(value_); }
  const Value& value() const { return value_; }

 private:
  Value value_;
};

}  // namespace facula
