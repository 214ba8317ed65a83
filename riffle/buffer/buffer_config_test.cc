#include "riffle/buffer/buffer_config.h"

#include <gmock/gmock.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_refused(const std::string& key, const std::string& value) {
  BufferConfig config;
  Fields fields;
  config.describe(fields);
  EXPECT_THAT(
      [&] {
        fields.set(key, value);
        config.validate();
      },
      ThrowsMessage<Error>(HasSubstr(key)))
      << key << "=" << value;
}

TEST(BufferConfig, DefaultsAreValidAndEveryKeyCanBeSetToWhatItPrints) {
  BufferConfig config;
  config.validate();
  Fields fields;
  config.describe(fields);
  for (const auto& field : fields.all()) {
    EXPECT_TRUE(field.key.starts_with("buffer."));
    fields.set(field.key, field.get());
  }
  fields.set("buffer.capacity", "8GiB");
  fields.set("buffer.policy", "reservoir");
  EXPECT_EQ(config.capacity, "8GiB");
  EXPECT_EQ(config.policy, "reservoir");
}

TEST(BufferConfig, BadValuesAreRefusedByName) {
  for (const char* text : {"", "0", "-5", "many", "1.5", "8GiBs", "GiB", "-1GB", "0KB", "nanGB",
                           "99999999999999", "99999999TiB"}) {
    expect_refused("buffer.capacity", text);
  }
  for (const char* text : {"1", "-0.1", "nan"}) expect_refused("buffer.momentum", text);
  for (const char* text : {"-0.1", "0.001", "2.1", "nan"}) {
    expect_refused("buffer.merge_reach", text);
  }
  expect_refused("buffer.draw_limit", "-1");
  expect_refused("buffer.jpeg_quality", "0");
  expect_refused("buffer.jpeg_quality", "101");
  expect_refused("buffer.policy", "lifo");
  expect_refused("buffer.tie", "both");
}

TEST(BufferConfig, PinnedMemoryOfEarlierRunsIsTheHosts) {
  BufferConfig config;
  Fields fields;
  config.describe(fields);
  fields.set("buffer.memory", "pinned");
  EXPECT_EQ(config.memory, BufferMemory::host);
  config.validate();
  for (const auto& field : fields.all()) {
    if (field.key != "buffer.memory") continue;
    EXPECT_EQ(field.get(), "host") << "what the next config.yaml says";
  }
}

TEST(BufferConfig, JpegIsKeptInHostMemory) {
  BufferConfig config;
  config.storage = Storage::jpeg;
  config.validate();
  config.memory = BufferMemory::gpu;
  EXPECT_THAT([&] { config.validate(); }, ThrowsMessage<Error>(HasSubstr("buffer.memory=host")));
}

}  // namespace
}  // namespace riffle
