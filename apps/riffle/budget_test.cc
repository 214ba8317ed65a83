// What a run may take while its source is hostile: memory, descriptors, threads, and the time until
// it answers SIGTERM.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "apps/riffle/testing/durability.h"
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/testing/loopback_server.h"

namespace riffle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;
#else
// LibTorch and a small network, all that may be decoded at once (docs/security.md), and what is
// held for the reader: 64 MiB and a picture a thread.
const std::int64_t kMostBytes =
    (std::int64_t{768} << 20) +
    (std::int64_t{300} << 20) * static_cast<std::int64_t>(std::thread::hardware_concurrency());
#endif
constexpr int kMostDescriptors = 100;
// Returns the seconds that a run may take to answer SIGTERM. Two are promised, on a machine that
// has nothing else to do: RIFFLE_SECONDS_UNTIL_END says so where it is one.
double most_until_end() {
  const char* asked = std::getenv("RIFFLE_SECONDS_UNTIL_END");
  return asked != nullptr ? std::strtod(asked, nullptr) : 5;
}

// Takes connections and never answers.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    const bool ready = ::bind(socket_, name, length) == 0 && ::listen(socket_, 128) == 0 &&
                       ::getsockname(socket_, name, &length) == 0;
    EXPECT_TRUE(ready);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

class Budget : public DurabilityTest {
 protected:
  static int most_threads() {
    return 16 + 6 * static_cast<int>(std::thread::hardware_concurrency());
  }

  static int entries(const fs::path& folder) {
    std::error_code gone;
    int count = 0;
    for (fs::directory_iterator at(folder, gone), end; at != end; at.increment(gone)) ++count;
    return count;
  }

  // A run over the stream keeps to its budget for a while and after a SIGTERM.
  void expect_kept(const std::string& name, const std::string& stream) {
    SCOPED_TRACE(name);
    constexpr double kSeconds = 0.7;
    auto process = train(name, kEndless, stream);
    int descriptors = 0, threads = 0;
    std::int64_t resident = 0;
    const fs::path about = "/proc/" + std::to_string(process.id());
    const auto measure = [&] {
      descriptors = std::max(descriptors, entries(about / "fd"));
      threads = std::max(threads, entries(about / "task"));
      resident = std::max(resident, process.resident_bytes());
      return false;
    };
    const bool begun =
        process.becomes([&] { return fs::exists(folder_ / name / "config.yaml"); }, kDeadline);
    ASSERT_TRUE(begun) << process.errors();
    const auto early = process.ended(0);
    double seconds = 0;
    std::optional<int> status = early;
    if (!early) {
      const auto start = Clock::now();
      while (seconds_since(start) < kSeconds && !status) {
        measure();
        status = process.ended(0.005);
      }
    }
    if (!status) {
      const auto asked = Clock::now();
      process.signal(SIGTERM);
      status = process.ended(kDeadline);
      seconds = seconds_since(asked);
    }
    ASSERT_TRUE(status) << "does not answer SIGTERM: " << process.errors();
    // One that ended by itself just then has said why, and no longer listens.
    const bool was_ending = process.errors().find("\nriffle: ") != std::string::npos;
    EXPECT_TRUE(WIFEXITED(*status) || was_ending) << process.errors();
    EXPECT_LT(seconds, most_until_end());
    EXPECT_LT(process.peak_bytes(), kMostBytes);
    EXPECT_LE(descriptors, kMostDescriptors);
    EXPECT_LE(threads, most_threads());
    std::cout << name << ": " << process.peak_bytes() / (1 << 20) << " MiB, " << descriptors
              << " descriptors, " << threads << " threads, ended " << seconds
              << " s after SIGTERM with " << WEXITSTATUS(*status) << '\n';
  }

  fs::path put(const fs::path& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string gzipped(const std::string& bytes) const {
    const fs::path path = folder_ / "part.gz";
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return content(path);
  }
  void put_fifo(const fs::path& name) const {
    fs::create_directories((folder_ / name).parent_path());
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0644), 0);
  }
};

TEST_F(Budget, OfAnEndlessStreamIsKept) { expect_kept("endless", "synthetic:?frames=8&size=16"); }

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Budget, OfPicturesThatAreLargeWhenDecodedIsKept) {
  const auto first = put("large/0.png", text_of(encode_png(Picture(7000, 7000))));
  for (int i = 1; i < 60; ++i) {
    fs::create_hard_link(first, folder_ / "large" / (std::to_string(i) + ".png"));
  }
  expect_kept("large-run", "folder:large");
}

TEST_F(Budget, OfAFolderWithPipesAndDevicesIsKept) {
  put_fifo("pipes/a.png");
  put_fifo("pipes/deep/b.jpg");
  put("pipes/c.png", "not a picture");
  fs::create_symlink("/dev/zero", folder_ / "pipes/zero.png");
  fs::create_symlink("..", folder_ / "pipes/deep/loop");
  for (const std::string options : {"?links=anywhere", "?watch=1", "?watch=1&links=anywhere"}) {
    fs::remove_all(folder_ / "pipes-run");
    expect_kept("pipes-run", "folder:pipes" + options);
  }
}

