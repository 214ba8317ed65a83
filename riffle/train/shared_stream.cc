#include "riffle/train/shared_stream.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

using Json = nlohmann::json;
using SkipCounts = std::map<std::string, std::int64_t>;

constexpr const char* kPositions = "ranks";

// Returns what a rank tells the others about its batch, or why it has none.
Json describe_batch(const std::optional<StreamBatch>& batch, const StreamError* error,
                    bool in_doubt) {
  Json message = Json::object();
  if (in_doubt) message["doubt"] = true;
  if (error != nullptr) {
    message["error"] = error->what();
    message["bad_input"] = error->kind() == ErrorKind::bad_input;
  }
  if (batch) {
    Json samples = Json::array();
    for (const Sample& sample : batch->samples) {
      samples.push_back({sample.index, sample.clip, sample.label, sample.time, sample.key});
    }
    message["samples"] = std::move(samples);
    message["position"] = batch->position;
    message["skipped"] = batch->skipped;
    if (batch->period) message["period"] = *batch->period;
  }
  return message;
}

// Clips of different streams are different, though each counts its own.
std::int64_t clip_of_stream(std::int64_t clip, std::size_t stream) {
  constexpr std::uint64_t kApart = 0x9E3779B97F4A7C15;
  if (clip == kNoClip || stream == 0) return clip;
  const std::uint64_t moved = static_cast<std::uint64_t>(clip) + stream * kApart;
  return static_cast<std::int64_t>(moved >> 1);
}

void add_samples(const Json& described, std::size_t stream, std::vector<Sample>& samples) {
  for (const Json& known : described) {
    Sample sample;
    sample.index = known[0];
    sample.clip = clip_of_stream(known[1], stream);
    sample.label = known[2].get<std::string>();
    sample.time = known[3];
    sample.key = known[4].get<std::string>();
    samples.push_back(std::move(sample));
  }
}

[[noreturn]] void rethrow(const Json& message, std::size_t rank) {
  throw StreamError(cat("rank ", rank, ": ", message["error"].get<std::string>()),
                    message["bad_input"].get<bool>() ? ErrorKind::bad_input : ErrorKind::failure);
}

// One picture more or less on one rank would shift all that follow, and nobody would notice.
void require_same_place(const std::vector<Json>& all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank]["position"] == all[0]["position"]) continue;
    throw StreamError(
        cat("rank ", rank, " is at another place in the stream than rank 0: it did ",
            "not read the same pictures. All must see the same files; or give each a ",
            "stream of its own, by {rank} in the address"),
        ErrorKind::failure);
  }
}

std::string to_bytes(const Json& message) {
  const auto bytes = Json::to_cbor(message);
  return {bytes.begin(), bytes.end()};
}

void add_skipped(const Json& described, SkipCounts& skipped) {
  for (const auto& [reason, count] : described.items()) {
    skipped[reason] += count.get<std::int64_t>();
  }
}

// Takes this rank's batch, and returns what all ranks tell about theirs. Throws StreamError, on all
// ranks, for what the stream of one threw.
std::vector<Json> take_and_tell(Intake& intake, Ranks& ranks, std::optional<StreamBatch>& own) {
  std::optional<StreamError> error;
  own.reset();
  try {
    own = intake.take();
  } catch (const StreamError& failure) {
    error = failure;
  }
  std::vector<Json> all;
  for (const auto& bytes : ranks.gather_bytes(
           to_bytes(describe_batch(own, error ? &*error : nullptr, intake.in_doubt())))) {
    all.push_back(Json::from_cbor(bytes));
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].contains("error")) rethrow(all[rank], rank);
  }
  return all;
}

}  // namespace

RankStream open_rank_stream(const std::string& uri, const std::string& shapes, Ranks& ranks) {
  const std::string own_uri = ranks.fill_in(uri), own_shapes = ranks.fill_in(shapes);
  return {.stream = open_stream(own_uri, own_shapes),
          .sharing = {ranks, own_uri != uri || own_shapes != shapes}};
}

std::optional<StreamBatch> SharedStream::take() {
  if (sharing_.ranks.alone()) return intake_.take();
  std::optional<StreamBatch> own;
  std::vector<Json> all = take_and_tell(intake_, sharing_.ranks, own);
  const auto tells = [](const char* what) {
    return [what](const Json& message) { return message.contains(what); };
  };
  while (std::ranges::any_of(all, tells("doubt"))) {
    intake_.read_again(caution_.doubt());
    all = take_and_tell(intake_, sharing_.ranks, own);
  }
  if (!std::ranges::all_of(all, tells("samples"))) return std::nullopt;
  caution_.trust();
  if (!sharing_.own_streams) require_same_place(all);

  StreamBatch batch;
  batch.pictures = std::move(own->pictures);
  ShapePosition positions;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    add_samples(all[rank]["samples"], sharing_.own_streams ? rank : 0, batch.samples);
    positions.below.push_back(all[rank]["position"]);
  }
  // Ranks that divide one stream all report the same; counting it once is enough.
  const std::size_t streams = sharing_.own_streams ? all.size() : 1;
  for (std::size_t i = 0; i < streams; ++i) add_skipped(all[i]["skipped"], batch.skipped);
  if (all[0].contains("period")) batch.period = all[0]["period"].get<std::int64_t>();
  batch.position =
      sharing_.own_streams ? write_position(kPositions, positions) : std::move(positions.below[0]);
  return batch;
}

SkipCounts SharedStream::skipped(const SkipCounts& own) {
  if (sharing_.ranks.alone() || !sharing_.own_streams) return own;
  SkipCounts all;
  for (const auto& bytes : sharing_.ranks.gather_bytes(to_bytes(own))) {
    add_skipped(Json::from_cbor(bytes), all);
  }
  return all;
}

std::size_t SharedStream::ready() {
  const std::size_t here = intake_.ready();
  if (sharing_.ranks.alone()) return here;
  const at::Tensor all =
      sharing_.ranks.gather(at::full({1}, static_cast<std::int64_t>(here), at::kLong));
  return static_cast<std::size_t>(all.min().item<std::int64_t>());
}

std::string SharedStream::own_position(const std::string& position) const {
  const auto ranks = static_cast<std::size_t>(sharing_.ranks.size());
  const bool several = position.starts_with(kPositions);
  if (!several && (!sharing_.own_streams || ranks == 1)) return position;
  try {
    return read_position(kPositions, position, 0, ranks)
        .below[static_cast<std::size_t>(sharing_.ranks.rank())];
  } catch (const Error&) {
    throw Error(cat("each rank has a stream of its own ({rank} in its address): the run cannot ",
                    "continue as ", ranks, " ranks, only as many as before"));
  }
}

}  // namespace riffle
