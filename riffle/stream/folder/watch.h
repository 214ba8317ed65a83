// Reports what changes in a folder and those below it, through the kernel's inotify.
//
// Not thread-safe, except for stop().
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace riffle {

struct FolderChange {
  enum class Kind {
    begun,        // a file was created, and is still to be written and closed
    file,         // a file was written and closed, moved in or linked
    folder,       // a folder is new, or was moved in: to be added, then read
    gone,         // a file was removed or moved away
    folder_gone,  // a folder was, with all below it
    overlooked    // changes were lost: all has to be read again; `path` is empty
  };
  Kind kind;
  std::string path;  // relative to the root
};

class FolderWatch {
 public:
  // Throws Error if the kernel cannot watch any more.
  explicit FolderWatch(std::filesystem::path root);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Watches a folder, relative to the root. Returns false if it is already watched, by whatever
  // name. A folder that is gone or unreadable is found out when it is read. Throws Error if the
  // kernel cannot watch any more.
  bool add(const std::string& folder);

  // Waits until something has changed or this many milliseconds have passed (-1: forever), and
  // returns what changed since the last call, or nothing if stopped. Throws Error if the root
  // itself is gone.
  std::optional<std::vector<FolderChange>> wait(int milliseconds);
  void stop();

 private:
  void forget_below(const std::string& folder);
  std::vector<FolderChange> read_changes();

  const std::filesystem::path root_;
  int events_ = -1;
  int stopped_ = -1;
  std::map<int, std::string> folders_;  // by the kernel's number
};

}  // namespace riffle
