// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: what a program sends as datagrams over IP leaves it at SCPSLAB_PACE_BPS bits of IP packets per second. Protocols that have no rate
// control hand a whole file to the kernel at once; a program that would wait for a modem waits here. Each program has its own turn.
//
// The library links nothing: it finds functions in the C library of the program, whatever its version.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The headers of UDP and IP (RFC 768, RFC 791 section 3.1, RFC 8200 section 3).
enum { HEADERS = 28, HEADERS_IPV6 = 48, BITS = 8 };
#define NS 1000000000ULL

static uint64_t due_ns;

// The bytes of a socket's headers; 0 where it sends no datagrams over IP.
static size_t headers_of(int fd)
{
	int kind = 0, family = 0, error = errno;
	socklen_t size = sizeof kind;

	int is = !getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) && kind == SOCK_DGRAM && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
	errno = error;
	return !is ? 0 : family == AF_INET ? HEADERS : family == AF_INET6 ? HEADERS_IPV6 : 0;
}

// Waits until what was sent before has left at the rate.
static void wait_for_turn(int fd, size_t bytes)
{
	const char *said = getenv("SCPSLAB_PACE_BPS");
	uint64_t rate = said ? strtoull(said, NULL, 10) : 0, turn_ns, next_ns, before_ns;
	struct timespec now;

	size_t headers = rate ? headers_of(fd) : 0;
	if (!headers)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
	before_ns = __atomic_load_n(&due_ns, __ATOMIC_SEQ_CST);
	do {
		turn_ns = before_ns > now_ns ? before_ns : now_ns;
		next_ns = turn_ns + (bytes + headers) * BITS * NS / rate;
	} while (!__atomic_compare_exchange_n(&due_ns, &before_ns, next_ns, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	if (turn_ns > now_ns) {
		struct timespec turn = { (time_t)(turn_ns / NS), (long)(turn_ns % NS) };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL) == EINTR)
			;
	}
}

static size_t length_of(const struct msghdr *message)
{
	size_t bytes = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++)
		bytes += message->msg_iov[i].iov_len;
	return bytes;
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t size)
{
	wait_for_turn(fd, bytes);
	return syscall(SYS_sendto, fd, data, bytes, flags, to, size);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	return sendto(fd, data, bytes, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	wait_for_turn(fd, length_of(message));
	return syscall(SYS_sendmsg, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int sent = 0;

	for (; sent < count; sent++) {
		ssize_t bytes = sendmsg(fd, &messages[sent].msg_hdr, flags);
		if (bytes < 0)
			return sent ? (int)sent : -1;
		messages[sent].msg_len = (unsigned int)bytes;
	}
	return (int)sent;
}
