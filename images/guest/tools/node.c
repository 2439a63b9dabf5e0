// SPDX-License-Identifier: Apache-2.0
// `labtool node NAME`: a container of its own: mount, PID, network and UTS namespaces over the guest's software, with private
//   /etc, /var, /run and /tmp, and no more capabilities than a node needs. Prints the PID of the node's first process and stays until that ends or its standard input closes.
#define _GNU_SOURCE
#include "labtool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTFS_MAGIC 0x00c0ffee
#define BIT(capability) (1ULL << (capability))
// What root may do in a node: networks, raw sockets, any file of the node, other users' ids. Programs of the lab need no more: pppd, tc and ip change
// networks, tcpdump and ping open raw sockets, vsftpd takes a port below 1024, another user and another root. Nobody mounts, makes devices, traces
// others' processes, sets the clock, loads programs into the kernel or reboots.
static const unsigned long long KEPT = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
				       BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) |
				       BIT(CAP_SYS_CHROOT);

// Everything that enters the node takes over its first process's bounding set (exec.c).
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct kept[2] = { { 0 } };

	for (int number = 0; prctl(PR_CAPBSET_READ, number) >= 0; number++)
		if (!(KEPT >> number & 1) && prctl(PR_CAPBSET_DROP, number))
			return die("capabilities");
	for (int word = 0; word < 2; word++)
		kept[word].effective = kept[word].permitted = (unsigned int)(KEPT >> 32 * word);
	return syscall(SYS_capset, &header, kept) ? die("capabilities") : 0;
}

// What comes from the user's machine and goes back to it is the lab program's business; a node sees an empty folder.
static int hide_exchange(void)
{
	struct statfs found;

	if (statfs("/cell", &found) || found.f_type != HOSTFS_MAGIC)
		return 0;
	return mount("tmpfs", "/cell", "tmpfs", MS_RDONLY, NULL) ? die("/cell") : 0;
}

// /etc and /var keep the image's content and take changes in memory; /run and /tmp start empty.
static int private_folders(void)
{
	static const char *const LAYERED[] = { "etc", "var" };
	static const char *const EMPTY[] = { "/run", "/tmp" };
	char path[64], options[256];

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return die("/");
	if (mount("tmpfs", "/mnt", "tmpfs", 0, NULL))
		return die("/mnt");
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/mnt/%s", LAYERED[i]);
		mkdir(path, 0755);
		snprintf(path, sizeof path, "/mnt/%s.work", LAYERED[i]);
		mkdir(path, 0755);
		snprintf(path, sizeof path, "/%s", LAYERED[i]);
		snprintf(options, sizeof options, "lowerdir=/%s,upperdir=/mnt/%s,workdir=/mnt/%s.work", LAYERED[i], LAYERED[i], LAYERED[i]);
		if (mount("overlay", path, "overlay", 0, options))
			return die(path);
	}
	for (size_t i = 0; i < 2; i++)
		if (mount("tmpfs", EMPTY[i], "tmpfs", 0, NULL))
			return die(EMPTY[i]);
	if (mount("tmpfs", "/var/log", "tmpfs", 0, NULL))
		return die("/var/log");
	if (mount("proc", "/proc", "proc", 0, NULL))
		return die("/proc");
	if (mount("sysfs", "/sys", "sysfs", 0, NULL))
		return die("/sys");
	return 0;
}

static int write_name(const char *name)
{
	FILE *file = fopen("/etc/hostname", "w");
	if (!file)
		return die("/etc/hostname");
	fprintf(file, "%s\n", name);
	return fclose(file) ? die("/etc/hostname") : sethostname(name, strlen(name));
}

static int loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request))
		return die("lo");
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		return die("lo");
	return close(fd);
}

// The node's PID 1: sets itself up, says so with one byte, then only reaps what is left to it.
static int first_process(const char *name, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (private_folders() || hide_exchange() || write_name(name) || loopback_up() || drop_capabilities())
		return 1;
	if (write(ready, "+", 1) != 1)
		return die("ready");
	close(ready);
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			pause();
}

int node_main(int argc, char **argv)
{
	int ready[2];
	char byte, path[128];

	if (argc != 2) {
		fprintf(stderr, "labtool node: expected NAME\n");
		return 2;
	}
	if (pipe2(ready, O_CLOEXEC))
		return die("pipe");
	long pid = syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return die("clone");
	if (pid == 0) {
		close(ready[0]);
		_exit(first_process(argv[1], ready[1]));
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	// The name under /run/netns lets `ip -n NAME`, `tc -n NAME` and students find the node.
	char source[64];
	mkdir("/run/netns", 0755);
	snprintf(path, sizeof path, "/run/netns/%s", argv[1]);
	snprintf(source, sizeof source, "/proc/%ld/ns/net", pid);
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0444);
	if (fd < 0 || mount(source, path, NULL, MS_BIND, NULL))
		return die(path);
	close(fd);
	printf("%ld\n", pid);
	fflush(stdout);
	struct pollfd stdin_closed = { .fd = 0, .events = POLLIN };
	while (poll(&stdin_closed, 1, -1) >= 0)
		if (read(0, &byte, 1) <= 0)
			break;
	umount2(path, MNT_DETACH);
	unlink(path);
	kill((pid_t)pid, SIGKILL);
	return waitpid((pid_t)pid, NULL, 0) < 0;
}
