// What lies in the folder of a pass already: another selection, a pass that was begun, what
// somebody put there.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/curate/curate.h"
#include "riffle/curate/testing/curate_folder.h"
#include "riffle/curate/testing/folder_contents.h"
#include "riffle/tensors/named_tensors.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using OutputFolder = CurateFolder;
using LearningOutputFolder = LearningCurateFolder;

TEST_F(OutputFolder, NothingIsOverwritten) {
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

TEST_F(OutputFolder, WhatAKilledEndLeftIsRemovedByTheSameCallAndByNoOther) {
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

TEST_F(OutputFolder, AFolderIsNotSelectedIntoItself) {
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
  auto mixing = config("photos/selection");
  mixing.stream = "synthetic:?size=24&samples=4";
  mixing.shapes = cat("mix:folder:", (folder_ / "photos").string());
  EXPECT_THAT([&] { select(mixing); },
              testing::ThrowsMessage<Error>(HasSubstr("is in the folder that is read")));
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

TEST_F(OutputFolder, AForgedStateLeadsToNoOtherFile) {
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

TEST_F(LearningOutputFolder, ForgedPicturesAndCursorsAreRefused) {
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

TEST_F(OutputFolder, NothingIsReadOrChangedThroughALink) {
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

}  // namespace
}  // namespace riffle
