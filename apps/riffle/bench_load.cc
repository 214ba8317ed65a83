#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/riffle/bench_pictures.h"
#include "apps/riffle/bench_turns.h"
#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/child_process.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/median.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

constexpr int kJpegWidth = 500, kJpegHeight = 375, kPictures = 24, kJpegQuality = 90;
constexpr int kSyntheticSize = 32;

struct LoadOptions : BenchTurns {
  int size = 256;
};

// Removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "riffle-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(cat("cannot make a folder like ", name), ErrorKind::failure);
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Returns the work done in a second of this thread's own CPU time, which other programs on the
// machine hardly change.
double per_cpu_second(double seconds, const std::function<std::int64_t()>& work) {
  const auto cpu_seconds = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const double begin = cpu_seconds();
  std::int64_t done = 0;
  do {
    done += work();
  } while (std::chrono::steady_clock::now() < end);
  return static_cast<double>(done) / (cpu_seconds() - begin);
}

Picture load(const std::vector<std::byte>& bytes, int size) {
  DecodeFailure failure;
  const auto picture = decode(bytes, {.short_side = size}, failure);
  if (!picture) throw std::logic_error("cannot decode what was just encoded: " + failure.detail);
  const int shorter = std::min(picture->width, picture->height);
  return resize(*picture, picture->width * size / shorter, picture->height * size / shorter);
}

struct Peer {
  std::string name;
  std::unique_ptr<ChildProcess> process;
};

std::optional<Peer> start_peer(const fs::path& folder, int size) {
  const std::string python = RIFFLE_PYTHON;
  if (!python.empty() && fs::exists(python)) {
    const std::string script = std::string(RIFFLE_SOURCE_DIR) + "/bench/load_pictures.py";
    auto process = std::make_unique<ChildProcess>(
        std::vector<std::string>{python, script, folder.string(), "--size", std::to_string(size)});
    const auto hello = nlohmann::json::parse(process->read_line());
    if (hello.at("ready")) return Peer{hello.at("name"), std::move(process)};
  }
  log_warning(
      "no Python with Pillow was found (scripts/setup --peers installs one): no peer is measured");
  return std::nullopt;
}

struct Rates {
  std::vector<double> ours, peer, ratios, synthetic;
};

Rates measure(const LoadOptions& options, const std::vector<std::vector<std::byte>>& files,
              Peer* peer) {
  const auto load_all = [&] {
    for (const auto& bytes : files) load(bytes, options.size);
    return static_cast<std::int64_t>(files.size());
  };
  const auto synthetic = open_stream(cat("synthetic:?size=", kSyntheticSize));
  const auto make_frames = [&] {
    constexpr int kFrames = 256;
    for (int i = 0; i < kFrames; ++i) synthetic->next();
    return std::int64_t{kFrames};
  };
  load_all();
  make_frames();
  Rates rates;
  for (int round = 0; round < options.rounds; ++round) {
    show_progress(cat("round ", round + 1, " of ", options.rounds));
    rates.ours.push_back(per_cpu_second(options.seconds, load_all));
    if (peer != nullptr) {
      peer->process->write_line(cat(options.seconds));
      rates.peer.push_back(nlohmann::json::parse(peer->process->read_line()).at("pictures_per_s"));
      rates.ratios.push_back(rates.ours.back() / rates.peer.back());
    }
    rates.synthetic.push_back(per_cpu_second(options.seconds / 2, make_frames));
  }
  finish_progress();
  return rates;
}

void print(const nlohmann::ordered_json& result) {
  const auto line = [](const std::string& name, double rate, const std::string& rest) {
    print_line(
        cat(std::left, std::setw(40), name, std::right, std::setw(10), fixed(rate, 1), rest));
  };
  line("riffle", result["pictures_per_s"], " pictures/s a core");
  for (const auto& peer : result["peers"]) {
    line(peer["name"], peer["pictures_per_s"],
         cat(" pictures/s a core  riffle is ", fixed(peer["ratio"], 2), "x (",
             fixed(peer["least_ratio"], 2), " to ", fixed(peer["most_ratio"], 2), ")"));
  }
  line(cat("synthetic: at ", kSyntheticSize, " px"), result["synthetic_frames_per_s"],
       " frames/s a core");
}

void run(const LoadOptions& options) {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> files;
  std::size_t bytes = 0;
  for (int i = 0; i < kPictures; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    files.push_back(encode_jpeg(photograph_like(kJpegWidth, kJpegHeight, seed), kJpegQuality));
    write_atomically(folder.path() / cat(i, ".jpg"), files.back());
    bytes += files.back().size();
  }
  auto peer = start_peer(folder.path(), options.size);
  const Rates rates = measure(options, files, peer ? &*peer : nullptr);

  nlohmann::ordered_json result;
  result["pictures_per_s"] = median(rates.ours);
  result["ms_per_picture"] = 1e3 / median(rates.ours);
  result["bytes_per_picture"] = bytes / files.size();
  result["size"] = options.size;
  result["peers"] = nlohmann::ordered_json::array();
  if (peer) {
    // Rounds are compared with their neighbours in time, so that a change of the machine's load
    // hits both.
    const auto [least, most] = std::minmax_element(rates.ratios.begin(), rates.ratios.end());
    const double ratio = median(rates.ratios);
    result["peers"].push_back({{"name", peer->name},
                               {"pictures_per_s", median(rates.peer)},
                               {"ratio", ratio},
                               {"least_ratio", *least},
                               {"most_ratio", *most}});
    result["ratio_to_best_peer"] = ratio;
  }
  result["synthetic_frames_per_s"] = median(rates.synthetic);
  if (options.json) {
    print_json_line(result);
  } else {
    print(result);
  }
}

}  // namespace

void add_bench_load(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "load", "500 x 375 JPEGs to small pictures on one core (decode, resize), beside Pillow");
  const auto options = std::make_shared<LoadOptions>();
  command->add_option("--size", options->size, "Short side of the result, in pixels")
      ->check(CLI::Range(1, kJpegHeight))
      ->capture_default_str();
  options->add_to(*command);
  command->footer("Example:\n  riffle bench load --rounds 9");
  command->callback([options] { run(*options); });
}

}  // namespace riffle
