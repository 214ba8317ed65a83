// A look at a stream: how fast it comes, what is in it, how correlated it is, and a few of its
// pictures in order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "riffle/image/picture.h"
#include "riffle/stream/stream.h"

namespace riffle {

struct SurveyOptions {
  std::int64_t samples = 1000;  // to read at most
  std::int64_t batch = 256;     // consecutive samples that pairs are counted in
  int shown = 96;               // pictures kept, evenly spaced over what was read
  int shown_size = 80;          // their side in pixels
};

struct ShownSample {
  Picture picture;
  std::uint64_t number = 0;  // among those read
  std::int64_t clip = kNoClip;
};

struct Survey {
  std::int64_t samples = 0;
  double seconds = 0;  // spent waiting for the stream
  int least_width = 0, most_width = 0;
  int least_height = 0, most_height = 0;
  // The number of clips, and of samples with each label; samples without one do not count.
  std::int64_t clips = 0;
  std::map<std::string, std::int64_t> labels;
  std::map<std::string, std::int64_t> skipped;
  // The mean over full batches of consecutive samples, or over all samples if they fill none.
  double same_clip_pairs = 0;
  // The share of neighbours that come from one clip.
  double same_clip_neighbours = 0;
  // What pair_correlation() expects of such a batch, given the neighbours.
  double expected_pairs = 0;
  std::vector<ShownSample> shown;

  double frames_per_s() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

// Reads the stream from where it is, until `is_stopped`, if given, returns true. Calls `progress`,
// if given, now and then with what is known so far (without the pictures). Memory does not grow
// with the number of samples, except for the sets of clips and labels.
Survey survey_stream(Stream& stream, const SurveyOptions& options,
                     const std::function<void(const Survey&)>& progress = {},
                     const std::function<bool()>& is_stopped = {});

}  // namespace riffle
