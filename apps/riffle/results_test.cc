// What a run leaves for other tools: exports, features, pages, pictures.

#include <cstring>
#include <fstream>

#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

namespace riffle {
namespace {

using testing::StartsWith;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string tensor_bytes(const fs::path& path, const std::string& name) {
  const std::string file = content(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  const auto offsets = header.at(name).at("data_offsets");
  const std::size_t begin = offsets[0];
  return file.substr(sizeof length + length + begin, offsets[1].get<std::size_t>() - begin);
}

class ResultsTest : public ProgramTest {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const auto outcome = riffle(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << arguments << '\n' << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }
  void train(const std::string& run, const std::string& more = "") const {
    const auto outcome = riffle("-q train --run " + run + ' ' + kTiny + more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
};

TEST_F(ResultsTest, ExportedWeightsStartAnotherRunAndAreProbedAndEmbeddedAsTheRunIs) {
  train("run");
  EXPECT_EQ(json_of("export run --out weights.safetensors")["architecture"],
            "resnet10, stem stride2, width 4");
  EXPECT_GT(json_of("export run --format onnx --out model.onnx")["bytes"], 10000);

  const std::string probe =
      " --train 'synthetic:?size=16&frames=1&seed=7&samples=100'"
      " --val 'synthetic:?size=16&frames=1&seed=8&samples=50'";
  const auto of_run = json_of("probe run" + probe);
  const auto of_weights = json_of("probe weights.safetensors" + probe);
  EXPECT_EQ(of_run["linear_top1"], of_weights["linear_top1"]);
  EXPECT_EQ(of_run["knn_top1"], of_weights["knn_top1"]);

  const std::string input = " --input 'synthetic:?size=16&seed=3' --samples 70 --batch 32";
  EXPECT_EQ(json_of("embed run --out a.npy" + input)["samples"], 70);
  EXPECT_EQ(json_of("embed weights.safetensors --out b.npy" + input)["features"], 32);
  EXPECT_EQ(content(folder_ / "a.npy"), content(folder_ / "b.npy"));
  EXPECT_EQ(content(folder_ / "a.csv"), content(folder_ / "b.csv"));

  // With next to no learning rate a run leaves the weights that it started from.
  train("again", "--init weights.safetensors --lr 1e-30");
  json_of("export again --out again.safetensors");
  const char* name = "layer3.0.conv2.weight";
  EXPECT_EQ(tensor_bytes(folder_ / "again.safetensors", name),
            tensor_bytes(folder_ / "weights.safetensors", name));
  fs::remove(folder_ / "weights.safetensors");
  EXPECT_EQ(riffle("resume again --max-updates 22").exit_code, 0)
      << "it has weights of its own now";
  json_of("embed again --out c.npy" + input);
  json_of("probe again --trained-only" + probe);
  expect_refused("probe again" + probe, "model.init=weights.safetensors");

  expect_refused("train --run r --init absent.safetensors " + kTiny, "absent.safetensors");
  expect_refused("train --run r --init again.safetensors " + kTiny + "--set model.width=8",
                 "--width 4");
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(ResultsTest, ATransformerIsTrainedResumedExportedAndProbed) {
  std::string tiny = kTiny;
  tiny.replace(tiny.find("resnet10"), 8, "vit-s");
  ASSERT_EQ(riffle("-q train --run vit " + tiny).exit_code, 0);
  EXPECT_EQ(riffle("resume vit --max-updates 22").exit_code, 0);
  EXPECT_EQ(json_of("export vit --out vit.safetensors")["features"], 24);
  expect_refused("export vit --out vit.onnx", "ResNets");
  tiny.replace(tiny.find("--size 16"), 9, "--size 20");
  expect_refused("train --run r " + tiny, "patches of 8 px");
  const std::string sets =
      " --train 'synthetic:?frames=1&size=16&classes=3&samples=40' --val "
      "'synthetic:?frames=1&seed=2&size=16&classes=3&samples=20'";
  const auto of_run = json_of("probe vit" + sets);
  const auto of_file = json_of("probe vit.safetensors" + sets);
  EXPECT_EQ(of_run["knn_top1"], of_file["knn_top1"]);
}

TEST_F(ResultsTest, TheEndingOfAFileSaysItsFormat) {
  train("run");
  EXPECT_EQ(json_of("export run --out a.onnx")["format"], "onnx");
  EXPECT_EQ(json_of("export run --out a.safetensors")["format"], "safetensors");
  EXPECT_EQ(json_of("export run --out weights")["format"], "safetensors");
  expect_refused("export run --format onnx --out b.safetensors", "contradicts");
  expect_refused("export run --format safetensors --out b.pt",
                 "the ending .pt is of another format");
  EXPECT_EQ(json_of("export run --format safetensors --out weights.v2")["format"], "safetensors");
  EXPECT_FALSE(fs::exists(folder_ / "b.pt"));
  expect_refused("export run --out b.pt", "riffle writes .safetensors and .onnx files");
}

TEST_F(ResultsTest, ACheckpointIsGivenByItsNameOrByAFileOfIt) {
  train("run", "--set checkpoint.every=10");
  const std::string first = "run/checkpoints/update-000000010";
  for (const std::string& given :
       {std::string("update-000000010"), first + ".json", first + ".safetensors"}) {
    EXPECT_EQ(json_of("export run --out weights --checkpoint " + given)["checkpoint"],
              first + ".safetensors");
    EXPECT_EQ(json_of("buffer run --checkpoint " + given)["checkpoint"], "update-000000010");
  }
  expect_refused("export run --out weights --checkpoint update-11",
                 "there are: update-000000010, update-000000020");
  // That of another run would be shown, or measured, as this one's.
  train("other");
  for (const std::string command :
       {"buffer run", "export run --out weights",
        "probe run --train 'synthetic:?samples=9' --val 'synthetic:?samples=9'"}) {
    expect_refused(command + " --checkpoint other/checkpoints/update-000000020.safetensors",
                   "is not a checkpoint of run");
  }
}

TEST_F(ResultsTest, WhatCannotBeExportedOrEmbeddedIsRefused) {
  train("run");
  expect_refused("export run --format pickle --out x", "pickle");
  expect_refused("export absent --out x", "absent");
  expect_refused("export run", "--out");
  expect_refused("embed run --input synthetic: --samples 3 --out x.txt", ".npy or .safetensors");
  expect_refused("embed run --input synthetc: --samples 3 --out x.npy", "synthetc");
  expect_refused("embed run --input synthetic: --samples 3 --out x.npy --device tpu", "tpu");
  expect_refused("embed absent.safetensors --input synthetic: --out x.npy", "absent.safetensors");
  expect_refused("report run absent", "absent");
  expect_refused("buffer absent", "absent");
  expect_refused("buffer run --checkpoint update-7", "there are: update-000000020");
  expect_refused("config run --defaults", "not both");
  expect_refused("completion fish", "fish");
  EXPECT_FALSE(fs::exists(folder_ / "x.npy"));
}

TEST_F(ResultsTest, AReportComparesRunsAndNamesTheKeysInWhichTheyDiffer) {
  train("one", "--set metrics.every=1");
  train("two", "--buffer fifo --set metrics.every=1");
  const auto result = json_of("report one two");
  EXPECT_EQ(result["report"], "report.html");
  const std::string page = content(folder_ / "report.html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("buffer.policy"));
  EXPECT_THAT(page, HasSubstr("Keys in which the runs differ"));
  EXPECT_THAT(page, HasSubstr("Collapse gauge"));
  EXPECT_THAT(page, HasSubstr("Speed of training"));
  EXPECT_EQ(json_of("report two")["report"], "two/report.html");
  EXPECT_TRUE(fs::exists(folder_ / "two/report.html"));
  const auto is_events = [](const auto& file) {
    return file.path().filename().string().starts_with("events.out.tfevents.");
  };
  EXPECT_EQ(std::count_if(fs::directory_iterator(folder_ / "one"), {}, is_events), 1);
}

TEST_F(ResultsTest, ABufferIsShownAndItsLeastRedundantPicturesAreExported) {
  for (const std::string policy : {"minred", "reservoir", "merge"}) {
    train(policy, "--buffer " + policy);
    const auto result = json_of("buffer " + policy + " --shown 5 --count 7 --export out_" + policy);
    EXPECT_EQ(result["samples"], 32);
    EXPECT_EQ(result["exported"], 7);
    EXPECT_GE(result["nearest"]["100%"], result["nearest"]["50%"]);
    EXPECT_EQ(result["weight"]["0%"], 1) << "nobody has stood for less than itself";
    EXPECT_EQ(result["weight"]["100%"] > 1, policy == "merge");
    EXPECT_THAT(content(folder_ / policy / "buffer.html"), HasSubstr("The least redundant"));
    const std::string index = content(folder_ / ("out_" + policy) / "index.csv");
    EXPECT_THAT(
        index,
        StartsWith(
            "file,index,arrival,time,clip,label,draws,nearest,weight,key,original\n0000000.jpg,"));
    EXPECT_EQ(std::count(index.begin(), index.end(), '\n'), 8);
    EXPECT_THAT(index, HasSubstr(" frame ")) << "the keys of the stream";
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / ("out_" + policy)), {}), 8);
  }
  expect_refused("buffer minred --export out_minred", "another folder");
  const auto traced = json_of("buffer merge --count 7 --export traced --originals");
  EXPECT_EQ(traced["originals"], 7) << "the embedded stream gives the same pictures again";
  EXPECT_THAT(content(folder_ / "traced/index.csv"), HasSubstr(" frame "));
}

TEST_F(ResultsTest, ConfigGivesMeaningAndValueOfEveryKeyAsJsonToo) {
  train("run");
  const auto defaults = json_of("config --defaults");
  const auto used = json_of("config run");
  EXPECT_EQ(defaults["train.batch"]["value"], "256");
  EXPECT_EQ(used["train.batch"]["value"], "8");
  EXPECT_NE(used["train.batch"]["meaning"], "");
  EXPECT_THAT(used["buffer.policy"]["choices"].dump(), HasSubstr("minred"));
}

// What bash offers for the words typed so far.
std::string bash_offers(const std::string& words, std::size_t at) {
  return "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
         "; _riffle; echo \"${COMPREPLY[*]}\"\n";
}

TEST_F(ResultsTest, BashCompletesCommandsAndOptions) {
  const auto script = riffle("completion bash");
  ASSERT_EQ(script.exit_code, 0);
  std::ofstream(folder_ / "try.sh")
      << script.out << bash_offers("riffle ex", 1) << bash_offers("riffle bench m", 2)
      << bash_offers("riffle train --stream x --max-u", 4) << bash_offers("riffle probe run --b", 3)
      << bash_offers("riffle watch --w", 2);
  FILE* pipe = popen(("bash '" + (folder_ / "try.sh").string() + "'").c_str(), "r");
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out.push_back(static_cast<char>(c));
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(out, "export\nminred\n--max-updates\n\n\n") << "--background is not for users";
}

TEST_F(ResultsTest, ZshTakesItsCompletionScript) {
  const auto script = riffle("completion zsh");
  ASSERT_EQ(script.exit_code, 0);
  EXPECT_THAT(script.out, StartsWith("#compdef riffle\n"));
  EXPECT_THAT(script.out, HasSubstr("'export:The encoder as a file that other tools open'"));
  EXPECT_THAT(script.out, HasSubstr("'--trained-only:"));
  for (const char* hidden : {"--background", "--with-input"}) {
    EXPECT_THAT(script.out, testing::Not(HasSubstr(hidden)));
  }
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  std::ofstream(folder_ / "_riffle") << script.out;
  EXPECT_EQ(std::system(("zsh -n '" + (folder_ / "_riffle").string() + "'").c_str()), 0);
}

}  // namespace
}  // namespace riffle
