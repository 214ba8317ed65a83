#include "riffle/curate/curate.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/text.h"
#include "riffle/curate/pass_state.h"
#include "riffle/curate/testing/folder_contents.h"
#include "riffle/curate/testing/small_pass.h"
#include "riffle/model/objective.h"
#include "riffle/stream/libraries.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/tensors/safetensors.h"
#include "riffle/train/testing/learner.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CurateTest : public PictureFolder {
 protected:
  CurateTest()
      : encoder_(make_objective({.arch = Arch::resnet10,
                                 .stem = Stem::stride2,
                                 .width = 8,
                                 .residual_gamma = 1,
                                 .projector_hidden = 8,
                                 .projector_out = 8,
                                 .predictor_hidden = 4},
                                5)) {}

  // Sixty pictures of two labels, every third of them a copy of another.
  void SetUp() override {
    const auto stream = open_stream("synthetic:?frames=1&size=24&classes=4&samples=60&seed=3");
    std::vector<std::vector<std::byte>> files;
    while (auto sample = stream->next()) files.push_back(encode_png(sample->picture));
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto& bytes = files[i % 3 == 2 ? i - 2 : i];
      const std::string name = cat("photos/", i % 2 ? "day" : "night", "/", 100 + i, ".png");
      put_bytes(name, bytes);
    }
  }

  CurateConfig config(const std::string& out) const {
    return small_pass(cat("folder:", (folder_ / "photos").string()), folder_ / out);
  }
  CurateResult select(const CurateConfig& config) { return curate(config, *encoder_); }

  // Calls what selects, and leaves a pass that can be continued.
  static void fail_after_three_states(const std::function<void()>& select) {
    std::atomic<int> states = 0;
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const bool state = path.filename().string().find("state") != std::string::npos;
      return FileFault{step == FileStep::open && state && ++states > 3 ? EIO : 0};
    });
    EXPECT_THROW(select(), Error);
  }

  std::shared_ptr<Objective> encoder_;
};

TEST_F(CurateTest, LeavesThePicturesAsTheyWereAndSaysWhatTheyStandFor) {
  const auto result = select(config("out"));
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.samples, 60);
  EXPECT_EQ(result.kept, 12);

  const auto table = split(read_text(folder_ / "out/selection.csv"), '\n');
  ASSERT_EQ(table.size(), 14u);  // with the head, and the line end
  EXPECT_EQ(table[0], "file,index,clip,label,key,time,seconds,count,share,nearest,alone");
  std::int64_t counted = 0;
  for (std::size_t i = 1; i <= 12; ++i) {
    const auto fields = split(table[i], ',');
    ASSERT_EQ(fields.size(), 11u) << table[i];
    EXPECT_EQ(read_text(folder_ / "out/pictures" / fields[0]), read_text(fields[4]));
    EXPECT_THAT(fields[4], HasSubstr(cat("/", fields[3], "/")));
    EXPECT_EQ(cat(fields[5], fields[6]), "") << "neither live nor a film";
    counted += std::stoll(fields[7]);
  }
  EXPECT_EQ(counted, 60);
  const std::string page = read_text(folder_ / "out/selection.html");
  EXPECT_THAT(page, HasSubstr("12 pictures of 60"));
  EXPECT_THAT(page, HasSubstr("% of the stream"));

  const auto assignments = split(read_text(folder_ / "out/assignments.csv"), '\n');
  EXPECT_EQ(assignments.size(), 60u - 12 + 2);
  const auto selection = read_text(folder_ / "out/selection.csv");
  for (std::size_t i = 1; i + 1 < assignments.size(); ++i) {
    EXPECT_THAT(selection, HasSubstr(split(assignments[i], ',').at(3)));
  }

  const auto again = open_stream(cat("folder:", (folder_ / "out/pictures").string()));
  std::int64_t read = 0;
  while (const auto sample = again->next()) {
    EXPECT_TRUE(sample->label == "day" || sample->label == "night");
    ++read;
  }
  EXPECT_EQ(read, 12);
}

TEST_F(CurateTest, NearDropsCopiesAndNothingElse) {
  auto near = config("out");
  near.keep = 60;
  near.near = 1e-12;
  EXPECT_EQ(select(near).kept, 40);
}

