#include "riffle/run/tensorboard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iomanip>

#include <unistd.h>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/protobuf.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

// Field numbers of TensorBoard's event.proto and summary.proto.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace value_field {
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8, kMetadata = 9;
}
constexpr const char* kFileVersion = "brain.Event:2";
constexpr std::int64_t kSessionStart = 1;
constexpr std::string_view kEventsPrefix = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

// Checksums of data that hold checksums are poor; the format masks them.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

template <typename Value>
std::string raw(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

ProtobufMessage begin_event() {
  ProtobufMessage event;
  event.add_double(event_field::kWallTime, seconds_since_1970());
  return event;
}

ProtobufMessage event_of(std::int64_t update, const ProtobufMessage& value) {
  ProtobufMessage summary;
  summary.add_message(1, value);
  ProtobufMessage event = begin_event();
  event.add_integer(event_field::kStep, update);
  event.add_message(event_field::kSummary, summary);
  return event;
}

// Returns google.protobuf.Value.
ProtobufMessage json_value(const std::string& text) {
  constexpr int kNumber = 2, kText = 3, kTruth = 4;
  ProtobufMessage value;
  double number = 0;
  const auto end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && parsed == end) {
    value.add_double(kNumber, number);
  } else if (text == "true" || text == "false") {
    value.add_integer(kTruth, text == "true" ? 1 : 0);
  } else {
    value.add_text(kText, text);
  }
  return value;
}

// TensorBoard shows files in the order of their names.
fs::path new_file(const fs::path& folder) {
  make_folders(folder);
  // A clock that was set back must not sort a file before earlier ones.
  auto seconds = static_cast<std::int64_t>(seconds_since_1970());
  const auto others = list_folder(folder);
  for (const auto& path : others) {
    const std::string name = path.filename().string();
    std::int64_t earlier = 0;
    if (!name.starts_with(kEventsPrefix)) continue;
    std::from_chars(name.data() + kEventsPrefix.size(), name.data() + name.size(), earlier);
    seconds = std::max(seconds, earlier);
  }
  for (int number = 0;; ++number) {
    const std::string count = cat(std::setfill('0'), std::setw(3), number);
    const fs::path path = folder / cat(kEventsPrefix, seconds, '.', count, ".riffle.", ::getpid());
    const std::string same_time = cat(kEventsPrefix, seconds, '.', count, '.');
    const bool taken = std::ranges::any_of(others, [&](const fs::path& other) {
      return other.filename().string().starts_with(same_time);
    });
    if (!taken) return path;
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : data) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  }
  return ~crc;
}

std::string tf_record(std::string_view data) {
  const std::string length = raw(static_cast<std::uint64_t>(data.size()));
  return cat(length, raw(masked(crc32c(length))), data, raw(masked(crc32c(data))));
}

EventFile::EventFile(const fs::path& folder, const Thinning& options, std::int64_t last_update)
    : path_(new_file(folder)), options_(options), out_(path_) {
  ProtobufMessage version = begin_event();
  version.add_text(event_field::kFileVersion, kFileVersion);
  std::string records = tf_record(version.bytes());
  ProtobufMessage session;
  session.add_integer(1, kSessionStart);
  ProtobufMessage start = begin_event();
  start.add_integer(event_field::kStep, last_update + 1);
  start.add_message(event_field::kSessionLog, session);
  records += tf_record(start.bytes());
  try {
    out_.append(records);
  } catch (...) {
    std::error_code ignored;
    fs::remove(path_, ignored);
    throw;
  }
}

bool EventFile::written(std::int64_t update, const Thinning& options) {
  const std::int64_t line = options.line_of(update);
  return options.keeps(line, /*age=*/line);
}

void EventFile::write(std::int64_t update,
                      const std::vector<std::pair<std::string, double>>& values) {
  if (written(update, options_)) write_always(update, values);
}

void EventFile::write_always(std::int64_t update,
                             const std::vector<std::pair<std::string, double>>& values) {
  ProtobufMessage summary;
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value)) continue;
    ProtobufMessage scalar;
    scalar.add_text(value_field::kTag, name);
    scalar.add_float(value_field::kSimpleValue, static_cast<float>(value));
    summary.add_message(1, scalar);
  }
  ProtobufMessage event = begin_event();
  event.add_integer(event_field::kStep, update);
  event.add_message(event_field::kSummary, summary);
  out_.append(tf_record(event.bytes()));
}

void EventFile::write_picture(std::int64_t update, const std::string& name,
                              const Picture& picture) {
  constexpr int kHeight = 1, kWidth = 2, kColours = 3, kEncoded = 4;
  ProtobufMessage image;
  image.add_integer(kHeight, picture.height);
  image.add_integer(kWidth, picture.width);
  image.add_integer(kColours, 3);
  image.add_bytes(kEncoded, encode_jpeg(picture));
  ProtobufMessage value;
  value.add_text(value_field::kTag, name);
  value.add_message(value_field::kImage, image);
  out_.append(tf_record(event_of(update, value).bytes()));
}

// The messages are those of TensorBoard's plugin hparams.
void EventFile::write_configuration(
    const std::vector<std::pair<std::string, std::string>>& values) {
  constexpr int kSessionStartInfo = 3, kStartTime = 5;
  ProtobufMessage start;
  for (const auto& [key, text] : values) {
    ProtobufMessage entry;
    entry.add_text(1, key);
    entry.add_message(2, json_value(text));
    start.add_message(1, entry);
  }
  start.add_double(kStartTime, seconds_since_1970());
  ProtobufMessage content;
  content.add_message(kSessionStartInfo, start);
  ProtobufMessage plugin;
  plugin.add_text(1, "hparams");
  plugin.add_text(2, content.bytes());
  ProtobufMessage metadata;
  metadata.add_message(1, plugin);
  // A value must have one: a vector with one zero.
  constexpr int kType = 1, kShape = 2, kFloats = 5, kFloatType = 1, kDimension = 2;
  ProtobufMessage size, shape, zero;
  size.add_integer(1, 1);
  shape.add_message(kDimension, size);
  zero.add_integer(kType, kFloatType);
  zero.add_message(kShape, shape);
  zero.add_float(kFloats, 0);
  ProtobufMessage value;
  value.add_text(value_field::kTag, "_hparams_/session_start_info");
  value.add_message(value_field::kMetadata, metadata);
  value.add_message(value_field::kTensor, zero);
  out_.append(tf_record(event_of(0, value).bytes()));
}

}  // namespace riffle
