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

// Reads SCPSLAB_OPTIONS; ends the program with code 127 at a setting that the implementation does not have.
void read_settings(void);

// Applies what a route has, once scps_Init has made it and before there is a connection.
void set_route(void);

// Applies the settings of a connection.
void set_socket(int socket);

// Called whenever the program has nothing to do, before it waits. It may end the program.
extern void (*when_idle)(void);

#endif
