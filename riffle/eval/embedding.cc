#include "riffle/eval/embedding.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>

#include <ATen/Context.h>
#include <torch/types.h>
#include <unistd.h>

#include "riffle/augment/normalize.h"
#include "riffle/base/checksum.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/base/thread_pool.h"
#include "riffle/image/resize.h"
#include "riffle/stream/divided_reader.h"

namespace riffle {
namespace {

constexpr std::size_t kProgressEvery = 1000;  // pictures
// Pictures as the stream gives them that are held at once.
constexpr std::int64_t kFittedAtOnce = 32;

std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::size_t picture_bytes(int size) {
  return static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3;
}

void refuse_empty(std::size_t samples) {
  if (samples == 0) throw Error("the stream of a probe has no samples; it needs at least one");
}

std::string progress_line(std::int64_t done, std::int64_t total) {
  return total > 0 ? cat("read ", done, " of ", total, " pictures")
                   : cat("read ", done, " pictures");
}

struct OwnedBatch {
  // [samples, size, size, 3]; undefined if another rank encodes them.
  at::Tensor pictures;
  std::vector<Sample> samples;
  std::string position;
};

void drop_pixels(Picture& picture) {
  const auto file = picture.file;
  picture = {};
  picture.file = file;
}

OwnedBatch read_batch(DividedReader& reader, std::int64_t count, int size, ThreadPool& pool,
                      bool is_encoded_here, at::TensorOptions memory) {
  const std::size_t each = picture_bytes(size);
  OwnedBatch batch;
  const at::Tensor pictures =
      torch::empty({is_encoded_here ? count : 0, size, size, 3}, memory.dtype(torch::kUInt8));
  auto* to = pictures.data_ptr<std::uint8_t>();
  for (std::int64_t first = 0; first < count; first = std::ssize(batch.samples)) {
    const std::int64_t most = std::min(count - first, kFittedAtOnce);
    while (std::ssize(batch.samples) < first + most) {
      auto sample = reader.next();
      if (!sample) break;
      if (!is_encoded_here) drop_pixels(sample->picture);
      batch.samples.push_back(std::move(*sample));
    }
    const std::int64_t read = std::ssize(batch.samples) - first;
    pool.for_each(is_encoded_here ? read : 0, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(first + i);
      Picture& whole = batch.samples[at].picture;
      const auto file = whole.file;
      const Picture fitted = fit_square(std::exchange(whole, {}), size);
      whole.file = file;
      std::memcpy(to + at * each, fitted.rgb.data(), each);
    });
    if (read < most) break;
  }
  if (is_encoded_here) batch.pictures = pictures.narrow(0, 0, std::ssize(batch.samples));
  return batch;
}

// Batches that are read, then encoded at once: one for each rank if they divide the work.
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
Round finished_round(std::future<Round>& reading, Ranks& ranks) {
  if (ranks.alone()) return reading.get();
  Round round;
  std::string error;
  ErrorKind kind = ErrorKind::failure;
  try {
    round = reading.get();
  } catch (const Error& failure) {
    error = failure.what();
    kind = failure.kind();
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  error = ranks.first_error(error);
  if (!error.empty()) throw Error(error, kind);
  return round;
}

void require_same_pictures(const Round& round, Ranks& ranks) {
  std::string place;
  for (const OwnedBatch& batch : round.batches) {
    place += cat(batch.samples.size(), ' ', batch.position, '\n');
  }
  ranks.require_same(checksum(place), "the pictures", "all must see the same files");
}

enum class Divided { no, yes };
using UseRound = std::function<void(std::span<const OwnedBatch> batches)>;

// `memory`: where pictures are read into.
std::int64_t read_rounds(Stream& stream, std::int64_t max_samples, int size, std::int64_t batch,
                         Ranks& ranks, const IsStopped& is_stopped, Divided divided,
                         at::TensorOptions memory, const UseRound& use) {
  const int readers = divided == Divided::yes ? ranks.size() : 1;
  DividedReader source(stream,
                       readers == 1 ? StreamShare() : StreamShare{ranks.rank(), readers, batch});
  Caution caution;
  ThreadPool pool;
  std::int64_t begun = 0, done = 0;
  const auto read_round = [&] {
    Round round{.began = stream.position(), .asked = begun, .batches = {}};
    source.begin_round();
    for (int reader = 0; reader < readers && round.more; ++reader) {
      const std::int64_t count = max_samples > 0 ? std::min(batch, max_samples - begun) : batch;
      begun += count;
      OwnedBatch read =
          read_batch(source, count, size, pool, readers == 1 || reader == ranks.rank(), memory);
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
    for (bool more = true; more;) {
      const Round round = finished_round(reading, ranks);
      if (is_stopped && is_stopped()) break;
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
      use(round.batches);
      for (const OwnedBatch& read : round.batches) done += std::ssize(read.samples);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      show_progress(cat(progress_line(done, max_samples), ", ",
                        fixed(static_cast<double>(done) / seconds.count(), 0), "/s"));
    }
  } catch (...) {
    stream.stop();  // or the reading thread might wait for a camera forever
    throw;
  }
  if (done > 0) finish_progress();
  return done;
}

// Turns cuDNN's trials of algorithms off as long as it lives.
class WithoutTrials {
 public:
  WithoutTrials() : before_(at::globalContext().benchmarkCuDNN()) {
    at::globalContext().setBenchmarkCuDNN(false);
  }
  ~WithoutTrials() { at::globalContext().setBenchmarkCuDNN(before_); }
  WithoutTrials(const WithoutTrials&) = delete;
  WithoutTrials& operator=(const WithoutTrials&) = delete;

 private:
  bool before_;
};

}  // namespace

void require_label(const Sample& sample) {
  if (!sample.label.empty()) return;
  const std::string& key = sample.key;
  throw Error(cat("sample ", sample.index, key.empty() ? "" : cat(" ('", key, "')"),
                  " has no label; a probe needs a stream whose samples all have one"));
}

std::int64_t suitable_batch(at::Device device, std::int64_t size) {
  if (device.is_cpu()) return 256;
  constexpr std::int64_t kPixels = std::int64_t{1} << 23;  // the maps of more would fill small GPUs
  return std::clamp<std::int64_t>(kPixels / (size * size), 64, 1024);
}

at::Tensor encode_pictures(Encoder& encoder, const at::Tensor& pictures, std::int64_t crop) {
  const std::int64_t margin = (pictures.size(1) - crop) / 2;
  const at::Tensor seen =
      margin == 0 ? pictures : pictures.narrow(1, margin, crop).narrow(2, margin, crop);
  const at::Tensor there = seen.contiguous().to(device_of(encoder), /*non_blocking=*/true);
  return encode_frozen(encoder, normalize(there));
}

at::Device device_of(const Encoder& encoder) {
  const auto parameters = encoder.parameters();
  return parameters.empty() ? at::Device(at::kCPU) : parameters.front().device();
}

at::Tensor encode_frozen(Encoder& encoder, const at::Tensor& normalised) {
  const at::Device device = device_of(encoder);
  if (device.is_cpu()) return encoder.encode(normalised);
  const WithoutTrials by_rule;
  return encoder.encode(normalised.to(device));
}

LabelledPictures collect(Stream& stream, std::int64_t max_samples, int size) {
  const std::size_t each = picture_bytes(size);
  const std::uint64_t most = machine_memory() / 2 / each;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  LabelledPictures collected;
  while (max_samples == 0 || std::ssize(collected.labels) < max_samples) {
    auto sample = stream.next();
    if (!sample) break;
    require_label(*sample);
    sample->picture = fit_square(std::move(sample->picture), size);
    if (collected.labels.size() >= most) {
      throw Error(cat("the probe's stream continues after ", most, " pictures of ", size,
                      " px, which fill half of the memory; give a smaller number of samples"));
    }
    bytes->insert(bytes->end(), sample->picture.rgb.begin(), sample->picture.rgb.end());
    collected.labels.push_back(std::move(sample->label));
    if (collected.labels.size() % kProgressEvery == 0) {
      show_progress(progress_line(std::ssize(collected.labels), max_samples));
    }
  }
  if (collected.labels.size() >= kProgressEvery) finish_progress();
  refuse_empty(collected.labels.size());
  // The tensor keeps the bytes alive instead of copying them.
  collected.pictures = torch::from_blob(
      bytes->data(), {std::ssize(collected.labels), size, size, 3}, [bytes](void*) {},
      torch::kUInt8);
  return collected;
}

LabelledFeatures embed(Encoder& encoder, const LabelledPictures& pictures, std::int64_t batch) {
  const std::int64_t count = pictures.pictures.size(0);
  if (count != std::ssize(pictures.labels)) {
    throw std::logic_error(cat(count, " pictures have ", pictures.labels.size(), " labels"));
  }
  const std::int64_t at_once =
      batch > 0 ? batch : suitable_batch(device_of(encoder), pictures.pictures.size(1));
  at::Tensor features;
  for (std::int64_t begin = 0; begin < count; begin += at_once) {
    const std::int64_t rows = std::min(at_once, count - begin);
    const at::Tensor part = encode_pictures(encoder, pictures.pictures.narrow(0, begin, rows),
                                            pictures.pictures.size(1));
    if (begin == 0) features = torch::empty({count, part.size(1)}, part.options());
    features.narrow(0, begin, rows).copy_(part);
  }
  return {features, pictures.labels};
}

std::int64_t read_batches(Stream& stream, std::int64_t max_samples, int size, std::int64_t batch,
                          const UseBatch& use, Ranks& ranks, const IsStopped& is_stopped) {
  return read_rounds(stream, max_samples, size, batch, ranks, is_stopped, Divided::no, {},
                     [&](std::span<const OwnedBatch> round) {
                       const OwnedBatch& read = round.front();
                       use({read.samples, read.pictures, read.position});
                     });
}

std::int64_t embed(Encoder& encoder, Stream& stream, std::int64_t max_samples, EncoderInput input,
                   std::int64_t batch, const UseEmbedded& use, Ranks& ranks,
                   const IsStopped& is_stopped) {
  const auto rank = static_cast<std::size_t>(ranks.rank());
  // A GPU copies from pinned memory several times as fast, and without the host.
  const auto memory = at::TensorOptions().pinned_memory(device_of(encoder).is_cuda());
  return read_rounds(stream, max_samples, input.resize, batch, ranks, is_stopped, Divided::yes,
                     memory, [&](std::span<const OwnedBatch> round) {
                       at::Tensor features;
                       if (rank < round.size()) {
                         features = encode_pictures(encoder, round[rank].pictures, input.crop);
                       }
                       features = ranks.gather_rows(features).to(device_of(encoder));
                       std::int64_t first = 0;
                       for (const OwnedBatch& read : round) {
                         const std::int64_t rows = std::ssize(read.samples);
                         use({read.samples, features.narrow(0, first, rows), read.position});
                         first += rows;
                       }
                     });
}

LabelledFeatures embed(Encoder& encoder, Stream& stream, std::int64_t max_samples,
                       EncoderInput input, std::int64_t batch) {
  std::vector<at::Tensor> parts;
  LabelledFeatures embedded;
  embed(encoder, stream, max_samples, input, batch, [&](const EmbeddedBatch& read) {
    for (const Sample& sample : read.samples) {
      require_label(sample);
      embedded.labels.push_back(sample.label);
    }
    parts.push_back(read.features);
  });
  refuse_empty(embedded.labels.size());
  embedded.features = torch::cat(parts);
  return embedded;
}

}  // namespace riffle
