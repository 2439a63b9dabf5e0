// SPDX-License-Identifier: Apache-2.0
// `labtool bulk-send` and `bulk-recv`: one bulk transfer over kernel TCP, measured at both ends. Each prints one JSON object.
// Times are wall clock in ns since 1970; the lab program turns them into seconds since the epoch of the run.
#define _GNU_SOURCE
#include "labtool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 16, TIMESTAMP_OPTION_BYTES = 12, SMALLEST_MAXSEG = 88 };

// Offsets into struct tcp_info of Linux 6.12, whose later members the C library's header does not have.
enum { INFO_SND_MSS = 16, INFO_TOTAL_RETRANS = 100, INFO_DATA_SEGS_OUT = 156, INFO_BYTES_RETRANS = 208, INFO_TOTAL_RTO = 240, INFO_BYTES = 256 };

static uint32_t info_u32(const unsigned char *info, int offset)
{
	uint32_t value;
	memcpy(&value, info + offset, sizeof value);
	return value;
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value);
}

// Milliseconds until `deadline_ns`, for poll; 0 when it has passed.
static int left_ms(int64_t deadline_ns)
{
	int64_t left = (deadline_ns - now_ns() + 999999) / 1000000;
	return left < 0 ? 0 : left > 1 << 30 ? 1 << 30 : (int)left;
}

// 0 when the socket is ready for `events`, -1 with errno set when it broke, timed out or reported an error.
static int wait_for(int fd, short events, int64_t deadline_ns)
{
	struct pollfd ready = { .fd = fd, .events = events };
	int n = poll(&ready, 1, left_ms(deadline_ns));
	if (n == 0 || (n < 0 && errno == EINTR))
		errno = ETIMEDOUT;
	return n == 1 ? 0 : -1;
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof error;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return error;
}

struct sending {
	int64_t connect_ns, connected_ns, first_write_ns, close_ns, bytes;
};

// Lets blocking calls on the socket give up when the patience is over. One system call per read or write, and no poll before it:
// in the guest a system call costs more than the packet it is about.
static void give_up_at(int fd, int which, int64_t deadline_ns)
{
	int64_t left = deadline_ns - now_ns();
	struct timeval limit = { .tv_sec = left < 1000000000 ? 1 : left / 1000000000 };
	setsockopt(fd, SOL_SOCKET, which, &limit, sizeof limit);
}

// errno as a person would put it: a blocking call that gave up says EAGAIN, and one that was asked to, EINTR.
static int patience_error(void)
{
	return errno == EAGAIN || errno == EINTR ? ETIMEDOUT : errno;
}

// The lab ends a transfer whose timeout is over.
static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

// How an application writes: this many bytes (0: as many as the socket takes) every so often, and pauses, as
// "BYTES:NS,…": when so many bytes have been written, nothing is for so long.
struct application {
	int64_t burst, every_ns, next_ns;
	const char *pauses;
};

// How many of `held` bytes the application writes now, when it has waited for its time; 0 when the patience is over.
static int64_t bytes_to_write(struct application *application, int64_t written, int64_t held, int64_t deadline_ns)
{
	char *rest;
	int64_t until_ns = application->next_ns, pause_at = *application->pauses ? strtoll(application->pauses, &rest, 10) : INT64_MAX;
	if (pause_at <= written) {
		until_ns = (now_ns() > until_ns ? now_ns() : until_ns) + strtoll(rest + 1, &rest, 10);
		application->next_ns = until_ns;
		application->pauses = *rest ? rest + 1 : rest;
		pause_at = *application->pauses ? strtoll(application->pauses, NULL, 10) : INT64_MAX;
	}
	until_ns = until_ns < deadline_ns ? until_ns : deadline_ns;
	while (now_ns() < until_ns && !is_over)
		nanosleep(&(struct timespec){ (until_ns - now_ns()) / 1000000000, (until_ns - now_ns()) % 1000000000 }, NULL);
	if (is_over || now_ns() >= deadline_ns)
		return 0;
	// Bursts end at multiples of their size, whatever the socket took at a time.
	int64_t left = application->burst ? application->burst - written % application->burst : held;
	left = left < pause_at - written ? left : pause_at - written;
	return left < held ? left : held;
}

