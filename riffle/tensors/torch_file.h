// Tensors of a file that PyTorch's torch.save() wrote: a state dict, or a checkpoint that holds
// one.
//
// Such a file is a program for Python's unpickler. Nothing of it is run here: of what it names,
// only dictionaries, lists, tuples, numbers, texts and tensors are understood, and anything else is
// passed over. Reads the zip format (PyTorch 1.6 and later) and the one before it.
#pragma once

#include <filesystem>

#include "riffle/tensors/named_tensors.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {

// Returns the tensors of the outermost dictionary by name, in its order; if it has none, those of
// the dictionary in it that is called state_dict, model or teacher. A "module." that all names
// begin with is left out. Throws Error, naming the file and what is wrong with it, if it is not
// such a file, is damaged, or has no tensors there.
NamedTensors read_torch_file(const std::filesystem::path& path);

// Returns the content of a safetensors file or of one of torch.save(), told apart by how it begins.
// Throws Error as their readers do.
Safetensors read_tensor_file(const std::filesystem::path& path);

}  // namespace riffle
