#include "riffle/run/picture_log.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include <ATen/ATen.h>

#include "riffle/base/checksum.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMagic = "riffle-pictures\n";
constexpr std::uint64_t kLogVersion = 1;
constexpr std::uint64_t kHeaderBytes = 32;   // magic, version, stored_bytes
constexpr std::uint64_t kRecordHeader = 16;  // arrival, checksum
// Segments that the pictures kept would fill.
constexpr std::int64_t kSegments = 16;
// Segments that wait to be flushed.
constexpr std::size_t kMaxOpen = 64;
// Pictures in memory while a segment is moved.
constexpr std::size_t kMovedAtOnce = 256;

void put_number(std::byte* at, std::uint64_t value) { std::memcpy(at, &value, sizeof(value)); }

std::uint64_t get_number(const std::byte* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Of a record: its arrival number and its picture.
std::uint64_t record_checksum(std::span<const std::byte> record) {
  Checksum sum;
  sum.add(record.first(8));
  sum.add(record.subspan(kRecordHeader));
  return sum.value();
}

std::vector<std::int64_t> segments_in(const fs::path& folder) {
  std::vector<std::int64_t> found;
  for (const auto& path : list_folder(folder)) {
    if (const auto number = RunFolder::segment_of(path)) found.push_back(*number);
  }
  return found;
}

}  // namespace

PictureLog::PictureLog(fs::path folder, std::int64_t slots, std::int64_t stored_bytes, LogPart part)
    : folder_(std::move(folder)),
      part_(part),
      stored_bytes_(stored_bytes),
      records_a_segment_(std::max<std::int64_t>(1, slots / kSegments)),
      places_(static_cast<std::size_t>(slots)),
      unsynced_(static_cast<std::size_t>(slots)) {
  first_segment_ = part.first_segment > 0 ? part.first_segment : next_segment(folder_);
  next_segment_ = first_segment_ + part_.part;
}

std::int64_t PictureLog::next_segment(const fs::path& folder) {
  std::int64_t next = 1;
  for (const std::int64_t segment : segments_in(folder)) next = std::max(next, segment + 1);
  return next;
}

bool PictureLog::is_ours(std::int64_t segment) const {
  if (segment < first_segment_) return part_.part == 0;
  return (segment - first_segment_) % part_.parts == part_.part;
}

std::uint64_t PictureLog::record_bytes() const {
  return kRecordHeader + static_cast<std::uint64_t>(stored_bytes_);
}

fs::path PictureLog::path_of(std::int64_t segment) const {
  return folder_ / RunFolder::segment_name(segment);
}

std::optional<PicturePlace> PictureLog::find(Slot slot, std::uint64_t arrival) const {
  const auto& known = places_[static_cast<std::size_t>(slot)];
  if (known.at.segment < 0 || known.arrival != arrival) return std::nullopt;
  return known.at;
}

void PictureLog::lose(Slot slot) {
  auto& known = place(slot);
  if (known.at.segment < 0) return;
  --segments_[known.at.segment].used;
  --used_;
  known = {};
}

void PictureLog::refer(Slot slot, std::uint64_t arrival, PicturePlace at) {
  lose(slot);
  place(slot) = {at, arrival};
  ++segments_[at.segment].used;
  ++used_;
}

void PictureLog::close_newest() {
  if (newest_) full_.emplace(newest_segment_, std::move(*newest_));
  newest_.reset();
  // Checkpoints may be far apart, and a process may open only a limited number of files.
  if (full_.size() > kMaxOpen) sync();
}

void PictureLog::append(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
                        const at::Tensor& stored) {
  write(slots, arrivals, stored);
  compact();
  remove_dead();
}

