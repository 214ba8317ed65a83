#include "python/bindings/background.h"
#include "python/bindings/owned.h"
#include "python/bindings/stoppable.h"
#include "python/bindings/stream_handle.h"

#include "riffle/eval/probe.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/run/model_source.h"
#include "riffle/train/updater.h"

namespace riffle::python {
namespace {

using Weights = std::pair<NamedTensors, std::map<std::string, std::string>>;

Weights read_weights(const Name& from, const Name& checkpoint) {
  return Background::run_once(
      [=]() -> Weights {
        const ModelSource source = open_model(from.bytes, checkpoint.bytes);
        const EncoderWeights weights =
            encoder_weights(*source.objective, source.model, source.size);
        return {weights.tensors, weights.metadata()};
      },
      {});
}

// One of the features, and what is known of each row.
struct Embedded {
  std::vector<at::Tensor> features;
  std::vector<std::uint64_t> indices;
  std::vector<std::int64_t> clips;
  std::vector<std::string> labels;
  std::vector<std::string> keys;
};

py::tuple embed_stream(const Name& from, const Name& checkpoint, const OwnedStream& input,
                       std::int64_t samples, std::int64_t size, std::int64_t batch,
                       const Name& device) {
  const auto stream = input->hand_over();
  const Stop stop = make_stop();
  const Embedded embedded = Background::run_once(
      [=] {
        const EncoderSource source = open_encoder(from.bytes, checkpoint.bytes);
        source.encoder->to(open_device(device.bytes.empty() ? source.device : device.bytes));
        Embedded result;
        StoppableStream pictures(stream, stop);
        embed(*source.encoder, pictures, samples, source.picture_size(size), batch,
              [&](const EmbeddedBatch& rows) {
                result.features.push_back(rows.features.cpu());
                for (const Sample& row : rows.samples) {
                  result.indices.push_back(row.index);
                  result.clips.push_back(row.clip);
                  result.labels.push_back(row.label);
                  result.keys.push_back(row.key);
                }
              });
        return result;
      },
      [stream, stop] {
        *stop = true;
        stream->stop();
      });
  return py::make_tuple(embedded.features, embedded.indices, embedded.clips,
                        names_of(embedded.labels), names_of(embedded.keys));
}

py::dict probe_dict(const ProbeResult& result) {
  py::dict dict;
  dict["linear_top1"] = result.linear_top1;
  dict["linear_top5"] = result.linear_top5;
  dict["knn_top1"] = result.knn_top1;
  dict["standard_error"] = result.standard_error;
  dict["recipe"] = result.recipe;
  return dict;
}

py::dict probe_run(const Name& from, const Name& checkpoint, const OwnedStream& train,
                   const OwnedStream& val, const Name& recipe, std::int64_t samples,
                   std::int64_t size, const Name& device) {
  const auto train_stream = train->hand_over();
  const auto val_stream = val->hand_over();
  const Stop stop = make_stop();
  return probe_dict(Background::run_once(
      [=] {
        const LinearRecipe linear = linear_recipe(recipe.bytes);
        const ModelSource source = open_model(from.bytes, checkpoint.bytes);
        source.objective->to(open_device(device.bytes.empty() ? source.device : device.bytes));
        const EncoderInput input = source.picture_size(size);
        const auto collected = [&](const std::shared_ptr<Stream>& stream) {
          StoppableStream stoppable(stream, stop);
          return LabelledSet(collect(stoppable, samples, input.resize), input);
        };
        LabelledSet train_set = collected(train_stream);
        LabelledSet val_set = collected(val_stream);
        StoppableEncoder encoder(source.objective, stop);
        return probe(encoder, train_set, val_set, linear);
      },
      [train_stream, val_stream, stop] {
        *stop = true;
        train_stream->stop();
        val_stream->stop();
      }));
}

py::dict probe_features(const at::Tensor& train, const std::vector<Name>& train_labels,
                        const at::Tensor& val, const std::vector<Name>& val_labels,
                        const Name& recipe) {
  return probe_dict(Background::run_once(
      [=] {
        return probe(LabelledFeatures{train, texts_of(train_labels)},
                     LabelledFeatures{val, texts_of(val_labels)}, linear_recipe(recipe.bytes));
      },
      {}));
}

}  // namespace

void bind_encoder(py::module_& module) {
  module.def("read_weights", &read_weights);
  module.def("embed_stream", &embed_stream);
  module.def("probe_run", &probe_run);
  module.def("probe_features", &probe_features);
}

}  // namespace riffle::python
