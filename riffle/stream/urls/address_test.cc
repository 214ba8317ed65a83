#include "riffle/stream/urls/address.h"

#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace riffle {
namespace {

bool is_public(const std::string& text) {
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    return is_public_address(reinterpret_cast<const sockaddr&>(v4));
  }
  EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
  v6.sin6_family = AF_INET6;
  return is_public_address(reinterpret_cast<const sockaddr&>(v6));
}

TEST(UrlAddress, ThePublicInternetIsTheRest) {
  for (const auto* text :
       {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "192.169.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
}

TEST(UrlAddress, TheMachineItsNetworkAndReservedOnesAreNot) {
  for (const auto* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.0",
                           "10.255.255.255",
                           "100.64.0.0",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.254",
                           "169.254.169.254",
                           "172.16.0.0",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.168.0.1",
                           "198.18.0.1",
                           "224.0.0.1",
                           "239.255.255.250",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::127.0.0.1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.1.2.3",
                           "64:ff9b::10.0.0.1",
                           "2002:7f00:1::",
                           "2002:a00:1::",
                           "2001::1",
                           "2001:db8::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1",
                           "100::1"}) {
    EXPECT_FALSE(is_public(text)) << text;
  }
}

TEST(UrlAddress, OtherFamiliesAreNotPublic) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  EXPECT_FALSE(is_public_address(reinterpret_cast<const sockaddr&>(local)));
}

TEST(UrlAddress, HostsThatNameALocalAddressAreTold) {
  for (const auto* host :
       {"localhost", "LocalHost", "localhost.", "a.localhost", "127.0.0.1", "127.1", "0x7f.0.0.1",
        "2130706433", "0177.0.0.1", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "[::ffff:10.0.0.1]"}) {
    EXPECT_TRUE(is_private_host(host)) << host;
  }
  for (const auto* host :
       {"example.com", "localhost.example.com", "8.8.8.8", "[2606:4700::1111]", "10.example.com"}) {
    EXPECT_FALSE(is_private_host(host)) << host;
  }
}

}  // namespace
}  // namespace riffle
