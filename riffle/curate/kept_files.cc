#include "riffle/curate/kept_files.h"

#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/curate/originals.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

void refuse_link(const fs::path& path) {
  if (!fs::is_symlink(path)) return;
  throw Error(cat(path.string(), " leads out of the selection's folder; remove the link"));
}

}  // namespace

void KeptFiles::remove_others(const std::set<std::string>& known) const {
  if (!fs::exists(folder_)) return;
  refuse_link(folder_);
  std::vector<fs::path> strangers;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    refuse_link(entry.path());
    if (entry.is_regular_file() &&
        !known.contains(entry.path().lexically_relative(folder_).string())) {
      strangers.push_back(entry.path());
    }
  }
  for (const fs::path& path : strangers) fs::remove(path);
}

std::string KeptFiles::add(const Sample& sample) {
  const Content& content = sample.picture.file;
  if (!content) {
    throw Error(cat(sample.key, " cannot be read any more; the same command continues without it"),
                ErrorKind::failure);
  }
  std::string file = original_path(sample, *content);
  held_.emplace(file, content);
  held_bytes_ += content->size();
  if (held_bytes_ >= most_held_) {
    start([this, held = take_held()] { write(held); });
  }
  return file;
}

void KeptFiles::leave(const std::string& file) {
  const auto held = held_.find(file);
  if (held == held_.end()) {
    left_.push_back(file);
  } else {
    held_bytes_ -= held->second->size();
    held_.erase(held);
  }
}

void KeptFiles::save(std::function<void()> write_state) {
  start([this, held = take_held(), left = std::exchange(left_, {}),
         write_state = std::move(write_state)] {
    write(held);
    make_durable();
    write_state();
    remove(left);
  });
}

void KeptFiles::finish() {
  if (working_.valid()) working_.get();
}

void KeptFiles::remove_left() {
  finish();
  remove(std::exchange(left_, {}));
}

KeptFiles::Held KeptFiles::take_held() {
  held_bytes_ = 0;
  return std::exchange(held_, {});
}

void KeptFiles::start(std::function<void()> work) {
  finish();
  working_ = std::async(std::launch::async, [work = std::move(work)]() mutable {
    std::exchange(work, nullptr)();  // lets what it holds go when it is done
  });
}

void KeptFiles::write(const Held& pictures) {
  for (const auto& [file, content] : pictures) {
    const fs::path path = folder_ / file;
    if (made_.insert(path.parent_path()).second) make_folders(path.parent_path());
    Descriptor out(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    out.write(*content);
    // The disk begins at once, so that a state has little left to wait for.
    ::sync_file_range(out.number(), 0, 0, SYNC_FILE_RANGE_WRITE);
    out.close();
  }
}

void KeptFiles::make_durable() const {
  const Descriptor above(folder_.parent_path(), O_RDONLY | O_DIRECTORY);
  if (::syncfs(above.number()) != 0) {
    throw Error(cat("cannot flush ", above.path().string()), ErrorKind::failure);
  }
}

void KeptFiles::remove(const std::vector<std::string>& files) const {
  for (const std::string& file : files) fs::remove(folder_ / file);
}

}  // namespace riffle
