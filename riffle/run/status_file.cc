#include "riffle/run/status_file.h"

#include <chrono>
#include <cstdio>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "riffle/base/clock.h"
#include "riffle/base/file.h"
#include "riffle/run/json_number.h"

namespace riffle {
namespace {

constexpr std::chrono::seconds kEvery(1);
constexpr std::size_t kMostBytes = 4096;

}  // namespace

StatusFile::StatusFile(const RunFolder& folder, std::function<void(RunStatus&)> complete)
    : folder_(folder), complete_(std::move(complete)), thread_([this] { run(); }) {}

StatusFile::~StatusFile() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  thread_.join();
}

void StatusFile::run() {
  bool ending = false;
  while (!ending) {
    try_to_write();
    std::unique_lock lock(mutex_);
    ending = ending_changed_.wait_for(lock, kEvery, [this] { return ending_; });
  }
  try_to_write();
}

void StatusFile::try_to_write() {
  try {
    write();
  } catch (const std::exception&) {
    // No memory, or no folder: nothing depends on the file.
  }
}

void StatusFile::write() {
  RunStatus status;
  {
    const std::lock_guard lock(mutex_);
    status = status_;
  }
  complete_(status);
  const nlohmann::ordered_json json = {{"time", seconds_since_1970()},
                                       {"state", status.state},
                                       {"update", status.update},
                                       {"samples_used", status.samples_used},
                                       {"samples_delivered", status.samples_delivered},
                                       {"seconds_since_sample", status.seconds_since_sample},
                                       {"seconds_unreachable", status.seconds_unreachable},
                                       {"buffer_size", status.buffer_size},
                                       {"buffer_capacity", status.buffer_capacity}};
  const auto path = folder_.status();
  const auto temporary = temporary_path(path);
  const std::string text = json.dump() + '\n';
  folder_.require_in_place();
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return;
  const bool written = ::write(file, text.data(), text.size()) == std::ssize(text);
  ::close(file);
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

std::optional<RunStatus> read_status(const RunFolder& folder) {
  try {
    const auto json = nlohmann::json::parse(read_text(folder.status(), kMostBytes));
    RunStatus status;
    json.at("time").get_to(status.time);
    json.at("state").get_to(status.state);
    const auto count = [&](const char* key) { return whole_number(json.at(key)).value(); };
    status.update = count("update");
    status.samples_used = count("samples_used");
    status.samples_delivered = count("samples_delivered");
    json.at("seconds_since_sample").get_to(status.seconds_since_sample);
    // Earlier versions did not write it.
    status.seconds_unreachable = json.value("seconds_unreachable", 0.0);
    status.buffer_size = count("buffer_size");
    status.buffer_capacity = count("buffer_capacity");
    return status;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace riffle
