#include "riffle/curate/curate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include "riffle/base/checksum.h"
#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/file_lock.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/curate/kept_files.h"
#include "riffle/curate/pass_state.h"
#include "riffle/curate/pass_stream.h"
#include "riffle/curate/selection.h"
#include "riffle/curate/tar_file.h"
#include "riffle/eval/embedding.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/uri.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

std::string shard_name(const std::string& pattern, std::size_t number) {
  const std::size_t percent = pattern.find('%');
  const std::size_t d = pattern.find('d', percent);
  const std::string digits = std::to_string(number);
  const std::string width = pattern.substr(percent + 1, d - percent - 1);
  const auto most = static_cast<std::size_t>(width.empty() ? 0 : std::stoi(width));
  const std::string zeros(most > digits.size() ? most - digits.size() : 0, '0');
  return pattern.substr(0, percent) + zeros + digits + pattern.substr(d + 1);
}

// Returns whether a stream would read pictures in this folder, which need not be there yet.
bool is_read_by(const std::string& stream, const fs::path& folder) {
  const Uri uri(stream);
  if (uri.scheme() != "folder" || uri.path().empty()) return false;
  const auto whole = [](const fs::path& path) {
    std::error_code error;  // opening the stream will say what is wrong
    const fs::path found = fs::weakly_canonical(path, error);
    return error ? fs::absolute(path).lexically_normal() : fs::absolute(found);
  };
  const fs::path below = whole(folder).lexically_relative(whole(uri.path()));
  // Names that begin with a dot are not read, and ".." leads out.
  return std::ranges::none_of(
      below, [](const fs::path& name) { return name != "." && name.string().starts_with('.'); });
}

class CuratingPass {
 public:
  // `learning`: null for an encoder that does not learn.
  CuratingPass(const CurateConfig& config, Encoder& encoder, LearningEncoder* learning,
               Ranks& ranks)
      : config_(config),
        encoder_(encoder),
        learning_(learning),
        state_(config, encoder, learning),
        lock_(lock()),
        stream_(config, ranks),
        files_(pictures()) {
    std::uint64_t logged = 0;
    if (fs::exists(state_path())) {
      logged = state_.read(state_path());
      log_info(
          cat("continuing in ", config_.out.string(), " after ", state_.samples(), " pictures"));
    } else {
      log_info(cat("selecting ", config_.keep, " pictures into ", config_.out.string()));
    }
    if (state_.samples() == 0) fs::remove(log_path());
    if (config_.assignments) log_.emplace(log_path()).cut(logged);
    std::set<std::string> known;
    for (const auto& [group, selector] : state_.selectors()) {
      for (const std::int64_t slot : selector.slots()) known.insert(selector.kept(slot).file);
    }
    files_.remove_others(known);
  }

  CurateResult run() {
    const auto start = Clock::now();
    saved_at_ = start;
    const std::int64_t before = state_.samples();
    stream_.seek(before, state_.position());
    if (learning_ != nullptr) {
      stream_.read([this](const PictureBatch& read) { learn_and_take(read); });
    } else {
      stream_.embed(encoder_, [this](const EmbeddedBatch& read) { take(read); });
    }
    CurateResult result;
    if (stream_.stopped()) {
      save();
      files_.finish();
      result.kept = state_.size();
    } else {
      if (state_.samples() == 0) throw Error(cat(config_.stream, " has no samples"));
      const auto end = Clock::now();
      finish(result);
      result.finish_s = seconds_since(end);
    }
    result.selection_s = selection_s_;
    result.finished = !stream_.stopped();
    result.folder = config_.out;
    result.samples = state_.samples();
    result.samples_now = state_.samples() - before;
    result.seconds = seconds_since(start);
    result.skipped = stream_.skipped();
    return result;
  }

 private:
  fs::path state_path() const { return config_.out / "state.safetensors"; }
  fs::path log_path() const { return config_.out / "repeats.log"; }
  fs::path pictures() const { return config_.out / "pictures"; }
  fs::path table() const { return config_.out / "selection.csv"; }

  FileLock lock() const {
    if (fs::exists(table())) {
      remove_rest();
      throw Error(cat(config_.out.string(), " holds a finished selection; choose another folder"));
    }
    const bool foreign =
        !list_folder(config_.out).empty() && !fs::exists(config_.out / "curate.lock");
    if (foreign) {
      throw Error(cat(config_.out.string(), " is not empty; choose a new folder"));
    }
    bool is_read = is_read_by(config_.stream, config_.out);
    for (const Uri& shape : parse_shapes(config_.shapes)) {
      const bool mixes = shape.scheme() == "mix" && !shape.path().empty();
      is_read = is_read || (mixes && is_read_by(shape.path(), config_.out));
    }
    if (is_read) {
      throw Error(cat(config_.out.string(), " is in the folder that is read, and what is kept ",
                      "would be read again; choose a folder outside of it"));
    }
    make_folders(config_.out);
    return new_lock();
  }

