// Forged run folders through every command that reads one.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "apps/riffle/testing/durability.h"
#include "apps/riffle/testing/forge_run.h"
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace riffle {
namespace {

using testing::Not;

// Returns what an HTTP server on this machine answers, its head included.
std::string http_get(int port, const std::string& path) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    [[maybe_unused]] const auto sent = ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    char part[4096];
    for (ssize_t got; (got = ::recv(socket, part, sizeof part, 0)) > 0;) {
      answer.append(part, static_cast<std::size_t>(got));
    }
  }
  ::close(socket);
  return answer;
}

class ForgedRun : public DurabilityTest {
 protected:
  static constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;

  // RIFFLE_FORGED_RUNS says how many folders; a few without.
  static std::uint64_t wanted() {
    const char* asked = std::getenv("RIFFLE_FORGED_RUNS");
    return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2;
  }

  static constexpr const char* kPrecious = "precious\n";

  void SetUp() override {
    put_content(folder_ / "victim", kPrecious);
    auto whole = train("whole", {"--max-updates", "6"});
    ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  }

  // Puts the i-th forgery of the run `whole` into the folder `to`. Returns what was done.
  std::string forge(std::uint64_t i, const fs::path& whole, const fs::path& to) const {
    Random random(7, Purpose("forged runs"), i);
    fs::remove_all(to);
    fs::create_directories(to.parent_path());
    fs::copy(whole, to, fs::copy_options::recursive);
    std::string how = forge_run(to, random);
    if (random.chance(0.3f)) how += "; " + forge_run(to, random);
    return how;
  }

  static void expect_no_raw_error(const std::string& said) {
    for (const char* raw : {"unexpected failure", "json.exception", "LibTorch failed", "\x1b"}) {
      EXPECT_THAT(said, Not(testing::HasSubstr(raw)));
    }
  }

  // Runs a command to its end. Returns whether it read what is there.
  bool is_read(const std::vector<std::string>& command) const {
    Process process(folder_, command);
    const auto status = process.ended(kDeadline);
    EXPECT_TRUE(status) << "hangs";
    if (!status) return false;
    EXPECT_TRUE(WIFEXITED(*status)) << "signal " << WTERMSIG(*status) << ' ' << process.errors();
    EXPECT_LE(WEXITSTATUS(*status), 2) << process.errors();
    expect_no_raw_error(process.errors() + process.output());
    EXPECT_LT(process.peak_bytes(), kMostBytes);
    EXPECT_EQ(content(folder_ / "victim"), kPrecious);
    return *status == 0;
  }
};

TEST_F(ForgedRun, IsReadOrRefusedByEveryCommand) {
  const std::string set = "synthetic:?frames=1&size=16&classes=4&samples=40";
  const std::vector<std::vector<std::string>> commands = {
      {"config", "forged"},
      {"report", "forged", "--out", "report.html"},
      {"buffer", "forged", "--out", "buffer.html"},
      {"buffer", "forged", "--export", "exported"},
      {"export", "forged", "--out", "weights.safetensors"},
      {"export", "forged", "--out", "weights.onnx"},
      {"embed", "forged", "--input", set, "--out", "features.npy"},
      {"curate", set, "--encoder", "forged", "--keep", "5", "--out", "selected"},
      {"probe", "forged", "--train", set, "--val", set},
      {"resume", "forged", "--max-updates", "8"}};
  std::map<bool, int> read;
  for (std::uint64_t i = 0; i < wanted(); ++i) {
    std::string how = forge(i, folder_ / "whole", folder_ / "forged");
    Random random(7, Purpose("forged places"), i);
    if (random.chance(0.15f)) how += "; " + forge_place(folder_ / "forged", random);
    fs::remove_all(folder_ / "exported");
    fs::remove_all(folder_ / "selected");
    for (const auto& command : commands) {
      SCOPED_TRACE(how + ": " + command[0] + " " + command[2 < command.size() ? 2 : 0]);
      ++read[is_read(command)];
    }
  }
  std::cout << wanted() << " forged folders, " << commands.size()
            << " commands each: " << read[true] << " read, " << read[false] << " refused\n";
  EXPECT_GT(read[true], 0);
  EXPECT_GT(read[false], 0);
}