// Sixty pictures teach it a few updates.
class LearningCurateTest : public CurateTest {
 protected:
  static LearnerConfig learner() {
    LearnerConfig config = small_learner("merge");
    config.buffer.capacity = "16";
    config.train.max_updates = 0;
    config.train.schedule = ScheduleKind::constant;
    return config;
  }
  static CurateResult select(const CurateConfig& config) {
    LearningEncoder encoder(learner());
    return curate(config, encoder);
  }
};

TEST_F(LearningCurateTest, LearnsFromWhatPassesAndKeepsAsManyAsAsked) {
  LearningEncoder encoder(learner());
  const at::Tensor before = encoder.encoder().parameters().front().clone();
  const auto result = curate(config("out"), encoder);
  EXPECT_EQ(result.kept, 12);
  EXPECT_EQ(result.samples, 60);
  // Two of seven whole batches fill the buffer, and the second is learned from already.
  EXPECT_EQ(encoder.updates(), 3 * 6);
  EXPECT_FALSE(encoder.encoder().parameters().front().equal(before));
  EXPECT_TRUE(fs::exists(folder_ / "out/encoder.safetensors"));
}

TEST_F(LearningCurateTest, StoppedByAFailureAnywhereItEndsWithTheSameSelection) {
  for (const bool learns : {false, true}) {
    SCOPED_TRACE(learns);
    const auto select_into = [&](const std::string& out) {
      auto quota = config(out);
      quota.keep = 6;
      quota.per = Quota::label;
      return learns ? select(quota) : CurateTest::select(quota);
    };
    const std::string whole_pass = learns ? "learned" : "whole";
    select_into(whole_pass);
    const auto whole = folder_contents(folder_ / whole_pass);
    int failures = 0;
    for (int failing = 1;; failing += learns ? 83 : 41) {
      std::atomic<int> steps = 0;
      bool failed = false;
      {
        const FileFaults faults([&](FileStep step, const fs::path& path) {
          const bool ours = path.string().find("photos") == std::string::npos;
          const bool counts = ours && step != FileStep::read && step != FileStep::list;
          return FileFault{counts && ++steps == failing ? ENOSPC : 0};
        });
        try {
          select_into("out");
        } catch (const Error&) {
          failed = true;
        }
      }
      if (failed) ++failures;
      if (!fs::exists(folder_ / "out/selection.csv")) {
        EXPECT_TRUE(select_into("out").finished);
      }
      auto left = folder_contents(folder_ / "out");
      left.erase("state.safetensors");  // a failure after the selection was whole may leave them
      left.erase("repeats.log");
      EXPECT_EQ(left, whole) << "step " << failing;
      fs::remove_all(folder_ / "out");
      if (steps < failing) break;
    }
    EXPECT_GT(failures, 3);
  }
}

TEST_F(CurateTest, StoppedBeforeTheFirstPictureItContinues) {
  const auto pass = config("out");
  write_atomically(pass.out / "curate.lock", "");
  const Safetensors state = PassState(pass, *encoder_, nullptr).save(0);
  write_safetensors(pass.out / "state.safetensors", state.tensors, state.metadata);
  EXPECT_EQ(select(pass).samples, 60);
}

