// The files of the pictures that a pass keeps, written behind its back.
//
// A picture that enters is held in memory at first: most of those that enter leave again soon, and
// then no file is made and none removed. What is held is written by another thread when it takes
// kHeldBytes, or for a state. So at most twice that is in memory.
//
// Files of pictures that left stay until a state is durable that does not speak of them. The other
// thread does one thing after the other: a state is written when all pictures that it speaks of
// are. What fails there is thrown by the next call that has to wait for it.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "riffle/stream/stream.h"

namespace riffle {

class KeptFiles {
 public:
  static constexpr std::uint64_t kHeldBytes = std::uint64_t{256} << 20;

  // The folder need not be there yet, but the one that it is in must be.
  explicit KeptFiles(std::filesystem::path folder, std::uint64_t most_held = kHeldBytes)
      : folder_(std::move(folder)), most_held_(most_held) {}
  // Waits for the other thread.
  ~KeptFiles() = default;
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

  // Removes all files but these: what was written after the last state, and what should have been
  // removed then. Throws Error if a symbolic link is in the folder: nothing is read, written or
  // removed through one.
  void remove_others(const std::set<std::string>& known) const;

  // Takes the picture's file in and returns its path in the folder.
  std::string add(const Sample& sample);
  // Tells that the picture with this path is not kept any more.
  void leave(const std::string& file);

  // Writes what is held, makes all that was written to the file system durable, calls `write_state`
  // and removes the files of those that have left so far, all of it in the other thread.
  void save(std::function<void()> write_state);
  // Waits until all of that is done.
  void finish();
  // Removes the files of those that have left since. Requires that whoever continues from the last
  // state does not need them.
  void remove_left();

 private:
  using Content = std::shared_ptr<const std::vector<std::byte>>;
  using Held = std::map<std::string, Content>;

  Held take_held();
  // Waits for the work before it.
  void start(std::function<void()> work);
  // In the other thread.
  void write(const Held& pictures);
  void make_durable() const;
  void remove(const std::vector<std::string>& files) const;

  const std::filesystem::path folder_;
  const std::uint64_t most_held_;
  Held held_;
  std::uint64_t held_bytes_ = 0;
  std::vector<std::string> left_;         // files that are, or will be, in the folder
  std::set<std::filesystem::path> made_;  // folders; used by the other thread
  std::future<void> working_;             // uses the members above
};

}  // namespace riffle
