// Which internet addresses may be asked for a picture.
//
// A list of URLs is not to be trusted: it must not reach the machine itself or those beside it.
#pragma once

#include <string>

struct sockaddr;

namespace riffle {

// Returns false for the machine itself, private networks, link-local, shared (CGNAT), multicast,
// reserved and unspecified addresses, for IPv4 and IPv6, also if IPv6 wraps an IPv4 address; and
// for anything that is neither.
bool is_public_address(const sockaddr& address);

// Returns whether a host, as a URL names it, is itself an address that is not public, or a name
// that by definition means the machine itself. Other names are known only once they are looked up.
bool is_private_host(const std::string& host);

}  // namespace riffle
