// Checkpoints whose checksums are right and whose content is not are refused at one door, whoever
// reads them.

#include <limits>
#include <map>

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

TEST_F(ForgedCheckpointTest, AStateFileWithoutItsManifestIsNotTheNewestCheckpoint) {
  const RunFolder folder = trained("fifo");
  write_atomically(folder.state_file("update-000000009"), "half a state");
  EXPECT_EQ(open_model(folder.path().string()).file, folder.state_file(kName));
  EXPECT_EQ(SavedBuffer(folder).checkpoint(), kName);
}

// A key of config.yaml that is lost has its default.
void lose_line(const RunFolder& folder, const std::string& line) {
  std::string text = read_text(folder.path() / "config.yaml");
  const std::size_t at = text.find("\n  " + line);
  ASSERT_NE(at, std::string::npos) << line;
  text.erase(at, text.find('\n', at + 1) - at);
  write_atomically(folder.path() / "config.yaml", text);
}

TEST_F(ForgedCheckpointTest, AnotherConfigurationIsNamedByEveryReader) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 6;
  config.learner.picture_size = 20;
  train(config, folder_ / "run");
  const RunFolder whole = RunFolder::open(folder_ / "run");
  const auto expect_named = [&](const RunFolder& folder, const std::string& words) {
    const auto named =
        ThrowsMessage<Error>(AllOf(HasSubstr(kName), HasSubstr("config.yaml"), HasSubstr(words)));
    EXPECT_THAT([&] { open_model(folder.path().string()); }, named);
    EXPECT_THAT([&] { open_encoder(folder.path().string(), kName); }, named);
    EXPECT_THAT([&] { SavedBuffer buffer(folder); }, named);
    EXPECT_THAT([&] { resume(folder.path()); }, named);
  };
  // The second "size" is that of the views.
  const RunFolder no_stream_size = copy_of(whole);
  lose_line(no_stream_size, "size: 20");
  expect_named(no_stream_size, "stream.size is '0', was '20'");
  const RunFolder no_view_size = copy_of(whole);
  lose_line(no_view_size, "size: 16");
  expect_named(no_view_size, "augment.size is '224', was '16'");
  const RunFolder wide = copy_of(whole);
  lose_line(wide, "width: 4");
  expect_named(wide, "model.width is '64', was '4'");
  // Nothing of the network, and what a reader may be told.
  const RunFolder other_rate = copy_of(whole);
  lose_line(other_rate, "momentum: ");
  EXPECT_NO_THROW(open_model(other_rate.path().string()));
  EXPECT_NO_THROW(SavedBuffer{other_rate});
}

TEST_F(ForgedCheckpointTest, ANetworkThatIsOnlyClaimedToBeLargeIsNotBuilt) {
  const RunFolder whole = trained("fifo");
  // Each would take terabytes.
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"width: 4", "width: 1000000"},
           {"projector_hidden: 16", "projector_hidden: 10000000"},
           {"projector_out: 16", "projector_out: 1000000000000"},
           {"predictor_hidden: 8", "predictor_hidden: 1000000000000"}}) {
    const RunFolder folder = copy_of(whole);
    const auto claim = [&](std::string text) {
      return text.replace(text.find(key), key.size(), value);
    };
    const fs::path yaml = folder.path() / "config.yaml";
    write_atomically(yaml, claim(read_text(yaml)));
    forge_state(
        folder, kName, [](NamedTensors&) {},
        [&](auto& metadata) { metadata["config"] = claim(metadata["config"]); });
    const auto refused = ThrowsMessage<Error>(HasSubstr("has shape"));
    EXPECT_THAT([&] { open_model(folder.path().string()); }, refused) << value;
    EXPECT_THAT([&] { resume(folder.path(), {"train.max_updates=8"}); }, refused) << value;
  }
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
