// An encoder as an ONNX model, for ONNX Runtime and other programs that read it.
//
// Input "pictures", float [batch, 3, height, width], RGB in [0, 1] less the mean over the std that
// the model's metadata says; output "features", float [batch, features]. Batch, height and width
// are free. Batch norm (with running statistics) is folded into the convolutions, so features agree
// with the encoder's up to rounding. Operators of opset 17.
#pragma once

#include <filesystem>
#include <string>

#include "riffle/model/encoder_weights.h"

namespace riffle {

// Returns the bytes of the model. Throws Error if the weights do not fit their architecture.
std::string onnx_model(const EncoderWeights& weights);

// Replaces `path` in one step. Throws Error if it cannot be written.
void write_onnx(const std::filesystem::path& path, const EncoderWeights& weights);

}  // namespace riffle
