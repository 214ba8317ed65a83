// The saved state of a learner. Nobody else knows the names of its tensors: whoever reads saved
// state reads it here, where it is checked once.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "riffle/buffer/buffer_state.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

struct LearnerState {
  // By the names of parameters and statistics.
  NamedTensors network;
  // By the names of parameters.
  NamedTensors momenta;
  // ReplayBuffer::save().
  NamedTensors buffer;
  std::int64_t update = 0;
  // Updates still to be made on the last stream batch.
  std::int64_t updates_due = 0;
  std::int64_t batches_taken = 0;
  std::int64_t samples_seen = 0;
  // Of the stream, after the last batch that entered the buffer.
  std::string position;
  std::map<std::string, std::int64_t> skipped = {};

  NamedTensors tensors() const;

  // Returns the state that tensors() gave. Throws Error, naming the tensor, if one of the learner's
  // own is missing or damaged; network, momenta and buffer are not looked at.
  static LearnerState read(const NamedTensors& tensors);
};

// The two parts that others want, of a learner's saved state. Throw Error as BufferState::read
// does.
BufferState saved_buffer_state(const NamedTensors& learner);
NamedTensors saved_network(const NamedTensors& learner);

}  // namespace riffle
