#include "python/bindings/pictures.h"

#include <algorithm>
#include <memory>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle::python {

at::Tensor tensor_of(Picture picture) {
  const auto kept = std::make_shared<Picture>(std::move(picture));
  return at::from_blob(
      kept->rgb.data(), {kept->height, kept->width, 3}, [kept](void*) {}, at::kByte);
}

Picture picture_of(const at::Tensor& tensor) {
  if (tensor.dim() != 3 || tensor.size(2) != 3 || tensor.scalar_type() != at::kByte ||
      !tensor.is_cpu() || !tensor.is_contiguous() || tensor.numel() == 0) {
    throw Error(cat("a picture is not [height, width, 3] bytes but ", tensor.sizes(), " of ",
                    tensor.scalar_type()));
  }
  Picture picture(static_cast<int>(tensor.size(1)), static_cast<int>(tensor.size(0)));
  std::copy_n(tensor.const_data_ptr<std::uint8_t>(), picture.rgb.size(), picture.rgb.begin());
  return picture;
}

at::Tensor gathered(const Pictures& pictures) {
  const auto rows = integers_tensor(pictures.indices).to(pictures.tensor.device());
  auto sizes = pictures.tensor.sizes().vec();
  sizes[0] = rows.numel();
  return wide_rows(pictures.tensor).index_select(0, rows).view(at::kByte).view(sizes);
}

}  // namespace riffle::python
