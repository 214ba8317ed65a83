// The paper's formula for correlated pairs in a training batch, which a study shows beside what it
// measures.
#pragma once

#include "riffle/run/metrics_history.h"

namespace riffle {

// Returns, along a run, pair_correlation(n, p) for the n samples that the buffer held, or the batch
// where there is none. p, the probability that neighbours are of one clip, is what the buffer says:
// n samples of c clips, each clip in one piece, have n - c such neighbours among n - 1. That is the
// paper's p for a stretch of the stream (Conventional, FIFO) and its eta * p for what other
// policies have kept. Returns an empty curve if the metrics lack either.
MetricCurve expected_same_clip_pairs(const MetricsHistory& metrics);

}  // namespace riffle
