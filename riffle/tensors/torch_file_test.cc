#include "riffle/tensors/torch_file.h"

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/random.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Files by torch.save() itself, and one that would do harm if it were run.
constexpr const char* kMakeFiles = R"(
import argparse, collections, os, pickle, sys, torch
class Harm:
    def __reduce__(self):
        return os.system, ("touch harmed",)
torch.manual_seed(1)
base = torch.arange(24.).reshape(4, 6)
state = collections.OrderedDict([
    ("weight", base), ("turned", base.t()), ("row", base[2]), ("half", torch.ones(3, dtype=torch.float16) * 1.5),
    ("bfloat", torch.ones(2, dtype=torch.bfloat16) * 3), ("count", torch.tensor(7)), ("none", torch.empty(0, 3)),
    ("parameter", torch.nn.Parameter(torch.full((2, 2), 2.5))), ("flags", torch.tensor([True, False]))])
for name, new in (("new.pth", True), ("old.pth", False)):
    torch.save(state, name, _use_new_zipfile_serialization=new)
torch.save(torch.nn.Linear(3, 2).state_dict(), "linear.pth")
torch.save({"epoch": 3, "loss": 0.5, "args": argparse.Namespace(lr=1), "harm": Harm(),
            "optimizer": {"state": {0: {"momentum": base}}},
            "state_dict": {"module.a": base, "module.b": torch.ones(2)}}, "checkpoint.pth")
torch.save([1, 2, 3], "list.pth")
many = torch.zeros(1000)
torch.save({str(i): many for i in range(9)}, "shared.pth")
torch.save({str(i): many[::999] for i in range(9)}, "sparse.pth")
torch.save({"words": "only"}, "words.pth")
)";

// Made once for all tests: Python takes seconds to load torch.
struct SavedFiles : TempFolder {
  SavedFiles() {
    write_atomically(folder_ / "make.py", kMakeFiles);
    const std::string command =
        cat("cd '", folder_.string(), "' && LD_PRELOAD= '", RIFFLE_PYTHON, "' make.py 2>/dev/null");
    complete = std::system(command.c_str()) == 0;
  }
  void TestBody() override {}

  using TempFolder::folder_;
  bool complete = false;
};

class TorchFileTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { files_ = std::make_unique<SavedFiles>(); }
  static void TearDownTestSuite() { files_.reset(); }
  void SetUp() override {
    if (!files_->complete) GTEST_SKIP() << "needs torch in " << RIFFLE_PYTHON << " (scripts/setup)";
  }
  std::string refusal(const std::string& name) const {
    try {
      read_torch_file(folder_ / name);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  inline static std::unique_ptr<SavedFiles> files_;

 protected:
  const std::filesystem::path folder_ = files_->folder_;
};

TEST_F(TorchFileTest, BothFormatsGiveTheTensorsThatWereSaved) {
  for (const char* name : {"new.pth", "old.pth"}) {
    SCOPED_TRACE(name);
    const NamedTensors tensors = read_torch_file(folder_ / name);
    std::vector<std::string> names;
    for (const auto& [key, tensor] : tensors) names.push_back(key);
    EXPECT_THAT(names, ElementsAre("weight", "turned", "row", "half", "bfloat", "count", "none",
                                   "parameter", "flags"));
    const at::Tensor base = torch::arange(24, torch::kFloat32).reshape({4, 6});
    EXPECT_TRUE(find_tensor(tensors, "weight").equal(base));
    EXPECT_TRUE(find_tensor(tensors, "turned").equal(base.t()));
    EXPECT_TRUE(find_tensor(tensors, "row").equal(base[2]));
    EXPECT_TRUE(find_tensor(tensors, "half").equal(torch::full({3}, 1.5, torch::kFloat16)));
    EXPECT_TRUE(find_tensor(tensors, "bfloat").equal(torch::full({2}, 3.0, torch::kBFloat16)));
    EXPECT_EQ(find_tensor(tensors, "count").item<std::int64_t>(), 7);
    EXPECT_EQ(find_tensor(tensors, "none").sizes(), at::IntArrayRef({0, 3}));
    EXPECT_TRUE(find_tensor(tensors, "parameter").equal(torch::full({2, 2}, 2.5)));
    EXPECT_TRUE(find_tensor(tensors, "flags").equal(torch::tensor({true, false})));
    EXPECT_EQ(read_tensor_file(folder_ / name).tensors.size(), tensors.size());
  }
  EXPECT_EQ(read_torch_file(folder_ / "linear.pth").size(), 2u);
}

TEST_F(TorchFileTest, ACheckpointGivesItsStateDictAndNothingInItIsRun) {
  const NamedTensors tensors = read_torch_file(folder_ / "checkpoint.pth");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "a");
  EXPECT_EQ(tensors[1].first, "b");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "harmed"));
}

TEST_F(TorchFileTest, WhatHasNoTensorsByNameIsRefused) {
  EXPECT_THAT(refusal("list.pth"), HasSubstr("list.pth: it holds no dictionary"));
  EXPECT_THAT(refusal("words.pth"), HasSubstr("no tensors by name"));
  write_atomically(folder_ / "text.pth", "text");
  EXPECT_THAT(refusal("text.pth"), HasSubstr("not written by torch.save"));
}

TEST_F(TorchFileTest, ValuesAreNotCopiedMuchMoreOftenThanTheFileHasThem) {
  EXPECT_THAT(refusal("shared.pth"), HasSubstr("share their values too often"));
  EXPECT_THAT(refusal("sparse.pth"), HasSubstr("share their values too often"));
}

TEST_F(TorchFileTest, WhatIsDamagedOrCutOffIsRefusedOrRead) {
  for (const char* name : {"new.pth", "old.pth", "checkpoint.pth"}) {
    const auto whole = read_bytes(folder_ / name);
    int refused = 0;
    for (std::uint64_t trial = 0; trial < 400; ++trial) {
      Random random(1, Purpose("torch file"), trial);
      auto bytes = whole;
      if (random.chance(0.3f)) bytes.resize(random.below(bytes.size()));
      for (int i = 0; i < 3 && !bytes.empty(); ++i) {
        bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
      }
      write_atomically(folder_ / "damaged.pth", bytes);
      if (!refusal("damaged.pth").empty()) ++refused;
    }
    EXPECT_GT(refused, 100) << name;
  }
}

}  // namespace
}  // namespace riffle
