#include "riffle/tensors/pickle.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using Kind = PickleValue::Kind;

// Values that are copied may be recalled as often as the file likes, so they must be short.
constexpr std::size_t kLongestName = 1000;
constexpr std::size_t kMostParts = 16;

// The machine that a pickle is a program for: a stack, marks in it, and a memo.
class Unpickler {
 public:
  Unpickler(std::span<const std::byte>& bytes, PickleValues& values)
      : bytes_(bytes), values_(values) {}

  Pickled run() {
    while (true) {
      const auto operation = static_cast<unsigned char>(take(1)[0]);
      if (operation == '.') return pop();
      if (!simple(operation) && !structural(operation)) {
        throw Error(cat("it uses operation ", static_cast<int>(operation),
                        " of Python's pickle, which files of weights do not need"));
      }
    }
  }

 private:
  Pickled make_value(Kind kind) {
    values_.emplace_back().kind = kind;
    return &values_.back();
  }

  Pickled make_text(Kind kind, std::string text) {
    const Pickled value = make_value(kind);
    value->text = std::move(text);
    return value;
  }

  Pickled make_integer(std::int64_t integer) {
    const Pickled value = make_value(Kind::integer);
    value->integer = integer;
    return value;
  }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw Error("it ends early");
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()), count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string line() {
    std::string text;
    for (char c; (c = take(1)[0]) != '\n';) text += c;
    return text;
  }

  void push(Pickled value) { stack_.push_back(value); }

  // Requires no mark above what is taken.
  Pickled pop() {
    const std::size_t least = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= least) throw Error("it takes what is not there");
    const Pickled value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Pickled top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      throw Error("it takes what is not there");
    }
    return stack_.back();
  }

  std::vector<Pickled> pop_to_mark() {
    if (marks_.empty()) throw Error("it takes what is not there");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Pickled> items(first, stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void push_sequence(std::vector<Pickled> items) {
    const Pickled value = make_value(Kind::sequence);
    value->items = std::move(items);
    push(value);
  }

  void push_last(std::size_t count) {
    std::vector<Pickled> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_sequence(std::move(items));
  }

  void set_items(const std::vector<Pickled>& items) {
    if (items.size() % 2 != 0) throw Error("it has a key without a value");
    if (top()->kind != Kind::dictionary) return;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      top()->entries.emplace_back(items[i], items[i + 1]);
    }
  }

  void append(const std::vector<Pickled>& items) {
    if (top()->kind != Kind::sequence) return;
    top()->items.insert(top()->items.end(), items.begin(), items.end());
  }

  void remember(std::uint64_t place) { memo_[place] = top(); }

  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) throw Error("it recalls what it never remembered");
    push(found->second);
  }

  void call() {
    const Pickled arguments = pop(), function = pop();
    if (function->kind == Kind::global && function->text == "collections OrderedDict") {
      push(make_value(Kind::dictionary));
      return;
    }
    const Pickled value = make_value(Kind::call);
    value->items = {function, arguments};
    push(value);
  }

  // Little-endian, of up to eight bytes; longer ones count for none.
  void push_long(std::size_t size) {
    const std::string_view digits = take(size);
    if (size > sizeof(std::int64_t)) return push(make_text(Kind::other, std::string(digits)));
    const bool negative = size > 0 && (static_cast<unsigned char>(digits[size - 1]) & 0x80) != 0;
    std::int64_t value = negative ? -1 : 0;
    std::memcpy(&value, digits.data(), size);
    push(make_integer(value));
  }

  // Numbers and texts.
  bool simple(unsigned char operation) {
    switch (operation) {
      case 'N':
        push(make_value(Kind::other));
        return true;
      case 0x88:
      case 0x89:
        push(make_integer(operation == 0x88 ? 1 : 0));
        return true;
      case 'K':
        push(make_integer(number<std::uint8_t>()));
        return true;
      case 'M':
        push(make_integer(number<std::uint16_t>()));
        return true;
      case 'J':
        push(make_integer(number<std::int32_t>()));
        return true;
      case 0x8a:
        push_long(number<std::uint8_t>());
        return true;
      case 'G':
        take(sizeof(double));
        push(make_value(Kind::other));
        return true;
      case 'X':
      case 'T':
      case 'B':
        push(make_text(Kind::text, std::string(take(number<std::uint32_t>()))));
        return true;
      case 0x8c:
      case 'U':
      case 'C':
        push(make_text(Kind::text, std::string(take(number<std::uint8_t>()))));
        return true;
      case 'c': {
        const std::string module = line();
        push(make_text(Kind::global, cat(module, ' ', line())));
        return true;
      }
      case 0x93: {
        const Pickled name = pop(), module = pop();
        if (module->text.size() + name->text.size() > kLongestName) throw Error("a name is long");
        push(make_text(Kind::global, cat(module->text, ' ', name->text)));
        return true;
      }
      default:
        return false;
    }
  }

  // What is made of other values.
  bool structural(unsigned char operation) {
    switch (operation) {
      case 0x80:  // the version
        take(1);
        return true;
      case 0x95:  // the length of what follows
        take(sizeof(std::uint64_t));
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':
        pop();
        return true;
      case ')':
      case ']':
        push(make_value(Kind::sequence));
        return true;
      case '}':
        push(make_value(Kind::dictionary));
        return true;
      case 't':
      case 'l':
        push_sequence(pop_to_mark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push_last(operation - 0x84u);
        return true;
      case 's': {
        const Pickled value = pop(), key = pop();
        set_items({key, value});
        return true;
      }
      case 'u':
        set_items(pop_to_mark());
        return true;
      case 'a':
        append({pop()});
        return true;
      case 'e':
        append(pop_to_mark());
        return true;
      case 'q':
        remember(number<std::uint8_t>());
        return true;
      case 'r':
        remember(number<std::uint32_t>());
        return true;
      case 0x94:
        remember(memo_.size());
        return true;
      case 'h':
        recall(number<std::uint8_t>());
        return true;
      case 'j':
        recall(number<std::uint32_t>());
        return true;
      case 'R':
      case 0x81:
        call();
        return true;
      case 'b':  // what an object is to be filled with
        pop();
        return true;
      case 'Q': {
        const Pickled value = make_value(Kind::persistent);
        const Pickled name = pop();
        if (name->items.size() > kMostParts) throw Error("a name has many parts");
        value->items = name->items;
        push(value);
        return true;
      }
      default:
        return false;
    }
  }

  std::span<const std::byte>& bytes_;
  PickleValues& values_;
  std::vector<Pickled> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Pickled> memo_;
};

}  // namespace

Pickled read_pickle(std::span<const std::byte>& bytes, PickleValues& values) {
  return Unpickler(bytes, values).run();
}

}  // namespace riffle
