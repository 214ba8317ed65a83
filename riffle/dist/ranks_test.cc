// Run alone and under mpirun as several ranks.
#include "riffle/dist/ranks.h"

#include <cstdlib>
#include <numeric>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

class RanksTest : public testing::Test {
 protected:
  Ranks& ranks_ = ranks_of_process();
  const std::int64_t rank_ = ranks_.rank();
  const std::int64_t size_ = ranks_.size();
};

TEST_F(RanksTest, AreAllThatWereStarted) {
  EXPECT_EQ(ranks_.size(), launched_processes());
  EXPECT_EQ(ranks_.alone(), launched_processes() == 1);
  EXPECT_EQ(ranks_.first(), ranks_.rank() == 0);
  EXPECT_EQ(ranks_.local_size(), ranks_.size());
  EXPECT_EQ(ranks_.local_rank(), ranks_.rank());
}

TEST_F(RanksTest, AddUp) {
  const at::Tensor own = at::arange(5, at::kFloat) + rank_;
  const at::Tensor expected = size_ * at::arange(5, at::kFloat) + size_ * (size_ - 1) / 2;
  EXPECT_TRUE(ranks_.sum(own).equal(expected));
  EXPECT_TRUE(own.equal(at::arange(5, at::kFloat) + rank_)) << "what is added up stays as it was";
  EXPECT_TRUE(ranks_.sum(own.to(at::kDouble)).equal(expected.to(at::kDouble)));
  EXPECT_TRUE(ranks_.sum(own.to(at::kLong)).equal(expected.to(at::kLong)));
}

TEST_F(RanksTest, AddUpSeveralTensorsAtOnce) {
  const at::Tensor first = at::ones({1000});
  const at::Tensor second = at::ones({100000});
  auto begun = ranks_.begin_sum(first);
  auto after = ranks_.begin_sum(second);
  after->wait();
  while (!begun->done()) {
  }
  begun->wait();
  EXPECT_TRUE(first.eq(size_).all().item<bool>());
  EXPECT_TRUE(second.eq(size_).all().item<bool>());
}

TEST_F(RanksTest, AddUpAndAverageInPlace) {
  const at::Tensor vector = at::full({3}, rank_ + 1, at::kFloat);
  const at::Tensor matrix = at::full({2, 2}, 2 * rank_, at::kFloat);
  ranks_.add_up({vector, matrix});
  EXPECT_TRUE(vector.equal(at::full({3}, size_ * (size_ + 1) / 2, at::kFloat)));
  EXPECT_TRUE(matrix.equal(at::full({2, 2}, size_ * (size_ - 1), at::kFloat)));
  ranks_.average({vector, matrix});
  EXPECT_TRUE(vector.equal(at::full({3}, size_ * (size_ + 1) / 2, at::kFloat)));
  EXPECT_TRUE(matrix.equal(at::full({2, 2}, size_ * (size_ - 1), at::kFloat)));
  ranks_.average({});
}

TEST_F(RanksTest, GatherRowsInOrder) {
  const at::Tensor own = at::arange(6, at::kFloat).view({2, 3}) + 6 * rank_;
  const at::Tensor all = ranks_.gather(own);
  EXPECT_TRUE(all.equal(at::arange(6 * size_, at::kFloat).view({2 * size_, 3})));
  EXPECT_TRUE(ranks_.gather(own.t().contiguous().t()).equal(all)) << "however they lie in memory";
}

TEST_F(RanksTest, GatherBytesOfAnyLength) {
  const auto all = ranks_.gather_bytes(std::string(static_cast<std::size_t>(rank_), 'a'));
  ASSERT_EQ(std::ssize(all), size_);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], std::string(i, 'a'));
}

// Rank r has r rows, of value r.
TEST_F(RanksTest, GatherDifferentNumbersOfRows) {
  const at::Tensor own = at::full({rank_, 3}, rank_, at::kFloat);
  std::vector<at::Tensor> expected;
  for (std::int64_t other = 0; other < size_; ++other) {
    expected.push_back(at::full({other, 3}, other, at::kFloat));
  }
  EXPECT_TRUE(ranks_.gather_rows(own).equal(at::cat(expected)));
  // Whoever has none need not know what the others' are like.
  const at::Tensor last = at::ones({2, 5}, at::kDouble);
  const at::Tensor all = ranks_.gather_rows(rank_ == size_ - 1 ? last : at::Tensor());
  EXPECT_TRUE(all.equal(last));
  EXPECT_EQ(all.scalar_type(), at::kDouble);
  EXPECT_FALSE(ranks_.gather_rows(at::Tensor()).defined());
}

