#include "riffle/eval/embedding.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/Context.h>
#include <torch/types.h>
#include <unistd.h>

#include "riffle/augment/normalize.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/eval/picture_rounds.h"
#include "riffle/image/resize.h"
#include "riffle/tensors/side_work.h"

namespace riffle {
namespace {

constexpr std::size_t kProgressEvery = 1000;  // pictures
std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

void refuse_empty(std::size_t samples) {
  if (samples == 0) throw Error("the stream of a probe has no samples; it needs at least one");
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

// Encodes each round before what became of the round before it is used. On a GPU encodings have a
// stream of their own: work that is queued on the default stream meanwhile, by whoever uses the
// features, runs beside the next encoding instead of behind it.
class EncodingAhead : public RoundUser {
 public:
  EncodingAhead(Encoder& encoder, std::int64_t crop, const UseEmbedded& use, Ranks& ranks)
      : encoder_(encoder),
        crop_(crop),
        use_(use),
        ranks_(ranks),
        device_(device_of(encoder)),
        side_(device_) {}

  void take(std::vector<OwnedBatch> batches) override {
    Encoded next;
    next.batches = std::move(batches);
    const auto rank = static_cast<std::size_t>(ranks_.rank());
    if (rank < next.batches.size()) {
      next.features = side_.queue(
          [&] { return encode_pictures(encoder_, next.batches[rank].pictures, crop_); });
    }
    use_last();
    last_ = std::move(next);
  }

  void finish() override { use_last(); }

 private:
  struct Encoded {
    std::vector<OwnedBatch> batches;
    std::optional<SideWork::Queued> features;
  };

  void use_last() {
    if (!last_) return;
    const Encoded encoded = *std::exchange(last_, std::nullopt);
    const at::Tensor own = encoded.features ? encoded.features->result() : at::Tensor();
    const at::Tensor features = ranks_.gather_rows(own).to(device_);
    std::int64_t first = 0;
    for (const OwnedBatch& read : encoded.batches) {
      const std::int64_t rows = std::ssize(read.samples);
      use_({read.samples, features.narrow(0, first, rows), read.position});
      first += rows;
    }
  }

  Encoder& encoder_;
  const std::int64_t crop_;
  const UseEmbedded& use_;
  Ranks& ranks_;
  const at::Device device_;
  SideWork side_;
  std::optional<Encoded> last_;
};

}  // namespace

void require_label(const Sample& sample) {
  if (!sample.label.empty()) return;
  const std::string& key = sample.key;
  throw Error(cat("sample ", sample.index, key.empty() ? "" : cat(" ('", key, "')"),
                  " has no label; a probe needs a stream whose samples all have one"));
}

void require_first_label(Stream& stream) {
  if (stream.endless()) return;
  const auto first = stream.next();
  refuse_empty(first ? 1 : 0);
  require_label(*first);
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
                          const UseBatch& use, const IsStopped& is_stopped) {
  class Reading : public RoundUser {
   public:
    explicit Reading(const UseBatch& use) : use_(use) {}
    void take(std::vector<OwnedBatch> batches) override {
      const OwnedBatch& read = batches.front();
      use_({read.samples, read.pictures, read.position});
    }

   private:
    const UseBatch& use_;
  };
  Reading reading(use);
  return read_rounds(
      stream, {.max_samples = max_samples, .size = size, .batch = batch, .is_stopped = is_stopped},
      reading);
}

std::int64_t embed(Encoder& encoder, Stream& stream, std::int64_t max_samples, EncoderInput input,
                   std::int64_t batch, const UseEmbedded& use, Ranks& ranks,
                   const IsStopped& is_stopped) {
  EncodingAhead ahead(encoder, input.crop, use, ranks);
  return read_rounds(stream,
                     {.max_samples = max_samples,
                      .size = input.resize,
                      .batch = batch,
                      .for_gpu = device_of(encoder).is_cuda(),
                      .is_stopped = is_stopped},
                     ahead, ranks);
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
