// SPDX-License-Identifier: Apache-2.0
// Client and server of the reference implementation's file protocol as programs of a node: settings and address come from the environment, any user
// may log in, and files are those of the folder in which the program starts. NOTTP (its word): over the kernel's TCP.

#include <arpa/inet.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "adapter.h"

#define ADDRESS_BYTES 25
#define STACK_BYTES (1 << 20)
#define CONTROL_PORT 2121

int fp_main(int argc, char **argv);

// What files say that are left out: when it was built, and where it connects at once.
char *builddate = "-", *buildtime = "-", *buildsize = "C", *a_host = "";
extern int port;

#ifdef NOTTP
char config_local_name[ADDRESS_BYTES];
#else
extern char config_local_name[ADDRESS_BYTES];

void parse_options(int argc, char **argv)
{
}

// Called for every socket, before it connects or listens.
void enable_options(int socket)
{
	static int is_set;

	if (!is_set)
		set_route();
	is_set = 1;
	set_socket(socket);
}
#endif

// What its file of defaults would set. The server calls it before its first session and after each.
int mibread(void)
{
#ifdef FP_SERVER
	extern int replywithtext;
	static int sessions;

	replywithtext = 1;
	if (sessions++) {
		printf("{\"event\": \"session-over\"}\n");
		fflush(stdout);
	}
#endif
	port = (int)environment_number("SCPSLAB_PORT", CONTROL_PORT);
	return 0;
}

// A host has one name here: its own. The server asks for it when it is about to listen.
struct hostent *fp_gethostbyname(const char *name)
{
	static struct in_addr address;
	static char *addresses[] = { (char *)&address, NULL };
	static struct hostent host = { .h_addrtype = AF_INET, .h_length = sizeof(address), .h_addr_list = addresses };

	host.h_name = config_local_name;
	inet_aton(config_local_name, &address);
#ifdef FP_SERVER
	printf("{\"event\": \"ready\"}\n");
	fflush(stdout);
#endif
	return &host;
}

struct passwd *fp_getpwnam(const char *name)
{
	static char user[] = "lab", password[] = "-", folder[] = ".";
	static struct passwd found = { .pw_name = user, .pw_passwd = password, .pw_dir = folder };

	found.pw_uid = getuid();
	found.pw_gid = getgid();
	return &found;
}

// Whatever the password is, it is the right one.
char *fp_crypt(const char *key, const char *salt)
{
	return (char *)salt;
}

static void run(void)
{
	static char name[] = "fp", *words[] = { name, NULL };

	exit(fp_main(1, words));
}

int main(void)
{
	static ucontext_t here, there;

	snprintf(config_local_name, ADDRESS_BYTES, "%s", environment_text("SCPSLAB_ADDRESS"));
#ifndef NOTTP
	read_settings();
#endif
	// Its pointers pass through 32 bits, and a program's first stack lies higher.
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(STACK_BYTES);
	there.uc_stack.ss_size = STACK_BYTES;
	makecontext(&there, run, 0);
	swapcontext(&here, &there);
	return 1;
}