TEST_F(CurateTest, NothingIsOverwritten) {
  select(config("out"));
  const auto message = [&](const CurateConfig& config) -> std::string {
    try {
      select(config);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message(config("out")), HasSubstr("holds a finished selection"));
  EXPECT_THAT(message(config("photos")), HasSubstr("is not empty"));

  auto begun = config("begun");
  fail_after_three_states([&] { select(begun); });
  begun.keep = 13;
  EXPECT_THAT(message(begun), HasSubstr("begun with other settings"));
}

TEST_F(CurateTest, WhatAKilledEndLeftIsRemovedByTheSameCallAndByNoOther) {
  const auto expect_refused = [&](const CurateConfig& config) {
    EXPECT_THAT([&] { select(config); },
                testing::ThrowsMessage<Error>(HasSubstr("holds a finished selection")));
  };
  for (const bool sharded : {false, true}) {
    SCOPED_TRACE(sharded);
    auto pass = config(sharded ? "sharded" : "plain");
    if (sharded) pass.shards = "part-%03d.tar";
    select(pass);
    const auto whole = folder_contents(pass.out);
    // A kill after the table was written leaves what the pass continues from.
    auto begun = pass;
    begun.out = folder_ / (sharded ? "begun-sharded" : "begun-plain");
    fail_after_three_states([&] { select(begun); });
    const auto left = folder_contents(begun.out);
    ASSERT_TRUE(left.contains("state.safetensors") && left.contains("repeats.log"));
    for (const auto& [name, content] : left) write_atomically(pass.out / name, content);
    const auto killed = folder_contents(pass.out);

    // Another pass must not take the pictures of this one for what is left over.
    auto other = pass;
    other.shards = sharded ? "" : "part-%03d.tar";
    expect_refused(other);
    EXPECT_EQ(folder_contents(pass.out), killed);
    // A state that cannot be read belongs to nobody.
    write_atomically(pass.out / "state.safetensors", "damaged");
    expect_refused(pass);
    EXPECT_TRUE(folder_contents(pass.out).contains("repeats.log"));

    write_atomically(pass.out / "state.safetensors", left.at("state.safetensors"));
    expect_refused(pass);
    auto now = folder_contents(pass.out);
    EXPECT_FALSE(now.contains("state.safetensors") || now.contains("repeats.log"));
    EXPECT_EQ(fs::exists(pass.out / "pictures"), !sharded);
    for (const auto& [name, content] : whole) EXPECT_EQ(now.at(name), content) << name;
  }
}

TEST_F(CurateTest, AFolderIsNotSelectedIntoItself) {
  const auto message = [&](const fs::path& out) -> std::string {
    auto inside = config("unused");
    inside.out = out;
    try {
      select(inside);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  fs::create_directory_symlink(folder_ / "photos", folder_ / "link");
  for (const char* out : {"photos/selection", "photos/a/../b/c", "link/selection"}) {
    EXPECT_THAT(message(folder_ / out), HasSubstr("is in the folder that is read")) << out;
  }
  EXPECT_FALSE(fs::exists(folder_ / "photos/selection"));
  // What is not read may be there, and what begins with the same letters is elsewhere.
  EXPECT_EQ(message(folder_ / "photos/.selection"), "");
  EXPECT_EQ(message(folder_ / "photos-selection"), "");
}

// What forges a saved state, and words of the message.
struct Forgery {
  std::function<void(NamedTensors&)> forge;
  std::string words;
};

at::Tensor& tensor_of(NamedTensors& state, const std::string& name) {
  return std::ranges::find(state, name, [](const auto& named) { return named.first; })->second;
}

Forgery forged_integer(const std::string& tensor, std::int64_t value, const std::string& words,
                       std::int64_t at = 0) {
  return {[=](NamedTensors& state) { tensor_of(state, tensor)[at] = value; }, words};
}

// Of the first picture kept.
Forgery forged_file(const std::string& file) {
  return {[=](NamedTensors& state) {
            const std::string name = "selector.0.files";
            const std::int64_t count = tensor_of(state, name + ".lengths").numel();
            auto files = find_texts(state, name, count);
            files.front() = file;
            NamedTensors texts;
            add_texts(texts, name, files);
            for (const auto& [part, tensor] : texts) tensor_of(state, part) = tensor;
          },
          cat("'", file, "' is not where picture")};
}

TEST_F(CurateTest, AForgedStateLeadsToNoOtherFile) {
  const auto pass = config("out");
  fail_after_three_states([&] { select(pass); });
  const auto begun = folder_contents(pass.out);
  const auto photos = folder_contents(folder_ / "photos");
  const fs::path state = pass.out / "state.safetensors";
  constexpr std::int64_t kHuge = std::int64_t{1} << 50;
  for (const Forgery& forgery :
       {forged_integer("numbers", -1, "than were seen"),
        forged_integer("numbers", kHuge, "than were seen"),
        forged_integer("numbers", kHuge, "bytes, fewer than", 1),
        forged_integer("numbers", -1, "bytes, fewer than", 1),
        forged_integer("numbers", -1, "groups", 2), forged_integer("numbers", kHuge, "groups", 2),
        forged_integer("selector.0.counts", 0, "stands for 0"),
        forged_integer("selector.0.counts", kHuge, "than were seen"),
        forged_integer("selector.0.indices", -1, "picture -1"),
        forged_integer("selector.0.slots", 20, "slot 20"), forged_file(""), forged_file("."),
        forged_file("../../photos/day/101.png"), forged_file("/etc/passwd"),
        forged_file((folder_ / "photos/day/101.png").string())}) {
    SCOPED_TRACE(forgery.words);
    for (const auto& [name, content] : begun) write_atomically(pass.out / name, content);
    Safetensors saved = read_safetensors(state);
    forgery.forge(saved.tensors);
    write_safetensors(state, saved.tensors, saved.metadata);
    const auto file =
        testing::AnyOf(HasSubstr("state.safetensors is damaged"), HasSubstr("repeats.log has"));
    EXPECT_THAT([&] { select(pass); },
                testing::ThrowsMessage<Error>(testing::AllOf(file, HasSubstr(forgery.words))));
    EXPECT_EQ(folder_contents(folder_ / "photos"), photos);
  }
  for (const auto& [name, content] : begun) write_atomically(pass.out / name, content);
  EXPECT_EQ(select(pass).kept, 12);
}

TEST_F(LearningCurateTest, ForgedPicturesAndCursorsAreRefused) {
  const auto pass = config("out");
  fail_after_three_states([&] { select(pass); });
  const fs::path state = pass.out / "state.safetensors";
  const std::string begun = read_text(state);
  const auto one_picture = [](NamedTensors& tensors) {
    at::Tensor& small = tensor_of(tensors, "small.0");
    small = small.narrow(0, 0, 1).clone();
  };
  for (const Forgery& forgery : {forged_integer("cursors", 1000, "'cursors' holds 1000"),
                                 forged_integer("cursors", -1, "'cursors' holds -1"),
                                 Forgery{one_picture, "'small.0' are not pictures"}}) {
    write_atomically(state, begun);
    Safetensors saved = read_safetensors(state);
    forgery.forge(saved.tensors);
    write_safetensors(state, saved.tensors, saved.metadata);
    EXPECT_THAT([&] { select(pass); }, testing::ThrowsMessage<Error>(HasSubstr(forgery.words)));
  }
}

TEST_F(CurateTest, NothingIsReadOrChangedThroughALink) {
  const auto pass = config("out");
  fail_after_three_states([&] { select(pass); });
  const auto begun = folder_contents(pass.out);
  const auto photos = folder_contents(folder_ / "photos");
  for (const char* name : {"pictures", "pictures/day", "pictures/night/100.png", "repeats.log"}) {
    SCOPED_TRACE(name);
    fs::remove_all(pass.out / "pictures");
    for (const auto& [file, content] : begun) write_atomically(pass.out / file, content);
    const fs::path link = pass.out / name;
    fs::remove_all(link);
    fs::create_directories(link.parent_path());
    const bool is_folder = std::string(name) == "pictures" || std::string(name) == "pictures/day";
    fs::create_symlink(is_folder ? folder_ / "photos" : folder_ / "photos/night/100.png", link);
    EXPECT_THAT([&] { select(pass); }, testing::ThrowsMessage<Error>(testing::AllOf(
                                           HasSubstr(link.string()), HasSubstr("remove"))));
    EXPECT_EQ(folder_contents(folder_ / "photos"), photos);
    fs::remove(link);
  }
}

TEST_F(CurateTest, ShardsHoldThePicturesAndCanBeRead) {
  for (const Library& library : stream_libraries()) {
    const bool reads_shards = library.name != "libarchive" || !library.version.empty();
    if (!reads_shards) GTEST_SKIP() << "built without libarchive";
  }
  auto shards = config("out");
  shards.shards = "part-%03d.tar";
  shards.shard_size = 5;
  EXPECT_EQ(select(shards).kept, 12);
  EXPECT_FALSE(fs::exists(folder_ / "out/pictures"));
  const auto table = read_text(folder_ / "out/selection.csv");
  const auto stream =
      open_stream(cat("shards:", (folder_ / "out").string(), "/part-*.tar?original=1"));
  std::int64_t read = 0;
  while (const auto sample = stream->next()) {
    const std::string member = sample->key.substr(sample->key.rfind("part-"));
    EXPECT_THAT(table, HasSubstr(member));
    const std::string name = member.substr(member.rfind('-') + 1);
    const auto source = read_bytes(folder_ / "photos" / sample->label / name);
    EXPECT_EQ(*sample->picture.file, source);
    ++read;
  }
  EXPECT_EQ(read, 12);
  EXPECT_TRUE(fs::exists(folder_ / "out/part-002.tar"));
  EXPECT_FALSE(fs::exists(folder_ / "out/part-003.tar"));
}

TEST(ShardPattern, HasOneNumber) {
  for (const char* good : {"part-%06d.tar", "%d.tar", "a%03d"}) {
    EXPECT_TRUE(is_shard_pattern(good)) << good;
  }
  for (const char* bad : {"part.tar", "%s.tar", "%d-%d.tar", "%n%06d.tar", "%12345d.tar", "a/%d"}) {
    EXPECT_FALSE(is_shard_pattern(bad)) << bad;
  }
}

TEST_F(CurateTest, EachLabelOrSourceHasItsQuota) {
  for (const Quota per : {Quota::label, Quota::source}) {
    auto quota = config(per == Quota::label ? "labels" : "sources");
    quota.keep = 4;
    quota.per = per;
    EXPECT_EQ(select(quota).kept, 8);
    for (const char* label : {"day", "night"}) {
      const fs::directory_iterator files(quota.out / "pictures" / label);
      EXPECT_EQ(std::distance(files, {}), 4);
    }
  }
}

TEST(SourceOf, IsAFilmAShardOrAFolder) {
  EXPECT_EQ(source_of("films/a#b.mp4#120"), "films/a#b.mp4");
  EXPECT_EQ(source_of("films/a#1.mp4#120"), "films/a#1.mp4");
  EXPECT_EQ(source_of("rtsp://camera/1#0"), "rtsp://camera/1");
  // What shapes made of a frame or a picture.
  EXPECT_EQ(source_of("films/a.mp4#120 frame 3"), "films/a.mp4");
  EXPECT_EQ(source_of("films/a.mp4#120 frame 3 again 17"), "films/a.mp4");
  EXPECT_EQ(source_of("films/a.mp4#120 still 2"), "films/a.mp4");
  EXPECT_EQ(source_of("photos/cat/1.jpg frame 3"), "photos/cat");
  // Names of pictures with a '#'.
  EXPECT_EQ(source_of("photos/cat/a#b.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a#1.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a #1 b.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a#1 frame 3.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat#2/1.jpg"), "photos/cat#2");
  EXPECT_EQ(source_of("photos/cat/a#"), "photos/cat");
  EXPECT_EQ(source_of("/data/part-0.tar:cat/a#7 b.jpg"), "/data/part-0.tar");
  EXPECT_EQ(source_of("/data/part-0.tar:cat/1.jpg"), "/data/part-0.tar");
  EXPECT_EQ(source_of("/data/part-0.tgz:cat/1.jpg"), "/data/part-0.tgz");
  EXPECT_EQ(source_of("/data/part-0.tar.zst:cat/1.jpg"), "/data/part-0.tar.zst");
  EXPECT_EQ(source_of("photos/cat/1.jpg"), "photos/cat");
  EXPECT_EQ(source_of(""), "");
}

TEST_F(CurateTest, AListHasNoPictures) {
  auto list = config("out");
  list.pictures = false;
  EXPECT_EQ(select(list).kept, 12);
  EXPECT_FALSE(fs::exists(folder_ / "out/pictures"));
}

TEST_F(CurateTest, WhatStandsAloneCanBeDropped) {
  // Many copies of ten pictures, and two like no other.
  const auto stream = open_stream("synthetic:?frames=1&size=24&classes=4&samples=12&seed=8");
  std::vector<std::vector<std::byte>> files;
  while (auto sample = stream->next()) files.push_back(encode_png(sample->picture));
  for (int i = 0; i < 60; ++i) put_bytes(cat("many/", 100 + i, ".png"), files[i % 10]);
  put_bytes("many/900.png", solid_png(0));
  put_bytes("many/901.png", solid_png(255));
  auto drop = config("out");
  drop.stream = cat("folder:", (folder_ / "many").string());
  drop.alone = Alone::drop;
  const auto result = select(drop);
  EXPECT_EQ(result.kept + result.alone, 12);
  EXPECT_EQ(std::ranges::count_if(fs::recursive_directory_iterator(folder_ / "out/pictures"),
                                  [](const auto& entry) { return entry.is_regular_file(); }),
            result.kept);
}

}  // namespace
}  // namespace riffle
