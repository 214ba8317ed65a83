#include "riffle/study/study_file.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/study/study_choice.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class StudyFile : public StudyTest {};

std::vector<std::string> slugs(const Study& study) {
  std::vector<std::string> names;
  for (const auto& run : expand(study)) names.push_back(run.slug);
  return names;
}

TEST_F(StudyFile, RunsAreTheCrossProductOfTheAxesTimesTheSeeds) {
  const Study study =
      tiny("  mode:\n", "  lr:\n    low: {train.lr: 0.01}\n    high: {train.lr: 0.1}\n  mode:\n");
  EXPECT_THAT(slugs(study),
              ElementsAre("low-none-seed0", "low-fifo-seed0", "high-none-seed0", "high-fifo-seed0",
                          "low-none-seed1", "low-fifo-seed1", "high-none-seed1", "high-fifo-seed1"))
      << "all of a seed before the next";
  const auto runs = expand(study);
  EXPECT_DOUBLE_EQ(runs[7].config.learner.train.lr, 0.1);
  EXPECT_EQ(runs[7].config.learner.seed, 1u);
  EXPECT_THAT(runs[7].config.stream, HasSubstr("seed=1"));
  EXPECT_EQ(runs[7].config.checkpoint.every, 10);
  EXPECT_TRUE(runs[7].config.checkpoint.wait);
}

TEST_F(StudyFile, AValueMayExistOnlyTogetherWithAnother) {
  const Study study = tiny("  mode:\n    none: {",
                           "  lr:\n    low:\n    high:\n  mode:\n    none: {only: {lr: high}, ");
  EXPECT_THAT(slugs(study), ElementsAre("low-fifo-seed0", "high-none-seed0", "high-fifo-seed0",
                                        "low-fifo-seed1", "high-none-seed1", "high-fifo-seed1"));
}

TEST_F(StudyFile, AStudyOfMoreRunsThanAnybodyMakesIsRefused) {
  const auto refused = [](const std::string& words) {
    return ThrowsMessage<Error>(AllOf(HasSubstr("tiny.yaml"), HasSubstr(words)));
  };
  EXPECT_THAT([&] { tiny("seeds: 2", "seeds: 9223372036854775807"); },
              refused("seeds must be at most 10000"));
  EXPECT_THAT([&] { tiny("points: 4", "points: 9223372036854775807"); },
              refused("probe.points must be at most 10000"));
  EXPECT_THAT([&] { expand(tiny("seeds: 2", "seeds: 5001")); },
              refused("10002 runs; a study has at most 10000"));
  std::string axes = "  mode:\n";
  for (int i = 0; i < 20; ++i) {
    axes = cat("  axis", i, ": {a: , b: , c: , d: , e: , f: , g: , h: , i: , j: }\n", axes);
  }
  EXPECT_THAT([&] { expand(tiny("  mode:\n", axes)); }, refused("4e+20 runs"));
  EXPECT_THROW(seeds_from(std::numeric_limits<std::int64_t>::max() - 1, 5), Error);
}

TEST_F(StudyFile, AnAliasThatLeadsBackToItselfIsRefused) {
  EXPECT_THAT([&] { tiny("vary:\n", "vary: &v\n  again: *v\n"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("tiny.yaml"), HasSubstr("leads back"))));
}

TEST_F(StudyFile, AScaleChangesKeysAndValuesAndDropsSome) {
  const Study study = tiny("smoke: {seeds: 2}",
                           "smoke: {set: {train.max_updates: 7}, drop: {mode: none}, vary: {mode: "
                           "{fifo: {buffer.capacity: 24, title: Queue}}}}");
  const auto runs = expand(study);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].config.learner.train.max_updates, 7);
  EXPECT_EQ(runs[0].config.learner.buffer.capacity, "24");
  EXPECT_EQ(study.axis("mode").value("fifo").title, "Queue");
}

TEST_F(StudyFile, WithoutABufferThereAreAsManyUpdatesOrAsManySamples) {
  EXPECT_EQ(expand(tiny())[0].config.learner.train.max_updates, 40);
  const Study study = tiny("set:\n", "without_buffer: same_samples\nset:\n");
  // Two batches that filled the buffer, and 19 for 38 updates with K = 2: the first two need none.
  EXPECT_EQ(expand(study)[0].config.learner.train.max_updates, 21);
  EXPECT_EQ(expand(study)[1].config.learner.train.max_updates, 40);
}

