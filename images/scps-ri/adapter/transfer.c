// SPDX-License-Identifier: Apache-2.0
// Roles send and receive of images/CONTRACT.md over the reference implementation's SCPS-TP: its socket calls, our data.

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "scps.h"
#include "scpstp.h"

#define BLOCK 8192
#define SECOND_US 1000000
// How long the receiver waits for the acknowledgement of its end, and the sender for the receiver's end, once every byte has arrived.
#define FAREWELL_US (8 * SECOND_US)
#define UNSUPPORTED 127
#define DUMB_ADDRESS_BYTES 25
#define MILLISECOND_US 1000

static int64_t size, deadline_us, farewell_us, moved, wrong, missing;
static uint64_t state;
static void *closing;
static const char *done_event;

extern tp_Socket *tp_allsocs;
extern char config_local_name[DUMB_ADDRESS_BYTES];

// The data of a seed: xorshift64* (Vigna 2016), little-endian words, as the lab's other programs have it.
static void fill(unsigned char *block)
{
	int at;

	for (at = 0; at < BLOCK; at += 8) {
		uint64_t word;

		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		word = state * 0x2545F4914F6CDD1DULL;
		memcpy(block + at, &word, 8);
	}
}

static void end(int code)
{
	printf("{\"event\": \"%s\", \"bytes\": %lld, \"wrong_bytes\": %lld, \"missing_bytes\": %lld}\n", done_event, (long long)moved, (long long)wrong,
	       (long long)missing);
	fflush(stdout);
	_exit(code);
}

static void fail(const char *doing)
{
	fprintf(stderr, "scps-ri: %s: found error %d of the reference implementation after %lld bytes; expected none\n", doing, GET_ERR(), (long long)moved);
	end(1);
}

// Whether this end has nothing more to say: the other end has acknowledged everything, the end of the data included.
static int is_over(void)
{
	tp_Socket *s;

	for (s = tp_allsocs; s; s = s->next)
		if (s == closing)
			return s->state == tp_StateTIMEWT || s->state == tp_StateCLOSED;
	return 1;
}

// The implementation closes in the background; and an end of its that has been reset may wait for ever.
static void watch(void)
{
	if (closing && (is_over() || now_us() > farewell_us))
		end(moved + missing == size && !wrong ? 0 : 1);
	if (now_us() > deadline_us) {
		fprintf(stderr, "scps-ri: found %lld of %lld bytes when patience was over; expected all\n", (long long)moved, (long long)size);
		end(1);
	}
}

static struct sockaddr_in address(const char *name, int port)
{
	struct sockaddr_in address;

	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)port);
	if (name && !inet_aton(name, &address.sin_addr)) {
		fprintf(stderr, "SCPSLAB_PEER: found \"%s\"; expected an IPv4 address\n", name);
		exit(2);
	}
	return address;
}

static void finish(int socket)
{
	closing = scheduler.sockets[socket].ptr;
	farewell_us = now_us() + FAREWELL_US;
	scps_close(socket);
}

static void send_all(void)
{
	static unsigned char block[BLOCK];
	struct sockaddr_in peer = address(environment_text("SCPSLAB_PEER"), (int)environment_number("SCPSLAB_PORT", 5001));
	int socket = scps_socket(AF_INET, SOCK_STREAM, 0);

	set_socket(socket);
	if (scps_connect(socket, &peer, sizeof(peer)) < 0)
		fail("connect");
	while (moved < size) {
		int at = (int)(moved % BLOCK), count = size - moved < BLOCK - at ? (int)(size - moved) : BLOCK - at;

		if (!at)
			fill(block);
		count = scps_write(socket, block + at, count);
		if (count < 0)
			fail("write");
		moved += count;
	}
	finish(socket);
	// The end of its data may wait for as long as the data does.
	farewell_us = deadline_us;
}

static void skip(int64_t bytes, unsigned char *expected)
{
	int64_t at;

	for (at = moved + missing; at < moved + missing + bytes; at++)
		if (at % BLOCK == 0)
			fill(expected);
	missing += bytes;
}

static void compare(const unsigned char *block, int count, unsigned char *expected)
{
	int at;

	for (at = 0; at < count; at++, moved++) {
		int place = (int)((moved + missing) % BLOCK);

		if (!place)
			fill(expected);
		wrong += block[at] != expected[place];
	}
}

// The size of a hole that Best Effort Transport leaves; 0 where the failure is another one.
static int64_t hole(int socket)
{
	int32_t bytes = 0;
	int length = sizeof(bytes);

	if (GET_ERR() != SCPS_EBETS || scps_getsockopt(socket, SCPS_SOCKET, SCPS_SO_BETS_RHOLE_SIZE, &bytes, &length) < 0)
		return 0;
	return bytes;
}

// A connection of which the other end has closed its half, and this end has not.
static void stay_half_closed(void)
{
	int64_t until_us = now_us() + environment_number("SCPS_RI_CLOSE_AFTER_MS", 0) * MILLISECOND_US;

	while (now_us() < until_us)
		sched();
}

static void receive_all(void)
{
	static unsigned char block[BLOCK], expected[BLOCK];
	struct sockaddr_in own = address(NULL, (int)environment_number("SCPSLAB_PORT", 5001)), peer;
	int listening = scps_socket(AF_INET, SOCK_STREAM, 0), length = sizeof(peer), count, socket;
	int64_t bytes;

	set_socket(listening);
	if (scps_bind(listening, &own, sizeof(own)) < 0)
		fail("bind");
	if (scps_listen(listening, 1) < 0)
		fail("listen");
	printf("{\"event\": \"listening\"}\n");
	fflush(stdout);
	socket = scps_accept(listening, &peer, &length);
	if (socket < 0)
		fail("accept");
	while ((count = scps_read(socket, block, BLOCK)) != 0) {
		if (count > 0)
			compare(block, count, expected);
		else if ((bytes = hole(socket)) > 0)
			skip(bytes, expected);
		else
			fail("read");
	}
	stay_half_closed();
	finish(socket);
}

int main(int argc, char **argv)
{
	int is_sender = argc == 2 && !strcmp(argv[1], "send");

	if (argc != 2 || (!is_sender && strcmp(argv[1], "receive"))) {
		fprintf(stderr, "scps-ri: found %d words; expected send or receive\n", argc - 1);
		return UNSUPPORTED;
	}
	size = environment_number("SCPSLAB_BYTES", 4000000);
	state = (uint64_t)environment_number("SCPSLAB_SEED", 1);
	state = state ? state : 1;
	deadline_us = now_us() + environment_number("SCPSLAB_PATIENCE_S", 3600) * SECOND_US;
	done_event = is_sender ? "sent" : "received";
	snprintf(config_local_name, sizeof(config_local_name), "%s", environment_text("SCPSLAB_ADDRESS"));
	read_settings();
	when_idle = watch;
	init_scheduler();
	scheduler.run_queue[0] = create_thread(tp);
	scheduler.run_queue[1] = create_thread(is_sender ? send_all : receive_all);
	scps_Init();
	set_route();
	start_threads();
	return 1;
}
