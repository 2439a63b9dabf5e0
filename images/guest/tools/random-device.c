// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: std::random_device takes its numbers from the kernel, which has the cell's seed.
//
// libstdc++ asks the processor first (RDSEED, RDRAND), and those numbers are others in every run. The names are those of its compiled interface,
// with strings of both kinds. A program that has libstdc++ inside of it (-static-libstdc++) is not reached.
//
// The library links nothing: it finds getrandom() in the C library of the program, whatever its version.
#include <stddef.h>
#include <sys/types.h>

extern ssize_t getrandom(void *, size_t, unsigned int);

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
