// Pictures from a list of URLs as a stream.
//
//   urls:FILE?connections=16&per_host=4&timeout=30&connect_timeout=10&max_bytes=16777216&retries=2&
//             backoff=0.5&redirects=5&allow_private=0&size=0&threads=N&original=0
//
//   FILE              one URL per line, possibly followed by a space or tab and a label; empty
//                     lines and those that begin with # are ignored
//   connections       downloads at once
//   per_host          of these from one host
//   timeout           seconds that an attempt may take, redirects included; the whole body must
//                     have come by then, however fast the server sends
//   connect_timeout   seconds of these to connect
//   max_bytes         the most bytes of one body
//   retries           after temporary failures: no connection, a timeout, a broken answer, 429, 5xx
//   backoff           seconds before the first retry, doubled for each further one; a server may
//                     ask for more, up to a minute
//   redirects         the most that are followed for one picture
//   allow_private     1: also asks addresses of the local network
//   size, threads     as in folder:
//   original          as in folder:
//
// Downloads run ahead, many at once; samples come in the order of the list. What fails is skipped
// and counted: "timeout", "HTTP 404", "too large", "too many redirects", "not http", "bad address",
// "private address", "unknown host", "cannot connect", "broken answer", "not secure" (its
// certificate), and the reasons of the decoder, as for a page of HTML. next() throws Error if
// nothing in the list can be used, or the list can no longer be read. stop() ends the wait for a
// slow server. No sample has a clip (kNoClip).
//
// Only http and https. Unless allow_private is set, no connection is made to the machine itself or
// to private, link-local, shared, multicast or reserved addresses: this is checked on each URL,
// each redirect and each address that a name is looked up as, just before connecting. Proxies that
// the environment names (http_proxy, https_proxy, all_proxy, no_proxy) are used, wherever they are.
// A proxy looks names up itself: then only addresses written in the URL can be checked here, and
// the proxy has to refuse the rest.
//
// The position is a line of the list and the byte at which it begins. Lines may be added at the end
// of the list; seek throws Error if it can tell that the list changed before the position.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for an unknown option, and if the list cannot be read or has no URL.
std::unique_ptr<Stream> open_urls(Uri& uri);

}  // namespace riffle
