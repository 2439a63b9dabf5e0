// SPDX-License-Identifier: Apache-2.0
// `labtool congestion`: the FY97 congestion generator's sending side: UDP at a constant rate, changed every --redraw-ns to the next
//   rate of --rates (comma separated, bit/s of IP packets), until the list ends or the process is told to stop.
// `labtool datagram-sink`: the other side; counts what arrives.
#define _GNU_SOURCE
#include "labtool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_BYTES = 65000, MOST_DATAGRAMS = 1024 };

static volatile sig_atomic_t stopped;

// Of UDP and IP (RFC 768, RFC 791 section 3.1, RFC 8200 section 3).
static int64_t header_bytes(const struct sockaddr_storage *address)
{
	return 8 + (address->ss_family == AF_INET6 ? 40 : 20);
}

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

static void stop_on_term(void)
{
	struct sigaction action = { .sa_handler = stop };
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static void sleep_until(int64_t at_ns)
{
	struct timespec at = { at_ns / 1000000000, at_ns % 1000000000 };
	while (!stopped && clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int congestion_main(int argc, char **argv)
{
	static char packet[LARGEST_BYTES];
	struct sockaddr_storage to;
	const char *rates = option(argc, argv, "rates", "");
	int64_t redraw_ns = option_number(argc, argv, "redraw-ns", 5000000000LL);
	int64_t packet_bytes = option_number(argc, argv, "packet-bytes", 1456);
	int64_t sent = 0, interval_end_ns = now_ns();
	struct payload payload;

	socklen_t to_bytes = address_of(option(argc, argv, "to", ""), option_number(argc, argv, "port", 5002), &to);
	if (!to_bytes || packet_bytes <= header_bytes(&to) || packet_bytes > LARGEST_BYTES) {
		fprintf(stderr, "labtool congestion: expected --to ADDRESS, --packet-bytes %lld…%d\n", (long long)header_bytes(&to) + 1, LARGEST_BYTES);
		return 2;
	}
	stop_on_term();
	payload_start(&payload, (uint64_t)option_number(argc, argv, "payload-seed", 1));
	payload_fill(&payload, packet, sizeof packet);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	connect(fd, (struct sockaddr *)&to, to_bytes);
	while (*rates && !stopped) {
		char *end;
		int64_t rate_bps = strtoll(rates, &end, 10);
		int64_t start_ns = interval_end_ns;
		rates = *end == ',' ? end + 1 : end;
		interval_end_ns += redraw_ns;
		printf("{\"event\": \"rate\", \"t_ns\": %lld, \"rate_bps\": %lld}\n", (long long)start_ns, (long long)rate_bps);
		fflush(stdout);
		// Packet k of an interval leaves at k packet times: the rate holds exactly, whatever the clock's grain.
		for (int64_t k = 0; rate_bps > 0 && !stopped; k++) {
			int64_t at_ns = start_ns + (int64_t)((__int128)k * packet_bytes * 8 * 1000000000 / rate_bps);
			if (at_ns >= interval_end_ns)
				break;
			sleep_until(at_ns);
			if (stopped)
				break;
			sent += send(fd, packet, (size_t)(packet_bytes - header_bytes(&to)), MSG_NOSIGNAL) > 0;
		}
		sleep_until(interval_end_ns);
	}
	printf("{\"event\": \"summary\", \"t_ns\": %lld, \"sent_packets\": %lld, \"sent_bytes\": %lld}\n", (long long)now_ns(), (long long)sent,
	       (long long)(sent * packet_bytes));
	return 0;
}

int datagram_sink_main(int argc, char **argv)
{
	// One call takes many datagrams, and of each its length alone: every call stops the guest.
	static struct mmsghdr datagrams[MOST_DATAGRAMS];
	struct sockaddr_storage here;
	int64_t packets = 0, bytes = 0;

	int port = (int)option_number(argc, argv, "port", 5002);
	socklen_t here_bytes = address_of(option(argc, argv, "at", "0.0.0.0"), port, &here);
	stop_on_term();
	int fd = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&here, here_bytes)) {
		fprintf(stderr, "labtool datagram-sink: port %d: %s\n", port, strerror(errno));
		return 1;
	}
	printf("{\"event\": \"listening\"}\n");
	fflush(stdout);
	while (!stopped) {
		int n = recvmmsg(fd, datagrams, MOST_DATAGRAMS, MSG_TRUNC, NULL);
		if (n < 0)
			break;
		packets += n;
		for (int i = 0; i < n; i++)
			bytes += datagrams[i].msg_len + header_bytes(&here);
	}
	printf("{\"event\": \"sink\", \"received_packets\": %lld, \"received_bytes\": %lld}\n", (long long)packets, (long long)bytes);
	return 0;
}
