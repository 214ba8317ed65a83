#include "riffle/curate/learning_encoder.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {

// The learner's stream: what was handed over, and a wait for more.
class LearningEncoder::Passing : public Stream {
 public:
  void add(Sample sample) {
    const std::lock_guard lock(mutex_);
    samples_.push_back(std::move(sample));
    changed_.notify_one();
  }

  std::optional<Sample> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || !samples_.empty(); });
    if (stopped_) return std::nullopt;
    Sample sample = std::move(samples_.front());
    samples_.pop_front();
    ++given_;
    return sample;
  }
  std::string position() const override {
    const std::lock_guard lock(mutex_);
    return std::to_string(given_);
  }
  void seek(const std::string& position) override {
    const std::lock_guard lock(mutex_);
    given_ = parse_integer(position, "the position of a stream");
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sample> samples_;
  std::int64_t given_ = 0;
  bool stopped_ = false;
};

LearningEncoder::LearningEncoder(const LearnerConfig& config)
    : config_(config), passing_(std::make_unique<Passing>()) {
  if (config.train.clock != ClockKind::lockstep) {
    throw Error("an encoder that learns on the way needs train.clock=lockstep");
  }
  learner_ = std::make_unique<Learner>(config, *passing_);
}

LearningEncoder::~LearningEncoder() = default;

Encoder& LearningEncoder::encoder() { return learner_->objective(); }
std::int64_t LearningEncoder::batch() const { return config_.train.samples_per_stream_batch(); }
int LearningEncoder::size() const { return static_cast<int>(config_.stored_size()); }
std::int64_t LearningEncoder::updates() const { return learner_->update(); }

void LearningEncoder::learn(std::span<const Sample> samples, const at::Tensor& pictures) {
  if (std::ssize(samples) < batch()) return;
  const auto* rows = pictures.const_data_ptr<std::uint8_t>();
  for (const Sample& sample : samples) {
    Sample shown{Picture(size(), size()), sample.index, sample.clip, sample.label, sample.key};
    std::memcpy(shown.picture.rgb.data(), rows, shown.picture.rgb.size());
    rows += shown.picture.rgb.size();
    passing_->add(std::move(shown));
  }
  // Either takes the one batch that is there.
  if (!learner_->buffer().full()) learner_->fill();
  if (!learner_->buffer().full()) return;
  for (std::int64_t i = 0; i < config_.updates_per_batch(); ++i) learner_->advance(false);
}

void LearningEncoder::write(const std::filesystem::path& path) {
  write_encoder(path, encoder_weights(learner_->objective(), config_.model, config_.augment.size));
}

NamedTensors LearningEncoder::save() {
  NamedTensors state;
  add_part(state, "learner.", learner_->save());
  state.emplace_back("pictures", learner_->buffer().stored(learner_->buffer().live()).cpu());
  return state;
}

void LearningEncoder::restore(const NamedTensors& state) {
  learner_->restore(find_part(state, "learner."));
  learner_->buffer().put_stored(learner_->buffer().live(), find_tensor(state, "pictures"));
}

}  // namespace riffle