// Sends `bytes` and waits for the far end to close; an errno, or 0.
static int send_all(int fd, int64_t bytes, uint64_t seed, int64_t deadline_ns, struct application *application, struct sending *result)
{
	static char chunk[CHUNK_BYTES];
	struct payload payload;

	payload_start(&payload, seed);
	result->first_write_ns = now_ns();
	while (result->bytes < bytes) {
		size_t held = bytes - result->bytes < CHUNK_BYTES ? (size_t)(bytes - result->bytes) : CHUNK_BYTES;
		payload_fill(&payload, chunk, held);
		for (size_t at = 0; at < held;) {
			if (is_over)
				return ETIMEDOUT;
			size_t size = held - at;
			if (application && !(size = (size_t)bytes_to_write(application, result->bytes, (int64_t)size, deadline_ns)))
				return ETIMEDOUT;
			give_up_at(fd, SO_SNDTIMEO, deadline_ns);
			ssize_t n = send(fd, chunk + at, size, MSG_NOSIGNAL);
			if (n < 0)
				return patience_error();
			at += (size_t)n;
			result->bytes += n;
			if (application && application->burst && result->bytes % application->burst == 0)
				application->next_ns += application->every_ns;
		}
	}
	if (shutdown(fd, SHUT_WR))
		return errno;
	give_up_at(fd, SO_RCVTIMEO, deadline_ns);
	ssize_t n;
	while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
		;
	return n < 0 ? patience_error() : 0;
}

int bulk_send_main(int argc, char **argv)
{
	struct sockaddr_storage to;
	const char *address = option(argc, argv, "to", "127.0.0.1");
	const char *congestion = option(argc, argv, "congestion", NULL);
	int64_t bytes = option_number(argc, argv, "bytes", 0);
	int64_t segment = option_number(argc, argv, "segment", 0);
	int64_t deadline_ns = now_ns() + option_number(argc, argv, "patience-ns", 3600LL * 1000000000);
	unsigned char info[INFO_BYTES] = { 0 };
	socklen_t info_bytes = sizeof info;
	struct sending result = { 0 };
	struct application application = {
		.burst = option_number(argc, argv, "burst", 0),
		.every_ns = option_number(argc, argv, "every-ns", 0),
		.pauses = option(argc, argv, "pauses", ""),
	};
	int error = 0, limited = application.burst || *application.pauses;

	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = end }, NULL);
	socklen_t to_bytes = address_of(address, option_number(argc, argv, "port", 5001), &to);
	if (!to_bytes) {
		fprintf(stderr, "labtool bulk-send: --to: found \"%s\"; expected an address of IPv4 or IPv6\n", address);
		return 2;
	}
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion))) {
		fprintf(stderr, "labtool bulk-send: congestion control %s: %s\n", congestion, strerror(errno));
		return 1;
	}
	// Smaller segments than the kernel's least TCP_MAXSEG come from the interfaces' MTU.
	if (segment && segment + TIMESTAMP_OPTION_BYTES >= SMALLEST_MAXSEG)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, (int)segment + (int)option_number(argc, argv, "option-bytes", 0));
	if (option_number(argc, argv, "send-buffer", 0))
		set(fd, SOL_SOCKET, SO_SNDBUF, (int)option_number(argc, argv, "send-buffer", 0));

	result.connect_ns = now_ns();
	if (connect(fd, (struct sockaddr *)&to, to_bytes) && errno != EINPROGRESS)
		error = errno;
	else if (wait_for(fd, POLLOUT, deadline_ns))
		error = errno;
	else
		error = socket_error(fd);
	if (!error) {
		result.connected_ns = now_ns();
		fcntl(fd, F_SETFL, 0);
		application.next_ns = result.connected_ns;
		error = send_all(fd, bytes, (uint64_t)option_number(argc, argv, "payload-seed", 1), deadline_ns, limited ? &application : NULL, &result);
	}
	result.close_ns = now_ns();
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &info_bytes);
	if (error)
		// Give up audibly: the far end sees a reset, not a stream that ends early.
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(fd);
	uint16_t rtos;
	memcpy(&rtos, info + INFO_TOTAL_RTO, sizeof rtos);
	printf("{\"event\": \"sender\", \"connect_ns\": %lld, \"connected_ns\": %lld, \"first_write_ns\": %lld, \"close_ns\": %lld, \"bytes\": %lld, "
	       "\"mss_bytes\": %u, \"segments\": %u, \"retransmits\": %u, \"rtos\": %u, \"status\": \"%s\", \"error\": \"%s\"}\n",
	       (long long)result.connect_ns, (long long)result.connected_ns, (long long)result.first_write_ns, (long long)result.close_ns,
	       (long long)result.bytes, info_u32(info, INFO_SND_MSS), info_u32(info, INFO_DATA_SEGS_OUT), info_u32(info, INFO_TOTAL_RETRANS), rtos,
	       error ? "incomplete" : "completed", error ? strerror(error) : "");
	return error != 0;
}

