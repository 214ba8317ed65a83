#include "riffle/train/intake.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "riffle/base/clock.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"

namespace riffle {
Intake::Intake(Stream& stream, std::int64_t batch, int picture_size, std::size_t ahead,
               at::Device device, StreamShare share)
    : stream_(stream),
      batch_(batch),
      picture_size_(picture_size),
      ahead_(ahead),
      share_(share),
      reader_(stream, {share.reader, share.readers, batch}),
      upload_(device) {}

Intake::~Intake() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Intake::start() {
  if (thread_.joinable()) return;
  last_ended_.position = stream_.position();
  thread_ = std::thread([this] { run(); });
}

std::optional<StreamBatch> Intake::take() {
  start();
  std::unique_lock lock(mutex_);
  const auto known = [&] { return !batches_.empty() || finished_ || stopping_; };
  if (!known()) {
    const auto start = Clock::now();
    changed_.wait(lock, known);
    waits_.learner_s += seconds_since(start);
  }
  last_began_ = last_ended_;
  last_in_doubt_ = !stopping_ && batches_.empty() && in_doubt_;
  if (stopping_) return std::nullopt;
  if (batches_.empty()) {
    rethrow_error();
    return std::nullopt;
  }
  auto batch = std::move(batches_.front());
  batches_.pop_front();
  last_ended_ = {batch.position, last_began_.samples + share_.readers * batch_};
  changed_.notify_all();
  return batch;
}

void Intake::read_again(std::int64_t batches) {
  {
    const std::lock_guard lock(mutex_);
    batches_.clear();
    finished_ = false;
    in_doubt_ = false;
    left_out_ = 0;
    error_ = nullptr;
    last_ended_ = last_began_;
    samples_ = last_began_.samples;
    again_ = {last_began_.position, batches};
  }
  changed_.notify_all();
}

std::size_t Intake::ready() {
  start();
  const std::lock_guard lock(mutex_);
  return batches_.empty() && (error_ || in_doubt_) ? 1 : batches_.size();
}

bool Intake::ended() {
  const std::lock_guard lock(mutex_);
  return stopping_ || (finished_ && batches_.empty() && !error_ && !in_doubt_);
}

std::int64_t Intake::left_out() {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

void Intake::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stream_.stop();
  changed_.notify_all();
}

Intake::Waits Intake::waits() {
  const std::lock_guard lock(mutex_);
  Waits waits = waits_;
  if (held_since_) waits.reader_s += seconds_since(*held_since_);
  return waits;
}

Intake::Arrivals Intake::arrivals() {
  const std::lock_guard lock(mutex_);
  const bool waits = !held_since_ && !finished_;
  return {samples_, waits ? seconds_since(last_sample_) : 0, stream_.unreachable_s()};
}

void Intake::rethrow_error() {
  if (!error_) return;
  try {
    std::rethrow_exception(std::exchange(error_, nullptr));
  } catch (const Error& error) {
    throw StreamError(error.what(), error.kind());
  } catch (const std::exception& error) {
    // Libraries may say more than a line.
    const std::string said = error.what();
    throw StreamError(cat("the stream failed: ", said.substr(0, said.find('\n'))),
                      ErrorKind::failure);
  }
}

std::optional<StreamBatch> Intake::read_batch() {
  std::optional<Again> again;
  {
    const std::lock_guard lock(mutex_);
    again = std::exchange(again_, std::nullopt);
  }
  if (again) reader_.decode_all(again->position, again->batches);
  reader_.begin_round();
  StreamBatch batch;
  batch.samples.reserve(static_cast<std::size_t>(batch_));
  for (std::int64_t read = 0; read < share_.readers * batch_; ++read) {
    auto sample = reader_.next();
    const std::lock_guard lock(mutex_);
    if (again_) return std::nullopt;
    if (!sample) {
      if (!reader_.in_doubt()) left_out_ = read;
      return std::nullopt;
    }
    ++samples_;
    last_sample_ = Clock::now();
    sample->time = static_cast<std::int64_t>(1000 * seconds_since_1970());
    if (read / batch_ == share_.reader) batch.samples.push_back(std::move(*sample));
  }
  const at::Tensor pictures =
      upload_.host_memory({batch_, picture_size_, picture_size_, 3}, at::kByte);
  auto* rows = pictures.mutable_data_ptr<std::uint8_t>();
  const std::int64_t bytes = pictures.stride(0);
  resizing_.for_each(batch_, [&](std::int64_t i) {
    Picture& picture = batch.samples[static_cast<std::size_t>(i)].picture;
    std::ranges::copy(fit_square(std::exchange(picture, {}), picture_size_).rgb, rows + i * bytes);
  });
  batch.pictures = upload_.to_device(pictures);
  batch.position = stream_.position();
  batch.skipped = stream_.skipped();
  batch.period = stream_.period();
  return batch;
}

void Intake::run() {
  while (true) {
    std::optional<StreamBatch> batch;
    std::exception_ptr error;
    try {
      batch = read_batch();
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    const auto told = [&] { return stopping_ || again_.has_value(); };
    if (batch && !told()) {
      held_since_ = Clock::now();
      changed_.wait(lock, [&] { return batches_.size() < ahead_ || told(); });
      waits_.reader_s += seconds_since(*held_since_);
      held_since_.reset();
      last_sample_ = Clock::now();
      if (!again_) batches_.push_back(std::move(*batch));
    } else if (stopping_ || !again_) {
      error_ = error;
      in_doubt_ = reader_.in_doubt();
      finished_ = true;
    }
    changed_.notify_all();
    // Another reader may be in doubt about what is the end to this one.
    if (finished_ && share_.readers > 1) changed_.wait(lock, told);
    if (stopping_ || (finished_ && !again_)) break;
  }
}

}  // namespace riffle
