#include "python/bindings/background.h"
#include "python/bindings/pictures.h"
#include "python/bindings/shared_buffer.h"
#include "python/bindings/stream_handle.h"

#include "riffle/train/replay.h"

namespace riffle::python {
namespace {

// A stream read ahead into a buffer, and draws from it.
class Loader {
 public:
  Loader(std::shared_ptr<Stream> stream, std::shared_ptr<SharedBuffer> buffer,
         const TrainConfig& train, std::uint64_t seed, py::object features_of)
      : buffer_(std::move(buffer)),
        state_(std::make_shared<State>(std::move(stream), buffer_->get(), train, seed,
                                       std::move(features_of))) {}
  ~Loader() { stop(); }

  // Ctrl-C loses nothing: the batch that was awaited is the next one returned.
  std::optional<DrawnBatch> next() {
    std::optional<Drawn> drawn;
    while (!drawn) {
      buffer_->use([state = state_](ReplayBuffer& buffer) {
        if (state->drawn.is_there()) return;
        const std::int64_t update = state->replay.draws();
        auto draw = state->replay.next();
        state->drawn.put(draw ? Drawn(drawn_batch(buffer, std::move(*draw), update))
                              : std::nullopt);
      });
      drawn = state_->drawn.take();  // nothing if another thread was faster
    }
    return std::move(*drawn);
  }

  void stop() { state_->replay.stop(); }

  NamedTensors save() {
    return buffer_->use([state = state_](ReplayBuffer& buffer) {
      LearnerState saved;
      state->replay.save(saved);
      NamedTensors tensors = saved.tensors();
      add_pictures(tensors, buffer);
      return tensors;
    });
  }

  void restore(const NamedTensors& tensors) {
    buffer_->use([state = state_, tensors](ReplayBuffer& buffer) {
      state->replay.restore(LearnerState::read(tensors));
      put_pictures(tensors, buffer);
    });
  }

  template <typename Result>
  auto get(Result (Replay::*member)() const) {
    return buffer_->use_shortly(
        [state = state_, member](ReplayBuffer&) { return (state->replay.*member)(); });
  }

 private:
  using Drawn = std::optional<DrawnBatch>;  // nothing: the stream has ended

  struct State {
    State(std::shared_ptr<Stream> source, std::shared_ptr<ReplayBuffer> into,
          const TrainConfig& train, std::uint64_t seed, py::object function)
        : stream(std::move(source)),
          buffer(std::move(into)),
          features_of(std::move(function)),
          replay(train, seed, *stream, *buffer,
                 [this](const Pictures& pictures) { return arrival_features(pictures); }) {}
    ~State() {
      const py::gil_scoped_acquire acquire;
      features_of = {};
    }

    at::Tensor arrival_features(const Pictures& pictures) const {
      const py::gil_scoped_acquire acquire;
      if (features_of.is_none()) return {};
      return features_of(gathered(pictures)).cast<at::Tensor>();
    }

    const std::shared_ptr<Stream> stream;
    const std::shared_ptr<ReplayBuffer> buffer;
    py::object features_of;
    Pending<Drawn> drawn;
    Replay replay;
  };

  std::shared_ptr<SharedBuffer> buffer_;
  std::shared_ptr<State> state_;
};

using OwnedLoader = Owned<Loader>;

OwnedLoader make_loader(const OwnedStream& stream, const OwnedBuffer& buffer,
                        const Settings& settings, std::uint64_t seed,
                        const py::object& features_of) {
  const auto train = configured<TrainConfig>(settings);
  train.validate();
  return {"ReplayLoader",
          std::make_shared<Loader>(stream->hand_over(), buffer.get(), train, seed, features_of)};
}

}  // namespace

void bind_loader(py::module_& module) {
  const auto get = [](auto member) {
    return [member](const OwnedLoader& loader) { return loader->get(member); };
  };
  py::class_<OwnedLoader>(module, "ReplayLoader")
      .def(py::init(&make_loader))
      .def("next", [](const OwnedLoader& loader) { return loader->next(); })
      .def("stop", &OwnedLoader::stop)
      .def("close", &OwnedLoader::close)
      .def("draws", get(&Replay::draws))
      .def("samples_seen", get(&Replay::samples_seen))
      .def("batches_taken", get(&Replay::batches_taken))
      .def("skipped", get(&Replay::skipped))
      .def("position",
           [](const OwnedLoader& loader) { return Name{loader->get(&Replay::position)}; })
      .def("save", [](const OwnedLoader& loader) { return loader->save(); })
      .def("restore",
           [](const OwnedLoader& loader, const NamedTensors& state) { loader->restore(state); });
}

}  // namespace riffle::python
