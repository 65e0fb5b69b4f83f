// Compiled loops on disk, for the processes that come after.
#pragma once
#include <optional>
#include <string>

namespace facula::disk_cache {

// The folder: FACULA_CACHE_DIR, else facula below XDG_CACHE_HOME or ~/.cache; empty where there is
// none. Read at each call.
std::string folder();

// What is stored for a key; nothing where that is absent, unreadable or damaged.
std::optional<std::string> read(const std::string& key);

// Stores it under a name of its own first, so that readers see all of it or nothing. False where
// the folder cannot be written.
bool write(const std::string& key, const std::string& object);

// A name for a key, of 16 hexadecimal digits.
std::string name_of(const std::string& key);

}  // namespace facula::disk_cache
