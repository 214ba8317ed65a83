// A robot's own program with riffle inside: its camera is a Stream, the learner trains on what the
// buffer keeps.

#include <iostream>

#include <riffle/base/error.h>
#include <riffle/stream/stream.h>
#include <riffle/train/learner.h>

// Stands for the robot's camera: whatever gives pictures is a stream.
class Camera : public riffle::Stream {
 public:
  std::optional<riffle::Sample> next() override {
    riffle::Sample sample;
    sample.index = taken_;
    sample.clip = static_cast<std::int64_t>(taken_ / 30);  // one clip a second
    sample.picture = riffle::Picture(48, 32);
    for (std::size_t i = 0; i < sample.picture.rgb.size(); ++i) {
      sample.picture.rgb[i] = static_cast<std::uint8_t>((i * (1 + taken_ / 30) + 5 * taken_) % 256);
    }
    ++taken_;
    return sample;
  }
  std::string position() const override { return std::to_string(taken_); }
  void seek(const std::string& position) override { taken_ = std::stoull(position); }

 private:
  std::uint64_t taken_ = 0;
};

int main() try {
  riffle::LearnerConfig config;
  config.augment.size = 32;
  config.model.stem = riffle::Stem::small;
  config.model.width = 8;
  config.buffer.capacity = "128";
  config.train.batch = 16;
  config.train.max_updates = 20;

  Camera camera;
  riffle::Learner learner(config, camera);
  while (const auto report = learner.advance()) {
    std::cout << "update " << report->update << "  loss " << report->loss << "  clips kept "
              << learner.buffer().distinct_clips() << '\n';
  }
} catch (const riffle::Error& error) {
  std::cerr << error.what() << '\n';
  return error.exit_code();
}
