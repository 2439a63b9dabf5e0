// SPDX-License-Identifier: Apache-2.0
// What the parts of labtool share: the table of programs, options, clock and payload.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

int node_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int exec_net_main(int argc, char **argv);
int bulk_send_main(int argc, char **argv);
int bulk_recv_main(int argc, char **argv);
int congestion_main(int argc, char **argv);
int datagram_sink_main(int argc, char **argv);
int capture_main(int argc, char **argv);
int record_main(int argc, char **argv);

// Says what failed and why; the exit code for it.
int die(const char *what);

// The value of `--name VALUE`, or `fallback`.
const char *option(int argc, char **argv, const char *name, const char *fallback);
int64_t option_number(int argc, char **argv, const char *name, int64_t fallback);

// An address of IPv4 or IPv6 with a port; its length, 0 where the text is none.
socklen_t address_of(const char *text, int64_t port, struct sockaddr_storage *found);

// Wall clock in ns since 1970 (virtual in virtual time).
int64_t now_ns(void);

// The payload both ends can make: incompressible, from a seed, at any offset that is a multiple of 8.
struct payload {
	uint64_t state;
};
void payload_start(struct payload *payload, uint64_t seed);
void payload_fill(struct payload *payload, void *buffer, size_t bytes);
