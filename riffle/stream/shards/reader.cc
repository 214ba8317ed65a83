#include "riffle/stream/shards/reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/picture_listing.h"
#include "riffle/stream/shards/label.h"

namespace riffle {
namespace {

// A group ends here even if the next member has the same name, so that no archive can make it grow.
constexpr std::size_t kMaxGroupItems = 1000;
constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxLabelBytes = std::uint64_t{1} << 20;

std::string_view without_dot_slash(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

// Returns whether a name leads out of the folder that the archive would be unpacked in. Nothing is
// unpacked here, but whoever wrote it meant harm, and its folder is not a label.
bool is_unsafe(std::string_view name) {
  if (name.empty() || name.starts_with('/')) return true;
  const auto parts = split(name, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

// Returns whether the name begins with a dot, as that of the companion that some systems give every
// picture.
bool is_hidden(std::string_view name) {
  const auto last = name.substr(name.rfind('/') + 1);
  return last.starts_with('.') && !last.starts_with("..");
}

std::string_view group_of(std::string_view name) {
  const auto slash = name.rfind('/');
  const auto dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  return name.substr(0, dot);
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct ShardReader::Group {
  std::vector<ShardItem> items;
  std::uint64_t bytes = 0;
  std::optional<std::string> cls, json;
};

ShardReader::ShardReader(const std::vector<std::string>& shards, ShardLabels labels,
                         ShardPlace start, const std::atomic<bool>& leave)
    : shards_(shards), labels_(std::move(labels)), leave_(leave), place_(start) {}

std::optional<ShardItem> ShardReader::next() {
  while (ready_.empty()) {
    if (place_.shard >= shards_.size() || leave_) return std::nullopt;
    read_group();
  }
  auto item = std::move(ready_.front());
  ready_.pop_front();
  return item;
}

void ShardReader::read_group() {
  Group group;
  try {
    if (!tar_) {
      tar_.emplace(shards_[place_.shard], place_.offset, leave_);
      member_ = next_visible();
    }
    if (!member_) {
      leave_shard();
      return;
    }
    const std::string name(group_of(member_->name));
    do {
      const TarMember member = std::move(*member_);
      member_.reset();
      add(member, group);
      member_ = next_visible();
    } while (member_ && group_of(member_->name) == name && group.items.size() < kMaxGroupItems &&
             group.bytes < kMaxGroupBytes);
    finish(group, member_ ? member_->offset : tar_->end_offset());
  } catch (const BrokenTar& broken) {
    if (leave_) return;
    finish(group, std::nullopt);
    ShardItem item;
    item.shard = place_.shard;
    item.failure = {broken.reason(), broken.what()};
    leave_shard();
    item.after = place_;
    ready_.push_back(std::move(item));
  }
}

// Hidden members stand between those of a group in archives from a Mac.
std::optional<TarMember> ShardReader::next_visible() {
  auto member = tar_->next();
  while (member && is_hidden(member->name)) member = tar_->next();
  return member;
}

void ShardReader::add(const TarMember& member, Group& group) {
  if (!member.is_file) return;
  std::string name(without_dot_slash(member.name));
  // The name will be shown in logs and on terminals.
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  ShardItem item;
  item.member = name;
  item.shard = place_.shard;
  if (is_unsafe(name)) {
    item.failure = {"unsafe name", "leads out of the archive"};
  } else if (!is_picture_name(name)) {
    read_label(member, name, group);
    return;
  } else if (member.size > kMaxPictureBytes) {
    item.failure = {"too large", bytes_text(member.size)};
  } else {
    item.bytes = tar_->read();
    group.bytes += item.bytes.size();
  }
  group.items.push_back(std::move(item));
}

void ShardReader::read_label(const TarMember& member, const std::string& name, Group& group) {
  const bool cls = labels_.cls && name.ends_with(".cls");
  const bool json = labels_.json && name.ends_with(".json");
  if (!cls && !json) return;
  if (member.size <= kMaxLabelBytes) {
    const auto bytes = tar_->read();
    if (cls) group.cls = label_from_cls(text_of(bytes));
    if (json) group.json = label_from_json(text_of(bytes), labels_.json_key);
  }
  // Beside other ways to find a label, a .json without it is there for another purpose.
  const bool only_json = !labels_.cls && !labels_.folder;
  if ((cls && !group.cls) || (json && !group.json && only_json)) {
    ShardItem item;
    item.member = name;
    item.shard = place_.shard;
    item.failure = {"bad label", cls ? "no short line of text"
                                     : cat("no text or whole number '", labels_.json_key, "'")};
    group.items.push_back(std::move(item));
  }
}

// Hands out the items of a group. `following` is where the next group begins; nothing if the shard
// broke inside this one, which then has to be entered from its beginning.
void ShardReader::finish(Group& group, std::optional<std::int64_t> following) {
  // The stream may have been entered in the middle of the group.
  const auto given = std::exchange(place_.items, 0);
  const auto count = static_cast<std::int64_t>(group.items.size());
  for (std::int64_t i = given; i < count; ++i) {
    auto& item = group.items[static_cast<std::size_t>(i)];
    if (group.cls) {
      item.label = *group.cls;
    } else if (group.json) {
      item.label = *group.json;
    } else if (labels_.folder) {
      item.label = label_from_folder(item.member);
    }
    item.after = {place_.shard, place_.offset, i + 1};
    if (following && i + 1 == count) item.after = {place_.shard, *following, 0};
    ready_.push_back(std::move(item));
  }
  if (following) place_.offset = *following;
}

void ShardReader::leave_shard() {
  tar_.reset();
  member_.reset();
  place_ = {place_.shard + 1, 0, 0};
}

}  // namespace riffle
