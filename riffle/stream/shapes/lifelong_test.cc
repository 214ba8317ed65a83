#include "riffle/stream/shapes/lifelong.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Labels a to h; the list has them in the order h to a, so group 1 of 4 is h and g.
class Lifelong : public TempFolder {
 protected:
  Lifelong() {
    write_atomically(list_, "h\ng\nf\ne\nd\nc\nb\na\n");
    set_log_level(LogLevel::quiet);
  }
  ~Lifelong() override { set_log_level(LogLevel::info); }

  std::unique_ptr<Stream> open(const std::string& options = "") const {
    return open_shapes(source_, cat("lifelong:list=", list_.string(), ",", options));
  }
  static int group(const Sample& sample) { return ('h' - sample.label[0]) / 2 + 1; }

  const std::filesystem::path list_ = folder_ / "labels.txt";
  StreamFactory source_ = generated({.samples = 3000, .labels = 8, .broken_every = 9});
};

class OneAfterTheOther : public Stream {
 public:
  OneAfterTheOther(std::unique_ptr<Stream> first, std::unique_ptr<Stream> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  std::optional<Sample> next() override {
    auto sample = first_->next();
    return sample ? std::move(sample) : second_->next();
  }
  std::string position() const override { return first_->position(); }
  void seek(const std::string&) override {}

 private:
  const std::unique_ptr<Stream> first_, second_;
};

std::int64_t number(const Sample& sample) { return parse_integer(sample.key.substr(5), "item"); }

TEST_F(Lifelong, EverySampleComesOnceGroupAfterGroup) {
  const auto stream = open("overlap=0");
  const auto samples = take(*stream);
  EXPECT_EQ(sorted(keys(samples)), sorted(keys(take(*source_()))));
  expect_numbered(samples);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (group(samples[i]) == group(samples[i - 1])) {
      ASSERT_GT(number(samples[i]), number(samples[i - 1]));
    } else {
      ASSERT_EQ(group(samples[i]), group(samples[i - 1]) + 1);
    }
  }
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(stream->skipped().at("broken"), 333);
}

TEST_F(Lifelong, AGroupMayComeSeveralTimesWithinItsTurn) {
  const auto once = take(*open("overlap=0"));
  const auto thrice = take(*open("overlap=0,times=3"));
  ASSERT_EQ(thrice.size(), 3 * once.size());
  std::vector<Sample> expected;
  for (int g = 1; g <= 4; ++g) {
    for (int pass = 0; pass < 3; ++pass) {
      for (const auto& sample : once) {
        if (group(sample) == g) expected.push_back(sample);
      }
    }
  }
  EXPECT_EQ(keys(thrice), keys(expected));
}

TEST_F(Lifelong, KnowsWhereTurnsEndHoweverLargeGroupsAre) {
  // Label a is three times as frequent as it would be, so the last group is larger.
  source_ = [] {
    auto all = generated({.samples = 3000, .labels = 8});
    auto more = generated({.samples = 3000, .labels = 1});
    return std::make_unique<OneAfterTheOther>(all(), more());
  };
  std::vector<std::int64_t> count(5);
  for (const auto& sample : take(*open("overlap=0")))
    ++count[static_cast<std::size_t>(group(sample))];
  EXPECT_GT(count[4], 4 * count[1]);
  const auto ends = open("permutation=2,4,1,3,times=2")->turns();
  EXPECT_THAT(ends, testing::ElementsAre(2 * count[2], 2 * (count[2] + count[4]),
                                         2 * (count[2] + count[4] + count[1]), 2 * 6000));
  const auto fourth =
      open_shapes(source_, cat("lifelong:list=", list_.string(), ",overlap=0,subsample:every=4"));
  const auto fewer = fourth->turns();
  std::vector<std::int64_t> seen;
  const auto samples = take(*fourth);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (group(samples[i]) != group(samples[i - 1])) seen.push_back(static_cast<std::int64_t>(i));
  }
  seen.push_back(static_cast<std::int64_t>(samples.size()));
  EXPECT_EQ(fewer, seen);
  EXPECT_TRUE(source_()->turns().empty());
}

TEST_F(Lifelong, GroupsComeInTheOrderOfThePermutation) {
  std::vector<int> order;
  for (const auto& sample : take(*open("permutation=3,1,4,2,overlap=0"))) {
    if (order.empty() || order.back() != group(sample)) order.push_back(group(sample));
  }
  EXPECT_THAT(order, testing::ElementsAre(3, 1, 4, 2));
}

TEST_F(Lifelong, NeighbouringGroupsFadeIntoOneAnotherLinearly) {
  source_ = generated({.samples = 40000, .labels = 8, .width = 1, .height = 1});
  const auto samples = take(*open());
  EXPECT_EQ(samples.size(), 40000u);
  std::vector<std::size_t> first_of(5, samples.size()), last_of(5), count(5);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto g = static_cast<std::size_t>(group(samples[i]));
    first_of[g] = std::min(first_of[g], i);
    last_of[g] = i;
    ++count[g];
  }
  for (std::size_t g = 1; g < 4; ++g) {
    const std::size_t old_share = count[g] / 10, new_share = count[g + 1] / 10;
    // The border begins with the first of the new group, but for chance.
    const std::size_t begin = first_of[g + 1];
    EXPECT_NEAR(static_cast<double>(last_of[g] - begin), static_cast<double>(old_share + new_share),
                0.1 * static_cast<double>(old_share + new_share));
    for (int tenth = 0; tenth < 10; ++tenth) {
      const std::size_t length = old_share + new_share;
      const auto at = [&](int t) { return begin + length * static_cast<std::size_t>(t) / 10; };
      double old = 0;
      for (std::size_t i = at(tenth); i < at(tenth + 1); ++i) {
        old += static_cast<std::size_t>(group(samples[i])) == g;
      }
      EXPECT_NEAR(old / (static_cast<double>(length) / 10), 1 - (tenth + 0.5) / 10, 0.13)
          << "group " << g << " tenth " << tenth;
    }
    // Before and after the border there is one group alone.
    for (std::size_t i = begin - 500; i < begin; ++i) {
      ASSERT_EQ(group(samples[i]), static_cast<int>(g));
    }
    for (std::size_t i = last_of[g] + 1; i < last_of[g] + 500; ++i) {
      ASSERT_EQ(group(samples[i]), static_cast<int>(g) + 1);
    }
  }
}

