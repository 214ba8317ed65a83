// For tests: what a stream gives from its beginning to its end, to be compared with what it gives
// when reading continues from a position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/stream/stream.h"

namespace riffle {

inline void expect_same(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.clip, b.clip);
  EXPECT_EQ(a.label, b.label);
  EXPECT_TRUE(a.picture == b.picture) << a.key;
}

struct Recording {
  std::vector<Sample> samples;
  std::vector<std::string> positions;  // before each sample, and at the end
};

inline Recording record(Stream& stream) {
  Recording recording;
  recording.positions.push_back(stream.position());
  while (auto sample = stream.next()) {
    recording.samples.push_back(std::move(*sample));
    recording.positions.push_back(stream.position());
  }
  return recording;
}

// Expects that from the position before sample `at`, the stream gives what was recorded, up to
// `most` samples of it, and ends where the recording ends.
inline void expect_continues(Stream& stream, const Recording& recording, std::size_t at,
                             std::size_t most = std::numeric_limits<std::size_t>::max()) {
  SCOPED_TRACE(recording.positions[at]);
  stream.seek(recording.positions[at]);
  ASSERT_EQ(stream.position(), recording.positions[at]);
  const std::size_t end = at + std::min(most, recording.samples.size() - at);
  for (std::size_t i = at; i < end; ++i) {
    const auto sample = stream.next();
    ASSERT_TRUE(sample);
    expect_same(*sample, recording.samples[i]);
    ASSERT_EQ(stream.position(), recording.positions[i + 1]);
    if (testing::Test::HasFailure()) return;
  }
  if (end == recording.samples.size()) {
    EXPECT_FALSE(stream.next());
  }
}

// Reads a stream in which one item is skipped, for this reason, twice from end to end. Expects that
// seeking keeps the count, and that what is met again counts again.
inline void expect_skips_add_up(const std::string& uri, const std::string& reason) {
  using Counts = std::map<std::string, std::int64_t>;
  SCOPED_TRACE(uri);
  const auto stream = open_stream(uri);
  EXPECT_EQ(stream->skipped(), Counts());
  const auto recording = record(*stream);
  EXPECT_EQ(stream->skipped(), (Counts{{reason, 1}}));
  stream->seek(recording.positions.front());
  EXPECT_EQ(stream->skipped(), (Counts{{reason, 1}}));
  record(*stream);
  EXPECT_EQ(stream->skipped(), (Counts{{reason, 2}}));
  EXPECT_EQ(open_stream(uri)->skipped(), Counts());
}

}  // namespace riffle
