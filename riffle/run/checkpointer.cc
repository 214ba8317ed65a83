#include "riffle/run/checkpointer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>

#include <nlohmann/json.hpp>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/train/learner_state.h"

namespace riffle {
namespace {

// Appends that may wait for the disk; further pictures stay in the buffer until there is room.
constexpr std::size_t kMaxJobs = 4;
// Pictures copied at once, or one batch if that is more.
constexpr std::int64_t kMaxBytes = 16 << 20;
// The pause after a failure, which doubles with each further one: a full disk is not asked at every
// batch.
constexpr std::chrono::seconds kFirstRetry(1);
constexpr std::chrono::seconds kLastRetry(64);

}  // namespace

Checkpointer::Checkpointer(const RunFolder& folder, const Config& config, Learner& learner,
                           PictureLog log, const std::string& last)
    : folder_(folder),
      config_(config.checkpoint),
      config_text_(config_yaml(config)),
      learner_(learner),
      log_(std::move(log)),
      download_(learner.buffer().picture_device()),
      retry_after_(kFirstRetry) {
  status_.last = last;
  status_.last_update = last.empty() ? 0 : learner.update();
  lost_ = log_.take_lost();
  is_missing_.assign(static_cast<std::size_t>(learner.buffer().slots()), false);
  if (learner.ranks().first()) remove_old();
  remove_unused_elsewhere({});
  thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Checkpointer::keep_up(bool due, double seconds) {
  folder_.require_in_place();
  const auto start = Clock::now();
  bool crowded = false, writing = false, pausing = false;
  {
    const std::lock_guard lock(mutex_);
    due_ = due_ || due || std::exchange(checkpoint_failed_, false);
    pausing = start < retry_at_;
    // Ranks agree on when a checkpoint is made, and so cannot each choose another time.
    if (pausing && learner_.ranks().alone()) return;
    crowded = jobs_.size() >= kMaxJobs;
    writing = checkpoint_waits_;
  }
  if (!crowded && !pausing) hand_over();
  if (!learner_.ranks().alone()) {
    if (due && make_together(seconds)) {
      const std::lock_guard lock(mutex_);
      status_.stall_s = seconds_since(start);
    }
    due_ = false;
    return;
  }
  bool ready = !crowded && !writing && missing_.empty();
  const bool starves = due && starved_ && !writing;
  if (due_ && !ready && (config_.wait || starves)) {
    if (!config_.wait && std::has_single_bit(++waited_)) {
      log_warning("the disk is too slow for the stream: training waits until it has a checkpoint");
    }
    ready = catch_up();
  }
  const bool begun = due_ && ready;
  if (begun) push(present(seconds));
  if (learner_.update() > 0) stall_s_ += seconds_since(start);
  starved_ = !begun && (starved_ || (due && !writing));
  if (!begun) return;
  due_ = false;
  const std::lock_guard lock(mutex_);
  status_.stall_s = std::exchange(stall_s_, 0);
}

// Returns whether something was handed over. Copies for a few milliseconds at most: pictures that
// had to be held back follow little by little.
bool Checkpointer::hand_over() {
  auto& buffer = learner_.buffer();
  auto changed = buffer.take_changed();
  {
    const std::lock_guard lock(mutex_);
    changed.insert(changed.end(), lost_.begin(), lost_.end());
    lost_.clear();
  }
  for (const Slot slot : changed) {
    if (!is_missing_[static_cast<std::size_t>(slot)]) missing_.push_back(slot);
    is_missing_[static_cast<std::size_t>(slot)] = true;
  }
  Append append;
  const auto most =
      static_cast<std::size_t>(std::max(buffer.batch(), kMaxBytes / buffer.stored_bytes()));
  while (!missing_.empty() && append.slots.size() < most) {
    const Slot slot = missing_.front();
    missing_.pop_front();
    is_missing_[static_cast<std::size_t>(slot)] = false;
    if (!buffer.holds(slot)) continue;
    append.slots.push_back(slot);
    append.arrivals.push_back(buffer.info(slot).arrival);
  }
  if (append.slots.empty()) return false;
  append.stored = buffer.stored(append.slots);
  push(std::move(append));
  return true;
}

void Checkpointer::push(Job job) {
  {
    const std::lock_guard lock(mutex_);
    checkpoint_waits_ = checkpoint_waits_ || std::holds_alternative<Checkpoint>(job);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

std::string Checkpointer::present_name() const {
  return RunFolder::checkpoint_name(learner_.update(), learner_.batches_taken());
}

// Requires that all pictures are on disk or on their way there.
Checkpoint Checkpointer::present(double seconds) {
  Checkpoint checkpoint;
  checkpoint.name = present_name();
  checkpoint.update = learner_.update();
  checkpoint.samples_seen = learner_.samples_seen();
  checkpoint.seconds = seconds;
  checkpoint.config = config_text_;
  checkpoint.state = learner_.save();
  checkpoint.ranks = learner_.ranks().size();
  return checkpoint;
}

// Returns slot, segment and record of each picture that lives here; nothing if one is not on disk.
// Requires that the thread has nothing to do.
std::vector<std::int64_t> Checkpointer::own_places() {
  const ReplayBuffer& buffer = learner_.buffer();
  std::vector<std::int64_t> places;
  for (const Slot slot : buffer.live()) {
    if (!buffer.is_here(slot)) continue;
    const auto place = log_.find(slot, buffer.info(slot).arrival);
    if (!place) throw Error("some of its pictures could not be written", ErrorKind::failure);
    places.insert(places.end(), {slot, place->segment, place->record});
  }
  return places;
}

// Returns whether rank 0 has begun to write a checkpoint; otherwise some rank's disk failed.
bool Checkpointer::make_together(double seconds) {
  Ranks& ranks = learner_.ranks();
  std::vector<std::int64_t> own;
  std::string error;
  try {
    if (!catch_up()) throw Error(status().error, ErrorKind::failure);
    log_.sync();
    own = own_places();
  } catch (const std::exception& failure) {
    error = failure.what();
    const std::lock_guard lock(mutex_);
    const auto lost = log_.take_lost();
    lost_.insert(lost_.end(), lost.begin(), lost.end());
  }
  if (ranks.any(!error.empty())) {
    const std::lock_guard lock(mutex_);
    ++status_.failures;
    status_.error = error.empty() ? "the disk of another rank failed" : error;
    if (!error.empty() && std::has_single_bit(static_cast<std::uint64_t>(status_.failures))) {
      log_warning(cat("rank ", ranks.rank(), ": no checkpoint could be written (", error,
                      "); training continues"));
    }
    return false;
  }
  const std::string bytes(reinterpret_cast<const char*>(own.data()),
                          own.size() * sizeof(std::int64_t));
  std::map<Slot, PicturePlace> places;
  for (const std::string& part : ranks.gather_bytes(bytes)) {
    std::vector<std::int64_t> numbers(part.size() / sizeof(std::int64_t));
    std::memcpy(numbers.data(), part.data(), part.size());
    for (std::size_t i = 0; i < numbers.size(); i += 3) {
      places[numbers[i]] = {numbers[i + 1], numbers[i + 2]};
    }
  }
  Checkpoint checkpoint;
  if (ranks.first()) checkpoint = present(seconds);
  for (const Slot slot : learner_.buffer().live()) checkpoint.places.push_back(places.at(slot));
  log_.need(segments_of(checkpoint));
  remove_unused_elsewhere(segments_of(checkpoint));
  {
    // The disk has all pictures. What rank 0 writes besides may fail yet.
    const std::lock_guard lock(mutex_);
    retry_at_ = {};
    retry_after_ = kFirstRetry;
    if (!ranks.first()) status_.error.clear();
  }
  if (ranks.first()) push(std::move(checkpoint));
  return true;
}

// Waits until the disk has all pictures. Returns false if a write failed.
bool Checkpointer::catch_up() {
  wait();
  const std::int64_t failures = status().failures;
  // One at a time: copying ahead of the disk gains nothing.
  while (hand_over()) {
    wait();
    if (status().failures > failures) return false;
  }
  return true;
}

void Checkpointer::finish(double seconds) {
  Ranks& ranks = learner_.ranks();
  wait();
  folder_.require_in_place();
  const Status before = status();
  if (!ranks.any(ranks.first() && before.last != present_name())) return;
  if (!ranks.alone()) {
    make_together(seconds);
    wait();
  } else if (catch_up()) {
    push(present(seconds));
    wait();
  }
  const Status after = status();
  if (!ranks.any(after.failures > before.failures)) return;
  throw Error(after.failures > before.failures ? after.error : "the disk of another rank failed",
              ErrorKind::failure);
}

void Checkpointer::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

Checkpointer::Status Checkpointer::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !jobs_.empty() || ending_; });
    if (jobs_.empty()) return;
    Job& job = jobs_.front();
    lock.unlock();
    carry_out(job);
    lock.lock();
    if (std::holds_alternative<Checkpoint>(jobs_.front())) checkpoint_waits_ = false;
    jobs_.pop_front();
    changed_.notify_all();
  }
}