void PictureLog::write(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
                       const at::Tensor& stored) {
  const auto bytes = static_cast<std::size_t>(record_bytes());
  std::vector<std::byte> records(slots.size() * bytes);
  const auto* pictures = stored.const_data_ptr<std::uint8_t>();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::byte* record = records.data() + i * bytes;
    put_number(record, arrivals[i]);
    std::memcpy(record + kRecordHeader, pictures + i * static_cast<std::size_t>(stored_bytes_),
                static_cast<std::size_t>(stored_bytes_));
    put_number(record + 8, record_checksum({record, bytes}));
  }
  try {
    if (!newest_) {
      make_folders(folder_);
      // A file that is there already is somebody else's, even if the constructor did not see it.
      do {
        newest_.emplace(path_of(next_segment_));
        newest_segment_ = next_segment_;
        next_segment_ += part_.parts;
      } while (newest_->size() > 0);
      std::array<std::byte, kHeaderBytes> header;
      std::memcpy(header.data(), kMagic.data(), kMagic.size());
      put_number(header.data() + 16, kLogVersion);
      put_number(header.data() + 24, static_cast<std::uint64_t>(stored_bytes_));
      newest_->append(header);
    }
    newest_->append(records);
  } catch (const std::exception&) {
    for (const Slot slot : slots) lose(slot);
    lost_.insert(lost_.end(), slots.begin(), slots.end());
    // All earlier records of this segment are whole; later ones go into a new segment.
    close_newest();
    throw;
  }
  bytes_appended_ += records.size();
  const std::int64_t number = newest_segment_;
  auto& segment = segments_[number];
  for (std::size_t i = 0; i < slots.size(); ++i) {
    refer(slots[i], arrivals[i], {number, segment.records++});
    unsynced_[static_cast<std::size_t>(slots[i])] = true;
  }
  if (segment.records >= records_a_segment_) close_newest();
}

void PictureLog::sync() {
  try {
    for (auto& [number, file] : full_) file.sync();
    if (newest_) newest_->sync();
  } catch (const Error&) {
    // After a failed fsync nobody knows which pages reached the disk.
    newest_.reset();
    full_.clear();
    for (Slot slot = 0; slot < std::ssize(places_); ++slot) {
      if (!unsynced_[static_cast<std::size_t>(slot)] || place(slot).at.segment < 0) continue;
      lose(slot);
      lost_.push_back(slot);
    }
    unsynced_.assign(unsynced_.size(), false);
    throw;
  }
  full_.clear();
  unsynced_.assign(unsynced_.size(), false);
}

std::vector<Slot> PictureLog::take_lost() { return std::exchange(lost_, {}); }

// Moves the segment with the smallest share of records in use. As long as more than half of all
// records, and a segment's worth besides, are dead, that one has dead records: every turn leaves
// fewer.
void PictureLog::compact() {
  while (true) {
    std::int64_t records = 0;
    std::int64_t emptiest = -1;
    for (const auto& [number, segment] : segments_) {
      if (segment.used == 0) continue;  // waits to be removed
      records += segment.records;
      if (is_growing(number)) continue;
      const auto& best = segments_[emptiest < 0 ? number : emptiest];
      if (emptiest < 0 || segment.used * best.records < best.used * segment.records) {
        emptiest = number;
      }
    }
    if (emptiest < 0 || records <= 2 * used_ + records_a_segment_) return;
    move_out(emptiest);
  }
}

void PictureLog::move_out(std::int64_t segment) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < static_cast<Slot>(places_.size()); ++slot) {
    if (place(slot).at.segment == segment) slots.push_back(slot);
  }
  for (std::size_t at = 0; at < slots.size(); at += kMovedAtOnce) {
    const auto some = std::span(slots).subspan(at, std::min(kMovedAtOnce, slots.size() - at));
    std::vector<std::uint64_t> arrivals;
    std::vector<PicturePlace> places;
    for (const Slot slot : some) {
      arrivals.push_back(place(slot).arrival);
      places.push_back(place(slot).at);
    }
    at::Tensor stored;
    try {
      stored = read(arrivals, places);
    } catch (const std::exception&) {
      for (const Slot slot : some) lose(slot);
      lost_.insert(lost_.end(), some.begin(), some.end());
      throw;
    }
    write(some, arrivals, stored);
  }
}

InputFile PictureLog::open_segment(std::int64_t segment) const {
  const fs::path path = path_of(segment);
  InputFile file(path);
  std::array<std::byte, kHeaderBytes> header;
  file.read(0, header);
  if (std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0 ||
      get_number(header.data() + 16) != kLogVersion ||
      get_number(header.data() + 24) != static_cast<std::uint64_t>(stored_bytes_)) {
    throw Error(cat(path.string(), " does not hold pictures of ", stored_bytes_, " bytes"));
  }
  return file;
}