TEST_F(Lifelong, HeldOutSamplesNeverEnterAndCanBeReadAlone) {
  const auto all = take(*source_());
  const auto stream = keys(take(*open("holdout=25")));
  const auto held = take(*open("holdout=25,part=heldout"));
  EXPECT_EQ(held.size(), 8u * 25);
  std::map<std::string, int> by_label;
  for (const auto& sample : held) ++by_label[sample.label];
  for (const auto& [label, count] : by_label) EXPECT_EQ(count, 25) << label;
  auto both = stream;
  for (const auto& sample : held) both.push_back(sample.key);
  EXPECT_EQ(sorted(both), sorted(keys(all)));
}

TEST_F(Lifelong, TheSamePicturesAreHeldOutWhateverTheOrderAndHoweverOftenTheyCome) {
  const auto held = sorted(keys(take(*open("holdout=25,part=heldout"))));
  const auto held_of = [&](const std::string& around) {
    return keys(take(*open_shapes(
        source_, cat(around, ",lifelong:list=", list_.string(), ",holdout=25,part=heldout"))));
  };
  EXPECT_EQ(sorted(held_of("shuffle:window=3000,seed=5")), held);
  const auto twice = sorted(held_of("loop:times=2"));
  ASSERT_EQ(twice.size(), 2 * held.size());
  for (std::size_t i = 0; i < twice.size(); ++i) EXPECT_EQ(twice[i], held[i / 2]);
}

TEST_F(Lifelong, OnlySomeGroupsAreALabelledSetInTheOrderBelow) {
  const auto of_group = [&](const std::vector<Sample>& samples) {
    std::vector<int> groups;
    for (const auto& sample : samples) groups.push_back(group(sample));
    return groups;
  };
  const auto second = take(*open("only=2,permutation=4,3,2,1"));
  EXPECT_THAT(of_group(second), Each(2));
  EXPECT_NEAR(static_cast<double>(second.size()), 3000 * 8 / 9.0 / 4, 80);
  const auto two = take(*open("only=1,4,holdout=10,part=heldout"));
  EXPECT_EQ(two.size(), 40u);
  EXPECT_THAT(of_group(two), Each(testing::AnyOf(1, 4)));
  for (std::size_t i = 1; i < two.size(); ++i) EXPECT_GT(number(two[i]), number(two[i - 1]));
  expect_numbered(two);
}

TEST_F(Lifelong, GroupsMayBeEmptyOfSamplesWhenTheListHasMore) {
  source_ = generated({.samples = 300, .labels = 2});  // a and b, the last group
  EXPECT_EQ(take(*open()).size(), 300u);
  EXPECT_TRUE(take(*open("only=1")).empty());
}

TEST_F(Lifelong, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& options, const std::string& message) {
    EXPECT_THAT([&] { open(options); }, ThrowsMessage<Error>(HasSubstr(message))) << options;
  };
  refused("permutation=1,2,3", "all 4 groups");
  refused("permutation=1,2,3,3", "stands twice");
  refused("permutation=0,1,2,3", "from 1 to 4");
  refused("only=5", "from 1 to 4");
  refused("only=x1", "x1");
  refused("groups=9", "8 labels cannot make 9 groups");
  refused("overlap=0.6", "overlap");
  refused("part=heldout", "holdout");
  refused("grups=2", "did you mean 'groups'?");
  source_ = generated({.samples = 50});
  refused("", "none of 50 samples has one");
  source_ = generated({.samples = 500, .labels = 9});
  refused("", "'i' is not in the list");
  EXPECT_THAT(
      [&] { open_shapes(source_, "lifelong"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'a' is not a WordNet id"), HasSubstr("list="))));
}

TEST_F(Lifelong, RefusesAnEndlessStreamInsteadOfCountingItForEver) {
  const auto open_around = [&](const std::string& shapes) {
    return open_shapes(source_, cat(shapes, ",lifelong:list=", list_.string()));
  };
  for (const std::string endless : {"loop", "loop,subsample:every=2", "clips:length=2,loop"}) {
    EXPECT_THAT([&] { open_around(endless); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("does not: put limit:samples=N"), HasSubstr("lifelong"))))
        << endless;
  }
  EXPECT_EQ(take(*open_around("loop,limit:samples=5000")).size(), 5000u);
  EXPECT_THAT([&] { open_stream("synthetic:", "lifelong:list=" + list_.string()); },
              ThrowsMessage<Error>(HasSubstr("limit:samples=N")));
}

TEST_F(Lifelong, APositionOfAnotherStreamIsRefusedAndChangesNothing) {
  const auto stream = open();
  take(*stream, 100);
  const auto position = stream->position();
  for (const auto* bad : {"", "lifelong", "lifelong 1 2 3", "lifelong 1 8 0  ", "loop 1 2 3 4 5",
                          "lifelong 100 0 100 nonsense "}) {
    EXPECT_THROW(stream->seek(bad), Error) << bad;
  }
  EXPECT_EQ(stream->position(), position);
}

}  // namespace
}  // namespace riffle
