// One page about what a buffer holds: contact sheets, clips and labels over time, how redundant the
// samples are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "riffle/report/html_page.h"
#include "riffle/run/saved_buffer.h"

namespace riffle {

// Returns at most `count` of the places 0 ... size - 1, evenly spaced.
std::vector<std::size_t> spaced(std::size_t size, std::size_t count);

// Returns the places in samples() of those whose nearest distance is known, from the most redundant
// to the least; of equals the older first.
std::vector<std::size_t> by_redundancy(const SavedBuffer& buffer);

// Returns pictures side by side.
PictureFigure picture_sheet(const std::string& title, const std::vector<Picture>& pictures,
                            const std::string& caption);
// Returns the samples at the given places in samples().
PictureFigure buffer_sheet(SavedBuffer& buffer, const std::string& title,
                           const std::vector<std::size_t>& which, const std::string& caption);
// Returns at most `count` samples, evenly spaced, the oldest first.
PictureFigure spaced_sheet(SavedBuffer& buffer, const std::string& title, std::size_t count,
                           const std::string& caption);

// Returns a self-contained HTML page. Each contact sheet shows at most `pictures`.
std::string buffer_page(SavedBuffer& buffer, const std::string& run, std::size_t pictures);

}  // namespace riffle
