#include "riffle/curate/tar_file.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace riffle {
namespace {

constexpr std::size_t kBlock = 512;

// A header as POSIX.1-1988 lays it out; numbers are octal text.
struct Header {
  char name[100];
  char mode[8];
  char owner[8];
  char group[8];
  char size[12];
  char time[12];
  char checksum[8];
  char kind;
  char link[100];
  char magic[6];
  char version[2];
  char owner_name[32];
  char group_name[32];
  char device[16];
  char prefix[155];
  char rest[12];
};
static_assert(sizeof(Header) == kBlock);

template <std::size_t N>
void put_octal(char (&field)[N], unsigned long long value) {
  std::snprintf(field, N, "%0*llo", static_cast<int>(N) - 1, value);
}

template <std::size_t N>
void put_text(char (&field)[N], std::string_view text) {
  if (text.size() > N) throw std::logic_error("a name too long for a tar file");
  std::memcpy(field, text.data(), text.size());
}

Header header_for(std::string_view name, std::size_t size) {
  Header header{};
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) put_text(header.prefix, name.substr(0, slash));
  put_text(header.name, name.substr(slash == std::string_view::npos ? 0 : slash + 1));
  put_octal(header.mode, 0644);
  put_octal(header.owner, 0);
  put_octal(header.group, 0);
  put_octal(header.size, size);
  put_octal(header.time, 0);
  header.kind = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  std::memset(header.checksum, ' ', sizeof header.checksum);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  std::snprintf(header.checksum, 7, "%06o", std::accumulate(bytes, bytes + kBlock, 0u));
  return header;
}

}  // namespace

void TarFile::add(const std::string& name, std::span<const std::byte> content) {
  static constexpr std::array<std::byte, kBlock> kZeros{};
  const Header header = header_for(name, content.size());
  file_.append(std::as_bytes(std::span(&header, 1)));
  file_.append(content);
  const std::size_t beyond = content.size() % kBlock;
  if (beyond > 0) file_.append(std::span(kZeros).first(kBlock - beyond));
}

void TarFile::commit() {
  static constexpr std::array<std::byte, 2 * kBlock> kEnd{};
  file_.append(kEnd);
  file_.commit();
}

}  // namespace riffle
