// What a pass (curate.h) knows between two batches, and the file that lets it continue from there:
// who is kept of which group, and what each stands for; of an encoder that learns also what it has
// learned, and the kept pictures as it sees them.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/curate/curate.h"
#include "riffle/curate/examples.h"
#include "riffle/curate/learning_encoder.h"
#include "riffle/curate/selector.h"
#include "riffle/model/encoder.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {

// Returns all that decides which pictures are kept, in one line, printable.
std::string settings_text(const CurateConfig& config);

// Returns whether the file is the state of a pass with these settings; false if it is damaged.
bool is_state_of(const CurateConfig& config, const std::filesystem::path& path);

// Of pictures kept, as the encoder sees them, by slot.
struct SmallPictures {
  at::Tensor pictures;
  // The slot whose feature is to be renewed next.
  std::int64_t cursor = 0;
};

class PassState {
 public:
  // `learning`: null for an encoder that does not learn. What is given must outlive this.
  PassState(const CurateConfig& config, const Encoder& encoder, LearningEncoder* learning);

  // Return those of a group, which has a quota of its own; new ones if it was not seen before.
  Selector& selector_of(const std::string& group);
  SmallPictures& small_of(const std::string& group);
  // By group.
  std::map<std::string, Selector>& selectors() { return selectors_; }
  // For the page.
  Examples& examples() { return examples_; }

  // The number of pictures that passed by.
  std::int64_t samples() const { return samples_; }
  // Where the stream was after the last of them.
  const std::string& position() const { return position_; }
  // Counts pictures, all of which were offered to selectors.
  void count(std::int64_t samples, const std::string& position);
  // Returns the number of pictures kept.
  std::int64_t size() const;

  // Returns the content of the file: all of it, and the length of repeats.log, which belongs to it.
  // Shares the memory of what an encoder learns, and nothing else.
  Safetensors save(std::uint64_t logged);
  // Takes only what save() gives: names in it lead to files that are read and removed. Throws
  // Error if the file is damaged, or of a pass with other settings. Returns `logged`.
  std::uint64_t read(const std::filesystem::path& path);

 private:
  std::uint64_t restore(const NamedTensors& state);
  void require_counted() const;
  void restore_learning(const NamedTensors& state, const std::vector<std::string>& groups);

  const CurateConfig& config_;
  LearningEncoder* learning_;
  const SelectorConfig each_;
  std::map<std::string, Selector> selectors_;
  std::map<std::string, SmallPictures> small_;
  Examples examples_;
  std::int64_t samples_ = 0;
  std::string position_;
};

}  // namespace riffle