at::Tensor PictureLog::read(std::span<const std::uint64_t> arrivals,
                            std::span<const PicturePlace> at,
                            std::vector<std::size_t>* damaged) const {
  const auto bytes = static_cast<std::size_t>(record_bytes());
  auto stored = at::empty({static_cast<std::int64_t>(at.size()), stored_bytes_}, at::kByte);
  auto* out = stored.mutable_data_ptr<std::uint8_t>();
  // Records are read in the order in which they lie on disk.
  std::vector<std::size_t> order(at.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(at[i].segment, at[i].record); });
  std::vector<std::byte> record(bytes);
  std::optional<InputFile> file;
  std::optional<std::int64_t> opened;
  const auto read_record = [&](std::size_t i) {
    if (opened != at[i].segment) {
      opened.reset();
      file.emplace(open_segment(at[i].segment));
      opened = at[i].segment;
    }
    // Checked first: a place in the file must not overflow.
    if (at[i].record < 0 || static_cast<std::uint64_t>(at[i].record) > file->size()) {
      throw Error(cat(path_of(*opened).string(), " has no record ", at[i].record));
    }
    file->read(kHeaderBytes + static_cast<std::uint64_t>(at[i].record) * bytes, record);
    if (get_number(record.data()) != arrivals[i] ||
        get_number(record.data() + 8) != record_checksum(record)) {
      throw Error(cat(path_of(*opened).string(), " is damaged: record ", at[i].record,
                      " is not the picture of sample ", arrivals[i]));
    }
    std::memcpy(out + i * static_cast<std::size_t>(stored_bytes_), record.data() + kRecordHeader,
                static_cast<std::size_t>(stored_bytes_));
  };
  for (const std::size_t i : order) {
    try {
      read_record(i);
    } catch (const Error&) {
      if (damaged == nullptr) throw;
      damaged->push_back(i);
    }
  }
  return stored;
}

at::Tensor PictureLog::adopt(std::span<const Slot> slots, std::span<const std::uint64_t> arrivals,
                             std::span<const PicturePlace> places,
                             std::vector<std::size_t>* damaged) {
  auto stored = read(arrivals, places, damaged);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (damaged != nullptr && std::ranges::find(*damaged, i) != damaged->end()) {
      lost_.push_back(slots[i]);
      continue;
    }
    auto& segment = segments_[places[i].segment];
    segment.records = std::max(segment.records, places[i].record + 1);
    refer(slots[i], arrivals[i], places[i]);
  }
  return stored;
}

std::vector<std::pair<std::uint64_t, PicturePlace>> PictureLog::newest_arrivals(
    std::size_t count) const {
  // Between new ones, the log copies old ones: a picture is new by its arrival, not by its place.
  const auto looked_at = static_cast<std::int64_t>(8 * count);
  auto segments = segments_in(folder_);
  std::ranges::sort(segments, std::greater());
  std::map<std::uint64_t, PicturePlace, std::greater<>> found;
  for (const std::int64_t segment : segments) {
    if (std::ssize(found) >= looked_at) break;
    const InputFile file = open_segment(segment);
    const auto records = static_cast<std::int64_t>((file.size() - kHeaderBytes) / record_bytes());
    for (std::int64_t record = std::max<std::int64_t>(0, records - looked_at); record < records;
         ++record) {
      std::array<std::byte, 8> arrival;
      file.read(kHeaderBytes + static_cast<std::uint64_t>(record) * record_bytes(), arrival);
      found.emplace(get_number(arrival.data()), PicturePlace{segment, record});
    }
  }
  std::vector<std::pair<std::uint64_t, PicturePlace>> newest(found.begin(), found.end());
  newest.resize(std::min(newest.size(), count));
  return newest;
}

void PictureLog::remove_unused(const std::set<std::int64_t>& needed) {
  needed_ = needed;
  remove_dead();
  for (const std::int64_t segment : segments_in(folder_)) {
    if (is_growing(segment) || !is_ours(segment)) continue;
    if (segments_.contains(segment) || needed.contains(segment)) continue;
    std::error_code error;
    fs::remove(path_of(segment), error);
  }
}

void PictureLog::need(const std::set<std::int64_t>& segments) {
  if (needed_) needed_->insert(segments.begin(), segments.end());
}

void PictureLog::remove_dead() {
  if (!needed_) return;
  for (auto at = segments_.begin(); at != segments_.end();) {
    const auto& [number, segment] = *at;
    if (is_growing(number) || segment.used > 0 || needed_->contains(number)) {
      ++at;
      continue;
    }
    std::error_code error;
    fs::remove(path_of(number), error);
    full_.erase(number);
    at = segments_.erase(at);
  }
}

}  // namespace riffle
