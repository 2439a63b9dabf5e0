// SPDX-License-Identifier: Apache-2.0
// How the reference implementation waits. Its loop asks for packets without waiting, and keeps a processor busy for as long as it runs. In virtual time
// that would stop the clock. Here its questions go to a function that waits, when nothing is to be done, until a packet comes, its clock ticks (SIGALRM,
// 100 times a second), the kernel takes packets again, the time of a resend comes, or SCPS_RI_IDLE_US microseconds are over.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "adapter.h"
#include "scps.h"
#include "scpstp.h"

// A wait begins after so many passes of the loop in which nothing happened. One pass is not enough: a thread may get its turn in the next one.
#define QUIET_PASSES 16
#define TICK_US 10000
#define SECOND_US 1000000

// What its scheduler has; some of its programs lack the definition.
int route_sock2;

extern tp_Socket *tp_allsocs;
void (*when_idle)(void);

static int64_t wait_us = -1;
static int quiet, quiet_passes, full_socket = -1;

int __real_select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *limit);
ssize_t __real_sendmsg(int socket, const struct msghdr *message, int flags);
int __real_scps_write(int socket, void *data, int bytes);
int __real_scps_read(int socket, void *data, int bytes);

// A packet that waits to be handled, or a timer that has ended: the loop has to go on at once. That a thread can run means nothing: one that waits for
// room in a buffer may look for it at every turn.
static int has_work(void)
{
	return scheduler.interface_data || scheduler.timers.expired_queue.head;
}

// How long the loop may wait at most: a missing piece is resent when its time has come, which the loop finds by its own clock, between two ticks.
static int64_t longest_wait_us(void)
{
	struct timeval time;
	int64_t longest = wait_us;
	uint32_t now;
	tp_Socket *s;

	// Its own function for that does more than tell the time.
	gettimeofday(&time, NULL);
	now = (uint32_t)(time.tv_sec * SECOND_US + time.tv_usec);
	for (s = tp_allsocs; s; s = s->next) {
		struct _hole_element *hole = s->send_buff ? s->send_buff->holes : NULL;

		for (; hole; hole = hole->next) {
			int32_t left = (int32_t)(hole->Embargo_Time - now);

			if (hole->Embargo_Time && left > 0 && left < longest)
				longest = left;
		}
	}
	return longest;
}

int __wrap_scps_write(int socket, void *data, int bytes)
{
	int written = __real_scps_write(socket, data, bytes);

	if (written > 0)
		quiet = 0;
	return written;
}

int __wrap_scps_read(int socket, void *data, int bytes)
{
	int got = __real_scps_read(socket, data, bytes);

	if (got > 0)
		quiet = 0;
	return got;
}

// A send that the kernel had no room for is tried again when it has.
ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
	ssize_t sent = __real_sendmsg(socket, message, flags);

	if (sent >= 0)
		quiet = 0;
	full_socket = sent < 0 && (errno == EAGAIN || errno == ENOBUFS) ? socket : -1;
	return sent;
}

int __wrap_select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *limit)
{
	fd_set room, asked = *reading;
	struct timeval wait;
	int64_t longest;
	int found = __real_select(count, reading, writing, failing, limit);

	if (wait_us < 0) {
		wait_us = environment_number("SCPS_RI_IDLE_US", TICK_US);
		quiet_passes = (int)environment_number("SCPS_RI_QUIET_PASSES", QUIET_PASSES);
	}
	if (found || has_work()) {
		quiet = 0;
		return found;
	}
	if (when_idle)
		when_idle();
	if (++quiet < quiet_passes || wait_us == 0)
		return found;
	FD_ZERO(&room);
	if (full_socket >= 0)
		FD_SET(full_socket, &room);
	longest = longest_wait_us();
	wait.tv_sec = longest / SECOND_US;
	wait.tv_usec = longest % SECOND_US;
	*reading = asked;
	found = __real_select(full_socket >= count ? full_socket + 1 : count, reading, &room, failing, &wait);
	quiet = 0;
	if (found > 0 && full_socket >= 0 && FD_ISSET(full_socket, &room)) {
		// Room is no packet: the loop asks for packets alone.
		full_socket = -1;
		found--;
	}
	return found;
}
