// Reads the part of Python's pickle format that torch.save() uses, and runs none of it: calls of
// Python functions become values that say which function and with what, for whoever knows it.
//
// Time and memory grow with the bytes read. Values may refer to each other often and in cycles:
// whoever walks them must note where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace riffle {

struct PickleValue;
using Pickled = PickleValue*;

struct PickleValue {
  enum class Kind {
    // None, a float, or something that is of no use here.
    other,
    // Also True and False.
    integer,
    text,
    // A list or a tuple: `items`.
    sequence,
    // `entries`, in order of their first appearance in the file.
    dictionary,
    // The name of a Python function or class, "module name": `text`.
    global,
    // What was called, and its arguments: `items`.
    call,
    // Something kept outside of the pickle, by what names it: `items`.
    persistent,
  };
  Kind kind = Kind::other;
  std::int64_t integer = 0;
  std::string text;
  std::vector<Pickled> items;
  std::vector<std::pair<Pickled, Pickled>> entries;
};

// Where the values of a pickle live.
using PickleValues = std::deque<PickleValue>;

// Returns the value that begins at the front of `bytes`, and moves that behind it. Adds it, and all
// that it refers to, to `values`. Throws Error for what is cut off, contradicts itself or is not of
// the part known.
Pickled read_pickle(std::span<const std::byte>& bytes, PickleValues& values);

}  // namespace riffle
