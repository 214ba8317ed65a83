// The pictures and labels in a list of tar files, undecoded, from any place on.
//
// Members that follow one another and share their name up to the first dot of the last part
// ("cat/0001" of "cat/0001.jpg") belong together: each picture among them is an item, and a .cls or
// .json gives the label of them all. Names that begin with a dot are passed over. What cannot be
// used is an item too, with the reason. A broken shard is left at that point, and the next one
// follows. Not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "riffle/image/codec.h"
#include "riffle/stream/shards/tar.h"

namespace riffle {

// Where in a list of shards something begins: `items` items after the header at `offset`. The end
// is the beginning of the shard after the last.
struct ShardPlace {
  std::size_t shard = 0;
  std::int64_t offset = 0;
  std::int64_t items = 0;
};

// The ways to find a label, tried in this order.
struct ShardLabels {
  bool cls = true;
  bool json = true;
  bool folder = true;
  std::string json_key = "label";
};

struct ShardItem {
  std::string member;  // empty: the shard as a whole
  std::size_t shard = 0;
  std::string label;
  std::vector<std::byte> bytes;
  DecodeFailure failure;        // without a reason if there are bytes
  ShardPlace after;             // where the next item begins
  bool is_passed_over = false;  // another reader of the stream decodes it (Stream::divide())
};

class ShardReader {
 public:
  // `shards` and `leave` must outlive the reader.
  ShardReader(const std::vector<std::string>& shards, ShardLabels labels, ShardPlace start,
              const std::atomic<bool>& leave);

  // Returns the next item, or nothing at the end, and soon after *leave became true.
  std::optional<ShardItem> next();

 private:
  struct Group;

  void read_group();
  std::optional<TarMember> next_visible();
  void add(const TarMember& member, Group& group);
  void read_label(const TarMember& member, const std::string& name, Group& group);
  void finish(Group& group, std::optional<std::int64_t> following);
  void leave_shard();

  const std::vector<std::string>& shards_;
  const ShardLabels labels_;
  const std::atomic<bool>& leave_;
  ShardPlace place_;  // of the group to be read
  std::optional<Tar> tar_;
  std::optional<TarMember> member_;  // the first of that group
  std::deque<ShardItem> ready_;
};

}  // namespace riffle
