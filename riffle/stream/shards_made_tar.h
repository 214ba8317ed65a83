// Tar files made byte by byte for the tests of shards, so that they can lie about themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <archive.h>
#include <archive_entry.h>

namespace riffle {

class MadeTar {
 public:
  static constexpr std::size_t kBlock = 512;

  MadeTar& add(const std::string& name, std::span<const std::byte> content) {
    if (name.size() >= kNameBytes) add_header("././@LongLink", octal(name.size()), 'L', name);
    return add_header(name.substr(0, kNameBytes), octal(content.size()), '0',
                      {reinterpret_cast<const char*>(content.data()), content.size()});
  }
  MadeTar& add(const std::string& name, const std::string& content) {
    return add(name, std::as_bytes(std::span(content)));
  }
  MadeTar& add_folder(const std::string& name) { return add_header(name, octal(0), '5', ""); }
  // `size` as it shall stand in the header: 12 bytes, whatever they are.
  MadeTar& add_header(const std::string& name, const std::string& size, char type,
                      std::string_view content) {
    std::string header(kBlock, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
      std::memcpy(header.data() + at, text.data(), text.size());
    };
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, size.substr(0, 12));
    put(136, "00000000000");
    put(148, "        ");
    header[156] = type;
    put(257, std::string("ustar\0", 6) + "00");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    std::memcpy(header.data() + 148, digits, 7);
    append(header);
    append(content);
    bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock);
    return *this;
  }

  static std::string octal(std::uint64_t size) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%011llo", static_cast<unsigned long long>(size));
    return digits;
  }
  // Sizes beyond octal digits stand as 96 bits, the first one set; they can be negative.
  static std::string binary(std::int64_t size) {
    std::string bytes(12, size < 0 ? '\xff' : '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[11 - i] = static_cast<char>(size >> (8 * i));
    bytes[0] = static_cast<char>(bytes[0] | '\x80');
    return bytes;
  }

  // Without the blocks of zeros that close an archive.
  const std::vector<std::byte>& open_ended() const { return bytes_; }
  std::vector<std::byte> finished() const {
    auto whole = bytes_;
    whole.resize(whole.size() + 2 * kBlock);
    return whole;
  }

 private:
  static constexpr std::size_t kNameBytes = 100;

  void append(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> bytes_;
};

// `filter` as libarchive names it: gzip, bzip2, xz, zstd, lz4.
inline std::vector<std::byte> compressed(std::span<const std::byte> bytes,
                                         const std::string& filter) {
  std::vector<std::byte> out(bytes.size() * 2 + 4096);
  std::size_t used = 0;
  auto* const archive = archive_write_new();
  archive_write_set_format_raw(archive);
  archive_write_add_filter_by_name(archive, filter.c_str());
  archive_write_set_filter_option(archive, nullptr, "compression-level", "1");  // fast
  archive_write_open_memory(archive, out.data(), out.size(), &used);
  auto* const entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  const bool written = archive_write_header(archive, entry) == ARCHIVE_OK &&
                       archive_write_data(archive, bytes.data(), bytes.size()) ==
                           static_cast<la_ssize_t>(bytes.size()) &&
                       archive_write_close(archive) == ARCHIVE_OK;
  archive_entry_free(entry);
  archive_write_free(archive);
  if (!written) throw std::runtime_error("libarchive cannot write " + filter);
  out.resize(used);
  return out;
}

}  // namespace riffle