TEST_F(ForgedRun, DoesNotEndThePageThatShowsIt) {
  fs::create_directories(folder_ / "runs");
  Process watch(folder_, {"watch", "runs"});
  const std::string where = "http://127.0.0.1:";
  ASSERT_TRUE(watch.says(where, kDeadline)) << watch.errors();
  const std::string said = watch.errors();
  const int port = std::atoi(said.c_str() + said.find(where) + where.size());
  int errors = 0;
  for (std::uint64_t i = 0; i < wanted(); ++i) {
    fs::remove_all(folder_ / "runs");
    SCOPED_TRACE(forge(i, folder_ / "whole", folder_ / "runs" / std::to_string(i)));
    const std::string runs = http_get(port, "/data/runs");
    const auto json = nlohmann::json::parse(runs.substr(runs.find("\r\n\r\n")));
    ASSERT_EQ(json["runs"].size(), 1u) << runs;
    const std::string id = json["runs"][0]["id"];
    for (const char* what : {"curves", "arrived", "kept"}) {
      const std::string answer = http_get(port, std::string("/data/") + what + "?run=" + id);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << what << ": " << answer;
      expect_no_raw_error(answer);
      errors += answer.find("{\"error\"") != std::string::npos ? 1 : 0;
    }
    ASSERT_FALSE(watch.ended(0)) << watch.errors();
  }
  watch.signal(SIGTERM);
  ASSERT_TRUE(watch.ended(kDeadline));
  EXPECT_LT(watch.peak_bytes(), kMostBytes);
  std::cout << wanted() << " forged folders, " << errors << " of their parts shown as errors\n";
}

TEST_F(ForgedRun, IsContinuedOrRefusedByItsStudy) {
  const auto set = [](int seed) {
    return "'synthetic:?frames=1&size=16&classes=4&samples=40&seed=" + std::to_string(seed) + "'";
  };
  std::ofstream(folder_ / "study.yaml") << R"(
set:
  model: {arch: resnet10, stem: stride2, width: 2, projector_out: 8, predictor_hidden: 4}
  augment.size: 16
  stream.uri: 'synthetic:?size=16&seed={seed}'
  buffer.capacity: 16
  train: {batch: 8, max_updates: 4, threads: 1}
  metrics.every: 1
vary: {kind: {one: {buffer.policy: fifo}}}
probe:
  points: 2
  sets: {synthetic: {train: )" << set(7)
                                        << ", val: " << set(8) << R"(}}
scales: {smoke: {}}
show: [{table: Accuracy, rows: kind, values: linear_top1}]
)";
  const std::vector<std::string> study = {"study", "study.yaml", "--scale",
                                          "smoke", "--out",      "out"};
  ASSERT_TRUE(is_read(study));
  const fs::path run = fs::directory_iterator(folder_ / "out/runs")->path();
  fs::rename(run, folder_ / "of-study");
  std::map<bool, int> read;
  for (std::uint64_t i = 0; i < wanted(); ++i) {
    SCOPED_TRACE(forge(i, folder_ / "of-study", run));
    fs::remove(run / "result.json");  // so that it is measured again
    ++read[is_read(study)];
  }
  std::cout << wanted() << " forged runs of a study: " << read[true] << " read, " << read[false]
            << " refused\n";
}

TEST_F(ForgedRun, LinksAreNotWrittenThroughAndPipesNotWaitedFor) {
  for (const char* name : {"lock", "metrics.jsonl", "probes.jsonl", "status.json", "config.yaml",
                           "checkpoints/update-000000006.json"}) {
    for (const bool pipe : {false, true}) {
      fs::remove_all(folder_ / "forged");
      fs::copy(folder_ / "whole", folder_ / "forged", fs::copy_options::recursive);
      SCOPED_TRACE(forge_place(folder_ / "forged", name, pipe));
      is_read({"report", "forged"});
      is_read({"resume", "forged", "--max-updates", "8"});
    }
  }
}

}  // namespace
}  // namespace riffle