  FileLock new_lock() const {
    return {config_.out / "curate.lock", cat("the selection in ", config_.out.string())};
  }

  // Removes what a finished selection no longer needs, which is there if its process was killed at
  // its end. Only for the same pass: where shards were asked for, pictures/ is no longer needed,
  // and otherwise it is the selection.
  void remove_rest() const {
    if (!fs::exists(state_path())) return;
    const FileLock lock = new_lock();
    if (is_state_of(config_, state_path())) remove_working_files();
  }

  void remove_working_files() const {
    if (!config_.shards.empty()) fs::remove_all(pictures());
    fs::remove(log_path());
    remove_durably(state_path());
  }

  std::string group_of(const Sample& sample) const {
    if (config_.per == Quota::label) return sample.label;
    return config_.per == Quota::source ? source_of(sample.key) : "";
  }

  // Renews the features of the next `count` slots, or of those among them that hold a picture.
  void refresh(const std::string& group, std::int64_t count) {
    Selector& selector = state_.selector_of(group);
    SmallPictures& small = state_.small_of(group);
    std::vector<std::int64_t> slots;
    for (std::int64_t i = 0; i < std::min(count, selector.slot_count()); ++i) {
      if (selector.holds(small.cursor)) slots.push_back(small.cursor);
      small.cursor = (small.cursor + 1) % selector.slot_count();
    }
    if (slots.empty()) return;
    const at::Tensor pictures = small.pictures.index_select(0, integers_tensor(slots));
    selector.refresh(slots, encode_pictures(encoder_, pictures, config_.input.crop));
  }

  void learn_and_take(const PictureBatch& read) {
    learning_->learn(read.samples, read.pictures);
    take(
        {read.samples, encode_pictures(encoder_, read.pictures, config_.input.crop), read.position},
        read.pictures);
  }

  // `pictures`: for an encoder that learns.
  void take(const EmbeddedBatch& read, const at::Tensor& pictures = {}) {
    // A GPU may still encode, which is not the selection's time. It waits for that anyhow.
    read.features.narrow(0, 0, 1).cpu();
    const auto start = Clock::now();
    select(read, pictures);
    if (seconds_since(saved_at_) >= config_.save_every_s) {
      save();
      saved_at_ = Clock::now();
    }
    selection_s_ += seconds_since(start);
  }

  void select(const EmbeddedBatch& read, const at::Tensor& pictures) {
    std::map<std::string, std::vector<std::int64_t>> groups;
    for (std::int64_t i = 0; i < std::ssize(read.samples); ++i) {
      groups[group_of(read.samples[static_cast<std::size_t>(i)])].push_back(i);
    }
    for (const auto& [group, places] : groups) {
      std::vector<Sample> samples;
      for (const std::int64_t i : places) {
        samples.push_back(read.samples[static_cast<std::size_t>(i)]);
      }
      const at::Tensor rows = integers_tensor(places);
      const auto change = offer(state_.selector_of(group), samples,
                                read.features.index_select(0, rows.to(read.features.device())));
      if (learning_ == nullptr) continue;
      for (const auto& [slot, place] : change.entered) {
        state_.small_of(group).pictures[slot].copy_(pictures[places[place]]);
      }
      refresh(group, std::ssize(places));
    }
    state_.count(std::ssize(read.samples), read.position);
  }

  Selector::Change offer(Selector& selector, std::span<const Sample> samples,
                         const at::Tensor& features) {
    Selector::Change change = selector.offer(samples, features);
    if (config_.pictures) {
      for (const std::int64_t slot : change.left) files_.leave(selector.kept(slot).file);
      for (const auto& [slot, place] : change.entered) {
        selector.set_file(slot, files_.add(samples[place]));
      }
      state_.examples().take(samples, change.repeats);
    }
    if (log_) {
      std::string lines;
      for (const Repeat& repeat : change.repeats) {
        lines += cat(repeat.index, ' ', repeat.of, ' ', encode_percent(repeat.key), '\n');
      }
      log_->append(lines);
    }
    return change;
  }

  void save() {
    // What was logged so far becomes durable with the pictures.
    const std::uint64_t logged = log_ ? log_->size() : 0;
    files_.save([this, state = state_.save(logged)] {
      lock_.require_in_place();
      write_safetensors(state_path(), state.tensors, state.metadata);
    });
    // What it learns is not copied for its state, and must not change before that is written.
    if (learning_ != nullptr) files_.finish();
  }