TEST_F(StudyFile, AKeyWithAPlusAddsToAList) {
  const Study study =
      tiny("buffer.policy: fifo}", "buffer.policy: fifo, stream.shapes+: 'limit:samples=9'}");
  EXPECT_EQ(expand(study)[1].config.shapes, "limit:samples=9");
  const Study both = tiny("fifo: {title: FIFO,",
                          "fifo: {title: FIFO, stream.shapes: loop, stream.shapes+: "
                          "'limit:samples=9',");
  EXPECT_EQ(expand(both)[1].config.shapes, "loop,limit:samples=9");
  const Study everywhere =
      tiny("smoke: {seeds: 2}",
           "smoke: {set: {stream.shapes+: loop}, vary: {mode: {fifo: {stream.shapes+: "
           "'limit:samples=9'}}}}");
  EXPECT_EQ(expand(everywhere)[0].config.shapes, "loop");
  EXPECT_EQ(expand(everywhere)[1].config.shapes, "loop,limit:samples=9");
}

TEST_F(StudyFile, ACheckpointIsThereForEachEvaluationAndThreeMoreForOneAtTheEnd) {
  const auto end = expand(tiny("points: 4", "points: 1"))[0];
  EXPECT_EQ(end.config.checkpoint.every, 10);
  const auto three = expand(tiny("points: 4", "points: 3"))[0];
  EXPECT_EQ(three.config.checkpoint.every, 6);
}

TEST_F(StudyFile, ARunKnowsHowFarItsGroupsOverlap) {
  const auto overlap = [this](const std::string& shapes) {
    return expand(tiny("smoke: {seeds: 2}", "smoke: {set: {stream.shapes: '" + shapes + "'}}"))[0]
        .overlap;
  };
  EXPECT_DOUBLE_EQ(overlap("lifelong:groups=4,overlap=0.25,limit:samples=9"), 0.25);
  EXPECT_DOUBLE_EQ(overlap("loop,lifelong"), 0.1);
  EXPECT_DOUBLE_EQ(overlap("loop"), 0);
}

