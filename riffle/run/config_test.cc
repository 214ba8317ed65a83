#include "riffle/run/config.h"

#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/run/presets.h"
#include "riffle/run/run_folder.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ConfigTest : public TempFolder {
 protected:
  fs::path yaml(const std::string& text) {
    write_atomically(folder_ / "config.yaml", text);
    return folder_ / "config.yaml";
  }
  std::string refusal(const std::string& text) {
    try {
      ConfigBuilder builder;
      builder.read_yaml(yaml(text));
      builder.build();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(ConfigTest, AssignmentsWinOverFilesAndFilesOverDefaults) {
  ConfigBuilder builder;
  builder.read_yaml(yaml("train:\n  batch: 32\n  lr: 0.1\nbuffer.policy: fifo\n"));
  builder.set_assignment("train.batch=64");
  const Config config = builder.build();
  EXPECT_EQ(config.learner.train.batch, 64);
  EXPECT_EQ(config.learner.train.lr, 0.1);
  EXPECT_EQ(config.learner.buffer.policy, "fifo");
  EXPECT_EQ(config.learner.train.momentum, 0.9);
}

TEST_F(ConfigTest, APresetGivesWayToAllThatIsGiven) {
  for (const Preset& preset : presets()) {
    ConfigBuilder builder;
    builder.use_preset(preset.name);
    std::map<std::string, std::string> values;
    for (const auto& field : builder.fields().all()) values[field.key] = field.get();
    for (const auto& [key, value] : preset.values) EXPECT_EQ(values.at(key), value) << key;
    builder.build();
    EXPECT_THAT(presets_help(), HasSubstr(preset.name + ": " + preset.about));
  }
  ConfigBuilder builder;
  builder.use_preset("stream");
  EXPECT_EQ(builder.build().learner.model.objective, "simclr");
  builder.read_yaml_text("model: {objective: byol}", "file");
  builder.set("buffer.policy", "none");
  EXPECT_EQ(builder.build().learner.model.objective, "byol");
  EXPECT_TRUE(builder.build().learner.buffer.is_none());
  EXPECT_THAT([&] { builder.use_preset("streem"); },
              ThrowsMessage<Error>(HasSubstr("did you mean 'stream'")));
}

TEST_F(ConfigTest, AliasesThatLoopAreRefusedWithTheFile) {
  EXPECT_THAT(refusal("train: &a {x: *a}"),
              testing::AllOf(HasSubstr("config.yaml"), HasSubstr("an alias leads back")));
}

TEST_F(ConfigTest, WhatIsPrintedReadsBackTheSame) {
  ConfigBuilder builder;
  builder.set("stream.uri", "folder:/a b: c?order=time");
  builder.set("train.lr", "0.003");
  const std::string printed = config_yaml(builder.build());
  ConfigBuilder again;
  again.read_yaml(yaml(printed));
  EXPECT_EQ(config_yaml(again.build()), printed);
  EXPECT_EQ(again.build().stream, "folder:/a b: c?order=time");
}

// YAML forbids a key twice, and other readers lose the first.
TEST_F(ConfigTest, EachRoomIsPrintedOnce) {
  std::set<std::string> rooms;
  for (const auto& line : split(config_yaml(Config()), '\n')) {
    if (line.empty() || line.front() == ' ') continue;
    EXPECT_TRUE(rooms.insert(line).second) << line;
  }
  EXPECT_TRUE(rooms.contains("model:"));
}

TEST_F(ConfigTest, ShapesAreATextOrAList) {
  const std::string shapes = "clips:length=64,size=32,limit:samples=9";
  for (const std::string& text : {"stream.shapes: " + shapes,
                                  std::string("stream:\n  shapes:\n    - clips:length=64,size=32\n"
                                              "    - limit:samples=9\n")}) {
    ConfigBuilder builder;
    builder.read_yaml(yaml(text));
    EXPECT_EQ(builder.build().shapes, shapes);
    ConfigBuilder again;
    again.read_yaml(yaml(config_yaml(builder.build())));
    EXPECT_EQ(again.build().shapes, shapes);
  }
}

TEST_F(ConfigTest, HelpNamesEveryKeyAndStillReadsBack) {
  const std::string printed = config_yaml(Config(), true);
  EXPECT_THAT(printed, HasSubstr("# updates per stream batch"));
  ConfigBuilder builder;
  builder.read_yaml(yaml(printed));
}

TEST_F(ConfigTest, AnUnknownKeyNamesTheFileAndTheNearestKey) {
  const auto message = refusal("train: {bacth: 3}");
  EXPECT_THAT(message, HasSubstr("config.yaml"));
  EXPECT_THAT(message, HasSubstr("did you mean 'train.batch'?"));
}

TEST_F(ConfigTest, BrokenFilesAreRefusedInOneLine) {
  for (const char* text : {"train: [", "just a word", "train: {batch: many}", "? [a, b] : c"}) {
    const auto message = refusal(text);
    EXPECT_THAT(message, HasSubstr("config.yaml")) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << text;
  }
  EXPECT_THROW(ConfigBuilder().read_yaml(folder_ / "absent.yaml"), Error);
}

TEST_F(ConfigTest, WithoutABufferEachBatchIsUsedOnce) {
  ConfigBuilder builder;
  builder.set("buffer.policy", "none");
  EXPECT_EQ(builder.build().learner.train.updates, 1);
  builder.set("train.updates", "5");
  EXPECT_THROW(builder.build(), Error);
}

TEST_F(ConfigTest, ValuesOutOfRangeAreRefused) {
  for (const std::string assignment :
       {"train.batch=1", "train.lr=0", "train.momentum=1", "train.max_updates=-1",
        "metrics.every=0", "checkpoint.every=-1", "train.updates=0", "train.fresh=0.001",
        "train.threads=4097", "checkpoint.keep=9223372036854775807", "stream.size=-1",
        "stream.size=16385", "stream.size=4294967312"}) {
    ConfigBuilder builder;
    builder.set_assignment(assignment);
    EXPECT_THAT([&] { builder.build(); },
                ThrowsMessage<Error>(HasSubstr(assignment.substr(0, assignment.find('=')))))
        << assignment;
  }
}

TEST_F(ConfigTest, ARunFolderKeepsItsConfigurationAndIsNeverOverwritten) {
  ConfigBuilder builder;
  builder.set("train.batch", "48");
  RunFolder::create(folder_, ConfigBuilder().build());
  RunFolder::create(folder_, builder.build());
  const auto folder = RunFolder::open(folder_);
  EXPECT_EQ(RunFolder::open(folder_).config().learner.train.batch, 48)
      << "the first produced no checkpoint";
  write_atomically(folder.metrics(), "{\"update\":1}\n");
  EXPECT_THAT([&] { RunFolder::create(folder_, builder.build()); },
              testing::ThrowsMessage<Error>(HasSubstr("holds a run already")));
  EXPECT_THROW(RunFolder::open(folder_ / "absent"), Error);
}

TEST_F(ConfigTest, TheLatestCheckpointIsTheOneOfTheLargestUpdate) {
  const auto folder = RunFolder::create(folder_, ConfigBuilder().build());
  EXPECT_FALSE(folder.latest_checkpoint());
  write_atomically(folder.state_file(RunFolder::checkpoint_name(0, 20000)), "x");
  for (const std::int64_t update : {900, 10000, 1}) {
    write_atomically(folder.state_file(RunFolder::checkpoint_name(update, 7)), "x");
  }
  EXPECT_EQ(folder.latest_checkpoint(), folder.state_file("update-000010000"));
  for (const std::int64_t update : {999999999, 1000000000}) {
    write_atomically(folder.state_file(RunFolder::checkpoint_name(update, 7)), "x");
  }
  EXPECT_EQ(folder.latest_checkpoint(), folder.state_file("update-1000000000"));
}

TEST_F(ConfigTest, CheckpointsOfARunThatLostItsConfigurationAreNotTakenOver) {
  RunFolder::create(folder_, ConfigBuilder().build());
  const auto folder = RunFolder::open(folder_);
  write_atomically(folder.state_file("update-000000900"), "x");
  fs::remove(folder_ / "config.yaml");
  EXPECT_THROW(RunFolder::create(folder_, ConfigBuilder().build()), Error);
  EXPECT_TRUE(fs::exists(folder.state_file("update-000000900")));
}

TEST_F(ConfigTest, AddressesOfAnyBytesComeBackAsTheyWere) {
  for (const std::string name : {"caf\xe9", "caf\xe9: #x", "two\nlines", "\x1b[31m", "\xc2\x9b"}) {
    ConfigBuilder builder;
    builder.set("stream.uri", "folder:" + name);
    builder.set("stream.shapes", "mix:folder:" + name + ",share=0.5");
    builder.set("probe.train", "folder:" + name);
    builder.set("probe.val", "folder:" + name);
    const Config config = builder.build();
    ConfigBuilder again;
    again.read_yaml(yaml(config_yaml(config)));
    EXPECT_EQ(again.build().stream, config.stream);
    EXPECT_EQ(again.build().shapes, config.shapes);
    EXPECT_EQ(Uri(config.stream).path(), name);
    EXPECT_EQ(config_yaml(config).find('\xe9'), std::string::npos);
  }
}

TEST_F(ConfigTest, OtherValuesMustBeText) {
  ConfigBuilder builder;
  builder.set("model.init", "caf\xe9.pth");
  EXPECT_THAT([&] { builder.build(); },
              ThrowsMessage<Error>(HasSubstr("model.init must be UTF-8")));
}

}  // namespace
}  // namespace riffle
