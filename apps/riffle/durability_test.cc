// A run that is killed, stopped or shared: real processes, real signals.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace riffle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;

constexpr double kDeadline = 60;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A riffle that runs beside the test.
class Process {
 public:
  Process(const fs::path& folder, std::vector<std::string> arguments)
      : errors_(folder / ("stderr-" + std::to_string(++started_) + ".txt")) {
    arguments.insert(arguments.begin(), RIFFLE_PROGRAM);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out = ::open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(out, STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0) ::execv(RIFFLE_PROGRAM, argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  // The status as waitpid gives it, when the process ended within so many seconds.
  std::optional<int> ended(double seconds) {
    const auto start = Clock::now();
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds_since(start) > seconds) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return status;
  }
  std::string errors() const { return content(errors_); }

 private:
  static inline int started_ = 0;
  fs::path errors_;
  pid_t pid_;
};

// All that a run has learned: the tensors of its newest checkpoint, with the pictures themselves in
// place of where they are, and the metrics without what the clock on the wall says.
std::map<std::string, std::string> learned(const fs::path& run) {
  fs::path state;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    if (entry.path().extension() == ".json") state = std::max(state, entry.path());
  }
  const std::string bytes = content(state.replace_extension(".safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  std::map<std::string, std::string> parts;
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, about] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = about["data_offsets"][0], end = about["data_offsets"][1];
    parts[name] = bytes.substr(8 + length + begin, end - begin);
  }
  const auto numbers = [&](const std::string& name) {
    std::vector<std::int64_t> values(parts.at(name).size() / 8);
    std::memcpy(values.data(), parts.at(name).data(), parts.at(name).size());
    return values;
  };
  const auto segments = numbers("pictures.segments"), records = numbers("pictures.records");
  constexpr std::size_t kHeader = 32, kRecord = 16 + 16 * 16 * 3;
  std::map<std::int64_t, std::string> files;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::string& file = files[segments[i]];
    const std::string number = std::to_string(segments[i]);
    if (file.empty()) {
      file = content(run / "checkpoints" /
                     ("pictures-" + std::string(9 - number.size(), '0') + number + ".bin"));
    }
    parts["pictures"] +=
        file.substr(kHeader + static_cast<std::size_t>(records[i]) * kRecord, kRecord);
  }
  parts.erase("pictures.segments");
  parts.erase("pictures.records");
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    parts["metrics"] += line.substr(0, line.find(",\"seconds\":")) + '\n';
  }
  return parts;
}

void expect_learned_the_same(const fs::path& a, const fs::path& b) {
  const auto first = learned(a), second = learned(b);
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [name, bytes] : first) EXPECT_TRUE(second.at(name) == bytes) << name;
  EXPECT_GT(first.at("pictures").size(), 0u);
}

class DurabilityTest : public testing::Test {
 protected:
  DurabilityTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DurabilityTest() override { fs::remove_all(folder_); }

  Process train(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train",
                                          "--run",
                                          run,
                                          "--stream",
                                          "synthetic:?frames=8&size=16",
                                          "--size",
                                          "16",
                                          "--arch",
                                          "resnet10",
                                          "--stem",
                                          "stride2",
                                          "--width",
                                          "2",
                                          "--batch",
                                          "8",
                                          "--capacity",
                                          "32",
                                          "--updates",
                                          "2",
                                          "--threads",
                                          "1",
                                          "--set",
                                          "model.projector_out=16",
                                          "--set",
                                          "model.predictor_hidden=8",
                                          "--set",
                                          "checkpoint.every=3",
                                          "--set",
                                          "metrics.every=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {folder_, arguments};
  }
  Process resume(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"resume", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {folder_, arguments};
  }
  void wait_for(const fs::path& path, Process& process) const {
    const auto start = Clock::now();
    while (!fs::exists(folder_ / path)) {
      ASSERT_FALSE(process.ended(0.001)) << process.errors();
      ASSERT_LT(seconds_since(start), kDeadline) << process.errors();
    }
  }