int bulk_recv_main(int argc, char **argv)
{
	static char chunk[CHUNK_BYTES], expected[CHUNK_BYTES];
	struct sockaddr_storage here;
	int64_t window = option_number(argc, argv, "window", 0);
	int64_t deadline_ns = now_ns() + option_number(argc, argv, "patience-ns", 3600LL * 1000000000);
	int64_t all = option_number(argc, argv, "bytes", 0);
	int64_t accept_ns = 0, first_ns = 0, last_ns = 0, bytes = 0, wrong = 0;
	struct payload payload;
	int error = 0;

	int port = (int)option_number(argc, argv, "port", 5001);
	socklen_t here_bytes = address_of(option(argc, argv, "at", "0.0.0.0"), port, &here);
	int listener = socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	if (window) {
		// The kernel charges its own overhead to the buffer, about 1 KiB for every packet however short: a buffer with room for that leaves the
		// clamp in charge of what is advertised. Without it, many short packets out of order shrink the window, and it does not recover.
		int64_t segment = option_number(argc, argv, "segment", 0);
		int64_t room = window * 4 + (segment > 0 ? window / segment * 2048 : 0);
		set(listener, SOL_SOCKET, SO_RCVBUFFORCE, room < INT_MAX / 2 ? (int)room : INT_MAX / 2);
		set(listener, IPPROTO_TCP, TCP_WINDOW_CLAMP, (int)window);
	}
	if (bind(listener, (struct sockaddr *)&here, here_bytes) || listen(listener, 8)) {
		fprintf(stderr, "labtool bulk-recv: port %d: %s\n", port, strerror(errno));
		return 1;
	}
	printf("{\"event\": \"listening\"}\n");
	fflush(stdout);
	int fd = wait_for(listener, POLLIN, deadline_ns) ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		error = errno;
	accept_ns = now_ns();
	if (fd >= 0 && option_number(argc, argv, "delayed-ack", 0))
		set(fd, IPPROTO_TCP, TCP_QUICKACK, 0);
	payload_start(&payload, (uint64_t)option_number(argc, argv, "payload-seed", 1));
	size_t at = CHUNK_BYTES;
	if (fd >= 0)
		give_up_at(fd, SO_RCVTIMEO, deadline_ns);
	while (!error) {
		if (at == CHUNK_BYTES) {
			payload_fill(&payload, expected, CHUNK_BYTES);
			at = 0;
		}
		// A call that waits for all of a chunk is one stop of the guest for some fifty packets, and the kernel reads, acknowledges and
		// opens the window at each packet all the same. The first packet has a time of its own, and the last has the end's.
		int waits = bytes && bytes < all && !(window && bytes < 4 * CHUNK_BYTES);
		size_t room = CHUNK_BYTES - at;
		ssize_t n = recv(fd, chunk, waits && all - bytes < (int64_t)room ? (size_t)(all - bytes) : room, waits ? MSG_WAITALL : 0);
		if (n < 0)
			error = patience_error();
		if (n <= 0)
			break;
		bytes += n;
		// The kernel takes the clamp back whenever it learns a better ratio of data to buffer, which it does early in a transfer.
		if (window && (bytes < 4 * CHUNK_BYTES || at + (size_t)n == CHUNK_BYTES))
			set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, (int)window);
		if (!first_ns)
			first_ns = now_ns();
		if (bytes >= all)
			last_ns = now_ns();
		if (memcmp(chunk, expected + at, (size_t)n))
			for (ssize_t i = 0; i < n; i++)
				wrong += chunk[i] != expected[at + (size_t)i];
		at += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	printf("{\"event\": \"receiver\", \"accept_ns\": %lld, \"first_data_ns\": %lld, \"last_data_ns\": %lld, \"bytes\": %lld, \"wrong_bytes\": %lld, "
	       "\"status\": \"%s\", \"error\": \"%s\"}\n",
	       (long long)accept_ns, (long long)first_ns, (long long)last_ns, (long long)bytes, (long long)wrong, error ? "incomplete" : "completed",
	       error ? strerror(error) : "");
	return error != 0;
}
