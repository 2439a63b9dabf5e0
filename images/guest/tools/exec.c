// SPDX-License-Identifier: Apache-2.0
// `labtool exec [--user UID] [--preload LIBRARY] PID COMMAND…`: runs a command in the container whose first process is PID, with no more rights than that
//   one can get: its mount, PID, network and UTS namespaces, its control group and its bounding set of capabilities. With a LIBRARY (virtual.c), C++
//   and OpenSSL leave the processor's random numbers alone, for they are no part of the cell's seed.
// `labtool exec-net PID COMMAND…` enters its network namespace only.
#define _GNU_SOURCE
#include "labtool.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPABILITIES = 64, PATH_BYTES = 512 };
// The bits of RDRAND and RDSEED, off (OPENSSL_ia32cap(3)).
#define WITHOUT_RANDOM_INSTRUCTIONS "~0x4000000000000000:~0x40000"

// The control group (version 2) that a file of /proc names.
static int group_of(const char *path, char *group)
{
	char line[PATH_BYTES];
	FILE *file = fopen(path, "r");
	if (!file)
		return die(path);
	*group = 0;
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "0::", 3))
			strcpy(group, line + 3);
	group[strcspn(group, "\n")] = 0;
	fclose(file);
	return 0;
}

// Enters the control group of a process (version 2), so that the container's limits hold for the command too.
static int join_cgroup(const char *pid)
{
	char path[PATH_BYTES], own[PATH_BYTES], group[PATH_BYTES], procs[2 * PATH_BYTES];
	int result = 0;

	snprintf(path, sizeof path, "/proc/%s/cgroup", pid);
	// Whoever is in the group already, or below it, stays there.
	if (group_of("/proc/self/cgroup", own) || group_of(path, group))
		return 1;
	if (strncmp(own, group, strlen(group))) {
		snprintf(procs, sizeof procs, "/sys/fs/cgroup%s/cgroup.procs", group);
		int fd = open(procs, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			result = die(procs);
		close(fd);
	}
	return result;
}

static unsigned long long bounding_set(const char *pid)
{
	char path[PATH_BYTES], line[PATH_BYTES];
	unsigned long long set = ~0ULL;

	snprintf(path, sizeof path, "/proc/%s/status", pid);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "CapBnd: %llx", &set);
	if (file)
		fclose(file);
	return set;
}

static int become(unsigned long long bounding, const char *user)
{
	// Each call is a stop in virtual time, so nothing is asked before it is done: whoever may not drop has it perhaps dropped already.
	for (int number = 0; number < CAPABILITIES; number++) {
		if (bounding >> number & 1 || !prctl(PR_CAPBSET_DROP, number))
			continue;
		if (errno == EINVAL)
			break;
		if (prctl(PR_CAPBSET_READ, number) == 1)
			return die("capabilities");
	}
	if (user) {
		unsigned int id = (unsigned int)strtoul(user, NULL, 10);
		if (setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id))
			return die(user);
	}
	return 0;
}

static pid_t inner;

static void pass_on(int signal_number)
{
	kill(inner, signal_number);
}

int exec_net_main(int argc, char **argv)
{
	char path[64];

	if (argc < 3) {
		fprintf(stderr, "labtool exec-net: expected PID COMMAND…\n");
		return 2;
	}
	snprintf(path, sizeof path, "/proc/%s/ns/net", argv[1]);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		return die(path);
	execvp(argv[2], argv + 2);
	return die(argv[2]);
}

int exec_main(int argc, char **argv)
{
	static const char *const KINDS[] = { "uts", "net", "pid", "mnt" };
	const char *user = NULL, *preloaded = NULL;
	int fds[4];
	char path[64];

	for (; argc > 3 && !strncmp(argv[1], "--", 2); argc -= 2, argv += 2)
		*(strcmp(argv[1], "--user") ? &preloaded : &user) = argv[2];
	if (argc < 3) {
		fprintf(stderr, "labtool exec: expected [--user UID] [--preload LIBRARY] PID COMMAND…\n");
		return 2;
	}
	unsigned long long bounding = bounding_set(argv[1]);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "/proc/%s/ns/%s", argv[1], KINDS[i]);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			return die(path);
	}
	if (join_cgroup(argv[1]))
		return 1;
	for (int i = 0; i < 4; i++)
		if (setns(fds[i], 0))
			return die(KINDS[i]);
	// A PID namespace takes effect for children only, so the command is one; a request to end is passed on to it.
	pid_t child = fork();
	if (child < 0)
		return die("fork");
	if (child == 0) {
		if (become(bounding, user) || (preloaded && (setenv("LD_PRELOAD", preloaded, 1) || setenv("OPENSSL_ia32cap", WITHOUT_RANDOM_INSTRUCTIONS, 1))))
			_exit(1);
		// After the change of user, which takes it back.
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[2], argv + 2);
		die(argv[2]);
		_exit(127);
	}
	int status;
	inner = child;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, pass_on);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
