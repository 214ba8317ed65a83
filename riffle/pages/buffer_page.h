// One page about what a buffer holds: contact sheets, clips and labels over time, how redundant it
// is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "riffle/report/html_page.h"
#include "riffle/run/saved_buffer.h"

namespace riffle {

// Places in samples() of those whose nearest distance is known, from the most redundant to the
// least; the older of equals first.
std::vector<std::size_t> by_redundancy(const SavedBuffer& buffer);

// Some of the samples side by side: those at the given places in samples().
PictureFigure buffer_sheet(SavedBuffer& buffer, const std::string& title,
                           const std::vector<std::size_t>& which, const std::string& caption);

// A self-contained HTML page. `pictures`: how many each contact sheet shows at most.
std::string buffer_page(SavedBuffer& buffer, const std::string& run, std::size_t pictures);

}  // namespace riffle
