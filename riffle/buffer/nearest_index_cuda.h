// The GPU's part of the nearest-neighbour index, as plain functions that queue kernels on a stream.
//
// They hold no state and allocate nothing; every pointer is to the device. nearest_index_gpu.cc
// calls them in the order that docs/minred.md describes. Each returns what cudaGetLastError() says
// after its launches.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "riffle/buffer/nearest_index_limits.h"

namespace riffle::nearest_index_cuda {

enum class Stored : int { float32, float16, bfloat16 };

constexpr int kTile = 256;    // rows whose smallest value is kept as one number
constexpr int kPart = 4096;   // columns of a product that one block of threads looks through
constexpr int kRescans = 16;  // rows looked at again in one go
constexpr int kUnweighted = -1;

// Words that kernels leave for one another and for the host, in one array of ints; the rows taken
// follow at kTaken, kTakenWords for each.
enum Word : int {
  kCount,      // rows taken by the last selection
  kBlocked,    // the row that must be looked at again before the selection can continue, or -1
  kRefused,    // a slot whose feature was refused and not yet reported, or -1
  kBadRow,     // the first bad row of the write under way; large: none
  kUncertain,  // rows found by freshen() that should be looked at again
  kThreshold,  // the largest key taken lately, unsigned: who is below may be next
  kRounding,   // the largest rounding error seen, as the bits of a float
  kRescanned,  // rows looked at again, in all
  kExamined,   // candidates looked at while removing, in all
  kWords = 16,
  kTaken = kWords,
};
// Of each row taken: its slot, that of the row of its pair that stayed, and their distance.
constexpr int kTakenWords = 3;

// The index, as kernels see it. Lists as in NearestIndex::Lists.
struct View {
  int slots;
  int dim;
  int stride;  // numbers from one row to the next: dim rounded up to 8, the rest zero
  int neighbours;
  Stored type;
  bool newer_leaves;
  int quarters;       // of the weights' exponent; kUnweighted: rows have no weights
  bool draws_stayer;  // chance decides who stays, in proportion to the weights
  double weight_limit;
  double reach;         // MergeRule::key_reach()
  float inverse_reach;  // MergeRule::inverse_reach()
  double rounding;      // what a product may be wrong by
  void* rows;
  double* inverse_norms;
  float* scales;  // inverse norms; NaN where there is no row, or one that waits for its scan
  unsigned long long* changed;
  unsigned long long* ages;
  // Both null without weights.
  double* weights;
  float* inverse_weights;
  int* list_slots;
  unsigned* list_keys;
  unsigned* bound_key;
  unsigned long long* bound_change;
  unsigned* values;       // of each row: no pair that it owns comes before this key
  unsigned* tile_keys;    // the smallest value of each tile of rows
  int* tile_slots;        // the rows with those values
  int* uncertain;         // [kRescans]
  unsigned* rescan_keys;  // [kRescans, slots]
  int* words;
};

// New rows from features [count, dim]; `fresh` is scratch of the same size. Either all are written
// or, when one is bad, none, and words[kRefused] is its slot. Row r becomes change first + r.
// `weights` is null without weights.
cudaError_t write_rows(const View& view, const float* features, const long long* slots,
                       const unsigned long long* ages, const double* weights, int count,
                       double momentum, unsigned long long first, float* fresh,
                       cudaStream_t stream);
cudaError_t forget_rows(const View& view, const long long* slots, int count, cudaStream_t stream);
// Inverse norms, scales and inverse weights of all rows, after they were put in place from outside.
cudaError_t measure_rows(const View& view, cudaStream_t stream);

// One over the lengths of these rows, as float, NaN up to `padded`; and one over their weights, 1
// without weights and up to `padded`.
cudaError_t gather_scales(const View& view, const int* slots, int count, int padded, float* scales,
                          float* inverse_weights, cudaStream_t stream);
// The scales of rows that have had their scan.
cudaError_t show_rows(const View& view, const int* slots, int count, cudaStream_t stream);

// The products of some changed rows with other rows. Column c is slot `first_slot + c`, or
// column_slots[c] where that is given; row r sees only columns below first_row_columns + r.
struct Block {
  const float* products;
  int rows;
  int columns;  // a multiple of 4, also the products' leading dimension
  const int* row_slots;
  // Of the columns.
  const float* scales;
  const float* inverse_weights;
  int first_slot;
  const int* column_slots;
  long long first_row_columns;
};
// What was found in such blocks. A similarity is product * scale of the column; with weights it is
// minus the least that merging the two may cost (merge_cost.h).
struct Found {
  float* similarities;  // [rows, parts, neighbours], -infinity: none
  int* slots;
  int parts;
};
// For each part of kPart columns, the largest similarities of each row, into found[r][first_part +
// part][..].
cudaError_t find_nearest(const View& view, const Block& block, const Found& found, int first_part,
                         cudaStream_t stream);
// The lists and bounds of changed rows, from what was found: nearest distances in float64, the rest
// at least as far as the last of them seemed, less the rounding.
cudaError_t refine_rows(const View& view, const int* changed_rows, int rows, const Found& found,
                        cudaStream_t stream);

// Takes up to `count` rows out, into words[kTaken...]: brings the values up to date, looks again in
// float64 at rows whose lists are used up and that may be next (`blocked` first, unless -1), and
// removes one row after the other until all are found, a row blocks the way, or no pair is left.
cudaError_t select_rows(const View& view, int count, int blocked, cudaStream_t stream);

}  // namespace riffle::nearest_index_cuda
