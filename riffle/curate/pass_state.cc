#include "riffle/curate/pass_state.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/curate/originals.h"

namespace riffle {

std::string settings_text(const CurateConfig& config) {
  const char* per = config.per == Quota::label    ? " of each label"
                    : config.per == Quota::source ? " of each source"
                                                  : "";
  return printable(
      cat("stream ", config.stream, ", shapes '", config.shapes, "', keep ", config.keep, per,
          ", near ", config.near, ", encoder ", config.encoder, ", size ", config.input.crop,
          config.input.resize == config.input.crop ? "" : cat(" of ", config.input.resize),
          ", batch ", config.batch, config.pictures ? "" : ", no pictures",
          config.shards.empty() ? "" : cat(", shards ", config.shards, " of ", config.shard_size),
          config.encoding == Encoding::png ? ", frames as PNG" : "",
          config.assignments ? ", assignments" : "",
          config.alone == Alone::drop ? ", without those that stand alone" : ""));
}

bool is_state_of(const CurateConfig& config, const std::filesystem::path& path) {
  try {
    const auto metadata = read_safetensors(path).metadata;
    const auto settings = metadata.find("settings");
    return settings != metadata.end() && settings->second == settings_text(config);
  } catch (const Error&) {
    return false;
  }
}

PassState::PassState(const CurateConfig& config, const Encoder& encoder, LearningEncoder* learning)
    : config_(config),
      learning_(learning),
      each_{config.keep, config.near, encoder.encoder_dim(), config.batch, device_of(encoder)} {}

Selector& PassState::selector_of(const std::string& group) {
  return selectors_.try_emplace(group, each_).first->second;
}

SmallPictures& PassState::small_of(const std::string& group) {
  SmallPictures& small = small_[group];
  if (!small.pictures.defined()) {
    const int side = config_.input.resize;
    small.pictures = torch::zeros({selector_of(group).slot_count(), side, side, 3}, torch::kUInt8);
  }
  return small;
}

void PassState::count(std::int64_t samples, const std::string& position) {
  samples_ += samples;
  position_ = position;
}

std::int64_t PassState::size() const {
  std::int64_t all = 0;
  for (const auto& [group, selector] : selectors_) all += selector.size();
  return all;
}

Safetensors PassState::save(std::uint64_t logged) {
  NamedTensors state = {
      {"numbers", integers_tensor(std::vector<std::int64_t>{
                      samples_, static_cast<std::int64_t>(logged), std::ssize(selectors_)})}};
  std::vector<std::string> groups;
  for (auto& [group, selector] : selectors_) {
    add_part(state, cat("selector.", groups.size(), "."), selector.save());
    groups.push_back(group);
  }
  add_texts(state, "groups", groups);
  add_part(state, "examples.", examples_.save());
  if (learning_ != nullptr) {
    add_part(state, "encoder.", learning_->save());
    std::vector<std::int64_t> cursors;
    for (const std::string& group : groups) {
      const SmallPictures& small = small_of(group);
      state.emplace_back(cat("small.", cursors.size()), small.pictures);
      cursors.push_back(small.cursor);
    }
    state.emplace_back("cursors", integers_tensor(cursors));
  }
  return {std::move(state), {{"settings", settings_text(config_)}, {"position", position_}}};
}

std::uint64_t PassState::read(const std::filesystem::path& path) {
  const Safetensors saved = read_safetensors(path);
  const auto text = [&](const std::string& name) {
    const auto found = saved.metadata.find(name);
    if (found == saved.metadata.end()) {
      throw Error(cat(path.string(), " is damaged: no ", name));
    }
    return found->second;
  };
  if (text("settings") != settings_text(config_)) {
    throw Error(cat(config_.out.string(), " was begun with other settings (", text("settings"),
                    "); use the same ones, or another folder"));
  }
  position_ = text("position");
  try {
    return restore(saved.tensors);
  } catch (const Error& error) {
    throw Error(cat(path.string(), " is damaged: ", error.what()));
  }
}

std::uint64_t PassState::restore(const NamedTensors& state) {
  const auto numbers = find_integers(state, "numbers", 3);
  samples_ = numbers[0];
  const auto groups = find_texts(state, "groups", std::max<std::int64_t>(0, numbers[2]));
  if (std::ranges::adjacent_find(groups, std::greater_equal()) != groups.end()) {
    throw Error("its groups are not in order");
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    selector_of(groups[i]).restore(find_part(state, cat("selector.", i, ".")));
  }
  require_counted();
  examples_.restore(find_part(state, "examples."));
  if (learning_ != nullptr) restore_learning(state, groups);
  return static_cast<std::uint64_t>(numbers[1]);
}

// Throws Error unless the pictures kept stand for all that passed by, each in a file of its own.
void PassState::require_counted() const {
  std::int64_t left = samples_;
  for (const auto& [group, selector] : selectors_) {
    for (const std::int64_t slot : selector.slots()) {
      const Kept& kept = selector.kept(slot);
      if (config_.pictures ? !is_original_path(kept.file, kept.index) : !kept.file.empty()) {
        throw Error(cat("'", kept.file, "' is not where picture ", kept.index, " is kept"));
      }
      if (kept.count > left) throw Error("its pictures stand for more than were seen");
      left -= kept.count;
    }
  }
  if (left != 0) throw Error("its pictures stand for fewer than were seen");
}

void PassState::restore_learning(const NamedTensors& state,
                                 const std::vector<std::string>& groups) {
  learning_->restore(find_part(state, "encoder."));
  const auto cursors = find_integers(state, "cursors", std::ssize(groups));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SmallPictures& small = small_of(groups[i]);
    const at::Tensor& pictures = find_tensor(state, cat("small.", i));
    if (pictures.sizes() != small.pictures.sizes() || pictures.scalar_type() != at::kByte) {
      throw Error(cat("'small.", i, "' are not pictures of this pass"));
    }
    if (cursors[i] < 0 || cursors[i] >= selector_of(groups[i]).slot_count()) {
      throw Error(cat("'cursors' holds ", cursors[i]));
    }
    small.pictures.copy_(pictures);
    small.cursor = cursors[i];
  }
}

}  // namespace riffle
