// Checkpoints whose checksums are right and whose content is not are refused at one door, whoever
// reads them.

#include <limits>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/run/model_source.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/testing/forging.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr const char* kName = "update-000000006";

class ForgedCheckpointTest : public RunTest {
 protected:
  RunFolder trained(const std::string& policy) const {
    Config config = tiny(policy);
    config.learner.train.max_updates = 6;
    config.checkpoint.keep = 1;
    train(config, folder_ / policy);
    return RunFolder::open(folder_ / policy);
  }

  RunFolder copy_of(const RunFolder& folder) const {
    const fs::path copy = folder.path().string() + "-forged";
    fs::remove_all(copy);
    fs::copy(folder.path(), copy, fs::copy_options::recursive);
    return RunFolder::open(copy);
  }

  // The buffer's reader names what is wrong; resume says that no checkpoint is whole, and throws
  // none away.
  static void expect_refused(const RunFolder& folder, const std::string& words) {
    EXPECT_THAT([&] { SavedBuffer buffer(folder); },
                ThrowsMessage<DamagedCheckpoint>(AllOf(HasSubstr(kName), HasSubstr(words))));
    EXPECT_THAT([&] { resume(folder.path(), {"train.max_updates=8"}); },
                ThrowsMessage<Error>(HasSubstr("no checkpoint of")));
    EXPECT_TRUE(fs::exists(folder.manifest(kName)));
  }
};

TEST_F(ForgedCheckpointTest, LiveSlotsThatAreOutOfRangeOrRepeatedAreRefused) {
  constexpr Slot kLargest = std::numeric_limits<Slot>::max();
  for (const std::string policy : {"fifo", "minred", "merge"}) {
    const RunFolder whole = trained(policy);
    for (const Slot slot : {Slot{40}, Slot{-1}, Slot{1} << 40, kLargest, -kLargest - 1}) {
      const RunFolder folder = copy_of(whole);
      forge_integers(folder, kName, "buffer.live", [&](auto& live) { live[3] = slot; });
      expect_refused(folder, cat("slot ", slot, " is listed twice or is not one of 40"));
    }
    const RunFolder folder = copy_of(whole);
    forge_integers(folder, kName, "buffer.live", [](auto& live) { live[3] = live[4]; });
    expect_refused(folder, "is listed twice");
  }
}

TEST_F(ForgedCheckpointTest, OtherNumbersOfTheBufferAreCheckedToo) {
  const RunFolder whole = trained("reservoir");
  const auto expect_number_refused = [&](const std::string& tensor, std::size_t at,
                                         std::int64_t value, const std::string& words) {
    const RunFolder folder = copy_of(whole);
    forge_integers(folder, kName, tensor, [&](auto& values) { values.at(at) = value; });
    expect_refused(folder, words);
  };
  expect_number_refused("buffer.free", 0, 40, "slot 40");
  expect_number_refused("buffer.shape", 2, std::int64_t{1} << 62, "40 slots for a capacity");
  expect_number_refused("buffer.counts", 1, -5, "-5 slots were used");
  expect_number_refused("buffer.policy.slots", 0, 1 << 30, "the policy holds other slots");
  expect_number_refused("pictures.segments", 0, -1, "of segment -1");
  expect_number_refused("pictures.records", 0, -1, "record -1");
  expect_number_refused("learner.counts", 0, -6, "counts -6");
  expect_number_refused("learner.counts", 0, 5, "the update that its manifest names");
  const RunFolder folder = copy_of(whole);
  for (const char* tensor : {"pictures.segments", "pictures.records"}) {
    forge_integers(folder, kName, tensor, [](auto& values) { values.pop_back(); });
  }
  expect_refused(folder, "31 pictures for 32 samples");
}

TEST_F(ForgedCheckpointTest, AManifestIsNeverShownAsAnErrorOfItsParser) {
  const RunFolder folder = trained("fifo");
  const auto whole = read_text(folder.manifest(kName));
  const auto line = nlohmann::ordered_json::parse(whole.substr(0, whole.find('\n')));
  std::vector<std::string> forged = {
      "", "{", "[]", "7", "{}", "null", "{\"riffle_checkpoint\":2}", std::string(10'000, '[')};
  for (const char* key : {"riffle_checkpoint", "update", "samples_seen", "seconds", "state",
                          "segments", "bytes", "checksum", "file"}) {
    const bool inside = !line.contains(key);
    for (const nlohmann::ordered_json& value :
         {nlohmann::ordered_json(), nlohmann::ordered_json("x"), nlohmann::ordered_json(-1),
          nlohmann::ordered_json(1e300), nlohmann::ordered_json::array({"x"}),
          nlohmann::ordered_json::object()}) {
      auto changed = line;
      (inside ? changed["state"] : changed)[key] = value;
      // A text may say anything, but then it does not match; seconds may be many.
      if (key == std::string("file") && value.is_string()) continue;
      if (key == std::string("seconds") && value.is_number_float()) continue;
      forged.push_back(changed.dump());
    }
    auto without = line;
    (inside ? without["state"] : without).erase(key);
    forged.push_back(without.dump());
  }
  for (const auto& content : forged) {
    forge_manifest(folder, kName, content);
    const auto refused = ThrowsMessage<DamagedCheckpoint>(
        AllOf(HasSubstr("checkpoints/update-000000006"), HasSubstr("is damaged"),
              Not(HasSubstr("json.exception"))));
    SCOPED_TRACE(content.substr(0, 200));
    EXPECT_THAT([&] { open_model(folder.path().string()); }, refused);
    EXPECT_THAT([&] { SavedBuffer buffer(folder); }, refused);
    if (content.find("\"checksum\":\"x\"") == std::string::npos) {
      EXPECT_THAT([&] { checkpoint_segments(folder, kName); }, refused);
    }
  }
  EXPECT_THAT([&] { resume(folder.path()); }, ThrowsMessage<Error>(HasSubstr("no checkpoint of")));
}

}  // namespace
}  // namespace riffle
