// The keys of a configuration, by name.
//
// A room's configuration is a plain struct with its defaults in the header and one function that
// names its fields:
//
//   struct BufferConfig {
//     std::int64_t capacity = 65536;
//     void describe(Fields& fields) { fields.add("buffer.capacity", capacity, "samples kept"); }
//   };
//
// Fields writes the same keys from YAML and from `--set key=value`, prints them all, and refuses an
// unknown key by naming the nearest valid one. It holds references: the struct must outlive it and
// stay where it is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "riffle/base/text.h"

namespace riffle {

class Fields {
 public:
  struct Field {
    std::string key;
    std::string help;
    std::vector<std::string> choices;  // empty: any value of its type
    std::function<std::string()> get;
    std::function<void(const std::string&)> set;
  };

  void add(const std::string& key, bool& value, const std::string& help);
  void add(const std::string& key, std::int64_t& value, const std::string& help);
  void add(const std::string& key, std::uint64_t& value, const std::string& help);
  void add(const std::string& key, double& value, const std::string& help);
  void add(const std::string& key, std::string& value, const std::string& help);
  // A list is written as comma-separated text.
  void add(const std::string& key, std::vector<std::string>& value, const std::string& help);

  // The value is one of these names.
  void add(const std::string& key, std::string& value, const std::vector<std::string>& names,
           const std::string& help);

  // The value is one of an enumeration, each with its name.
  template <typename Enum>
  void add(const std::string& key, Enum& value, std::vector<std::pair<std::string, Enum>> names,
           const std::string& help) {
    std::vector<std::string> choices;
    for (const auto& [name, unused] : names) choices.push_back(name);
    push({key, help, choices,
          [&value, names] {
            for (const auto& [name, candidate] : names) {
              if (candidate == value) return name;
            }
            return std::string();
          },
          [&value, key, names, choices](const std::string& text) {
            for (const auto& [name, candidate] : names) {
              if (name == text) {
                value = candidate;
                return;
              }
            }
            refuse_choice(key, text, choices);
          }});
  }

  // Throws Error if the key is unknown or the text is not a valid value.
  void set(const std::string& key, const std::string& text);
  // Sets "key=value", as --set gives it.
  void set_assignment(const std::string& assignment);
  std::string get(const std::string& key) const;
  const std::vector<Field>& all() const { return fields_; }

 private:
  void push(Field field);
  const Field& find(const std::string& key) const;
  [[noreturn]] static void refuse_choice(const std::string& key, const std::string& text,
                                         const std::vector<std::string>& choices);

  std::vector<Field> fields_;
  std::map<std::string, std::size_t> by_key_;
};

}  // namespace riffle
