// SPDX-License-Identifier: Apache-2.0
// What the adapter's files share. They are compiled into each program of the reference implementation, beside the user's copy of its source.
#ifndef ADAPTER_H
#define ADAPTER_H

#include <stdint.h>

// A variable of the environment that is a whole number; `otherwise` where it is not set. Ends the program with code 2 if it is no number.
int64_t environment_number(const char *name, int64_t otherwise);

// A variable of the environment that has to be there; ends the program with code 2 where it is not.
const char *environment_text(const char *name);

int64_t now_us(void);

// Called whenever the program has nothing to do, before it waits. It may end the program.
extern void (*when_idle)(void);

#endif
