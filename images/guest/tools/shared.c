// SPDX-License-Identifier: Apache-2.0
// Options, clock and payload of the lab's small programs.
#include "labtool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int die(const char *what)
{
	fprintf(stderr, "labtool: %s: %s\n", what, strerror(errno));
	return 1;
}

const char *option(int argc, char **argv, const char *name, const char *fallback)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name))
			return argv[i + 1];
	return fallback;
}

int64_t option_number(int argc, char **argv, const char *name, int64_t fallback)
{
	const char *text = option(argc, argv, name, NULL);
	return text ? strtoll(text, NULL, 10) : fallback;
}

socklen_t address_of(const char *text, int64_t port, struct sockaddr_storage *found)
{
	struct sockaddr_in *four = (struct sockaddr_in *)found;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)found;

	memset(found, 0, sizeof *found);
	found->ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	four->sin_port = htons((uint16_t)port); // where IPv6 has it, too
	if (inet_pton(found->ss_family, text, found->ss_family == AF_INET6 ? (void *)&six->sin6_addr : &four->sin_addr) != 1)
		return 0;
	return found->ss_family == AF_INET6 ? sizeof *six : sizeof *four;
}

int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void payload_start(struct payload *payload, uint64_t seed)
{
	payload->state = seed ? seed : 1;
}

// xorshift64* (Vigna 2016): fast, full period, and no compressor finds anything in it.
void payload_fill(struct payload *payload, void *buffer, size_t bytes)
{
	uint64_t state = payload->state;
	char *at = buffer;
	for (size_t done = 0; done < bytes; done += 8) {
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		uint64_t word = state * 0x2545F4914F6CDD1DULL;
		memcpy(at + done, &word, bytes - done < 8 ? bytes - done : 8);
	}
	payload->state = state;
}
