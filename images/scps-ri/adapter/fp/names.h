// SPDX-License-Identifier: Apache-2.0
// Included before each file of the reference implementation's file protocol. The system's headers come first, so that the names below change
// its words alone.
#ifndef NAMES_H
#define NAMES_H

#include <arpa/inet.h>
#include <arpa/telnet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// It counts octets and checksums in 32 bits, and passes such numbers by pointers of either type.
#define u_long uint32_t
// A tag of the headers of its time.
struct fd_set {
	__fd_mask __fds_bits[FD_SETSIZE / (8 * sizeof(__fd_mask))];
};
// Functions and types of its own with names that the C library has taken since.
#define getline fp_getline
#define sig_t fp_sig_t
typedef void fp_sig_t;
// It asks select for as many descriptors as there may be; today that is more than a set of them holds.
#define sysconf(what) 64
// What a node has in place of users, passwords and names of hosts (fp.c).
#define crypt fp_crypt
#define getpwnam fp_getpwnam
#define gethostbyname fp_gethostbyname
char *fp_crypt(const char *key, const char *salt);
struct passwd *fp_getpwnam(const char *name);
struct hostent *fp_gethostbyname(const char *name);
// fp.c has the program's beginning.
#define main fp_main
#ifdef NOTTP
#define select fp_select
int fp_select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *limit);
#else
// It calls this with numbers of SCPS-TP's sockets, which as the system's descriptors are others.
#define shutdown(socket, how) 0
#endif

#endif
