#include "riffle/stream/synthetic/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<Stream> open(const std::string& options) {
  Uri uri("synthetic:?" + options);
  std::unique_ptr<Stream> stream = open_synthetic(uri);
  uri.refuse_unknown();
  return stream;
}

std::vector<Sample> take(Stream& stream, int count) {
  std::vector<Sample> samples;
  while (static_cast<int>(samples.size()) < count) {
    std::optional<Sample> sample = stream.next();
    if (!sample) break;
    samples.push_back(std::move(*sample));
  }
  return samples;
}

std::vector<Sample> take(const std::string& options, int count) {
  return take(*open(options), count);
}

double difference(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(a.rgb[i] - b.rgb[i]);
  return sum / static_cast<double>(a.rgb.size());
}

std::set<std::string> labels_between(const std::vector<Sample>& samples, std::size_t first,
                                     std::size_t end) {
  std::set<std::string> labels;
  for (std::size_t i = first; i < end; ++i) labels.insert(samples[i].label);
  return labels;
}

TEST(Synthetic, IsAFunctionOfItsSeed) {
  const auto a = take("seed=3&frames=8", 20);
  const auto b = take("seed=3&frames=8", 20);
  const auto c = take("seed=4&frames=8", 20);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].picture, b[i].picture);
    EXPECT_EQ(a[i].label, b[i].label);
    EXPECT_NE(a[i].picture, c[i].picture);
  }
}

TEST(Synthetic, NumbersSamplesAndClips) {
  const auto samples = take("frames=5&size=16", 13);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].index, i);
    EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 5));
    EXPECT_EQ(samples[i].label, samples[i / 5 * 5].label);
    EXPECT_EQ(samples[i].picture.width, 16);
    EXPECT_EQ(samples[i].picture.height, 16);
  }
  EXPECT_EQ(samples[7].key, "clip 1 frame 2");
}

TEST(Synthetic, SeekContinuesAsIfNothingHadHappened) {
  for (const std::string order : {"random", "lifelong", "decorrelated"}) {
    const std::string options = "frames=7&seed=1&order=" + order;
    const auto whole = take(options, 40);
    auto stream = open(options);
    take(*stream, 17);
    const std::string position = stream->position();
    take(*stream, 9);
    stream->seek(position);
    auto fresh = open(options);
    fresh->seek(position);
    for (std::size_t i = 17; i < 40; ++i) {
      const auto again = stream->next();
      const auto reopened = fresh->next();
      EXPECT_EQ(again->picture, whole[i].picture) << order;
      EXPECT_EQ(reopened->picture, whole[i].picture) << order;
      EXPECT_EQ(reopened->index, i);
      EXPECT_EQ(reopened->label, whole[i].label);
    }
  }
}

TEST(Synthetic, SeekReachesFarAtOnce) {
  auto stream = open("frames=64");
  stream->seek("64000000000");
  EXPECT_EQ(stream->next()->clip, 1000000000);
}

TEST(Synthetic, SeekRefusesWhatIsNotAPosition) {
  auto stream = open("samples=10");
  for (const std::string position : {"", "x", "-1", "3 ", "11", "99999999999999999999999"}) {
    EXPECT_THROW(stream->seek(position), Error) << position;
  }
  stream->seek("10");
  EXPECT_FALSE(stream->next());
}

TEST(Synthetic, EndsAfterTheGivenNumberOfSamples) {
  auto stream = open("samples=7&frames=3");
  EXPECT_EQ(take(*stream, 100).size(), 7u);
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(stream->position(), "7");
}

TEST(Synthetic, RefusesBadOptions) {
  for (const std::string options : {"classes=50", "classes=0", "frames=0", "size=4", "order=sorted",
                                    "seed=-1", "groups=2", "order=lifelong&classes=3&groups=4"}) {
    EXPECT_THROW(open(options), Error) << options;
  }
  Uri uri("synthetic:somewhere?frames=2");
  EXPECT_THROW(open_synthetic(uri), Error);
}

TEST(Synthetic, MovesSmoothlyWithinAClip) {
  const auto samples = take("frames=64", 64 * 20);
  double neighbours = 0, apart = 0, strangers = 0;
  for (std::size_t clip = 0; clip + 1 < 20; ++clip) {
    const std::size_t first = clip * 64;
    for (std::size_t i = first; i + 1 < first + 64; ++i) {
      const double step = difference(samples[i].picture, samples[i + 1].picture);
      EXPECT_GT(step, 0);
      neighbours += step / 63;
    }
    apart += difference(samples[first].picture, samples[first + 63].picture);
    strangers += difference(samples[first].picture, samples[first + 64].picture);
  }
  EXPECT_LT(5 * neighbours, apart);
  EXPECT_LT(5 * neighbours, strangers);
}

TEST(Synthetic, ShowsEachClassEquallyOften) {
  for (const int classes : {1, 4, 20, 49}) {
    std::map<std::string, int> counts;
    for (const Sample& sample : take(cat("frames=1&size=8&classes=", classes), 200 * classes)) {
      ++counts[sample.label];
    }
    EXPECT_EQ(counts.size(), static_cast<std::size_t>(classes));
    for (const auto& [label, count] : counts) {
      EXPECT_THAT(label, HasSubstr("-on-"));
      EXPECT_NEAR(count, 200, 70) << label;
    }
  }
}

