// SPDX-License-Identifier: Apache-2.0
// The switch between the reference implementation's threads, which has one for its protocol and one for the program that uses it. Its own is
// assembler for processors and compilers of the 1990s; this one is the C library's.

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "thread.h"

#define THREADS 16
#define STACK_BYTES (1 << 20)

struct context {
	struct threads *thread;
	ucontext_t machine;
};

static struct context contexts[THREADS];

static struct context *context_of(struct threads *thread)
{
	struct context *context = contexts;

	while (context->thread && context->thread != thread)
		if (++context == contexts + THREADS) {
			fprintf(stderr, "scps-ri: found more than %d threads; expected fewer\n", THREADS);
			exit(3);
		}
	context->thread = thread;
	return context;
}

static void first_run(void)
{
	scheduler.current->function();
	threadExit();
}

void threadHandoffCPU(struct threads *next, Th_Status status)
{
	struct threads *last = scheduler.current;
	struct context *from = context_of(last), *to = context_of(next);

	scheduler.current = next;
	last->status = status;
	if (next->status == Created) {
		next->status = Running;
		next->switch_time = last->switch_time = scheduler.switch_time;
		getcontext(&to->machine);
		to->machine.uc_stack.ss_sp = malloc(STACK_BYTES);
		to->machine.uc_stack.ss_size = STACK_BYTES;
		to->machine.uc_link = NULL;
		makecontext(&to->machine, first_run, 0);
	}
	if (from != to)
		swapcontext(&from->machine, &to->machine);
}
