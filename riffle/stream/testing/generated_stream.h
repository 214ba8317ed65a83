// For tests: a small stream in memory, each sample of which tells where it comes from.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/testing/recording.h"

namespace riffle {

struct GeneratedStreamOptions {
  std::int64_t samples = 100;
  std::int64_t clip_length = 0;  // 0: stills
  std::int64_t first_clip = 0;
  std::int64_t labels = 0;        // "a", "b", ... drawn at random; 0: none
  std::int64_t broken_every = 0;  // the last of every N items is skipped; 0: none
  int width = 12, height = 9;
  bool waits = false;  // waits at the end until stop()
};

class GeneratedStream : public Stream {
 public:
  explicit GeneratedStream(const GeneratedStreamOptions& options) : options_(options) {}

  std::optional<Sample> next() override {
    while (options_.broken_every > 0 && at_ < options_.samples &&
           at_ % options_.broken_every == options_.broken_every - 1) {
      ++at_;
      ++skipped_;
    }
    if (at_ >= options_.samples) {
      if (options_.waits) wait_for_stop();
      return std::nullopt;
    }
    Sample sample;
    const auto number = static_cast<std::uint64_t>(at_);
    Random random(1, Purpose("generated stream"), number);
    sample.picture = Picture(options_.width, options_.height);
    for (auto& value : sample.picture.rgb) value = static_cast<std::uint8_t>(random.below(256));
    sample.index = given_++;
    if (options_.clip_length > 0) {
      sample.clip = options_.first_clip + at_ / options_.clip_length;
    }
    if (options_.labels > 0) {
      sample.label = std::string(
          1, static_cast<char>('a' + random.below(static_cast<std::uint64_t>(options_.labels))));
    }
    sample.key = cat("item ", at_);
    ++at_;
    return sample;
  }

  // Returns whether next() waits, or has waited.
  bool waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  std::string position() const override { return cat(at_, " ", given_, " %"); }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    if (parts.size() != 3 || parts[2] != "%")
      throw Error(cat("'", position, "' is not a position"));
    const auto at = parse_integer(parts[0], "at");
    given_ = static_cast<std::uint64_t>(parse_integer(parts[1], "given"));
    at_ = at;
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
  }

  std::map<std::string, std::int64_t> skipped() const override {
    if (skipped_ == 0) return {};
    return {{"broken", skipped_}};
  }

 private:
  void wait_for_stop() {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    wake_.wait(lock, [this] { return stopped_; });
  }

  const GeneratedStreamOptions options_;
  std::int64_t at_ = 0;
  std::uint64_t given_ = 0;
  std::int64_t skipped_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false, waiting_ = false;
};

inline StreamFactory generated(const GeneratedStreamOptions& options) {
  return [options] { return std::make_unique<GeneratedStream>(options); };
}

inline std::vector<Sample> take(Stream& stream, std::size_t count = 1'000'000) {
  std::vector<Sample> samples;
  while (samples.size() < count) {
    auto sample = stream.next();
    if (!sample) break;
    samples.push_back(std::move(*sample));
  }
  return samples;
}

inline std::vector<std::string> keys(const std::vector<Sample>& samples) {
  std::vector<std::string> keys;
  for (const auto& sample : samples) keys.push_back(sample.key);
  return keys;
}

inline std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

inline void expect_numbered(const std::vector<Sample>& samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i].index, i);
}

}  // namespace riffle
