#include <atomic>

#include "python/bindings/background.h"
#include "python/bindings/owned.h"

#include "riffle/base/clock.h"
#include "riffle/buffer/merge.h"
#include "riffle/buffer/minred.h"
#include "riffle/train/updater.h"

namespace riffle::python {
namespace {

using Slots = std::vector<std::int64_t>;
using Ages = std::vector<std::uint64_t>;

NearestIndexConfig index_config(const Settings& settings, std::int64_t slots, std::int64_t dim,
                                const std::string& device) {
  const auto config = configured<BufferConfig>(settings);
  config.validate();
  const PolicySetting setting{config, slots, dim, /*seed=*/0, open_device(device)};
  if (config.policy == "minred") return MinRed::index_config(setting);
  if (config.policy == "merge") return Merge::index_config(setting);
  throw Error(cat("a NearestIndex has the policy minred or merge, not ", config.policy));
}

// Whatever may be long runs in the background, so that Ctrl-C is answered.
class Index {
 public:
  explicit Index(const NearestIndexConfig& config) : index_(NearestIndex::create(config)) {}

  template <typename Call>
  auto use(Call call) {
    return work_.run([index = index_, seconds = seconds_, call = std::move(call)] {
      const Stopwatch stopwatch{*seconds};
      return call(*index);
    });
  }
  double seconds() const { return *seconds_; }

 private:
  // Adds the time of its life.
  struct Stopwatch {
    std::atomic<double>& seconds;
    const Clock::time_point start = Clock::now();
    ~Stopwatch() { seconds += seconds_since(start); }
  };

  std::shared_ptr<NearestIndex> index_;
  // That calls took on the C++ side, so far.
  std::shared_ptr<std::atomic<double>> seconds_ = std::make_shared<std::atomic<double>>(0.0);
  Background work_;
};

using OwnedIndex = Owned<Index>;

std::pair<Slots, Slots> take(const OwnedIndex& index, std::int64_t n) {
  const auto removals = index->use([n](NearestIndex& from) { return from.take_most_redundant(n); });
  std::pair<Slots, Slots> taken;
  for (const Removal& removal : removals) {
    taken.first.push_back(removal.slot);
    taken.second.push_back(removal.into);
  }
  return taken;
}

}  // namespace

void bind_nearest(py::module_& module) {
  py::class_<OwnedIndex>(module, "NearestIndex")
      .def(py::init([](const Settings& settings, std::int64_t slots, std::int64_t dim,
                       const std::string& device) {
        return OwnedIndex("NearestIndex",
                          std::make_shared<Index>(index_config(settings, slots, dim, device)));
      }))
      .def("set",
           [](const OwnedIndex& index, Slots slots, Ages ages, at::Tensor features) {
             index->use([=](NearestIndex& to) { to.set(slots, ages, features); });
           })
      .def("blend",
           [](const OwnedIndex& index, Slots slots, Ages ages, at::Tensor features,
              double momentum) {
             index->use([=](NearestIndex& to) { to.blend(slots, ages, features, momentum); });
           })
      .def("erase", [](const OwnedIndex& index,
                       Slots slots) { index->use([=](NearestIndex& from) { from.erase(slots); }); })
      .def("take", &take)
      .def("contains",
           [](const OwnedIndex& index, std::int64_t slot) {
             return index->use([=](NearestIndex& of) { return of.contains(slot); });
           })
      .def("size",
           [](const OwnedIndex& index) {
             return index->use([](NearestIndex& of) { return of.size(); });
           })
      .def("weigh",
           [](const OwnedIndex& index, Slots slots, std::vector<double> weights) {
             index->use([=](NearestIndex& to) { to.weigh(slots, weights); });
           })
      .def("weights",
           [](const OwnedIndex& index) {
             return index->use([](NearestIndex& of) {
               return std::vector<double>(of.weights().begin(), of.weights().end());
             });
           })
      .def("distances",
           [](const OwnedIndex& index) {
             return index->use([](NearestIndex& of) { return of.nearest_distances(); });
           })
      .def("seconds", [](const OwnedIndex& index) { return index->seconds(); })
      .def("save",
           [](const OwnedIndex& index) {
             return index->use([](NearestIndex& of) { return of.save(); });
           })
      .def("restore", [](const OwnedIndex& index, NearestIndex::State state) {
        index->use([=](NearestIndex& to) { to.restore(state); });
      });
}

}  // namespace riffle::python