TEST_F(RanksTest, HaveEqualParts) {
  EXPECT_EQ(ranks_.part_of(6 * size_), 6);
  if (!ranks_.alone()) {
    EXPECT_THROW(ranks_.part_of(size_ + 1), std::logic_error);
  }
}

TEST_F(RanksTest, FillInTheirNumbers) {
  EXPECT_EQ(ranks_.fill_in("part={rank}/{ranks}&again={rank}"),
            cat("part=", rank_, '/', size_, "&again=", rank_));
  EXPECT_EQ(ranks_.fill_in("cuda:{local_rank}"), cat("cuda:", ranks_.local_rank()));
  EXPECT_EQ(ranks_.fill_in("cuda:1"), "cuda:1");
}

TEST_F(RanksTest, HearTheFirst) { EXPECT_EQ(ranks_.from_first(cat("of ", rank_)), "of 0"); }

TEST_F(RanksTest, LearnOfAnErrorOnOne) {
  EXPECT_EQ(ranks_.first_error(""), "");
  const std::string error = ranks_.first_error(rank_ == size_ - 1 ? "no such file" : "");
  EXPECT_EQ(error, ranks_.alone() ? "no such file" : cat("rank ", size_ - 1, ": no such file"));
}

// Rank r sends r + 1 rows to each, all of value 10 r + the receiver.
TEST_F(RanksTest, ExchangeRows) {
  std::vector<at::Tensor> rows;
  std::vector<std::int64_t> receive;
  for (std::int64_t other = 0; other < size_; ++other) {
    rows.push_back(at::full({rank_ + 1, 3}, 10 * rank_ + other, at::kByte));
    receive.push_back(other + 1);
  }
  const std::vector<std::int64_t> send(static_cast<std::size_t>(size_), rank_ + 1);
  const at::Tensor got = ranks_.exchange(at::cat(rows), send, receive);
  std::vector<at::Tensor> expected;
  for (std::int64_t other = 0; other < size_; ++other) {
    expected.push_back(at::full({other + 1, 3}, 10 * other + rank_, at::kByte));
  }
  EXPECT_TRUE(got.equal(at::cat(expected)));
}

TEST_F(RanksTest, KnowWhetherSomethingHoldsOnAny) {
  EXPECT_FALSE(ranks_.any(false));
  EXPECT_TRUE(ranks_.any(rank_ == size_ - 1));
}

TEST_F(RanksTest, NameTheRankThatDiffers) {
  ranks_.require_same(7, "weights", "mend them");
  if (ranks_.alone()) return;
  try {
    ranks_.require_same(rank_ == size_ - 1 ? 8 : 7, "weights", "mend them");
    FAIL() << "they differ";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(cat("weights of rank ", size_ - 1, " differ")));
    EXPECT_EQ(error.kind(), ErrorKind::failure);
  }
}

TEST_F(RanksTest, CountWhatTheyExchange) {
  const auto before = ranks_.bytes();
  ranks_.gather(at::zeros({4, 8}));
  EXPECT_EQ(ranks_.bytes() - before, ranks_.alone() ? 0 : 4 * 8 * 4);
}

TEST_F(RanksTest, RefuseMoreThanMpiCanCount) {
  if (ranks_.alone()) return;
  float one = 0;  // which nobody looks at
  const at::Tensor huge = at::from_blob(&one, {std::int64_t{1} << 31}, at::kFloat);
  EXPECT_THROW(ranks_.begin_sum(huge), Error);
}

TEST_F(RanksTest, WorkWhileTheyExchange) {
  const Ranks::Working working(ranks_);
  for (int i = 0; i < 100; ++i) ranks_.wait_for_all();
}

TEST(LaunchedProcesses, AreWhatTheLauncherSays) {
  EXPECT_EQ(launched_processes(), 1);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    ::setenv(name, "3", 1);
    EXPECT_EQ(launched_processes(), 3) << name;
    ::setenv(name, "1", 1);
    EXPECT_EQ(launched_processes(), 1) << name;
    ::unsetenv(name);
  }
}

// As mpirun does within a step of Slurm, and a step of one task within a job of many.
TEST(LaunchedProcesses, AreThoseOfTheLauncherThatStartedThis) {
  ::setenv("SLURM_STEP_NUM_TASKS", "8", 1);
  ::setenv("SLURM_PROCID", "5", 1);
  EXPECT_EQ(launched_processes(), 8);
  EXPECT_FALSE(is_first_process());
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_EQ(launched_processes(), 2);
  EXPECT_TRUE(is_first_process());
  for (const auto& name : launcher_variables()) ::unsetenv(name.c_str());
  EXPECT_EQ(launched_processes(), 1);
  EXPECT_TRUE(is_first_process());
}

}  // namespace
}  // namespace riffle
