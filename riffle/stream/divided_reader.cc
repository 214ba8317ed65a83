#include "riffle/stream/divided_reader.h"

#include <algorithm>

namespace riffle {

DividedReader::DividedReader(Stream& stream, const StreamShare& share)
    : stream_(stream), share_(share), can_divide_(!share.is_whole()) {}

DividedReader::~DividedReader() { set_divided(false); }

void DividedReader::begin_round() {
  set_divided(can_divide_ && decode_all_ == 0);
  if (decode_all_ > 0) --decode_all_;
  in_doubt_ = false;
}

std::optional<Sample> DividedReader::next() {
  if (in_doubt_) return std::nullopt;
  auto sample = stream_.next();
  if (!sample || !is_divided_) return sample;
  in_doubt_ = share_.has(read_++) && sample->picture.rgb.empty();
  if (in_doubt_) return std::nullopt;
  return sample;
}

void DividedReader::decode_all(const std::string& position, std::int64_t rounds) {
  set_divided(false);
  stream_.seek(position);
  decode_all_ = rounds;
}

void DividedReader::set_divided(bool divided) {
  if (divided == is_divided_) return;
  const bool done = stream_.divide(divided ? share_ : StreamShare());
  can_divide_ = can_divide_ && done;
  is_divided_ = divided && done;
  read_ = 0;
}

void Caution::trust() {
  if (left_ > 0) {
    --left_;
  } else {
    rounds_ = std::max<std::int64_t>(rounds_ / 2, 1);
  }
}

std::int64_t Caution::doubt() {
  left_ = rounds_;
  rounds_ = std::min(2 * rounds_, kMostRounds);
  return left_;
}

}  // namespace riffle
