// Tells what changes in a folder and those below it, through the kernel's inotify.
//
// wait() is called by one thread at a time, as are add() and the constructor; stop() by any.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace riffle {

struct FolderChange {
  enum class Kind {
    begun,        // a file that was created, and is still to be written and closed
    file,         // written and closed, moved in or linked
    folder,       // new, or moved in: to be added, then read
    gone,         // a file that was removed, moved away
    folder_gone,  // the same of a folder, with all below it
    overlooked    // changes were lost; `path` is empty: all has to be read again
  };
  Kind kind;
  std::string path;  // relative to the root
};

class FolderWatch {
 public:
  // Throws Error when the kernel cannot watch (more).
  explicit FolderWatch(std::filesystem::path root);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Watches a folder, relative to the root. False when it is watched already, by whatever name. One
  // that is gone or closed to us shows when it is read. Throws Error when the kernel can watch no
  // more.
  bool add(const std::string& folder);

  // What changed since the last call, once something has or so many milliseconds have passed (-1:
  // for ever). Nothing when stopped. Throws Error when the root itself is gone.
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