  void finish(CurateResult& result) {
    save();
    files_.finish();
    if (learning_ != nullptr) finish_learning();
    std::vector<Chosen> pictures_kept;
    for (auto& [group, selector] : state_.selectors()) {
      const auto part = chosen(selector);
      pictures_kept.insert(pictures_kept.end(), part.begin(), part.end());
    }
    std::ranges::sort(pictures_kept, {}, [](const Chosen& picture) { return picture.kept.index; });
    result.alone = std::ranges::count(pictures_kept, true, &Chosen::alone);
    if (config_.alone == Alone::drop) {
      for (const Chosen& picture : pictures_kept) {
        if (picture.alone && config_.pictures) files_.leave(picture.kept.file);
      }
      std::erase_if(pictures_kept, [](const Chosen& picture) { return picture.alone; });
    }
    result.kept = std::ssize(pictures_kept);
    write_atomically(config_.out / "selection.html", selection_page({.pictures = pictures_kept,
                                                                     .examples = state_.examples(),
                                                                     .samples = state_.samples(),
                                                                     .stream = config_.stream,
                                                                     .folder = pictures()}));
    if (config_.assignments) {
      write_assignments(log_path(), pictures_kept, config_.out / "assignments.csv");
    }
    if (!config_.shards.empty()) pack(pictures_kept);
    files_.remove_left();
    write_atomically(table(), selection_csv(pictures_kept, state_.samples()));
    remove_working_files();
  }

  // Compares all by what was learned last, and leaves that.
  void finish_learning() {
    if (learning_->updates() == 0) {
      log_warning(cat("the stream ended after ", state_.samples(),
                      " pictures, before anything was learned ",
                      "from it: they are compared by an untrained network"));
    }
    for (auto& [group, selector] : state_.selectors()) {
      state_.small_of(group).cursor = 0;
      for (std::int64_t done = 0; done < selector.slot_count(); done += config_.batch) {
        refresh(group, std::min(config_.batch, selector.slot_count() - done));
      }
    }
    learning_->write(config_.out / "encoder.safetensors");
  }

  // Puts the pictures into shards in order of arrival. The table then names the shard, too.
  void pack(std::vector<Chosen>& kept) const {
    std::optional<TarFile> tar;
    std::string name;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i % static_cast<std::size_t>(config_.shard_size) == 0) {
        if (tar) tar->commit();
        name = shard_name(config_.shards, i / static_cast<std::size_t>(config_.shard_size));
        tar.emplace(config_.out / name);
      }
      std::string& file = kept[i].kept.file;
      tar->add(file, read_bytes(pictures() / file));
      file = cat(name, ':', file);
    }
    if (tar) tar->commit();
  }

  const CurateConfig& config_;
  Encoder& encoder_;
  LearningEncoder* learning_;
  PassState state_;
  const FileLock lock_;
  PassStream stream_;
  std::optional<AppendFile> log_;
  Clock::time_point saved_at_;
  double selection_s_ = 0;
  KeptFiles files_;  // its thread uses the members above
};

// What ranks other than the first do. They heed signals until that one is done.
void encode_share(const CurateConfig& config, Encoder& encoder, Ranks& ranks) {
  PassStream stream(config, ranks);
  stream.seek(0, "");
  stream.embed(encoder, [](const EmbeddedBatch&) {});
  ranks.wait_for_all();
}

// Leaves out the digits that a text begins with; returns whether there are any.
bool skip_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

// Returns whether this is what follows "film.mp4#": "120", or what shapes made of that frame, such
// as "120 frame 3 again 7". A picture's name may have a '#', too.
bool is_frame(std::string_view text) {
  bool is_number = skip_number(text);
  while (is_number && !text.empty()) {
    constexpr std::array<std::string_view, 3> kWords = {" frame ", " again ", " still "};
    const auto starts = [&](std::string_view word) { return text.starts_with(word); };
    const auto word = std::ranges::find_if(kWords, starts);
    if (word == kWords.end()) return false;
    text.remove_prefix(word->size());
    is_number = skip_number(text);
  }
  return is_number;
}

}  // namespace

std::string source_of(const std::string& key) {
  const std::size_t mark = key.rfind('#');
  if (mark != std::string::npos && is_frame(std::string_view(key).substr(mark + 1))) {
    return key.substr(0, mark);
  }
  for (const char* shard : {".tar", ".tgz", ".tbz", ".txz", ".tzst"}) {
    const std::size_t ending = key.find(shard);
    const std::size_t colon = ending == std::string::npos ? ending : key.find(':', ending);
    if (colon != std::string::npos) return key.substr(0, colon);
  }
  return fs::path(key).parent_path().string();
}

bool is_shard_pattern(const std::string& name) {
  static const std::regex kPattern("[^%/]*%(0[1-9])?d[^%/]*");
  return std::regex_match(name, kPattern);
}

CurateResult curate(const CurateConfig& config, Encoder& encoder, Ranks& ranks) {
  // The newest checkpoint of a run that still trains may be another for each.
  ranks.require_same(checksum(settings_text(config)), "the settings",
                     "all need the same options and the same encoder");
  CurateResult result;
  if (ranks.first()) {
    result = CuratingPass(config, encoder, nullptr, ranks).run();
    ranks.wait_for_all();
  } else {
    encode_share(config, encoder, ranks);
  }
  return result;
}

CurateResult curate(const CurateConfig& config, LearningEncoder& encoder) {
  return CuratingPass(config, encoder.encoder(), &encoder, one_rank()).run();
}

}  // namespace riffle
