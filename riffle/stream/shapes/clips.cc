#include "riffle/stream/shapes/clips.h"

#include <algorithm>
#include <limits>

#include "riffle/base/name_hash.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"
#include "riffle/stream/shapes/camera_path.h"
#include "riffle/stream/shapes/random_frames.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

struct ClipsOptions {
  std::int64_t length = 0;
  int size = 0;
  std::int64_t pace = 0;
  std::uint64_t seed = 0;
};

// Returns a number that stands for a key in a position; never 0.
std::int64_t number_of(const std::string& key) { return stable_number(key) | 1; }

class ClipsStream : public Shape {
 public:
  ClipsStream(std::unique_ptr<Stream> below, const ClipsOptions& options)
      : Shape(std::move(below)), options_(options) {}

  std::optional<Sample> next() override {
    if (in_still() && !still_ && !load_still()) return std::nullopt;
    while (!in_still()) {
      before_ = below().position();
      auto sample = below().next();
      if (!sample) return std::nullopt;
      if (sample->clip == kNoClip) {
        begin_clip(kNoClip, 0);
        enter(std::move(*sample));
        break;
      }
      // Where a stream of one clip is looped, only its first frame tells that it begins again.
      const auto frame = number_of(sample->key);
      if (sample->clip != source_clip_ || frame == first_frame_) begin_clip(sample->clip, frame);
      if (frame_ == options_.length) continue;
      ++frame_;
      if (options_.size > 0) {
        sample->picture = fit_square(std::move(sample->picture), options_.size);
      }
      return numbered(std::move(*sample));
    }
    return still_frame();
  }

  // A clip that is partly shown is found again by the place before its still.
  std::string position() const override {
    const bool video = source_clip_ != kNoClip;
    return write_position("clips",
                          {{given_, clips_, frame_, first_frame_, video ? source_clip_ : 0},
                           {in_still() ? before_ : below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("clips", position, 5, 1, 2);
    below().seek(read.below[0]);
    before_ = read.below[0];
    given_ = read.numbers[0];
    clips_ = read.numbers[1];
    frame_ = read.numbers[2];
    first_frame_ = read.numbers[3];
    source_clip_ = first_frame_ != 0 ? read.numbers[4] : kNoClip;
    still_.reset();
  }

 private:
  // Returns whether frames of a still are due before anything else is read.
  bool in_still() const {
    return clips_ > 0 && source_clip_ == kNoClip && frame_ < options_.length;
  }

  void begin_clip(std::int64_t source_clip, std::int64_t first_frame) {
    ++clips_;
    source_clip_ = source_clip;
    first_frame_ = first_frame;
    frame_ = 0;
  }

  void enter(Sample still) {
    path_.emplace(
        Random(options_.seed, Purpose("camera path"), static_cast<std::uint64_t>(clips_ - 1)),
        still.picture.width, still.picture.height, options_.length, options_.pace);
    still_ = std::move(still);
  }

  bool load_still() {
    auto sample = below().next();
    if (!sample) return false;
    enter(std::move(*sample));
    return true;
  }

  Sample still_frame() {
    const Picture& picture = still_->picture;
    const int size = options_.size > 0 ? options_.size
                                       : std::max(1, std::min(picture.width, picture.height) / 2);
    const CameraView view = path_->at(frame_);
    Sample sample;
    sample.picture = resize_square(picture, view.x, view.y, view.side, size);
    sample.label = still_->label;
    sample.key = cat(still_->key, " frame ", frame_);
    if (++frame_ == options_.length) still_.reset();
    return numbered(std::move(sample));
  }

  Sample numbered(Sample sample) {
    sample.index = static_cast<std::uint64_t>(given_++);
    sample.clip = clips_ - 1;
    return sample;
  }

  const ClipsOptions options_;
  std::int64_t given_ = 0;
  std::int64_t clips_ = 0;              // begun so far
  std::int64_t frame_ = 0;              // given of the current clip
  std::int64_t source_clip_ = kNoClip;  // what the current clip was below
  std::int64_t first_frame_ = 0;        // of a video: the number of its key; of a still: 0
  std::string before_;                  // the place below before the current still
  std::optional<Sample> still_;
  std::optional<CameraPath> path_;
};

}  // namespace

std::unique_ptr<Stream> shape_clips(Uri& options, const StreamFactory& below) {
  ClipsOptions read;
  read.length = options.get_integer("length", 64, 1, 1 << 20);
  read.size = static_cast<int>(options.get_integer("size", 0, 0, 4096));
  read.pace = options.get_integer("pace", 16, 1, 1 << 20);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  const bool random = options.get_choice("pick", {"first", "random"}) == "random";
  options.refuse_unknown();
  auto source = below();
  if (random) source = random_frames(std::move(source), read.length, read.seed);
  return std::make_unique<ClipsStream>(std::move(source), read);
}

}  // namespace riffle
