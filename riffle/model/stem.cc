#include "riffle/model/stem.h"

#include <torch/types.h>

#include "riffle/augment/view_layout.h"
#include "riffle/base/text.h"
#include "riffle/model/weight_cast.h"

namespace riffle {
namespace {

constexpr std::int64_t kColors = 3;

// A weight of zeros for the channels that are always 0.
torch::Tensor with_channels(const torch::Tensor& weight, std::int64_t channels) {
  return at::constant_pad_nd(weight, {0, 0, 0, 0, 0, channels - weight.size(1)});
}

// [out, 3, 7, 7] for pixels to [out, 16, 4, 4] for cells of 2 x 2. A row and a column of zeros in
// front make it 8 x 8: cell i - 2 is then where the kernel of output i begins.
torch::Tensor folded(const torch::Tensor& weight) {
  const std::int64_t out = weight.size(0);
  const torch::Tensor even = at::constant_pad_nd(weight, {1, 0, 1, 0});
  const torch::Tensor cells = even.reshape({out, kColors, 4, 2, 4, 2})
                                  .permute({0, 3, 5, 1, 2, 4})
                                  .reshape({out, 4 * kColors, 4, 4});
  return with_channels(cells, kFoldedChannels);
}

}  // namespace

StemConv::StemConv(const Init& init, std::int64_t out, std::int64_t kernel, std::int64_t stride)
    : weight_(register_parameter("weight",
                                 init.kaiming_normal("weight", {out, kColors, kernel, kernel}))),
      kernel_(kernel),
      stride_(stride) {}

torch::Tensor StemConv::forward(const torch::Tensor& pictures) const {
  const torch::Tensor weight = in_type(weight_, pictures.scalar_type());
  const auto channels_last = [](const torch::Tensor& w) {
    return w.contiguous(torch::MemoryFormat::ChannelsLast);
  };
  switch (pictures.size(1)) {
    case kColors:
      return at::conv2d(pictures, weight, {}, stride_, kernel_ / 2);
    case kPaddedChannels:
      return at::conv2d(pictures, channels_last(with_channels(weight, kPaddedChannels)), {},
                        stride_, kernel_ / 2);
    case kFoldedChannels:
      if (kernel_ == 7 && stride_ == 2) {
        return at::conv2d(pictures, channels_last(folded(weight)));
      }
      break;
    default:
      break;
  }
  throw std::logic_error(cat("pictures of ", pictures.size(1), " channels have no layout for a ",
                             kernel_, "x", kernel_, " stem"));
}

}  // namespace riffle
