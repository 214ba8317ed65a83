#include "riffle/eval/picture_rounds.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <utility>

#include <torch/types.h>

#include "riffle/base/checksum.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/base/thread_pool.h"
#include "riffle/image/resize.h"
#include "riffle/stream/divided_reader.h"

namespace riffle {
namespace {

// Pictures as the stream gives them that are held at once.
constexpr std::int64_t kFittedAtOnce = 32;

void drop_pixels(Picture& picture) {
  const auto file = picture.file;
  picture = {};
  picture.file = file;
}

// `own`: whether it is this rank's.
OwnedBatch read_batch(DividedReader& reader, std::int64_t count, bool own,
                      const RoundsConfig& config, ThreadPool& pool) {
  const std::size_t each = picture_bytes(config.size);
  OwnedBatch batch;
  const auto memory = at::TensorOptions(torch::kUInt8).pinned_memory(config.for_gpu);
  const at::Tensor pictures = torch::empty({own ? count : 0, config.size, config.size, 3}, memory);
  auto* to = pictures.data_ptr<std::uint8_t>();
  for (std::int64_t first = 0; first < count; first = std::ssize(batch.samples)) {
    const std::int64_t most = std::min(count - first, kFittedAtOnce);
    while (std::ssize(batch.samples) < first + most) {
      auto sample = reader.next();
      if (!sample) break;
      if (!own) drop_pixels(sample->picture);
      batch.samples.push_back(std::move(*sample));
    }
    const std::int64_t read = std::ssize(batch.samples) - first;
    pool.for_each(own ? read : 0, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(first + i);
      Picture& whole = batch.samples[at].picture;
      const auto file = whole.file;
      const Picture fitted = fit_square(std::exchange(whole, {}), config.size);
      whole.file = file;
      std::memcpy(to + at * each, fitted.rgb.data(), each);
    });
    if (read < most) break;
  }
  if (own) batch.pictures = pictures.narrow(0, 0, std::ssize(batch.samples));
  return batch;
}

struct Round {
  // Where the stream was before it, and how many samples were asked for until then.
  std::string began;
  std::int64_t asked = 0;
  std::vector<OwnedBatch> batches;
  // Whether another round may follow.
  bool more = true;
  bool in_doubt = false;
};

// Returns the round that was read. Throws on all ranks what was thrown on one.
Round finished_round(std::future<Round>& reading, Ranks& ranks, RoundUser& user) {
  Round round;
  std::exception_ptr thrown;
  std::string error;
  ErrorKind kind = ErrorKind::failure;
  try {
    round = reading.get();
  } catch (const Error& failure) {
    thrown = std::current_exception();
    error = failure.what();
    kind = failure.kind();
  } catch (const std::exception& failure) {
    thrown = std::current_exception();
    error = failure.what();
  }
  error = ranks.first_error(error);
  if (!thrown && error.empty()) return round;
  user.finish();
  if (ranks.alone()) std::rethrow_exception(thrown);
  throw Error(error, kind);
}

void require_same_pictures(const Round& round, Ranks& ranks) {
  std::string place;
  for (const OwnedBatch& batch : round.batches) {
    place += cat(batch.samples.size(), ' ', batch.position, '\n');
  }
  ranks.require_same(checksum(place), "the pictures", "all must see the same files");
}

}  // namespace

std::string progress_line(std::int64_t done, std::int64_t total) {
  return total > 0 ? cat("read ", done, " of ", total, " pictures")
                   : cat("read ", done, " pictures");
}

std::size_t picture_bytes(int size) {
  return static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3;
}

std::int64_t read_rounds(Stream& stream, const RoundsConfig& config, RoundUser& user,
                         Ranks& ranks) {
  const std::int64_t max_samples = config.max_samples, batch = config.batch;
  DividedReader source(
      stream, ranks.alone() ? StreamShare() : StreamShare{ranks.rank(), ranks.size(), batch});
  Caution caution;
  ThreadPool pool;
  std::int64_t begun = 0, done = 0;
  const auto read_round = [&] {
    Round round{.began = stream.position(), .asked = begun, .batches = {}};
    source.begin_round();
    for (int reader = 0; reader < ranks.size() && round.more; ++reader) {
      const std::int64_t count = max_samples > 0 ? std::min(batch, max_samples - begun) : batch;
      begun += count;
      OwnedBatch read = read_batch(source, count, reader == ranks.rank(), config, pool);
      read.position = stream.position();
      round.more = std::ssize(read.samples) == count && (max_samples == 0 || begun < max_samples);
      if (!read.samples.empty()) round.batches.push_back(std::move(read));
    }
    round.in_doubt = source.in_doubt();
    return round;
  };
  const auto read_next = [&] { return std::async(std::launch::async, read_round); };
  std::future<Round> reading;
  const auto start = std::chrono::steady_clock::now();
  try {
    reading = read_next();
    bool stopped = false;
    for (bool more = true; more;) {
      Round round = finished_round(reading, ranks, user);
      stopped = config.is_stopped && config.is_stopped();
      if (stopped) break;
      if (ranks.any(round.in_doubt)) {
        begun = round.asked;
        const auto read_again = [&, began = round.began, rounds = caution.doubt()] {
          source.decode_all(began, rounds);
          return read_round();
        };
        reading = std::async(std::launch::async, read_again);
        continue;
      }
      caution.trust();
      require_same_pictures(round, ranks);
      more = round.more;
      if (round.batches.empty()) break;
      if (more) reading = read_next();
      for (const OwnedBatch& read : round.batches) done += std::ssize(read.samples);
      user.take(std::move(round.batches));
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      show_progress(cat(progress_line(done, max_samples), ", ",
                        fixed(static_cast<double>(done) / seconds.count(), 0), "/s"));
    }
    if (!stopped) user.finish();
  } catch (...) {
    stream.stop();  // or the reading thread might wait for a camera forever
    throw;
  }
  if (done > 0) finish_progress();
  return done;
}

}  // namespace riffle
