// Files of every released version still open. riffle/run/testdata has a small run of each,
// as riffle wrote it then. A new version gets a run of its own there; old ones never change.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/checksum.h"
#include "riffle/base/error.h"
#include "riffle/run/model_source.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FormatsTest : public RunTest {
 protected:
  fs::path copy_of(const std::string& version) const {
    const fs::path data = fs::path(RIFFLE_SOURCE_DIR) / "riffle/run/testdata" / version;
    fs::copy(data, folder_ / version, fs::copy_options::recursive);
    return folder_ / version;
  }
};

// What a tensor is, without its values.
std::string kind_of(const std::pair<std::string, at::Tensor>& item) {
  std::string text = cat(item.first, ' ', toString(item.second.scalar_type()));
  for (const auto size : item.second.sizes()) text += cat(' ', size);
  return text;
}

std::string checksum_of(const NamedTensors& tensors) {
  Checksum sum;
  for (const auto& item : tensors) {
    const auto text = kind_of(item);
    const auto values = item.second.contiguous();
    sum.add(std::as_bytes(std::span(text)));
    sum.add({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  }
  return checksum_text(sum.value());
}

std::vector<std::string> keys_of(const fs::path& manifest) {
  const auto content = read_text(manifest);
  std::vector<std::string> keys;
  const auto line = nlohmann::ordered_json::parse(content.substr(0, content.find('\n')));
  for (const auto& [key, value] : line.items()) keys.push_back(key);
  return keys;
}

TEST_F(FormatsTest, Version1OpensButHasNoBufferToContinueWith) {
  const auto folder = RunFolder::open(copy_of("version1"));
  const auto latest = folder.latest_checkpoint();
  ASSERT_TRUE(latest);
  EXPECT_EQ(open_model(folder.path().string()).file, *latest);
  const auto trained = load_objective(folder.config(), *latest);
  const auto untrained = load_objective(folder.config());
  EXPECT_FALSE(trained->parameters()[0].equal(untrained->parameters()[0]));
  EXPECT_THAT([&] { resume(folder.path()); },
              testing::ThrowsMessage<Error>(HasSubstr("version 1")));
}

TEST_F(FormatsTest, Version2IsReadToTheValuesThatWereWritten) {
  const auto folder = RunFolder::open(copy_of("version2"));
  EXPECT_THAT(folder.checkpoint_names(), ElementsAre("update-000000006"));
  const auto checkpoint = read_checkpoint(folder, "update-000000006");
  EXPECT_EQ(checkpoint.update, 6);
  EXPECT_EQ(checkpoint.samples_seen, 32);
  EXPECT_GT(checkpoint.seconds, 0);
  EXPECT_EQ(metrics_of(folder.path()).size(), 6u);
  // A learner restored from it saves the same, and the pictures with it.
  auto state = state_of(folder.path());
  EXPECT_EQ(checksum_of(state), "e3209bb49d77e005");
  ASSERT_EQ(state.back().first, "pictures");
  state.pop_back();
  for (const auto& [name, values] : state) {
    EXPECT_TRUE(find_tensor(checkpoint.state, name).equal(values)) << name;
  }
}

TEST_F(FormatsTest, Version2Continues) {
  const fs::path run = copy_of("version2");
  const auto metrics = metrics_of(run);
  const auto result = resume(run, {"train.max_updates=10"});
  EXPECT_EQ(result.updates, 10);
  EXPECT_EQ(result.samples_seen, 48);
  const auto longer = metrics_of(run);
  ASSERT_EQ(longer.size(), 10u);
  EXPECT_TRUE(std::equal(metrics.begin(), metrics.end(), longer.begin()));
}

TEST_F(FormatsTest, WhatIsWrittenNowIsVersion2) {
  const auto old = RunFolder::open(copy_of("version2"));
  train(old.config(), folder_ / "now");
  const auto now = RunFolder::open(folder_ / "now");
  const std::string name = "update-000000006";
  EXPECT_EQ(keys_of(now.manifest(name)), keys_of(old.manifest(name)));
  EXPECT_THAT(read_text(now.manifest(name)), HasSubstr("{\"riffle_checkpoint\":2,"));
  std::vector<std::string> then_tensors, now_tensors;
  for (const auto& item : read_checkpoint(old, name).state) then_tensors.push_back(kind_of(item));
  for (const auto& item : read_checkpoint(now, name).state) {
    // Readers that do not know them pass over them.
    const bool added = is_time(item.first) || item.first.starts_with("buffer.keys.");
    if (!added) now_tensors.push_back(kind_of(item));
  }
  EXPECT_EQ(now_tensors, then_tensors);
}

TEST_F(FormatsTest, ALaterVersionIsLeftAlone) {
  const auto folder = RunFolder::open(copy_of("version2"));
  const std::string line = "{\"riffle_checkpoint\":3}";
  const fs::path manifest = folder.manifest("update-000000006");
  write_atomically(manifest, cat(line, '\n', checksum_text(checksum(line)), '\n'));
  EXPECT_THAT([&] { resume(folder.path()); },
              testing::ThrowsMessage<Error>(HasSubstr("version 3")));
  EXPECT_TRUE(fs::exists(manifest));
}

}  // namespace
}  // namespace riffle