TEST_F(Budget, OfAShardThatUnpacksToTerabytesIsKept) {
  // A header that claims a film of 60 GiB under a picture's name, then zeros without end: the same
  // 16 MiB of them, compressed once, again and again.
  std::string header(512, '\0');
  const auto field = [&](std::size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  field(0, "cat/1.txt");
  field(100, "0000644");
  field(124, "770000000000");
  field(148, "        ");
  field(156, "0");
  field(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%06o", sum);
  field(148, std::string(digits, 7));
  std::string bomb = gzipped(header);
  const std::string zeros = gzipped(std::string(16 << 20, '\0'));
  for (int i = 0; i < 400; ++i) bomb += zeros;
  for (int i = 0; i < 8; ++i) put("bombs/" + std::to_string(i) + ".tar.gz", bomb);
  expect_kept("bombs-run", "shards:bombs/*.tar.gz");
  put_fifo("pipe.tar");
  expect_kept("pipe-run", "shards:pipe.tar");
}

TEST_F(Budget, OfFilmsThatAreNoneIsKept) {
  put("films/master.ts", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nmaster.ts\n");
  put("films/list.mp4", "ffconcat version 1.0\nfile pipe.mkv\n");
  put("films/text.avi", std::string(1 << 20, 'x'));
  put_fifo("films/pipe.mkv");
  expect_kept("films-run", "video:films");
  expect_kept("film-run", "video:films/pipe.mkv");
}

// Returns an AVI whose frames are all the same JPEG.
std::string motion_jpeg(const std::string& frame, int side, int frames) {
  const auto number = [](int value) {
    std::string bytes(4, '\0');
    for (int i = 0; i < 4; ++i)
      bytes[static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i);
    return bytes;
  };
  const auto chunk = [&](const std::string& name, std::string content) {
    const std::string size = number(static_cast<int>(content.size()));
    if (content.size() % 2 == 1) content += '\0';
    return name + size + content;
  };
  const std::string zeros(64, '\0');
  const std::string about_all = number(40'000) + zeros.substr(0, 12) + number(frames) +
                                zeros.substr(0, 4) + number(1) + zeros.substr(0, 4) + number(side) +
                                number(side) + zeros.substr(0, 16);
  const std::string about_stream = "vidsMJPG" + zeros.substr(0, 12) + number(1) + number(25) +
                                   zeros.substr(0, 4) + number(frames) + zeros.substr(0, 20);
  const std::string about_frames = number(40) + number(side) + number(side) + number(1 | 24 << 16) +
                                   "MJPG" + number(3 * side * side) + zeros.substr(0, 16);
  std::string all;
  for (int i = 0; i < frames; ++i) all += chunk("00dc", frame);
  const std::string stream =
      chunk("LIST", "strl" + chunk("strh", about_stream) + chunk("strf", about_frames));
  return chunk("RIFF", "AVI " + chunk("LIST", "hdrl" + chunk("avih", about_all) + stream) +
                           chunk("LIST", "movi" + all));
}

// As large as a frame may be, and larger.
TEST_F(Budget, OfFilmsOfHugeFramesIsKept) {
  for (const int side : {5900, 9000}) {
    const std::string name = cat("huge-", side);
    put(name + ".avi", motion_jpeg(text_of(encode_jpeg(Picture(side, side), 50)), side, 60));
    expect_kept(name, cat("video:", name, ".avi"));
  }
}

// Pictures that are large when decoded, bodies without end, and bodies that unpack to much.
TEST_F(Budget, OfServersThatSendTooMuchIsKept) {
  LoopbackServer server;
  const auto png = encode_png(Picture(7000, 7000));
  const std::string zeros = gzipped(std::string(16 << 20, '\0'));
  std::string list;
  for (int i = 0; i < 60; ++i) {
    const std::string name = cat("/", i);
    server.serve(name + ".png", png);
    server.route(name + ".jpg", [](LoopbackServer::Exchange& exchange) {
      if (!exchange.write_head(200)) return;
      const std::string part = "\xff\xd8\xff" + std::string(1 << 16, '\0');
      while (exchange.write(part)) {
      }
    });
    server.route(name + ".gz", [&](LoopbackServer::Exchange& exchange) {
      if (!exchange.write_head(200, "Content-Encoding: gzip\r\n")) return;
      while (exchange.write(zeros)) {
      }
    });
    for (const char* ending : {".png", ".jpg", ".gz"}) list += server.url(name + ending) + "\n";
  }
  put("urls.txt", list);
  expect_kept("urls-run", "urls:urls.txt?allow_private=1&connections=64&per_host=64");
}

TEST_F(Budget, OfServersThatNeverAnswerIsKept) {
  const SilentServer server;
  std::string list;
  for (int i = 0; i < 1000; ++i) {
    list += "http://" + server.address() + "/" + std::to_string(i) + ".jpg\n";
  }
  put("urls.txt", list);
  expect_kept("urls-run", "urls:urls.txt?allow_private=1&connections=64&per_host=64");
  expect_kept("camera-run", "video:tcp://" + server.address());
  expect_kept("http-run", "video:http://" + server.address() + "/film.mp4");
}

}  // namespace
}  // namespace riffle
