// For tests: what a disk may hold after a power cut, from the steps that record_writes.cc wrote
// down.
//
// The model is POSIX's, weaker than what common file systems keep. What was written to a file
// before an fsync of it is there. Of each write since, all, a beginning or nothing is, whatever
// became of the others. Names (created, renamed, removed) are there as of the last fsync of their
// folder; of later changes any may be missing, but a rename happens whole or not at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "riffle/base/random.h"

namespace riffle {

struct DiskStep {
  // c: creates a file, w: writes at `number`, t: cuts to `number`, s: flushes a file, d: flushes a
  // folder, r: renames to `other`, u: removes, m: makes a folder.
  char kind = 0;
  std::uint64_t inode = 0;
  std::int64_t number = 0;
  std::filesystem::path path;
  std::filesystem::path other;
  std::string bytes;
};

inline std::vector<DiskStep> read_disk_steps(const std::filesystem::path& log) {
  std::ifstream in(log, std::ios::binary);
  std::vector<DiskStep> steps;
  DiskStep step;
  std::size_t path = 0, other = 0, bytes = 0;
  while (in >> step.kind >> step.inode >> step.number >> path >> other >> bytes) {
    in.get();
    const auto text = [&](std::size_t length) {
      std::string all(length, '\0');
      in.read(all.data(), static_cast<std::streamsize>(length));
      return all;
    };
    step.path = text(path);
    step.other = text(other);
    step.bytes = text(bytes);
    steps.push_back(step);
  }
  return steps;
}

// How much of what was not flushed is there: each change by itself with this probability.
struct Surviving {
  Random* random;
  float share;

  bool all() const { return share >= 1; }
  bool keeps() const { return all() || random->chance(share); }
};

class ReplayedDisk {
 public:
  // Requires steps that begin with an empty folder.
  explicit ReplayedDisk(std::span<const DiskStep> steps) {
    for (const auto& step : steps) take(step);
  }

  // Writes to `target` what may be left of `folder`.
  void write(const std::filesystem::path& folder, const std::filesystem::path& target,
             const Surviving& surviving) const {
    std::map<std::filesystem::path, std::optional<std::size_t>> names;  // nothing: a folder
    for (const auto& [parent, changes] : folders_) {
      for (std::size_t i = 0; i < changes.all.size(); ++i) {
        if (i >= changes.flushed && !surviving.keeps()) continue;
        const Change& change = changes.all[i];
        if (change.kind == 'u' || change.kind == 'r') names.erase(change.path);
        if (change.kind == 'r') names[change.other] = change.file;
        if (change.kind == 'c') names[change.path] = change.file;
        if (change.kind == 'm') names[change.path] = std::nullopt;
      }
    }
    std::filesystem::create_directories(target);
    for (const auto& [path, file] : names) {  // folders come before what is in them
      const auto to = target / path.lexically_relative(folder);
      if (!std::filesystem::exists(to.parent_path())) continue;
      if (!file) {
        std::filesystem::create_directory(to);
      } else {
        std::ofstream(to, std::ios::binary) << content(files_[*file], surviving);
      }
    }
  }

 private:
  struct File {
    std::vector<DiskStep> changes;
    std::size_t flushed = 0;
  };
  struct Change {
    char kind;
    std::filesystem::path path, other;
    std::size_t file = 0;
  };
  struct Folder {
    std::vector<Change> all;
    std::size_t flushed = 0;
  };

  void take(const DiskStep& step) {
    auto& folder = folders_[step.path.parent_path()].all;
    switch (step.kind) {
      case 'c':
        by_inode_[step.inode] = names_[step.path] = files_.size();
        folder.push_back({'c', step.path, {}, files_.size()});
        files_.emplace_back();
        break;
      case 'w':
      case 't':
        files_.at(by_inode_.at(step.inode)).changes.push_back(step);
        break;
      case 's': {
        auto& file = files_.at(by_inode_.at(step.inode));
        file.flushed = file.changes.size();
        break;
      }
      case 'd':
        folders_[step.path].flushed = folders_[step.path].all.size();
        break;
      case 'r':
        if (step.path.parent_path() != step.other.parent_path()) {
          throw std::logic_error("a rename from one folder to another is not modelled");
        }
        folder.push_back({'r', step.path, step.other, names_.at(step.path)});
        names_[step.other] = names_.at(step.path);
        names_.erase(step.path);
        break;
      default:  // u, m
        folder.push_back({step.kind, step.path, {}});
    }
  }

  static std::string content(const File& file, const Surviving& surviving) {
    std::string bytes;
    for (std::size_t i = 0; i < file.changes.size(); ++i) {
      const DiskStep& change = file.changes[i];
      const bool sure = i < file.flushed || surviving.all();
      if (!sure && !surviving.keeps()) continue;
      const auto at = static_cast<std::size_t>(change.number);
      if (change.kind == 't') {
        bytes.resize(at);
        continue;
      }
      const std::size_t torn = sure || surviving.keeps()
                                   ? change.bytes.size()
                                   : surviving.random->below(change.bytes.size() + 1);
      if (bytes.size() < at + torn) bytes.resize(at + torn);
      bytes.replace(at, torn, change.bytes, 0, torn);
    }
    return bytes;
  }

  std::vector<File> files_;
  std::map<std::uint64_t, std::size_t> by_inode_;
  std::map<std::filesystem::path, std::size_t> names_;
  std::map<std::filesystem::path, Folder> folders_;
};

}  // namespace riffle
