// The buffer's pictures on disk: records of one size in segment files that only grow. So the cost
// of keeping up with the buffer depends on what the stream brings, not on the buffer's size.
//
// A picture that left the buffer leaves a dead record. Once the records are more than twice the
// pictures kept, those still needed in the emptiest segment are copied to the newest. A segment
// with dead records only is removed at once, unless a checkpoint needs it (need, remove_unused).
// docs/formats/run-folder.md has the format.
//
// Nothing is durable before sync(). What a failing disk did not take is lost from the log, never
// silently: the call throws Error, and take_lost() names the slots to be appended again.
//
// Several ranks (riffle/dist) write one folder, each a log of its own for the slots that live with
// it: counting from the same segment, they never use the same number.
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/base/file.h"
#include "riffle/buffer/policy.h"

namespace riffle {

// Where a picture is: the number of its segment, from 1, and of its record there, from 0.
struct PicturePlace {
  std::int64_t segment = -1;
  std::int64_t record = -1;
};

// Which of the logs in a folder: one for each rank.
struct LogPart {
  std::int64_t part = 0;
  std::int64_t parts = 1;
  // From which all count; 0: PictureLog::next_segment().
  std::int64_t first_segment = 0;
};

class PictureLog {
 public:
  // For a buffer of `slots` slots, with pictures of `stored_bytes` (ReplayBuffer::stored_bytes).
  // Segments already in `folder` are left alone; new ones get higher numbers.
  PictureLog(std::filesystem::path folder, std::int64_t slots, std::int64_t stored_bytes,
             LogPart part = {});
  // Returns the number after those of the segments in a folder.
  static std::int64_t next_segment(const std::filesystem::path& folder);

  // Appends the pictures of the samples now in `slots`, [slots, stored_bytes]; arrivals tell
  // samples apart. Throws Error if the disk does not take them.
  void append(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
              const at::Tensor& stored);
  // Makes everything durable. Throws Error if the disk fails.
  void sync();
  // Returns the slots whose pictures were lost since the last call.
  std::vector<Slot> take_lost();

  // Returns where the picture of a sample is; nothing if the log does not have it.
  std::optional<PicturePlace> find(Slot slot, std::uint64_t arrival) const;

  // Reads and checks the pictures of these samples; from then on the log has them. Throws Error,
  // naming the file, if one is missing or damaged. With `damaged`, those are listed there instead,
  // as indices of `slots`; their rows mean nothing, and take_lost() names their slots.
  at::Tensor adopt(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
                   std::span<const PicturePlace> places,
                   std::vector<std::size_t>* damaged = nullptr);

  // As adopt(), but the log does not have them afterwards.
  at::Tensor read(std::span<const std::uint64_t> arrivals, std::span<const PicturePlace> places,
                  std::vector<std::size_t>* damaged = nullptr) const;

  // Returns where the `count` samples that arrived last are, newest first, among the last records
  // in the folder, whoever writes them. What is being written may be among them. Throws Error if a
  // segment is damaged.
  std::vector<std::pair<std::uint64_t, PicturePlace>> newest_arrivals(std::size_t count) const;

  // Replaces the set of segments that checkpoints need, and removes all others in the folder that
  // the log does not use, but for those of other parts. Part 0 cares for what was there before.
  // Before the first call nothing is removed.
  void remove_unused(const std::set<std::int64_t>& needed);
  // Adds the segments of a checkpoint that is about to be written to that set.
  void need(const std::set<std::int64_t>& segments);

  std::uint64_t bytes_appended() const { return bytes_appended_; }

 private:
  struct Segment {
    std::int64_t records = 0;
    std::int64_t used = 0;  // records that a slot refers to
  };
  struct Place {
    PicturePlace at;
    std::uint64_t arrival = 0;
  };

  Place& place(Slot slot) { return places_[static_cast<std::size_t>(slot)]; }
  std::uint64_t record_bytes() const;
  std::filesystem::path path_of(std::int64_t segment) const;
  void refer(Slot slot, std::uint64_t arrival, PicturePlace at);
  void lose(Slot slot);
  void close_newest();
  void write(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
             const at::Tensor& stored);
  void remove_dead();
  void compact();
  void move_out(std::int64_t segment);
  InputFile open_segment(std::int64_t segment) const;

  bool is_growing(std::int64_t segment) const { return newest_ && segment == newest_segment_; }
  bool is_ours(std::int64_t segment) const;

  std::filesystem::path folder_;
  LogPart part_;
  std::int64_t stored_bytes_;
  std::int64_t records_a_segment_;
  std::vector<Place> places_;  // by slot
  std::int64_t used_ = 0;      // of places_, those that refer to a record
  std::map<std::int64_t, Segment> segments_;
  // Those before it were in the folder when the log was made.
  std::int64_t first_segment_ = 1;
  std::int64_t next_segment_ = 1;
  // By checkpoints; nothing: unknown.
  std::optional<std::set<std::int64_t>> needed_;
  // The segment begun last, while it grows.
  std::optional<AppendFile> newest_;
  std::int64_t newest_segment_ = 0;
  // By number: no longer growing, not yet synced.
  std::map<std::int64_t, AppendFile> full_;
  std::vector<bool> unsynced_;  // by slot
  std::vector<Slot> lost_;
  std::uint64_t bytes_appended_ = 0;
};

}  // namespace riffle
