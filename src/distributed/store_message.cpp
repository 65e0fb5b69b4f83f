#include "distributed/store_message.h"

#include <cstring>

namespace facula::distributed {
namespace {

template <class T>
void put(Bytes& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_list(Bytes& out, const std::vector<Bytes>& list) {
  put(out, static_cast<uint32_t>(list.size()));
  for (const auto& item : list) {
    put(out, static_cast<uint32_t>(item.size()));
    out += item;
  }
}

Bytes with_head(const Bytes& body) {
  check(body.size() <= most_message, "expected at most ", most_message,
        " bytes of keys and values in one call of a store; got ", body.size());
  Bytes out;
  out.reserve(message_head + body.size());
  put(out, static_cast<uint32_t>(body.size()));
  return out += body;
}

// Reads a message from its front; `ok` becomes false at its end.
struct Reader {
  std::string_view rest;
  bool ok = true;

  template <class T>
  T number() {
    T value{};
    if (rest.size() < sizeof(T)) {
      ok = false;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof(T));
    rest.remove_prefix(sizeof(T));
    return value;
  }
  std::vector<Bytes> list() {
    std::vector<Bytes> items;
    for (auto n = number<uint32_t>(); n > 0 && ok; --n) {
      const auto size = number<uint32_t>();
      if (rest.size() < size) ok = false;
      if (!ok) break;
      items.emplace_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    return items;
  }
  bool at_end() const { return ok && rest.empty(); }
};

}  // namespace

Bytes message_of(const StoreRequest& r) {
  Bytes body;
  put(body, r.call);
  put(body, r.number);
  put(body, r.timeout_ms);
  put_list(body, r.keys);
  put_list(body, r.values);
  return with_head(body);
}

Bytes message_of(const StoreReply& r) {
  Bytes body;
  put(body, r.status);
  put(body, r.number);
  put_list(body, r.values);
  return with_head(body);
}

std::optional<uint32_t> message_length(std::string_view bytes) {
  if (bytes.size() < message_head) return std::nullopt;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

bool read_message(std::string_view body, StoreRequest& r) {
  Reader in{body};
  r.call = in.number<StoreCall>();
  r.number = in.number<int64_t>();
  r.timeout_ms = in.number<int64_t>();
  r.keys = in.list();
  r.values = in.list();
  return in.at_end();
}

bool read_message(std::string_view body, StoreReply& r) {
  Reader in{body};
  r.status = in.number<StoreStatus>();
  r.number = in.number<int64_t>();
  r.values = in.list();
  return in.at_end();
}

}  // namespace facula::distributed