void Checkpointer::carry_out(Job& job) {
  try {
    folder_.require_in_place();
    if (auto* append = std::get_if<Append>(&job)) {
      log_.append(append->slots, append->arrivals, download_.to_host(append->stored));
    } else {
      write(std::get<Checkpoint>(job));
    }
  } catch (const std::exception& error) {
    failed(job, error.what());
  }
  const std::lock_guard lock(mutex_);
  status_.picture_bytes = log_.bytes_appended();
  const auto lost = log_.take_lost();
  lost_.insert(lost_.end(), lost.begin(), lost.end());
}

void Checkpointer::write(Checkpoint& checkpoint) {
  // Several ranks found their pictures before.
  if (checkpoint.ranks == 1) {
    log_.sync();
    const BufferState buffer = saved_buffer_state(checkpoint.state);
    for (std::size_t i = 0; i < buffer.live.size(); ++i) {
      const auto place = log_.find(buffer.live[i], buffer.samples[i].arrival);
      if (!place) throw Error("some of its pictures could not be written", ErrorKind::failure);
      checkpoint.places.push_back(*place);
    }
    log_.need(segments_of(checkpoint));
  }
  if (std::filesystem::exists(folder_.metrics())) AppendFile(folder_.metrics()).sync();
  write_checkpoint(folder_, checkpoint);
  {
    const std::lock_guard lock(mutex_);
    status_.last = checkpoint.name;
    status_.last_update = checkpoint.update;
    if (!status_.error.empty()) log_info(cat("checkpoints are written again: ", checkpoint.name));
    status_.error.clear();
    retry_after_ = kFirstRetry;
  }
  remove_old();
}

