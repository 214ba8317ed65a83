// Shapes: streams that wrap another stream and change what comes, in which order or how fast.
//
// They are written as one text, the innermost first:
//
//   NAME[:key=value,key=value],NAME[:...]      clips:length=64,size=32,limit:samples=10000
//
// A new shape begins where a name is followed by a colon, a comma or the end; a name followed by an
// equals sign is an option of the shape before it; anything else belongs to the value before it, so
// that permutation=3,1,4,2 is one value. %XX in values is decoded (%2C is a comma). `mix` takes an
// address as well: mix:folder:photos?order=time,share=0.2.
//
// A shape that passes the samples of the stream below on, one for one, without a look at their
// pictures, forwards divide(). One that gives a sample for each that it takes, though it may end
// sooner, forwards period().
//
// Every shape numbers what it gives from 0 (Sample::index), forwards stop() and skipped(), and
// keeps the contract of Stream: seek(position()) is exact, also for shapes around shapes. The same
// seed gives the same stream, whatever the number of threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Opens the stream that a shape wraps, at its beginning; a shape may call it more than once.
using StreamFactory = std::function<std::unique_ptr<Stream>()>;

// Returns the shapes of a text, innermost first. Throws Error if it cannot be parsed. Does not
// check the names of shapes and options.
std::vector<Uri> parse_shapes(const std::string& text);

// Returns the source with all shapes of the text around it. Throws Error for an unknown shape or
// option, naming the nearest valid one, before anything is opened.
std::unique_ptr<Stream> open_shapes(const StreamFactory& source, const std::string& shapes);

// What most shapes have in common: one stream below.
class Shape : public Stream {
 public:
  explicit Shape(std::unique_ptr<Stream> below) : below_(std::move(below)) {}

  void stop() override {
    stopped_ = true;
    below_->stop();
  }
  double unreachable_s() const override { return below_->unreachable_s(); }
  std::map<std::string, std::int64_t> skipped() const override { return below_->skipped(); }
  bool endless() const override { return below_->endless(); }

 protected:
  Stream& below() const { return *below_; }
  // Returns whether an end below may come from stop(), and so says nothing about the stream.
  bool stopped() const { return stopped_; }

 private:
  const std::unique_ptr<Stream> below_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace riffle
