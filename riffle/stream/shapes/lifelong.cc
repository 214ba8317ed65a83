#include "riffle/stream/shapes/lifelong.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/label_groups.h"
#include "riffle/stream/shapes/census.h"
#include "riffle/stream/shapes/loop.h"
#include "riffle/stream/shapes/selection.h"
#include "riffle/stream/shapes/shape_position.h"
#include "riffle/stream/wordnet.h"

namespace riffle {
namespace {

struct LifelongOptions {
  int groups = 0;
  std::vector<int> permutation;  // group of each turn, from 0
  double overlap = 0;
  std::int64_t holdout = 0;
  std::int64_t times = 1;
  std::uint64_t seed = 0;
  std::string wordnet;
  std::string list;
  std::vector<int> only;
  bool heldout_part = false;
};

// Returns the groups of "3,1,4,2", counted from 0. Throws Error unless each is one of the groups,
// and none comes twice.
std::vector<int> read_groups(const std::string& text, int groups, const std::string& option) {
  std::vector<int> read;
  for (const auto& part : split(text, ',')) {
    const auto number = parse_integer(part, cat("a group in ", option, "=", text));
    if (number < 1 || number > groups) {
      throw Error(cat(option, "=", text, ": groups are numbered from 1 to ", groups));
    }
    read.push_back(static_cast<int>(number) - 1);
    if (std::count(read.begin(), read.end(), read.back()) > 1) {
      throw Error(cat(option, "=", text, ": group ", number, " stands twice"));
    }
  }
  return read;
}

LifelongOptions lifelong_options(Uri& options) {
  LifelongOptions read;
  read.groups = static_cast<int>(options.get_integer("groups", 4, 1, 100000));
  const auto permutation = options.get("permutation", "");
  if (permutation.empty()) {
    read.permutation.resize(static_cast<std::size_t>(read.groups));
    std::iota(read.permutation.begin(), read.permutation.end(), 0);
  } else {
    read.permutation = read_groups(permutation, read.groups, "permutation");
    if (read.permutation.size() != static_cast<std::size_t>(read.groups)) {
      throw Error(cat("permutation=", permutation, " must name all ", read.groups, " groups"));
    }
  }
  read.overlap = options.get_number("overlap", kLifelongOverlap, 0, 0.5);
  read.holdout = options.get_integer("holdout", 0, 0, std::int64_t{1} << 40);
  read.times = options.get_integer("times", 1, 1, 1'000'000);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  read.list = options.get("list", "");
  read.wordnet = options.get("wordnet", kWordNetNouns);
  const auto only = options.get("only", "");
  if (!only.empty()) read.only = read_groups(only, read.groups, "only");
  read.heldout_part = options.get_choice("part", {"stream", "heldout"}) == "heldout";
  options.refuse_unknown();
  return read;
}

Census count_labels(Stream& stream, std::int64_t holdout) {
  if (stream.endless()) {
    throw Error(
        "lifelong has to count the labels of a stream that ends, and this one does not: put "
        "limit:samples=N before it");
  }
  return {stream, holdout};
}

LabelGroups make_groups(const LifelongOptions& options, const Census& census) {
  std::vector<std::string> labels;
  for (const auto& [label, count] : census.counts()) labels.push_back(label);
  if (options.list.empty()) {
    return {wordnet_order(labels, options.wordnet), options.groups};
  }
  LabelGroups groups(read_label_list(options.list), options.groups);
  for (const auto& label : labels) {
    if (!groups.group(label)) {
      throw Error(cat("the label '", label, "' is not in the list ", options.list));
    }
  }
  return groups;
}

// What is known of the stream below, and ways to read parts of it.
struct Plan {
  LifelongOptions options;
  Census census;
  LabelGroups groups;
  StreamFactory below;

  // Returns the samples of these groups, or of all if none is given, in the order of the stream
  // below.
  std::unique_ptr<Stream> open(const std::vector<int>& wanted, bool heldout) const {
    return select(below(), [this, wanted, heldout](const Sample& sample) {
      if (census.held_out(sample) != heldout) return false;
      const auto group = groups.group(sample.label);
      return group && (wanted.empty() || std::ranges::find(wanted, *group) != wanted.end());
    });
  }
};

// A part of the stream below. Its skips are those of the census, however often the files are read
// again.
class LifelongPart : public Shape {
 public:
  LifelongPart(std::unique_ptr<Plan> plan, std::unique_ptr<Stream> part)
      : Shape(std::move(part)), plan_(std::move(plan)) {}

  std::optional<Sample> next() override { return below().next(); }
  std::string position() const override { return below().position(); }
  void seek(const std::string& position) override { below().seek(position); }
  std::map<std::string, std::int64_t> skipped() const override { return plan_->census.skipped(); }

