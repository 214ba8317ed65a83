#include "riffle/train/learner.h"

#include <cmath>
#include <numeric>

#include "python/bindings/background.h"
#include "python/bindings/shared_buffer.h"
#include "python/bindings/stream_handle.h"

#include "riffle/model/encoder_weights.h"
#include "riffle/run/config.h"

namespace riffle::python {
namespace {

Config learning_config(const Settings& settings) {
  ConfigBuilder builder;
  for (const auto& [key, value] : settings) builder.set(key.bytes, value.bytes);
  return builder.build();
}

// A learner that works in the background, so that Ctrl-C is answered: what was under way is
// finished there, and the next call waits for it.
class LearnerHandle {
 public:
  LearnerHandle(std::shared_ptr<Stream> stream, const Config& config) {
    made_ = work_.run([stream = std::move(stream), config = config.learner] {
      auto made = std::make_shared<Made>();
      made->stream = stream;
      made->config = config;
      made->learner.emplace(config, *stream);
      return made;
    });
  }
  ~LearnerHandle() { stop(); }

  void stop() { made_->learner->stop(); }

  template <typename Call>
  auto use(Call call) {
    return work_.run([made = made_, call = std::move(call)] { return call(*made->learner); });
  }
  const LearnerConfig& config() const { return made_->config; }

 private:
  struct Made {
    std::shared_ptr<Stream> stream;
    LearnerConfig config;
    std::optional<Learner> learner;
  };
  std::shared_ptr<Made> made_;
  Background work_;
};

using OwnedLearner = Owned<LearnerHandle>;

// Makes so many updates, of which only the last is measured: reading a loss makes a GPU wait.
std::optional<std::map<std::string, double>> advance(const OwnedLearner& learner,
                                                     std::int64_t updates) {
  const auto report = learner->use([updates](Learner& of) {
    std::optional<UpdateReport> last;
    for (std::int64_t i = 1; i <= updates; ++i) {
      auto next = of.advance(/*measured=*/i == updates);
      if (!next) break;
      last = next;
    }
    if (last && std::isnan(last->loss)) of.measure(*last);
    return last;
  });
  if (!report) return std::nullopt;
  return std::map<std::string, double>{{"update", static_cast<double>(report->update)},
                                       {"samples_seen", static_cast<double>(report->samples_seen)},
                                       {"loss", report->loss},
                                       {"std", report->std},
                                       {"lr", report->lr},
                                       {"same_clip_pairs", report->same_clip_pairs}};
}

auto weights(const OwnedLearner& learner) {
  return learner->use([config = learner->config()](Learner& of) {
    const auto weights = encoder_weights(of.objective(), config.model, config.augment.size);
    return std::pair(weights.tensors, weights.metadata());
  });
}

// The network and its updates without stream and buffer.
class NetworkUpdates {
 public:
  explicit NetworkUpdates(const Config& config)
      : updater_(make_updater({.model = config.learner.model,
                               .augment = config.learner.augment,
                               .train = config.learner.train,
                               .picture_size = config.learner.stored_size(),
                               .seed = config.learner.seed,
                               .device = config.learner.device})) {}

  at::Tensor update(const at::Tensor& pictures, std::int64_t step, double lr) {
    Pictures rows{pictures, std::vector<std::int64_t>(static_cast<std::size_t>(pictures.size(0)))};
    std::iota(rows.indices.begin(), rows.indices.end(), 0);
    const py::gil_scoped_release release;
    return updater_->update(rows, step, lr, lr);
  }
  double loss() {
    const py::gil_scoped_release release;
    return updater_->outcome().loss;
  }

 private:
  std::unique_ptr<Updater> updater_;
};

}  // namespace

void bind_learner(py::module_& module) {
  py::class_<OwnedLearner>(module, "Learner")
      .def(py::init([](const OwnedStream& stream, const Settings& settings) {
        const Config config = learning_config(settings);
        return OwnedLearner("Learner",
                            std::make_shared<LearnerHandle>(stream->hand_over(), config));
      }))
      .def("advance", &advance)
      .def("stop", &OwnedLearner::stop)
      .def("close", &OwnedLearner::close)
      .def("update",
           [](const OwnedLearner& learner) {
             return learner->use([](Learner& of) { return of.update(); });
           })
      .def("skipped",
           [](const OwnedLearner& learner) {
             return learner->use([](Learner& of) { return of.skipped(); });
           })
      .def("weights", &weights)
      .def("save",
           [](const OwnedLearner& learner) {
             return learner->use([](Learner& of) {
               NamedTensors state = of.save();
               add_pictures(state, of.buffer());
               return state;
             });
           })
      .def("restore", [](const OwnedLearner& learner, NamedTensors state) {
        learner->use([state = std::move(state)](Learner& to) {
          to.restore(state);
          put_pictures(state, to.buffer());
        });
      });
  py::class_<NetworkUpdates>(module, "NetworkUpdates")
      .def(py::init(
          [](const Settings& settings) { return NetworkUpdates(learning_config(settings)); }))
      .def("update", &NetworkUpdates::update)
      .def("loss", &NetworkUpdates::loss);
}

}  // namespace riffle::python
