// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: programs in virtual time have the kernel's numbers and its clock.
//
// std::random_device: libstdc++ asks the processor first (RDSEED, RDRAND), and those numbers are others in every run. The names are those of its compiled
// interface, with strings of both kinds. A program that has libstdc++ inside of it (-static-libstdc++) is not reached.
//
// clock_gettime(): the kernel shows its time in a page (images/lab-kernel/virtual-time-page.patch), so that reading it is no stop of the process. Reading it there
// moves nothing on. A program that turns in a loop until time has passed therefore asks the kernel from the 101st read at one instant on, as with the
// processor's clock.
//
// The library links nothing: it finds functions in the C library of the program, whatever its version.
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

extern ssize_t getrandom(void *, size_t, unsigned int);

enum { PAGE_BYTES = 4096, READS_OF_AN_INSTANT = 100, STEP_NS = 256, CLOCKS = CLOCK_MONOTONIC_RAW + 1, NS = 1000000000 };

/* What a thread knows of a clock: the page's time when it last looked, and how often it has looked since; what the clock shows more than the page. */
struct known {
	uint64_t seen;
	int64_t ahead;
	unsigned int reads;
	int is_compared;
};

static __thread struct known clocks[CLOCKS];
static const volatile uint64_t *page;
static int is_asked_for;

/* NULL where time is real. */
static const volatile uint64_t *time_page(void)
{
	if (!is_asked_for) {
		int error = errno;
		int fd = open("/proc/lab_clock", O_RDONLY | O_CLOEXEC);
		void *at = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

		if (fd >= 0)
			close(fd);
		page = at == MAP_FAILED ? NULL : at;
		is_asked_for = 1;
		errno = error;
	}
	return page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int is_kept = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW;
	const volatile uint64_t *time = is_kept ? time_page() : NULL;
	struct known *known = time ? &clocks[clock] : NULL;

	if (known && known->is_compared && (known->seen != *time || known->reads < READS_OF_AN_INSTANT)) {
		known->reads = known->seen == *time ? known->reads + 1 : 1;
		known->seen = *time;
		int64_t ns = (int64_t)known->seen + known->ahead;
		*now = (struct timespec){ .tv_sec = ns / NS, .tv_nsec = ns % NS };
		return 0;
	}
	uint64_t before = known ? *time : 0;
	int result = (int)syscall(SYS_clock_gettime, clock, now);
	if (known && !result) {
		known->seen = *time;
		/* The call takes one step. If more has passed, another thread or a signal's handler ran behind it, and the two cannot be compared. */
		if (known->seen - before <= STEP_NS) {
			known->ahead = now->tv_sec * (int64_t)NS + now->tv_nsec - (int64_t)known->seen;
			known->is_compared = 1;
		}
	}
	return result;
}

static unsigned int draw(void)
{
	unsigned int value;

	while (getrandom(&value, sizeof value, 0) != sizeof value)
		;
	return value;
}

/* random_device(token): whatever source was asked for. */
void _ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void *device, const void *token)
{
}

void _ZNSt13random_device7_M_initERKSs(void *device, const void *token)
{
}

void _ZNSt13random_device14_M_init_pretr1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void *device, const void *token)
{
}

void _ZNSt13random_device14_M_init_pretr1ERKSs(void *device, const void *token)
{
}

void _ZNSt13random_device7_M_finiEv(void *device)
{
}

unsigned int _ZNSt13random_device9_M_getvalEv(void *device)
{
	return draw();
}

unsigned int _ZNSt13random_device16_M_getval_pretr1Ev(void *device)
{
	return draw();
}

/* entropy(), in bits */
double _ZNKSt13random_device13_M_getentropyEv(const void *device)
{
	return 8.0 * sizeof(unsigned int);
}