TEST_F(StudyFile, AChoiceNamesValuesOfAxesAndSeeds) {
  const Study study = tiny();
  const auto chosen = [&](const std::vector<std::string>& only) {
    const RunChoice choice = parse_choice(study, only);
    std::vector<std::string> names;
    for (const auto& run : expand(study)) {
      if (is_chosen(choice, run)) names.push_back(run.slug);
    }
    return names;
  };
  EXPECT_EQ(chosen({}), slugs(study));
  EXPECT_THAT(chosen({"seed=1"}), ElementsAre("none-seed1", "fifo-seed1"));
  EXPECT_THAT(chosen({"mode=fifo", "seed=0,1"}), ElementsAre("fifo-seed0", "fifo-seed1"));
  EXPECT_EQ(chosen({"mode=fifo", "mode=none"}), slugs(study));
  const auto expect_refused = [&](const std::string& only, const std::string& words) {
    EXPECT_THAT([&] { parse_choice(study, {only}); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  expect_refused("fifo", "AXIS=VALUE");
  expect_refused("mood=fifo", "did you mean 'mode'");
  expect_refused("mode=fifi", "did you mean 'fifo'");
  expect_refused("mode=", "value of mode");
  expect_refused("seed=2", "0, 1");
  const Study apart = tiny("  mode:\n    none: {",
                           "  lr:\n    low:\n    high:\n  mode:\n    none: {only: {lr: high}, ");
  EXPECT_THAT(
      [&] {
        parse_choice(apart, {"mode=none", "lr=low"});
      },
      ThrowsMessage<Error>(HasSubstr("no run")));
}

TEST_F(StudyFile, MistakesAreRefusedWithTheFileAndTheKey) {
  const auto expect_refused = [this](const std::string& what, const std::string& with,
                                     const std::string& words) {
    EXPECT_THAT([&] { expand(tiny(what, with)); },
                ThrowsMessage<Error>(AllOf(HasSubstr("tiny.yaml"), HasSubstr(words))))
        << with;
  };
  expect_refused("title: Tiny", "titel: Tiny", "did you mean 'title'");
  expect_refused("buffer.capacity", "buffer.capacty", "did you mean 'buffer.capacity'");
  expect_refused("batch: 8", "batch: many", "train.batch");
  expect_refused("batch: 8", "batch: 0", "none-seed0");
  expect_refused("rows: mode", "rows: mood", "did you mean 'mode'");
  expect_refused("[linear_top1, updates]", "[linear_top, updates]", "did you mean 'linear_top1'");
  expect_refused("y: same_clip_pairs", "y: same_clip_pairs@nothing", "nothing");
  expect_refused("points: 4", "points: 0", "probe.points");
  expect_refused("samples=60", "samples=60', recipe: 'imagnet", "imagenet");
  expect_refused("smoke: {seeds: 2}", "small: {seeds: 2}", "unknown scale 'smoke'");
  expect_refused("smoke: {seeds: 2}", "smoke: {drop: {mode: lifo}}", "did you mean 'fifo'");
  expect_refused("buffer.policy: fifo}", "buffer.policy: fifo, only: {mode: [fifi]}}",
                 "value of mode in only");
  expect_refused("rows: mode", "where: {mode: [non]}\n    rows: mode", "did you mean 'none'");
  expect_refused("{mode: fifo, linear_top1: 12.5}", "{mode: lifo, linear_top1: 12.5}",
                 "did you mean 'fifo'");
  expect_refused("none: {title", "no ne: {title", "folder names");
  expect_refused("threads: 1}", "threads: 1}\n  run.seed: 3", "run.seed");
  expect_refused("  mode:\n    none", "  seed: {a: {}}\n  mode:\n    none", "vary.seed");
  expect_refused("'synthetic:?frames=4", "'{data}synthetic:?frames=4", "--data");
  expect_refused("{mode: fifo, linear_top1: 12.5}", "{mode: fifo, accuracy: 12.5}", "accuracy");
  expect_refused("scales:\n  smoke: {seeds: 2}",
                 "without_buffer: same_samples\nscales:\n  smoke: {set: {buffer.capacity: 1MiB}}",
                 "capacity in samples");
  expect_refused("title: Tiny", "title: [", "tiny.yaml");
  const auto refuse_claim = [&](const std::string& claim, const std::string& words) {
    expect_refused("show:\n", "claims:\n  - {" + claim + "}\nshow:\n", words);
  };
  refuse_claim("of: {mode: fifo}, above: {mode: none}", "claim: TEXT");
  refuse_claim("claim: More, of: {mode: fifo}", "'above' in 'More'");
  refuse_claim("claim: More, of: {mode: lifo}, above: {mode: none}", "did you mean 'fifo'");
  refuse_claim("claim: More, of: {mode: [fifo, none]}, above: {mode: none}", "exactly one value");
  refuse_claim("claim: More, of: {mode: fifo}, above: {mode: none}, measure: linear",
               "did you mean 'linear_top1'");
  expect_refused("  - table: Accuracy", "  - tabel: Accuracy", "'table:', 'matrix:', 'lines:'");
  expect_refused("    rows: mode", "    line: mode", "key of an entry of 'show' with 'table'");
  const auto refuse_shown = [&](const std::string& entry, const std::string& words) {
    expect_refused("show:\n", "show:\n  - {" + entry + "}\n", words);
  };
  refuse_shown("bars: Bars, rows: mode", "'Bars' has no y");
  refuse_shown("bars: Bars, rows: mode, y: [linear_top1, knn_top1]", "one measure");
  refuse_shown("pictures: Kept", "'Kept' has no rows");
  expect_refused("points: 4", "points: 1\n  untrained: maybe", "probe.untrained");
  const Study one_point = tiny("points: 4", "points: 1");
  EXPECT_FALSE(one_point.probe.measures_untrained());
  EXPECT_THAT(
      [&] {
        std::string text = read_text(folder_ / "tiny.yaml");
        text.replace(text.find("rows: mode"), 10, "untrained: true\n    rows: mode");
        write_atomically(folder_ / "row.yaml", text);
        load_study(folder_ / "row.yaml", "smoke", "");
      },
      ThrowsMessage<Error>(HasSubstr("see probe.untrained")));
}

TEST_F(StudyFile, EveryStudyIsValidAtEveryScaleItHas) {
  for (const auto& entry : fs::directory_iterator(RIFFLE_SOURCE_DIR "/studies")) {
    if (entry.path().extension() != ".yaml") continue;
    const YAML::Node file = YAML::LoadFile(entry.path().string());
    const auto runs_of = file["runs_of"] ? file["runs_of"].as<std::string>() : "";
    const YAML::Node runs =
        runs_of.empty() ? file : YAML::LoadFile(entry.path().parent_path() / (runs_of + ".yaml"));
    ASSERT_TRUE(runs["scales"]["smoke"]) << entry.path();
    for (const auto& node : runs["scales"]) {
      const auto scale = node.first.as<std::string>();
      SCOPED_TRACE(entry.path().string() + " at " + scale);
      EXPECT_FALSE(expand(load_study(entry.path(), scale, "/data")).empty());
    }
  }
}

}  // namespace
}  // namespace riffle
