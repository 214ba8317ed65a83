#include "python/bindings/stream_handle.h"

#include <utility>

#include "riffle/base/error.h"

namespace riffle::python {

StreamHandle::StreamHandle(std::unique_ptr<Stream> stream) : state_(std::make_shared<State>()) {
  state_->stream = std::move(stream);
  state_->position = state_->stream->position();
}

StreamHandle::~StreamHandle() {
  if (!state_->handed_over) state_->stream->stop();
}

void StreamHandle::require_own() const {
  if (!state_->handed_over) return;
  throw Error("this stream is read by a ReplayLoader, a Learner or embed(); open it again");
}

std::optional<Sample> StreamHandle::next() {
  require_own();
  std::optional<State::Read> read;
  while (!read) {
    reader_.run([state = state_] {
      if (state->read.is_there()) return;
      auto sample = state->stream->next();
      auto position = state->stream->position();
      state->read.put({std::move(sample), std::move(position)});
    });
    read = state_->read.take();  // nothing if another thread was faster
  }
  state_->position = std::move(read->position);
  return std::move(read->sample);
}

void StreamHandle::seek(const std::string& position) {
  require_own();
  reader_.run([state = state_, position] {
    state->read.take();
    state->stream->seek(position);
    state->position = position;
  });
}

std::map<std::string, std::int64_t> StreamHandle::skipped() {
  return reader_.run([state = state_] { return state->stream->skipped(); });
}

std::shared_ptr<Stream> StreamHandle::hand_over() {
  require_own();
  reader_.run([state = state_] {
    if (state->read.take()) state->stream->seek(state->position);
  });
  state_->handed_over = true;
  return state_->stream;
}

}  // namespace riffle::python
