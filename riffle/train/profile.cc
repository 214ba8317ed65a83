#include "riffle/train/profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include <torch/csrc/autograd/profiler_kineto.h>

#include "riffle/base/text.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;
namespace profiler = torch::autograd::profiler;

struct Rule {
  std::string_view word;
  std::string_view part;
};

// By the first word that occurs in a name.
constexpr Rule kRules[] = {
    {"render_cuda", "views"},
    {"nearest_index_cuda::", "buffer"},
    {"batch_norm", "batch norm"},
    {"BatchNorm", "batch norm"},
    {"sgd", "optimiser"},
    {"Sgd", "optimiser"},
    {"max_pool", "pooling"},
    {"MaxPool", "pooling"},
    {"conv", "convolutions"},
    {"Conv", "convolutions"},
    {"fprop", "convolutions"},
    {"dgrad", "convolutions"},
    {"wgrad", "convolutions"},
    {"cudnn", "convolutions"},
    {"gemm", "matrix products"},
    {"cutlass", "matrix products"},
    {"nvjet", "matrix products"},
    {"aten::mm", "matrix products"},
    {"aten::addmm", "matrix products"},
    {"Memcpy", "copies"},
    {"Memset", "copies"},
};

std::string part_of(std::string_view name) {
  for (const Rule& rule : kRules) {
    if (name.find(rule.word) != std::string_view::npos) return std::string(rule.part);
  }
  return "other";
}

struct Event {
  std::string name;
  std::uint64_t thread, begin, end;
};

// Returns the time of each event without the events inside it.
std::vector<std::uint64_t> own_times(std::vector<Event>& events) {
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<std::uint64_t> own(events.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < events.size(); ++i) {
    own[i] = events[i].end - events[i].begin;
    while (!open.empty() && (events[open.back()].thread != events[i].thread ||
                             events[open.back()].end <= events[i].begin)) {
      open.pop_back();
    }
    if (!open.empty()) own[open.back()] -= std::min(own[open.back()], own[i]);
    open.push_back(i);
  }
  return own;
}

}  // namespace

struct Profile::State {
  c10::Device device;
  Clock::time_point start;
  bool running = true;
};

Profile::Profile(c10::Device device) : state_(std::make_unique<State>(State{device, {}, true})) {
  using torch::profiler::impl::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {device.is_cuda() ? ActivityType::CUDA
                                                              : ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  state_->start = Clock::now();
}

Profile::~Profile() {
  if (state_->running) profiler::disableProfiler();
}

std::vector<ProfilePart> Profile::finish(std::int64_t updates) {
  const double wall =
      std::chrono::duration<double, std::milli>(Clock::now() - state_->start).count();
  const auto result = profiler::disableProfiler();
  state_->running = false;

  std::vector<Event> events;
  for (const auto& event : result->events()) {
    if (event.deviceType() != state_->device.type()) continue;
    events.push_back({event.name(), event.startThreadId(), event.startNs(), event.endNs()});
  }
  // Kernels do not contain one another.
  std::vector<std::uint64_t> own;
  if (state_->device.is_cpu()) {
    own = own_times(events);
  } else {
    for (const Event& event : events) own.push_back(event.end - event.begin);
  }

  std::map<std::string, ProfilePart> parts;
  std::map<std::string, std::unordered_map<std::string, double>> names;
  const auto per_update = static_cast<double>(updates);
  double sum = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const double ms = static_cast<double>(own[i]) / 1e6 / per_update;
    ProfilePart& part = parts[part_of(events[i].name)];
    part.ms += ms;
    ++part.calls;
    names[part_of(events[i].name)][events[i].name] += ms;
    sum += ms;
  }
  std::vector<ProfilePart> sorted;
  const double whole = wall / per_update;
  for (auto& [name, part] : parts) {
    part.name = name;
    part.share = part.ms / whole;
    part.calls = (part.calls + updates - 1) / updates;
    std::vector<std::pair<double, std::string>> costly;
    for (const auto& [kernel, ms] : names[name]) costly.emplace_back(ms, kernel);
    std::ranges::sort(costly, std::greater());
    constexpr std::size_t kNamed = 4;
    for (std::size_t i = 0; i < std::min(kNamed, costly.size()); ++i) {
      part.first.push_back(cat(fixed(costly[i].first, 3), " ", costly[i].second.substr(0, 100)));
    }
    sorted.push_back(std::move(part));
  }
  std::ranges::sort(sorted, std::greater(), &ProfilePart::ms);
  const double left = std::max(0.0, whole - sum);
  sorted.push_back({"waiting", left, left / whole, 0, {}});
  return sorted;
}

std::string profile_table(const std::string& heading, const std::vector<ProfilePart>& parts) {
  const auto spaces = [](std::size_t used, std::size_t width) {
    return std::string(used < width ? width - used : 0, ' ');
  };
  const auto line = [&](const std::string& name, const std::string& ms, const std::string& share,
                        const std::string& calls) {
    constexpr std::size_t kName = 22, kMs = 11, kShare = 9, kCalls = 8;
    return name + spaces(name.size(), kName) + spaces(ms.size(), kMs) + ms +
           spaces(share.size(), kShare) + share + spaces(calls.size(), kCalls) + calls + '\n';
  };
  std::string table = line(heading, "ms/update", "share", "calls");
  for (const ProfilePart& part : parts) {
    table += line(part.name, fixed(part.ms, 3), fixed(100 * part.share, 1) + " %",
                  part.calls > 0 ? cat(part.calls) : std::string());
  }
  return table;
}

}  // namespace riffle