  fs::path folder_ = fs::path(testing::TempDir()) /
                     ("riffle_durability_" +
                      std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

const std::vector<std::string> kShort = {"--max-updates", "120"};
const std::vector<std::string> kEndless = {"--max-updates", "0", "--schedule", "constant"};

// RIFFLE_KILLS says how many; a few without.
TEST_F(DurabilityTest, KilledAtAnyInstantARunResumesToTheSameEnd) {
  const char* asked = std::getenv("RIFFLE_KILLS");
  const int wanted = asked != nullptr ? std::atoi(asked) : 8;
  const auto start = Clock::now();
  auto whole = train("whole", kShort);
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  const double duration = seconds_since(start);

  std::mt19937 generator(static_cast<unsigned>(wanted));
  std::uniform_real_distribution<double> instant(0, duration);
  int kills = 0, finished = 0;
  for (int run = 0; kills < wanted; ++run) {
    const std::string name = "run-" + std::to_string(run);
    bool done = false;
    while (!done) {
      const bool begun = fs::exists(folder_ / name / "config.yaml");
      auto process = begun ? resume(name) : train(name, kShort);
      // Enough kills: this one may finish.
      const auto status = process.ended(kills < wanted ? instant(generator) : kDeadline);
      if (status) {
        ASSERT_EQ(*status, 0) << process.errors();
        done = true;
      } else {
        ASSERT_LT(kills, wanted) << "did not finish in time: " << process.errors();
        process.signal(SIGKILL);
        process.ended(kDeadline);
        // A kill before there was anything to lose does not count.
        if (fs::exists(folder_ / name / "config.yaml")) ++kills;
      }
    }
    ++finished;
    expect_learned_the_same(folder_ / name, folder_ / "whole");
    fs::remove_all(folder_ / name);
  }
  std::cout << kills << " kills survived in " << finished << " runs of " << duration << " s each\n";
}

TEST_F(DurabilityTest, ASignalEndsARunInGoodOrderAndNamesTheResumeCommand) {
  for (const int number : {SIGINT, SIGTERM}) {
    const std::string name = "run-" + std::to_string(number);
    auto process = train(name, kEndless);
    wait_for(fs::path(name) / "metrics.jsonl", process);
    process.signal(number);
    const auto status = process.ended(kDeadline);
    ASSERT_TRUE(status);
    EXPECT_EQ(*status, 0) << process.errors();
    EXPECT_THAT(process.errors(), HasSubstr("riffle resume " + name));
    EXPECT_GT(learned(folder_ / name).size(), 0u);
  }
}

TEST_F(DurabilityTest, ASecondSignalEndsAtOnce) {
  // A run that stops within the few milliseconds between two signals has nothing left to end.
  bool ended_at_once = false;
  for (int attempt = 0; attempt < 10 && !ended_at_once; ++attempt) {
    const std::string name = "run-" + std::to_string(attempt);
    auto process = train(name, kEndless);
    wait_for(fs::path(name) / "metrics.jsonl", process);
    process.signal(SIGINT);
    const auto start = Clock::now();
    while (process.errors().find("asked to stop") == std::string::npos) {
      ASSERT_LT(seconds_since(start), kDeadline);
      std::this_thread::yield();
    }
    process.signal(SIGINT);
    const auto status = process.ended(kDeadline);
    ASSERT_TRUE(status);
    ended_at_once = WIFSIGNALED(*status) && WTERMSIG(*status) == SIGINT;
    EXPECT_TRUE(ended_at_once || *status == 0) << process.errors();
  }
  EXPECT_TRUE(ended_at_once);
}

TEST_F(DurabilityTest, ASecondProcessOnARunIsRefused) {
  auto process = train("run", kEndless);
  wait_for("run/metrics.jsonl", process);
  auto second = resume("run");
  const auto status = second.ended(kDeadline);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 2);
  EXPECT_THAT(second.errors(), HasSubstr("in use by process"));
}

}  // namespace
}  // namespace riffle
