#include "riffle/stream/shapes/sample_spool.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

// Of each cell: enough for a disk to work in long stretches.
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

struct Header {
  std::uint64_t key;
  std::uint64_t index;
  std::int64_t clip;
  std::int64_t time;
  double seconds;
  std::int32_t width;
  std::int32_t height;
  std::uint32_t label_bytes;
  std::uint32_t name_bytes;
  std::uint64_t file_bytes;  // 0: the picture has no file
};

Descriptor temporary_file() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  if (error) {
    throw Error(cat("the folder for temporary files cannot be used: ", error.message(),
                    "; name another in TMPDIR"),
                ErrorKind::failure);
  }
  std::string path = (folder / "riffle-spool-XXXXXX").string();
  const int made = ::mkstemp(path.data());
  if (made < 0) {
    throw Error(cat("cannot make a temporary file ", path, ": ", std::strerror(errno),
                    "; name another folder in TMPDIR"),
                ErrorKind::failure);
  }
  ::close(made);
  Descriptor file(path, O_RDWR | O_CLOEXEC);
  std::filesystem::remove(path);
  return file;
}

}  // namespace

void SampleSpool::append(std::size_t cell, const KeyedSample& keyed) {
  const Sample& sample = keyed.sample;
  const Header header = {keyed.key,
                         sample.index,
                         sample.clip,
                         sample.time,
                         sample.seconds,
                         sample.picture.width,
                         sample.picture.height,
                         static_cast<std::uint32_t>(sample.label.size()),
                         static_cast<std::uint32_t>(sample.key.size()),
                         sample.picture.file ? sample.picture.file->size() : 0};
  Cell& to = cells_[cell];
  to.buffer.append(reinterpret_cast<const char*>(&header), sizeof(header));
  to.buffer += sample.label;
  to.buffer += sample.key;
  to.buffer.append(reinterpret_cast<const char*>(sample.picture.rgb.data()),
                   sample.picture.rgb.size());
  if (header.file_bytes > 0) {
    to.buffer.append(reinterpret_cast<const char*>(sample.picture.file->data()), header.file_bytes);
  }
  if (to.buffer.size() >= kBufferBytes) flush(to);
}

void SampleSpool::flush(Cell& cell) {
  if (cell.file.empty()) cell.file.push_back(temporary_file());
  try {
    cell.file.front().write(std::as_bytes(std::span(cell.buffer)));
  } catch (const Error& error) {
    throw Error(cat("samples that wait for their turn do not fit on the disk (", error.what(),
                    "); name a folder with more room in TMPDIR, or let the shape hold more: "
                    "memory=MiB"),
                ErrorKind::failure);
  }
  cell.written += cell.buffer.size();
  cell.buffer = {};
}

std::vector<KeyedSample> SampleSpool::take(std::size_t number) {
  Cell& cell = cells_[number];
  std::string content(static_cast<std::size_t>(cell.written), '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t got = ::pread(cell.file.front().number(), content.data() + have,
                                content.size() - have, static_cast<off_t>(have));
    if (got <= 0) {
      throw Error(cat("cannot read what was spooled: ", std::strerror(errno)), ErrorKind::failure);
    }
    have += static_cast<std::size_t>(got);
  }
  content += cell.buffer;
  cell = {};

  std::vector<KeyedSample> samples;
  for (const char* at = content.data(); at < content.data() + content.size();) {
    Header header;
    std::memcpy(&header, at, sizeof(header));
    at += sizeof(header);
    KeyedSample keyed{header.key, {}};
    Sample& sample = keyed.sample;
    sample.index = header.index;
    sample.clip = header.clip;
    sample.time = header.time;
    sample.seconds = header.seconds;
    sample.label.assign(at, header.label_bytes);
    at += header.label_bytes;
    sample.key.assign(at, header.name_bytes);
    at += header.name_bytes;
    sample.picture = Picture(header.width, header.height);
    std::memcpy(sample.picture.rgb.data(), at, sample.picture.rgb.size());
    at += sample.picture.rgb.size();
    if (header.file_bytes > 0) {
      const auto* file = reinterpret_cast<const std::byte*>(at);
      sample.picture.file =
          std::make_shared<const std::vector<std::byte>>(file, file + header.file_bytes);
      at += header.file_bytes;
    }
    samples.push_back(std::move(keyed));
  }
  return samples;
}

}  // namespace riffle
