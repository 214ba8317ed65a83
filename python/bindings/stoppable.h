// A stream and an encoder that end the work of whoever uses them: after Ctrl-C nobody waits for it,
// but it would fill memory, or keep the interpreter from exiting.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "riffle/model/encoder.h"
#include "riffle/stream/stream.h"

namespace riffle::python {

// Set from any thread.
using Stop = std::shared_ptr<std::atomic<bool>>;
inline Stop make_stop() { return std::make_shared<std::atomic<bool>>(false); }

// Thrown by the next use of what was stopped.
struct Interrupted {};

// Streams that never wait continue after their stop(); around one, this does not.
class StoppableStream : public Stream {
 public:
  StoppableStream(std::shared_ptr<Stream> below, Stop stop)
      : below_(std::move(below)), stop_(std::move(stop)) {}

  std::optional<Sample> next() override {
    if (*stop_) throw Interrupted();
    auto sample = below_->next();
    if (*stop_) throw Interrupted();
    return sample;
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }
  void stop() override { below_->stop(); }
  std::map<std::string, std::int64_t> skipped() const override { return below_->skipped(); }

 private:
  std::shared_ptr<Stream> below_;
  Stop stop_;
};

class StoppableEncoder : public Encoder {
 public:
  StoppableEncoder(const std::shared_ptr<Encoder>& below, Stop stop)
      : below_(register_module("below", below)), stop_(std::move(stop)) {}

  torch::Tensor encode(const torch::Tensor& pictures) override {
    if (*stop_) throw Interrupted();
    return below_->encode(pictures);
  }
  std::int64_t encoder_dim() const override { return below_->encoder_dim(); }

 private:
  std::shared_ptr<Encoder> below_;
  Stop stop_;
};

}  // namespace riffle::python