TEST(Synthetic, TwentyClassesAreFiveObjectsOnFourBackgrounds) {
  std::set<std::string> objects, backgrounds;
  for (const Sample& sample : take("frames=1&size=8&classes=20", 2000)) {
    const std::size_t middle = sample.label.find("-on-");
    objects.insert(sample.label.substr(0, middle));
    backgrounds.insert(sample.label.substr(middle + 4));
  }
  EXPECT_EQ(objects.size(), 5u);
  EXPECT_EQ(backgrounds.size(), 4u);
}

using Features = std::vector<double>;

Features mean_colour(const Picture& picture) {
  Features mean(3);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) mean[i % 3] += picture.rgb[i] / 1024.0;
  return mean;
}

Features colour_histogram(const Picture& picture) {
  Features histogram(3 * 16);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i)
    histogram[i % 3 * 16 + picture.rgb[i] / 16] += 1;
  return histogram;
}

// The share of pictures in the second half whose class has the nearest mean, by the means of the
// first half.
double nearest_mean_accuracy(const std::vector<Sample>& samples,
                             Features (*features)(const Picture&)) {
  struct Mean {
    Features sum;
    double count = 0;
  };
  std::map<std::string, Mean> means;
  const std::size_t half = samples.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const Features f = features(samples[i].picture);
    Mean& mean = means[samples[i].label];
    mean.sum.resize(f.size());
    for (std::size_t k = 0; k < f.size(); ++k) mean.sum[k] += f[k];
    mean.count += 1;
  }
  double right = 0;
  for (std::size_t i = half; i < samples.size(); ++i) {
    const Features f = features(samples[i].picture);
    double nearest = std::numeric_limits<double>::max();
    std::string found;
    for (const auto& [label, mean] : means) {
      double distance = 0;
      for (std::size_t k = 0; k < f.size(); ++k) {
        distance += std::pow(f[k] - mean.sum[k] / mean.count, 2);
      }
      if (distance < nearest) {
        nearest = distance;
        found = label;
      }
    }
    right += found == samples[i].label;
  }
  return right / static_cast<double>(samples.size() - half);
}

TEST(Synthetic, ColoursTellNothingAboutTheClass) {
  const auto samples = take("frames=1&classes=20&seed=11", 8000);
  EXPECT_LT(nearest_mean_accuracy(samples, mean_colour), 0.05 + 0.03);
  EXPECT_LT(nearest_mean_accuracy(samples, colour_histogram), 0.05 + 0.03);
}

TEST(Synthetic, DecorrelatedShowsEachFrameOfTheRandomOrderOnce) {
  const std::string options = "frames=8&size=8&seed=2&samples=1000";
  const auto shuffled = take(options + "&order=decorrelated&window=300", 2000);
  const auto ordered = take(options, 2000);
  ASSERT_EQ(shuffled.size(), 1000u);
  std::set<std::string> keys;
  int neighbours = 0;
  for (std::size_t i = 0; i < shuffled.size(); ++i) {
    const Sample& sample = shuffled[i];
    keys.insert(sample.key);
    const auto original = std::find_if(ordered.begin(), ordered.end(),
                                       [&](const Sample& s) { return s.key == sample.key; });
    ASSERT_NE(original, ordered.end());
    EXPECT_EQ(original->picture, sample.picture);
    EXPECT_EQ(original->label, sample.label);
    EXPECT_EQ(original->index / 300, i / 300) << "left its window";
    if (i > 0) neighbours += sample.clip == shuffled[i - 1].clip;
  }
  EXPECT_EQ(keys.size(), 1000u);
  EXPECT_LT(neighbours, 60);  // 7 / 299 of the pairs by chance
}

TEST(Synthetic, AnOptionOfAnotherOrderIsRefusedByThatOrder) {
  EXPECT_THAT([] { open("groups=3"); },
              ThrowsMessage<Error>(HasSubstr("groups needs order=lifelong")));
  EXPECT_THAT([] { open("group_clips=9&order=decorrelated"); },
              ThrowsMessage<Error>(HasSubstr("group_clips needs order=lifelong")));
  EXPECT_THAT([] { open("order=lifelong&window=9"); },
              ThrowsMessage<Error>(HasSubstr("window needs order=decorrelated")));
  EXPECT_THAT([] { open("groups=3&ordr=lifelong"); }, ThrowsMessage<Error>(HasSubstr("'ordr'")));
}

TEST(Synthetic, LifelongShowsOneGroupAfterTheOther) {
  const auto samples = take("frames=1&size=8&order=lifelong&group_clips=1000", 9000);
  std::set<std::string> all;
  for (std::size_t group = 0; group < 4; ++group) {
    const auto labels = labels_between(samples, group * 1000 + 100, group * 1000 + 900);
    EXPECT_EQ(labels.size(), 5u);
    for (const std::string& label : labels) EXPECT_TRUE(all.insert(label).second) << label;
    EXPECT_EQ(labels_between(samples, 4000 + group * 1000 + 100, 4000 + group * 1000 + 900),
              labels);
  }
  EXPECT_EQ(all.size(), 20u);
}

TEST(Synthetic, LifelongGroupsFadeIntoOneAnother) {
  const auto samples = take("frames=1&size=8&order=lifelong&group_clips=10000", 12000);
  const auto old_group = labels_between(samples, 0, 8999);
  EXPECT_EQ(old_group.size(), 5u);
  for (std::size_t tenth = 0; tenth < 10; ++tenth) {
    int old = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      old += old_group.contains(samples[9000 + tenth * 200 + i].label);
    }
    EXPECT_NEAR(old, 200 - 20 * (static_cast<double>(tenth) + 0.5), 30) << tenth;
  }
}

}  // namespace
}  // namespace riffle
