#include "riffle/stream/synthetic/synthetic.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/synthetic/scene.h"

namespace riffle {
namespace {

constexpr int kMaxClasses = kTextures * kTextures;

struct SceneClass {
  Texture object, background;

  std::string label() const { return cat(texture_name(object), "-on-", texture_name(background)); }
};

// The first classes of a fixed order that takes in one texture after the other, as object and as
// background: 4 classes are all pairs of two textures, 20 are five objects on four backgrounds, 25
// all pairs of five.
std::vector<SceneClass> first_classes(int count) {
  std::vector<SceneClass> classes;
  for (int newest = 0; newest < kTextures; ++newest) {
    const Texture texture = static_cast<Texture>(newest);
    for (int k = 0; k < newest; ++k) classes.push_back({texture, static_cast<Texture>(k)});
    for (int k = 0; k <= newest; ++k) classes.push_back({static_cast<Texture>(k), texture});
  }
  classes.resize(static_cast<std::size_t>(count));
  return classes;
}

// A pseudo-random permutation of [0, count): a Feistel network over the next power of four, walked
// until it lands inside.
std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t seed,
                       std::uint64_t window) {
  int half = 1;
  while (half < 31 && (std::uint64_t{1} << (2 * half)) < count) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half;
    std::uint64_t right = index & mask;
    for (std::uint32_t round = 0; round < 6; ++round) {
      const auto block =
          philox({round, static_cast<std::uint32_t>(right), static_cast<std::uint32_t>(window),
                  Purpose("synthetic shuffle").hash()},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
      left = std::exchange(right, (left ^ block[0]) & mask);
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

enum class Order { kRandom, kLifelong, kDecorrelated };

struct Settings {
  std::uint64_t frames = 64;
  int size = 32;
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;
  Order order = Order::kRandom;
  std::uint64_t groups = 1;
  std::uint64_t group_clips = 1;
  std::uint64_t window = 1;
};

class SyntheticStream : public Stream {
 public:
  SyntheticStream(const Settings& settings, std::vector<SceneClass> classes)
      : settings_(settings), classes_(std::move(classes)), painter_(settings.size) {}

  std::optional<Sample> next() override {
    while (settings_.samples == 0 || next_ < settings_.samples) {
      const std::uint64_t shown = settings_.order == Order::kDecorrelated ? shuffled(next_) : next_;
      const std::uint64_t clip = shown / settings_.frames;
      const std::uint64_t frame = shown % settings_.frames;
      enter(clip);
      Sample sample;
      sample.index = next_++;
      sample.clip = static_cast<std::int64_t>(clip);
      sample.label = label_;
      sample.key = cat("clip ", clip, " frame ", frame);
      if (wanted_ && !wanted_(sample)) continue;
      if (share_.has(divided_++)) sample.picture = paint(frame, shown);
      return sample;
    }
    return std::nullopt;
  }

  bool divide(const StreamShare& share) override {
    share_ = share;
    divided_ = 0;
    return true;
  }

  bool keep_only(const std::function<bool(const Sample&)>& wanted) override {
    wanted_ = wanted;
    return true;
  }

  bool endless() const override { return settings_.samples == 0; }

  std::string position() const override { return std::to_string(next_); }

  void seek(const std::string& position) override {
    std::uint64_t value = 0;
    const char* end = position.data() + position.size();
    const auto [stop, error] = std::from_chars(position.data(), end, value);
    if (error != std::errc() || stop != end ||
        (settings_.samples > 0 && value > settings_.samples)) {
      throw Error(cat("'", position,
                      "' is not a position of a synthetic stream: it takes a number of samples",
                      settings_.samples > 0 ? cat(" up to ", settings_.samples) : std::string()));
    }
    next_ = value;
  }

 private:
  Picture paint(std::uint64_t frame, std::uint64_t shown) {
    const float time = (static_cast<float>(frame) + 0.5f) / static_cast<float>(settings_.frames);
    return painter_.paint(*scene_, time, Random(settings_.seed, Purpose("synthetic noise"), shown));
  }

  void enter(std::uint64_t clip) {
    if (scene_ && clip_ == clip) return;
    Random random(settings_.seed, Purpose("synthetic class"), clip);
    const SceneClass& drawn = classes_[draw_class(clip, random)];
    scene_.emplace(Random(settings_.seed, Purpose("synthetic"), clip), drawn.object,
                   drawn.background);
    label_ = drawn.label();
    clip_ = clip;
  }

  std::size_t draw_class(std::uint64_t clip, Random& random) const {
    if (settings_.order != Order::kLifelong) return random.below(classes_.size());
    const std::uint64_t group = draw_group(clip, random);
    const std::uint64_t first = group * classes_.size() / settings_.groups;
    const std::uint64_t end = (group + 1) * classes_.size() / settings_.groups;
    return first + random.below(end - first);
  }

  // The probability of the old group falls and that of the new one rises linearly from a tenth of a
  // group before the border to a tenth after it.
  std::uint64_t draw_group(std::uint64_t clip, Random& random) const {
    constexpr float kFade = 0.1f;
    const std::uint64_t turn = clip / settings_.group_clips;
    const float progress = (static_cast<float>(clip % settings_.group_clips) + 0.5f) /
                           static_cast<float>(settings_.group_clips);
    const float following = (progress - (1.0f - kFade)) / (2.0f * kFade);
    const float preceding = turn == 0 ? 0.0f : (kFade - progress) / (2.0f * kFade);
    const float draw = random.uniform();
    if (draw < following) return (turn + 1) % settings_.groups;
    if (draw < preceding) return (turn - 1) % settings_.groups;
    return turn % settings_.groups;
  }

  std::uint64_t shuffled(std::uint64_t index) const {
    const std::uint64_t window = index / settings_.window;
    const std::uint64_t start = window * settings_.window;
    const std::uint64_t count = settings_.samples > 0
                                    ? std::min(settings_.window, settings_.samples - start)
                                    : settings_.window;
    return start + permuted(index - start, count, settings_.seed, window);
  }

  const Settings settings_;
  const std::vector<SceneClass> classes_;
  ScenePainter painter_;
  std::uint64_t next_ = 0;
  std::function<bool(const Sample&)> wanted_;  // empty: all are
  StreamShare share_;
  std::int64_t divided_ = 0;  // samples given since the stream was divided

  std::optional<Scene> scene_;  // of clip_
  std::uint64_t clip_ = 0;
  std::string label_;
};

void refuse_options_of_other_orders(Uri& uri, const std::string& order) {
  std::string refusal;
  for (const auto& [key, needed] :
       {std::pair{"groups", "lifelong"}, {"group_clips", "lifelong"}, {"window", "decorrelated"}}) {
    if (uri.has(key) && order != needed) refusal = cat("synthetic: ", key, " needs order=", needed);
  }
  uri.refuse_unknown();  // which may be a misspelt `order`
  if (!refusal.empty()) throw Error(refusal);
}

}  // namespace

std::unique_ptr<Stream> open_synthetic(Uri& uri) {
  constexpr std::int64_t kMany = std::int64_t{1} << 48;
  if (!uri.path().empty()) {
    throw Error(cat("'", uri.text(),
                    "': a synthetic stream has no path, only options: synthetic:?frames=64"));
  }
  Settings settings;
  settings.frames = static_cast<std::uint64_t>(uri.get_integer("frames", 64, 1, 1 << 20));
  settings.size = static_cast<int>(uri.get_integer("size", 32, 8, 1024));
  settings.seed = static_cast<std::uint64_t>(uri.get_integer("seed", 0, 0, kMany));
  settings.samples = static_cast<std::uint64_t>(uri.get_integer("samples", 0, 0, kMany));
  const int count = static_cast<int>(uri.get_integer("classes", 20, 1, kMaxClasses));
  std::vector<SceneClass> classes = first_classes(count);

  const std::string order = uri.get_choice("order", {"random", "lifelong", "decorrelated"});
  if (order == "lifelong") {
    settings.order = Order::kLifelong;
    settings.groups =
        static_cast<std::uint64_t>(uri.get_integer("groups", std::min(4, count), 1, count));
    settings.group_clips =
        static_cast<std::uint64_t>(uri.get_integer("group_clips", 256, 1, kMany));
    // A group is a run of classes whose objects look alike.
    std::stable_sort(classes.begin(), classes.end(),
                     [](const SceneClass& a, const SceneClass& b) { return a.object < b.object; });
  } else if (order == "decorrelated") {
    settings.order = Order::kDecorrelated;
    settings.window =
        static_cast<std::uint64_t>(uri.get_integer("window", 1 << 18, 1, std::int64_t{1} << 32));
  }
  refuse_options_of_other_orders(uri, order);
  return std::make_unique<SyntheticStream>(settings, std::move(classes));
}

}  // namespace riffle
