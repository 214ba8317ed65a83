#include "riffle/stream/urls/address.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace riffle {
namespace {

struct Network {
  std::uint32_t address;
  int bits;
};

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr std::array kNotPublic = {
    Network{ip(0, 0, 0, 0), 8},                                         // this network
    Network{ip(10, 0, 0, 0), 8},                                        // private
    Network{ip(100, 64, 0, 0), 10},                                     // carrier-grade NAT
    Network{ip(127, 0, 0, 0), 8},                                       // this machine
    Network{ip(169, 254, 0, 0), 16},                                    // link-local
    Network{ip(172, 16, 0, 0), 12},                                     // private
    Network{ip(192, 0, 0, 0), 24},                                      // protocol assignments
    Network{ip(192, 0, 2, 0), 24},                                      // documentation
    Network{ip(192, 168, 0, 0), 16},                                    // private
    Network{ip(198, 18, 0, 0), 15},                                     // benchmarks
    Network{ip(198, 51, 100, 0), 24}, Network{ip(203, 0, 113, 0), 24},  // documentation
    Network{ip(224, 0, 0, 0), 4},                                       // multicast
    Network{ip(240, 0, 0, 0), 4},                                       // reserved, and to all
};

bool is_public_v4(std::uint32_t address) {
  return std::none_of(kNotPublic.begin(), kNotPublic.end(), [&](const Network& network) {
    return (address ^ network.address) >> (32 - network.bits) == 0;
  });
}

std::uint32_t v4_at(std::span<const std::uint8_t, 16> bytes, std::size_t at) {
  return ip(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
}

bool is_public_v6(std::span<const std::uint8_t, 16> bytes) {
  const auto begins = [&](std::initializer_list<std::uint8_t> prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  // Through these an IPv4 network is reached: the address that counts is the one inside.
  if (begins({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) return is_public_v4(v4_at(bytes, 12));
  if (begins({0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) return is_public_v4(v4_at(bytes, 12));
  if (begins({0x20, 0x02})) return is_public_v4(v4_at(bytes, 2));
  if (begins({0x20, 0x01, 0, 0}) || begins({0x20, 0x01, 0x0d, 0xb8})) return false;
  // Only 2000::/3 is given out to the public; all else is local, multicast or unused.
  return (bytes[0] & 0xe0) == 0x20;
}

}  // namespace

bool is_public_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return is_public_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    return is_public_v6(std::span<const std::uint8_t, 16>(v6.sin6_addr.s6_addr));
  }
  return false;
}

bool is_private_host(const std::string& host) {
  std::string name = host;
  if (name.starts_with('[')) name = name.substr(1, name.find_first_of("]%") - 1);
  while (name.ends_with('.')) name.pop_back();
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  in_addr v4{};
  if (::inet_aton(name.c_str(), &v4) == 1) return !is_public_v4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (::inet_pton(AF_INET6, name.c_str(), &v6) == 1) {
    return !is_public_v6(std::span<const std::uint8_t, 16>(v6.s6_addr));
  }
  return false;
}

}  // namespace riffle
