// SPDX-License-Identifier: Apache-2.0
// How the file protocol waits where it is a program of the kernel's TCP. It looks for replies and commands again and again without waiting; after some
// looks in vain this lets it wait until there is something, for at most a tick.

#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

#define QUIET_LOOKS 16
#define TICK_US 10000

int fp_select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *limit)
{
	static int quiet;
	fd_set asked = *reading;
	struct timeval tick = { 0, TICK_US };
	int found;

	if (!limit || limit->tv_sec || limit->tv_usec)
		return select(count, reading, writing, failing, limit);
	found = select(count, reading, writing, failing, limit);
	if (found || ++quiet < QUIET_LOOKS) {
		quiet = found ? 0 : quiet;
		return found;
	}
	quiet = 0;
	*reading = asked;
	return select(count, reading, writing, failing, &tick);
}