 private:
  const std::unique_ptr<Plan> plan_;
};

// Groups come in turns. Between turn i and the next is a border, in which both come: stage 2 i is
// turn i alone, stage 2 i + 1 the border after it.
class LifelongStream : public Stream {
 public:
  explicit LifelongStream(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {
    std::vector<std::int64_t> samples(plan_->options.permutation.size());
    for (const auto& [label, count] : plan_->census.counts()) {
      samples[static_cast<std::size_t>(*plan_->groups.group(label))] += count;
    }
    for (const int group : plan_->options.permutation) {
      turn_samples_.push_back(plan_->options.times * samples[static_cast<std::size_t>(group)]);
    }
    enter(0);
  }

  std::optional<Sample> next() override {
    while (stage_ + 1 < 2 * turn_count()) {
      if (done_ == stage_samples_) {
        leave_stage();
        continue;
      }
      const bool from_next = stage_ % 2 == 1 && pattern_[static_cast<std::size_t>(done_)];
      auto& cursor = from_next ? next_turn_ : turn_;
      if (!cursor) put(cursor, open_turn(stage_ / 2 + (from_next ? 1 : 0)));
      auto sample = cursor->next();
      if (!sample && stopped_) return std::nullopt;
      ++done_;
      if (!sample) continue;  // fewer than when they were counted: files are gone
      sample->index = static_cast<std::uint64_t>(given_++);
      return sample;
    }
    return std::nullopt;
  }

  std::string position() const override {
    const auto place = [](const std::unique_ptr<Stream>& cursor) {
      return cursor ? cursor->position() : std::string();
    };
    return write_position("lifelong", {{given_, static_cast<std::int64_t>(stage_), done_},
                                       {place(turn_), place(next_turn_)}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("lifelong", position, 3, 2);
    const auto stage = static_cast<std::size_t>(read.numbers[1]);
    if (stage >= 2 * turn_count()) {
      throw Error(
          cat("'", position, "' is not a position of a stream of ", turn_count(), " groups"));
    }
    const auto reopen = [&](const std::string& place, std::size_t turn) {
      if (place.empty() || turn >= turn_count()) return std::unique_ptr<Stream>();
      auto cursor = open_turn(turn);
      cursor->seek(place);
      return cursor;
    };
    auto turn = reopen(read.below[0], stage / 2);
    auto next_turn = reopen(read.below[1], stage / 2 + 1);
    put(turn_, std::move(turn));
    put(next_turn_, std::move(next_turn));
    enter(stage);
    given_ = read.numbers[0];
    done_ = std::min(read.numbers[2], stage_samples_);
  }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (turn_) turn_->stop();
    if (next_turn_) next_turn_->stop();
  }

  std::map<std::string, std::int64_t> skipped() const override { return plan_->census.skipped(); }

  // In the middle of the borders, by the number of samples.
  std::vector<std::int64_t> turns() const override {
    std::vector<std::int64_t> ends(turn_samples_.size());
    std::partial_sum(turn_samples_.begin(), turn_samples_.end(), ends.begin());
    return ends;
  }

 private:
  std::size_t turn_count() const { return turn_samples_.size(); }

  std::unique_ptr<Stream> open_turn(std::size_t turn) const {
    auto pass = plan_->open({plan_->options.permutation[turn]}, false);
    if (plan_->options.times == 1) return pass;
    return looped(std::move(pass), plan_->options.times);
  }

  // Returns how many samples of a turn come in a border beside it.
  std::int64_t share(std::size_t turn) const {
    return static_cast<std::int64_t>(
        std::floor(plan_->options.overlap * static_cast<double>(turn_samples_[turn])));
  }

  void enter(std::size_t stage) {
    stage_ = stage;
    done_ = 0;
    pattern_.clear();
    const std::size_t turn = stage / 2;
    const bool first = turn == 0, last = turn + 1 == turn_count();
    if (stage % 2 == 0) {
      stage_samples_ = turn_samples_[turn] - (first ? 0 : share(turn)) - (last ? 0 : share(turn));
    } else if (!last) {
      draw_pattern(turn);
      stage_samples_ = static_cast<std::int64_t>(pattern_.size());
    }
  }

  // Every sample of the border gets a time from 0 to 1, those of the old group with a density that
  // falls linearly to 0, those of the new one with one that rises from 0. So each comes once, and
  // at any time the odds are those of the linear change.
  void draw_pattern(std::size_t turn) {
    Random random(plan_->options.seed, Purpose("lifelong border"), turn);
    std::vector<std::pair<float, bool>> times;
    for (auto left = share(turn); left > 0; --left) {
      times.emplace_back(1 - std::sqrt(random.uniform()), false);
    }
    for (auto left = share(turn + 1); left > 0; --left) {
      times.emplace_back(std::sqrt(random.uniform()), true);
    }
    std::sort(times.begin(), times.end());
    for (const auto& [time, from_next] : times) pattern_.push_back(from_next);
  }

  void leave_stage() {
    if (stage_ % 2 == 1) {
      const std::lock_guard lock(mutex_);
      turn_ = std::move(next_turn_);
    }
    enter(stage_ + 1);
  }

  // stop() may use the cursors at any time.
  void put(std::unique_ptr<Stream>& cursor, std::unique_ptr<Stream> stream) {
    const std::lock_guard lock(mutex_);
    std::swap(cursor, stream);
    if (cursor && stopped_) cursor->stop();
  }

  const std::unique_ptr<Plan> plan_;
  std::vector<std::int64_t> turn_samples_;
  std::int64_t given_ = 0;
  std::size_t stage_ = 0;
  std::int64_t done_ = 0;  // of the stage
  std::int64_t stage_samples_ = 0;
  std::vector<bool> pattern_;  // of a border: whether each sample is the next turn's
  std::mutex mutex_;
  std::atomic<bool> stopped_ = false;
  std::unique_ptr<Stream> turn_, next_turn_;  // null until needed
};

}  // namespace

std::unique_ptr<Stream> shape_lifelong(Uri& options, const StreamFactory& below) {
  const LifelongOptions read = lifelong_options(options);
  if (read.heldout_part && read.holdout == 0) {
    throw Error("part=heldout needs holdout=N, the number of samples kept back of each label");
  }
  Census census = count_labels(*below(), read.holdout);
  LabelGroups groups = make_groups(read, census);
  auto plan = std::make_unique<Plan>(Plan{read, std::move(census), std::move(groups), below});
  if (!read.only.empty() || read.heldout_part) {
    auto part = plan->open(read.only, read.heldout_part);
    return std::make_unique<LifelongPart>(std::move(plan), std::move(part));
  }
  return std::make_unique<LifelongStream>(std::move(plan));
}

}  // namespace riffle
