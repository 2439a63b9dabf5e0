// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: iperf3 sleeps where it would turn in a loop. Virtual time passes only when every thread sleeps.
//
// A sending thread that has written the size it was told (--bytes) turns without a system call until a timer of the main thread ends the test
// (iperf_client_worker_run, iperf_send_mt). Virtual time stands still, so that timer never comes.
//
// The main thread runs its timers in the middle of a test only. One that is due before or after, while the other end's answer is on the way, makes
// it call select() without waiting (iperf_run_client). That happens where the round trip is longer than --interval.
//
// Here both sleep for a moment. What is written to a connection, and when, stays as it is.
//
// The library links nothing: it finds these functions in the C library of the program, whatever its version.
#include <sys/select.h>
#include <sys/types.h>
#include <time.h>

#define NEXT ((void *)-1L) /* RTLD_NEXT */
#define PAUSE_US 1000

extern void *dlsym(void *, const char *);

static __thread unsigned long writes;

ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*next)(int, const void *, size_t);

	if (!next)
		next = (ssize_t (*)(int, const void *, size_t))dlsym(NEXT, "write");
	writes++;
	return next(fd, data, size);
}

/* Of libiperf: sends what a stream may send now. */
int iperf_send_mt(void *stream)
{
	static int (*next)(void *);
	unsigned long before = writes;
	int result;

	if (!next)
		next = (int (*)(void *))dlsym(NEXT, "iperf_send_mt");
	result = next(stream);
	if (result >= 0 && writes == before)
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, 0);
	return result;
}

int select(int count, fd_set *reading, fd_set *writing, fd_set *other, struct timeval *timeout)
{
	static int (*next)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	struct timeval pause = { .tv_usec = PAUSE_US };

	if (!next)
		next = (int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))dlsym(NEXT, "select");
	if (timeout && !timeout->tv_sec && !timeout->tv_usec)
		timeout = &pause;
	return next(count, reading, writing, other, timeout);
}
