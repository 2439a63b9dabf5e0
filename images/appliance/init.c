// SPDX-License-Identifier: Apache-2.0
// The first process of the appliance: builds a root from the guest image, mounts the folders that the host shares, starts the program that runs cells
// (src/scpslab/engine/appliance/inside.py), waits for its end and powers off.
//
// The host shares folders through 9p, by these names: boot (guest.erofs in one of its folders, which the command line names with scpslab_boot=), lab,
// kernel, tools, program (all read-only), and exchange (cells in, records out).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MACHINE "/mnt/new/machine"
#define PROGRAM "/machine/program/appliance.py"

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void fail(const char *what)
{
	fprintf(stderr, "appliance: %s: %s\n", what, strerror(errno));
	power_off();
}

static void mount_at(const char *source, const char *target, const char *type, unsigned long flags, const char *options)
{
	mkdir(target, 0755);
	if (mount(source, target, type, flags, options))
		fail(target);
}

// Folders that nobody changes while the machine runs are kept in its memory once they were read.
static void mount_shared(const char *name, const char *target, int is_writable)
{
	char options[80];
	snprintf(options, sizeof options, "trans=virtio,version=9p2000.L,msize=512000,cache=%s", is_writable ? "none" : "loose");
	mount_at(name, target, "9p", is_writable ? 0 : MS_RDONLY, options);
}

int main(void)
{
	static const char *const shared[] = { "lab", "kernel", "tools", "program" };
	char path[4096];
	const char *boot = getenv("scpslab_boot");

	mount_at("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount_shared("boot", "/boot", 0);
	snprintf(path, sizeof path, "/boot/%s/guest.erofs", boot ? boot : ".");
	mount_at(path, "/lower", "erofs", MS_RDONLY, NULL);
	mount_at("tmpfs", "/mnt", "tmpfs", 0, NULL);
	if (mkdir("/mnt/upper", 0755) || mkdir("/mnt/work", 0755))
		fail("/mnt");
	mount_at("overlay", "/mnt/new", "overlay", 0, "lowerdir=/lower,upperdir=/mnt/upper,workdir=/mnt/work");
	mkdir(MACHINE, 0755);
	mkdir(MACHINE "/boot", 0755);
	if (mount("/boot", MACHINE "/boot", NULL, MS_MOVE, NULL))
		fail("boot");
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		snprintf(path, sizeof path, MACHINE "/%s", shared[i]);
		mount_shared(shared[i], path, 0);
	}
	mount_shared("exchange", MACHINE "/exchange", 1);
	mount_at("proc", "/mnt/new/proc", "proc", 0, NULL);
	mount_at("sysfs", "/mnt/new/sys", "sysfs", 0, NULL);
	mount_at("devtmpfs", "/mnt/new/dev", "devtmpfs", 0, NULL);
	// The memory of guests: all that the machine has, because nothing else of it needs much.
	mount_at("tmpfs", "/mnt/new/dev/shm", "tmpfs", 0, "size=100%,mode=1777");
	mount_at("tmpfs", "/mnt/new/tmp", "tmpfs", 0, "size=100%,mode=1777");
	mount_at("tmpfs", "/mnt/new/run", "tmpfs", 0, NULL);
	if (chdir("/mnt/new") || chroot(".") || chdir("/"))
		fail("/mnt/new");

	pid_t program = fork();
	if (program < 0)
		fail("fork");
	if (program == 0) {
		setsid();
		setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
		setenv("LANG", "C.UTF-8", 1);
		setenv("HOME", "/root", 1);
		execl("/usr/bin/python3", "python3", "-S", "-E", "-B", PROGRAM, (char *)NULL);
		perror(PROGRAM);
		_exit(127);
	}
	int status;
	while (waitpid(-1, &status, 0) != program)
		;
	power_off();
}
