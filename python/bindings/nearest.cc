#include "python/bindings/background.h"
#include "python/bindings/owned.h"

#include "riffle/buffer/merge.h"
#include "riffle/buffer/minred.h"
#include "riffle/train/updater.h"

namespace riffle::python {
namespace {

using Slots = std::vector<std::int64_t>;
using Ages = std::vector<std::uint64_t>;

NearestIndexConfig index_config(const Settings& settings, std::int64_t slots, std::int64_t dim,
                                const Name& device) {
  const auto config = configured<BufferConfig>(settings);
  config.validate();
  const PolicySetting setting{config, slots, dim, /*seed=*/0, open_device(device.bytes)};
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
    return work_.run([index = index_, call = std::move(call)] { return call(*index); });
  }
  template <typename Call>
  auto use_shortly(Call call) {
    return work_.run_short([index = index_, call = std::move(call)] { return call(*index); });
  }
  // For calls that take as long as there are features.
  template <typename Call>
  void write(const at::Tensor& features, Call call) {
    if (features.numel() <= kSoonWritten) {
      use_shortly(std::move(call));
    } else {
      use(std::move(call));
    }
  }

 private:
  // Numbers that are copied and normalised in milliseconds.
  static constexpr std::int64_t kSoonWritten = 1 << 20;

  std::shared_ptr<NearestIndex> index_;
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
      .def(py::init(
          [](const Settings& settings, std::int64_t slots, std::int64_t dim, const Name& device) {
            return OwnedIndex("NearestIndex",
                              std::make_shared<Index>(index_config(settings, slots, dim, device)));
          }))
      .def("set",
           [](const OwnedIndex& index, Slots slots, Ages ages, at::Tensor features) {
             index->write(features, [=](NearestIndex& to) { to.set(slots, ages, features); });
           })
      .def("blend",
           [](const OwnedIndex& index, Slots slots, Ages ages, at::Tensor features,
              double momentum) {
             index->write(features,
                          [=](NearestIndex& to) { to.blend(slots, ages, features, momentum); });
           })
      .def("erase",
           [](const OwnedIndex& index, Slots slots) {
             index->use_shortly([=](NearestIndex& from) { from.erase(slots); });
           })
      .def("take", &take)
      .def("contains",
           [](const OwnedIndex& index, std::int64_t slot) {
             return index->use_shortly([=](NearestIndex& of) { return of.contains(slot); });
           })
      .def("size",
           [](const OwnedIndex& index) {
             return index->use_shortly([](NearestIndex& of) { return of.size(); });
           })
      .def("weigh",
           [](const OwnedIndex& index, Slots slots, std::vector<double> weights) {
             index->use_shortly([=](NearestIndex& to) { to.weigh(slots, weights); });
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
      // What training does to an index for a stream batch, all of it on the C++ side: what calls
      // from Python are measured against.
      .def("stream_batch",
           [](const OwnedIndex& index, std::vector<Slots> drawn, at::Tensor features,
              double momentum, Slots arrived, at::Tensor arrived_features) {
             return index->use([=](NearestIndex& to) {
               for (const Slots& slots : drawn) {
                 to.blend(slots, Ages(slots.begin(), slots.end()), features, momentum);
               }
               to.set(arrived, Ages(arrived.begin(), arrived.end()), arrived_features);
               Slots gone;
               for (const auto& [slot, into] : to.take_most_redundant(std::ssize(arrived))) {
                 gone.push_back(slot);
               }
               return gone;
             });
           })
      .def("save",
           [](const OwnedIndex& index) {
             return index->use([](NearestIndex& of) { return of.save(); });
           })
      .def("restore", [](const OwnedIndex& index, NearestIndex::State state) {
        index->use([=](NearestIndex& to) { to.restore(state); });
      });
}

}  // namespace riffle::python
