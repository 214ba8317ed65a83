#include "riffle/stream/survey.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "riffle/image/resize.h"
#include "riffle/stream/pairs.h"

namespace riffle {
namespace {

// Keeps samples evenly spaced over a sequence of unknown length: every n-th, and once there are
// twice as many as asked for, drops every other one and doubles n.
class EvenlySpaced {
 public:
  EvenlySpaced(int wanted, int size) : wanted_(static_cast<std::size_t>(wanted)), size_(size) {}

  void add(Sample sample) {
    const std::uint64_t number = seen_++;
    if (number % every_ != 0 || wanted_ == 0) return;
    kept_.push_back({fit_square(std::move(sample.picture), size_), number, sample.clip});
    if (kept_.size() < 2 * wanted_) return;
    for (std::size_t i = 1; 2 * i < kept_.size(); ++i) kept_[i] = std::move(kept_[2 * i]);
    kept_.resize(wanted_);
    every_ *= 2;
  }

  std::vector<ShownSample> take() {
    if (kept_.size() <= wanted_) return std::move(kept_);
    std::vector<ShownSample> chosen;
    for (std::size_t i = 0; i < wanted_; ++i) {
      chosen.push_back(std::move(kept_[i * kept_.size() / wanted_]));
    }
    return chosen;
  }

 private:
  std::size_t wanted_;
  int size_;
  std::uint64_t seen_ = 0;
  std::uint64_t every_ = 1;
  std::vector<ShownSample> kept_;
};

void note_size(Survey& survey, const Picture& picture) {
  const bool first = survey.samples == 0;
  survey.least_width = first ? picture.width : std::min(survey.least_width, picture.width);
  survey.least_height = first ? picture.height : std::min(survey.least_height, picture.height);
  survey.most_width = std::max(survey.most_width, picture.width);
  survey.most_height = std::max(survey.most_height, picture.height);
}

}  // namespace

Survey survey_stream(Stream& stream, const SurveyOptions& options,
                     const std::function<void(const Survey&)>& progress,
                     const std::function<bool()>& is_stopped) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kProgressEvery = std::chrono::milliseconds(200);
  if (options.samples < 0 || options.batch < 2 || options.shown < 0 || options.shown_size < 1) {
    throw std::logic_error("a survey needs batches of two or more, and sizes");
  }

  Survey survey;
  EvenlySpaced shown(options.shown, options.shown_size);
  std::unordered_set<std::int64_t> clips;
  std::vector<std::int64_t> batch;
  double share_of_batches = 0;
  std::int64_t batches = 0, alike_neighbours = 0;
  std::int64_t previous_clip = kNoClip;
  auto last_progress = Clock::now();
  while (survey.samples < options.samples && !(is_stopped && is_stopped())) {
    const auto begin = Clock::now();
    auto sample = stream.next();
    const auto end = Clock::now();
    survey.seconds += std::chrono::duration<double>(end - begin).count();
    if (!sample) break;

    note_size(survey, sample->picture);
    ++survey.samples;
    if (!sample->label.empty()) ++survey.labels[sample->label];
    if (sample->clip != kNoClip) {
      clips.insert(sample->clip);
      if (sample->clip == previous_clip) ++alike_neighbours;
    }
    previous_clip = sample->clip;
    batch.push_back(sample->clip);
    if (static_cast<std::int64_t>(batch.size()) == options.batch) {
      share_of_batches += same_clip_share(batch);
      ++batches;
      batch.clear();
    }
    shown.add(std::move(*sample));
    if (progress && end - last_progress >= kProgressEvery) {
      last_progress = end;
      survey.clips = static_cast<std::int64_t>(clips.size());
      progress(survey);
    }
  }

  survey.clips = static_cast<std::int64_t>(clips.size());
  survey.skipped = stream.skipped();
  survey.shown = shown.take();
  const bool whole = batches > 0;
  survey.same_clip_pairs =
      whole ? share_of_batches / static_cast<double>(batches) : same_clip_share(batch);
  if (survey.samples > 1) {
    survey.same_clip_neighbours =
        static_cast<double>(alike_neighbours) / static_cast<double>(survey.samples - 1);
  }
  survey.expected_pairs = pair_correlation(
      whole ? options.batch : static_cast<std::int64_t>(batch.size()), survey.same_clip_neighbours);
  return survey;
}

}  // namespace riffle