void Checkpointer::remove_old() {
  try {
    folder_.require_in_place();
    folder_.remove_uncommitted();
    log_.remove_unused(keep_newest_checkpoints(folder_, static_cast<std::size_t>(config_.keep)));
  } catch (const std::exception& unreadable) {
    // Too many pictures on disk are better than too few.
    log_warning(cat("old checkpoints and pictures are not removed: ", unreadable.what()));
  }
}

// On the ranks that write no checkpoints: removes segments that neither a checkpoint on disk nor
// one that is about to be needs. All ranks must call it, while the thread of rank 0 has nothing to
// do: rank 0 lists the checkpoints, since a network file system may show the others an old listing.
void Checkpointer::remove_unused_elsewhere(std::set<std::int64_t> needed) {
  Ranks& ranks = learner_.ranks();
  if (ranks.alone()) return;
  std::string listed;
  try {
    if (ranks.first()) {
      for (const auto& name : folder_.checkpoint_names()) {
        needed.merge(checkpoint_segments(folder_, name));
      }
      listed = nlohmann::json(needed).dump();
    }
  } catch (const std::exception&) {
    // A damaged one. Too many pictures on disk are better than too few.
  }
  listed = ranks.from_first(listed);
  if (ranks.first() || listed.empty()) return;
  log_.remove_unused(nlohmann::json::parse(listed).get<std::set<std::int64_t>>());
}

void Checkpointer::failed(const Job& job, const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++status_.failures;
  status_.error = why;
  if (const auto* append = std::get_if<Append>(&job)) {
    lost_.insert(lost_.end(), append->slots.begin(), append->slots.end());
  } else {
    checkpoint_failed_ = true;
  }
  retry_at_ = Clock::now() + retry_after_;
  retry_after_ = std::min(2 * retry_after_, kLastRetry);
  // Logs the 1st, 2nd, 4th, ... failure: a disk that stays full does not fill the log.
  if (!std::has_single_bit(static_cast<std::uint64_t>(status_.failures))) return;
  log_warning(cat("no checkpoint could be written (", why, "); training continues, the newest is ",
                  status_.last.empty() ? "none" : status_.last));
}

}  // namespace riffle
