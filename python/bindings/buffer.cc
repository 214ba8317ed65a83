#include "python/bindings/pictures.h"
#include "python/bindings/shared_buffer.h"

#include "riffle/train/updater.h"

namespace riffle::python {
namespace {

constexpr const char* kPictures = "pictures";

OwnedBuffer make_buffer(const Settings& settings, std::int64_t batch, int size,
                        std::int64_t feature_dim, std::uint64_t seed, const Name& device) {
  const auto config = configured<BufferConfig>(settings);
  const py::gil_scoped_release release;
  return {"ReplayBuffer", std::make_shared<SharedBuffer>(std::make_shared<ReplayBuffer>(
                              config, batch, size, feature_dim, seed, open_device(device.bytes)))};
}

// What a list of attributes of the samples looks like in Python.
template <typename Member>
auto column(Member SlotInfo::*member) {
  return [member](const DrawnBatch& batch) {
    std::vector<Member> values;
    values.reserve(batch.samples.size());
    for (const SlotInfo& sample : batch.samples) values.push_back(sample.*member);
    return values;
  };
}

void insert(const OwnedBuffer& buffer, const at::Tensor& pictures,
            const std::optional<at::Tensor>& features, const std::vector<std::int64_t>& clips,
            const std::vector<Name>& labels) {
  buffer->use([=, inserted = buffer->inserted()](ReplayBuffer& to) {
    std::vector<Sample> samples(static_cast<std::size_t>(pictures.size(0)));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      samples[i].index = *inserted + i;
      if (!clips.empty()) samples[i].clip = clips[i];
      if (!labels.empty()) samples[i].label = labels[i].bytes;
    }
    to.insert(samples, pictures, [&](const Pictures&) { return features.value_or(at::Tensor()); });
    *inserted += samples.size();
  });
}

DrawnBatch sample(const OwnedBuffer& buffer, std::int64_t n, std::uint64_t seed,
                  std::uint64_t step) {
  return buffer->use_shortly([=](ReplayBuffer& from) {
    Random random(seed, Purpose("draw"), step);
    return drawn_batch(from, from.sample(n, random), static_cast<std::int64_t>(step));
  });
}

py::dict stats(const OwnedBuffer& buffer, bool nearest) {
  const auto stats = buffer->use([=](ReplayBuffer& of) { return of.stats(nearest); });
  py::dict result;
  result["size"] = stats.size;
  result["capacity"] = stats.capacity;
  result["mean_age"] = stats.mean_age;
  result["max_age"] = stats.max_age;
  result["mean_draws"] = stats.mean_draws;
  result["tracked_share"] = stats.tracked_share;
  result["distinct_clips"] = stats.distinct_clips;
  result["evictions"] = stats.evictions;
  result["nearest"] = stats.nearest;
  return result;
}

}  // namespace

DrawnBatch drawn_batch(const ReplayBuffer& buffer, Draw draw, std::int64_t update) {
  DrawnBatch batch{.pictures = gathered(buffer.pictures(draw.slots)),
                   .draw = std::move(draw),
                   .samples = {},
                   .update = update};
  batch.samples.reserve(batch.draw.slots.size());
  for (const Slot slot : batch.draw.slots) batch.samples.push_back(buffer.info(slot));
  return batch;
}

void add_pictures(NamedTensors& state, const ReplayBuffer& buffer) {
  state.emplace_back(kPictures, buffer.stored(buffer.live()).cpu());
}

void put_pictures(const NamedTensors& state, ReplayBuffer& buffer) {
  buffer.put_stored(buffer.live(), find_tensor(state, kPictures));
}

void bind_buffer(py::module_& module) {
  py::class_<DrawnBatch>(module, "Batch")
      .def_readonly("pictures", &DrawnBatch::pictures)
      .def_readonly("update", &DrawnBatch::update)
      .def_property_readonly("slots", [](const DrawnBatch& batch) { return batch.draw.slots; })
      .def_property_readonly("arrivals", column(&SlotInfo::arrival))
      .def_property_readonly("indices", column(&SlotInfo::index))
      .def_property_readonly("clips", column(&SlotInfo::clip))
      .def_property_readonly("labels", [](const DrawnBatch& batch) {
        return names_of(column(&SlotInfo::label)(batch));
      });

  const auto get = [](auto member) {
    return [member](const OwnedBuffer& buffer) {
      return buffer->use_shortly([member](ReplayBuffer& of) { return (of.*member)(); });
    };
  };
  py::class_<OwnedBuffer>(module, "ReplayBuffer")
      .def(py::init(&make_buffer))
      .def("insert", &insert)
      .def("sample", &sample)
      .def("track",
           [](const OwnedBuffer& buffer, const DrawnBatch& batch, const at::Tensor& features) {
             buffer->use_shortly([=](ReplayBuffer& to) { to.track(batch.draw, features); });
           })
      .def("pictures",
           [](const OwnedBuffer& buffer, const std::vector<Slot>& slots) {
             return buffer->use([=](ReplayBuffer& of) { return gathered(of.pictures(slots)); });
           })
      .def("live", get(&ReplayBuffer::live))
      .def("size", get(&ReplayBuffer::size))
      .def("capacity", get(&ReplayBuffer::capacity))
      .def("batch", get(&ReplayBuffer::batch))
      .def("picture_size", get(&ReplayBuffer::picture_size))
      .def("label_counts",
           [](const OwnedBuffer& buffer) {
             return buffer->use_shortly([](ReplayBuffer& of) {
               std::map<Name, std::int64_t> counts;
               for (const auto& [label, count] : of.label_counts()) counts[Name{label}] = count;
               return counts;
             });
           })
      .def("device",
           [](const OwnedBuffer& buffer) { return buffer->get()->picture_device().str(); })
      .def("stats", &stats)
      .def("save",
           [](const OwnedBuffer& buffer) {
             return buffer->use([](ReplayBuffer& of) {
               NamedTensors state = of.save();
               add_pictures(state, of);
               return state;
             });
           })
      .def("inserted",
           [](const OwnedBuffer& buffer) {
             return buffer->use(
                 [inserted = buffer->inserted()](ReplayBuffer&) { return *inserted; });
           })
      .def("restore",
           [](const OwnedBuffer& buffer, const NamedTensors& state, std::uint64_t inserted) {
             buffer->use([=, to_inserted = buffer->inserted()](ReplayBuffer& to) {
               to.restore(state);
               put_pictures(state, to);
               *to_inserted = inserted;
             });
           });
}

}  // namespace riffle::python
