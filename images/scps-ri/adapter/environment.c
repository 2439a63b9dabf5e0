// SPDX-License-Identifier: Apache-2.0
// What every program of the image needs: low memory, its environment, the time.

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "adapter.h"

#define SECOND_US 1000000

// Some of its pointers pass through 32 bits. The program lies there, and so does memory that comes from its heap alone.
__attribute__((constructor)) static void stay_low(void)
{
	mallopt(M_MMAP_MAX, 0);
}

int64_t environment_number(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	int64_t number;

	if (!text || !*text)
		return otherwise;
	number = strtoll(text, &end, 10);
	if (*end || number < 0) {
		fprintf(stderr, "%s: found \"%s\"; expected a whole number\n", name, text);
		exit(2);
	}
	return number;
}

const char *environment_text(const char *name)
{
	const char *text = getenv(name);

	if (!text || !*text) {
		fprintf(stderr, "%s: found nothing; expected a value\n", name);
		exit(2);
	}
	return text;
}

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}
