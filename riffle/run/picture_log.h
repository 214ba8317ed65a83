// The buffer's pictures on disk: records of one size in segment files that only grow, so that
// keeping up with the buffer costs as much as the stream brings, whatever the buffer's size.
//
// A picture that left the buffer leaves a dead record. When the records are more than twice the
// pictures kept, those still needed in the emptiest segment are copied to the newest. A segment
// with dead records alone is removed at once, unless a checkpoint needs it (need, remove_unused).
// docs/formats/run-folder.md has the format.
//
// Nothing is durable before sync(). What a failing disk did not take is lost from the log, never
// silently: the call throws Error, and take_lost() names the slots to be appended anew.
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
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/base/file.h"
#include "riffle/buffer/policy.h"

namespace riffle {

// Where a picture is: the number of its segment and of its record there.
struct PicturePlace {
  std::int64_t segment = -1;
  std::int64_t record = -1;
};

class PictureLog {
 public:
  // `slots` of the buffer, with pictures of `stored_bytes` (ReplayBuffer::stored_bytes). Segments
  // already in `folder` are left alone; new ones get higher numbers.
  PictureLog(std::filesystem::path folder, std::int64_t slots, std::int64_t stored_bytes);

  // Pictures of the samples now in `slots`, [slots, stored_bytes]; arrivals tell samples apart.
  void append(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
              const at::Tensor& stored);
  void sync();
  std::vector<Slot> take_lost();

  // Nothing when the log does not have the picture of that sample.
  std::optional<PicturePlace> find(Slot slot, std::uint64_t arrival) const;

  // The pictures of these samples, checked; they count as the log's own from then on. Throws Error
  // naming the file when one is missing or damaged; with `damaged`, these are listed there, as
  // indices of `slots`, and take_lost() names their slots. Their rows say nothing then.
  at::Tensor adopt(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
                   std::span<const PicturePlace> places,
                   std::vector<std::size_t>* damaged = nullptr);

  static std::string segment_name(std::int64_t segment);
  // The segments that checkpoints need, instead of those named before: all others in the folder
  // that are not used here are removed. Until the first call nothing is.
  void remove_unused(const std::set<std::int64_t>& needed);
  // A checkpoint that is about to be written needs these, too.
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
  at::Tensor read(std::span<const std::uint64_t> arrivals, std::span<const PicturePlace> at,
                  std::vector<std::size_t>* damaged = nullptr) const;

  std::filesystem::path folder_;
  std::int64_t stored_bytes_;
  std::int64_t records_a_segment_;
  std::vector<Place> places_;  // by slot
  std::int64_t used_ = 0;      // of places_, those that refer to a record
  std::map<std::int64_t, Segment> segments_;
  std::int64_t next_segment_ = 1;
  std::optional<std::set<std::int64_t>> needed_;  // by checkpoints; nothing: not known
  std::optional<AppendFile> newest_;              // segment next_segment_ - 1, while it grows
  std::map<std::int64_t, AppendFile> full_;       // by number: no longer growing, not yet synced
  std::vector<bool> unsynced_;                    // by slot
  std::vector<Slot> lost_;
  std::uint64_t bytes_appended_ = 0;
};

}  // namespace riffle
