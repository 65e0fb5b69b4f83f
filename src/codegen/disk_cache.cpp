#include "codegen/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/environment.h"
#include "core/error.h"

namespace facula::disk_cache {
namespace {

// FNV-1a, 64 bits: tells damage apart, and names files; the key itself is compared.
uint64_t digest(const std::string& bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

struct Header {
  char magic[8] = {'f', 'a', 'c', 'l', 'o', 'o', 'p', '1'};
  uint64_t key_bytes = 0, object_bytes = 0, digest = 0;
};

bool write_all(int file, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// Others must not be able to put code into what is executed here.
bool is_ours(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && s.st_uid == ::geteuid() && !(s.st_mode & S_IWOTH);
}

}  // namespace

std::string folder() {
  if (const char* asked = environment_value("FACULA_CACHE_DIR")) return asked;
  if (const char* xdg = environment_value("XDG_CACHE_HOME")) return concat(xdg, "/facula");
  const char* home = environment_value("HOME");
  return home ? concat(home, "/.cache/facula") : "";
}

std::string name_of(const std::string& key) {
  constexpr char digits[] = "0123456789abcdef";
  std::string name(16, '0');
  uint64_t h = digest(key);
  for (size_t i = 16; i-- > 0; h >>= 4) name[i] = digits[h & 15];
  return name;
}

std::optional<std::string> read(const std::string& key) {
  const std::string where = folder();
  const std::string path = where + "/" + name_of(key) + ".loop";
  if (where.empty() || !is_ours(where) || !is_ours(path)) return {};
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Header h, wanted;
  if (bytes.size() < sizeof h) return {};
  std::memcpy(&h, bytes.data(), sizeof h);
  const size_t rest = bytes.size() - sizeof h;
  if (std::memcmp(h.magic, wanted.magic, sizeof h.magic) != 0 || h.key_bytes > rest ||
      h.object_bytes != rest - h.key_bytes)
    return {};
  if (bytes.compare(sizeof h, h.key_bytes, key) != 0) return {};
  std::string object = bytes.substr(sizeof h + h.key_bytes);
  if (digest(object) != h.digest) return {};
  return object;
}

bool write(const std::string& key, const std::string& object) {
  const std::string where = folder();
  if (where.empty()) return false;
  std::error_code failed;
  std::filesystem::create_directories(where, failed);
  if (failed || !is_ours(where)) return false;
  static std::atomic<uint32_t> number{0};
  const std::string path = where + "/" + name_of(key) + ".loop";
  const std::string temporary =
      path + "." + std::to_string(::getpid()) + "." + std::to_string(number.fetch_add(1));
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  Header h;
  h.key_bytes = key.size();
  h.object_bytes = object.size();
  h.digest = digest(object);
  const std::string head(reinterpret_cast<const char*>(&h), sizeof h);
  const bool written = write_all(file, head + key + object);
  const bool closed = ::close(file) == 0;
  if (written && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace facula::disk_cache
