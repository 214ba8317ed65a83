// The members of one tar file, plain or compressed, one after the other, from any member on.
//
// A member is named by where its header begins in the uncompressed tar. A plain tar is entered
// there without reading what lies before; a compressed one is read up to there. What a compressed
// one may unpack to is bounded, by its size and altogether. Nothing is ever written to disk, no
// program is run. Not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct archive;  // libarchive's

namespace riffle {

constexpr const char* kUnreadableShard = "unreadable shard";

// Thrown if nothing more can be read from a file.
class BrokenTar : public std::runtime_error {
 public:
  BrokenTar(std::string reason, const std::string& detail)
      : std::runtime_error(detail), reason_(std::move(reason)) {}
  // kUnreadableShard, "empty shard", "not a tar" or "broken shard".
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

struct TarMember {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t offset = 0;  // of its header
  bool is_file = false;
};

class Tar {
 public:
  // Opens the file before the member at `offset`, or the first after it. Everything throws
  // BrokenTar soon after *leave became true. Throws BrokenTar.
  Tar(const std::filesystem::path& path, std::int64_t offset, const std::atomic<bool>& leave);
  ~Tar();

  // Returns the next member, or nothing at the end. Throws BrokenTar.
  std::optional<TarMember> next();
  // Returns the bytes of the member that next() returned last. Allocates memory as they come, not
  // as the header claims. Throws BrokenTar.
  std::vector<std::byte> read();
  // Returns where the header of another member would begin, once next() returned nothing.
  std::int64_t end_offset() const { return end_offset_.value(); }

 private:
  struct File;
  struct Close {
    void operator()(::archive* archive) const;
  };

  void open(std::int64_t offset);
  bool is_compressed() const;
  void skip_rest();
  void require_stay() const;
  std::optional<TarMember> next_header();
  [[noreturn]] void throw_broken() const;

  const std::atomic<bool>& leave_;
  std::unique_ptr<File> file_;
  std::unique_ptr<::archive, Close> archive_;
  std::int64_t base_ = 0;  // where in the file the archive was entered
  bool has_member_ = false;
  std::uint64_t member_size_ = 0;
  std::optional<TarMember> first_;  // found on the way to `offset`
  std::optional<std::int64_t> end_offset_;
};

}  // namespace riffle
