#include "riffle/stream/folder/watch.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/folder/unfinished_file.h"

namespace riffle {
namespace {

using Kind = FolderChange::Kind;

[[noreturn]] void throw_cannot_watch(const std::filesystem::path& path) {
  const char* hint = errno == ENOSPC || errno == EMFILE
                         ? "; the kernel's fs.inotify limits are reached (sysctl fs.inotify)"
                         : "";
  throw Error(cat("cannot watch the folder ", path.string(), ": ", std::strerror(errno), hint),
              ErrorKind::failure);
}

bool is_folder(const std::filesystem::path& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

FolderWatch::FolderWatch(std::filesystem::path root) : root_(std::move(root)) {
  events_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (events_ < 0) throw_cannot_watch(root_);
  stopped_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stopped_ >= 0) return;
  ::close(events_);
  throw_cannot_watch(root_);
}

FolderWatch::~FolderWatch() {
  ::close(events_);
  ::close(stopped_);
}

bool FolderWatch::add(const std::string& folder) {
  const auto path = root_ / folder;
  const int number = ::inotify_add_watch(events_, path.c_str(),
                                         IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_MOVED_FROM |
                                             IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR);
  if (number >= 0) return folders_.emplace(number, folder).second;
  if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return true;
  throw_cannot_watch(path);
}

std::optional<std::vector<FolderChange>> FolderWatch::wait(int milliseconds) {
  std::array<pollfd, 2> ready = {pollfd{stopped_, POLLIN, 0}, pollfd{events_, POLLIN, 0}};
  ::poll(ready.data(), ready.size(), milliseconds);
  if (ready[0].revents != 0) return std::nullopt;
  return read_changes();
}

void FolderWatch::stop() {
  const std::uint64_t one = 1;
  // Can only fail if it was stopped 2^64 times before.
  [[maybe_unused]] const auto written = ::write(stopped_, &one, sizeof(one));
}

void FolderWatch::forget_below(const std::string& folder) {
  for (auto watched = folders_.begin(); watched != folders_.end();) {
    if (watched->second == folder || watched->second.starts_with(folder + '/')) {
      ::inotify_rm_watch(events_, watched->first);
      watched = folders_.erase(watched);
    } else {
      ++watched;
    }
  }
}

std::vector<FolderChange> FolderWatch::read_changes() {
  std::vector<FolderChange> changes;
  alignas(inotify_event) std::array<char, std::size_t{64} << 10> buffer;
  const auto count = ::read(events_, buffer.data(), buffer.size());
  for (std::size_t at = 0; count > 0 && at < static_cast<std::size_t>(count);) {
    const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
    at += sizeof(inotify_event) + event.len;
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      changes.push_back({Kind::overlooked, ""});
      continue;
    }
    const auto folder = folders_.find(event.wd);
    if (folder == folders_.end()) continue;                 // forgotten meanwhile
    if ((event.mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) {  // the folder is gone
      if (folder->second.empty()) {
        throw Error(cat("the watched folder ", root_.string(), " is gone"), ErrorKind::failure);
      }
      if ((event.mask & IN_IGNORED) != 0) folders_.erase(folder);
      continue;
    }
    const std::string_view name = event.len > 0 ? event.name : "";
    if (name.empty() || name.starts_with('.')) continue;
    auto path = folder->second.empty() ? std::string(name) : cat(folder->second, '/', name);
    const bool leaves = (event.mask & (IN_MOVED_FROM | IN_DELETE)) != 0;
    const bool created = (event.mask & IN_CREATE) != 0;
    if ((event.mask & IN_ISDIR) != 0) {
      if (leaves) {
        forget_below(path);
        changes.push_back({Kind::folder_gone, std::move(path)});
      } else {
        changes.push_back({Kind::folder, std::move(path)});
      }
    } else if (leaves) {
      changes.push_back({Kind::gone, std::move(path)});
    } else if (is_folder(root_ / path)) {  // a link to one
      changes.push_back({Kind::folder, std::move(path)});
    } else {
      // A link has all its bytes at once, unlike a file that was just created.
      const bool whole = !created || is_link(root_ / path);
      changes.push_back({whole ? Kind::file : Kind::begun, std::move(path)});
    }
  }
  return changes;
}

}  // namespace riffle
