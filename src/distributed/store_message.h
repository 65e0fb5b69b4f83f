// Requests and replies of stores as bytes: what goes over a socket, and into a store's file.
#pragma once
#include <optional>
#include <string_view>

#include "distributed/store.h"

namespace facula::distributed {

// A message is its length, in four bytes, and then that many bytes.
constexpr size_t message_head = 4;
constexpr uint32_t most_message = 1u << 30;

Bytes message_of(const StoreRequest& request);
Bytes message_of(const StoreReply& reply);
// The length of the message that begins here, without its head; nothing if the head is not whole.
std::optional<uint32_t> message_length(std::string_view bytes);
// Read a message without its head. Return false if it is no such message.
bool read_message(std::string_view body, StoreRequest& request);
bool read_message(std::string_view body, StoreReply& reply);

}  // namespace facula::distributed
