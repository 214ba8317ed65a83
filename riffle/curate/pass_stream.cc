#include "riffle/curate/pass_stream.h"

#include "riffle/curate/originals.h"

namespace riffle {

PassStream::PassStream(const CurateConfig& config, Ranks& ranks)
    : config_(config),
      ranks_(ranks),
      stream_(ranks.first() ? open_with_originals(config.stream, config.shapes, config.encoding)
                            : open_stream(config.stream, config.shapes)),
      signals_(
          [this](const char*) {
            asked_to_stop_ = true;
            stream_->stop();
          },
          0) {}

void PassStream::seek(std::int64_t samples, const std::string& position) {
  before_ = std::stoll(ranks_.from_first(std::to_string(samples)));
  const std::string place = ranks_.from_first(position);
  if (before_ > 0) stream_->seek(place);
}

void PassStream::embed(Encoder& encoder, const UseEmbedded& use) {
  if (const auto samples = left()) {
    riffle::embed(encoder, *stream_, *samples, config_.input, config_.batch, use, ranks_,
                  [this] { return agree_to_stop(); });
  }
  agree_to_stop();
}

void PassStream::read(const UseBatch& use) {
  if (const auto samples = left()) {
    read_batches(*stream_, *samples, config_.input.resize, config_.batch, use,
                 [this] { return agree_to_stop(); });
  }
  agree_to_stop();
}

std::optional<std::int64_t> PassStream::left() const {
  if (config_.samples == 0) return 0;
  if (before_ >= config_.samples) return std::nullopt;
  return config_.samples - before_;
}

bool PassStream::agree_to_stop() {
  stopped_ = ranks_.any(asked_to_stop_);
  return stopped_;
}

}  // namespace riffle
