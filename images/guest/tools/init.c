// SPDX-License-Identifier: Apache-2.0
// The guest's first process: builds the root file system, seeds the kernel's random numbers, starts the lab program,
// waits for it and powers off. It knows nothing of plans or networks.
//
// The kernel's root is a folder of the user's machine with this program and guest.erofs in it, and further layers over it where a plan has them. Three names are looked up
// in the working folder of the kernel process: boot (that folder), lab (the lab program) and cell (what comes in; what goes out is in its folder out).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED_BYTES = 32 };

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void fail(const char *what)
{
	fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
	power_off();
}

static void mount_at(const char *source, const char *target, const char *type, unsigned long flags, const char *options)
{
	mkdir(target, 0755);
	if (mount(source, target, type, flags, options))
		fail(target);
}

static void set(const char *setting, const char *value)
{
	int fd = open(setting, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		fail(setting);
	close(fd);
}

// What is over the guest image, each layer over those behind it: programs of the user's, packages, Docker (src/scpslab/setup/images.py).
static const char *const LAYERS[] = { "programs", "pack", "docker" };

// A writable root: the read-only images under an overlay in memory, then the usual kernel file systems.
static void build_root(void)
{
	char layers[128] = "lowerdir=", image[32], place[32];
	size_t at = strlen(layers);

	for (size_t i = 0; i < sizeof LAYERS / sizeof *LAYERS; i++) {
		snprintf(image, sizeof image, "/%s.erofs", LAYERS[i]);
		snprintf(place, sizeof place, "/%s", LAYERS[i]);
		if (access(image, F_OK))
			continue;
		mount_at(image, place, "erofs", MS_RDONLY, NULL);
		at += (size_t)snprintf(layers + at, sizeof layers - at, "%s:", place);
	}
	snprintf(layers + at, sizeof layers - at, "/lower,upperdir=/mnt/upper,workdir=/mnt/work");
	mount_at("/guest.erofs", "/lower", "erofs", MS_RDONLY, NULL);
	mount_at("tmpfs", "/mnt", "tmpfs", 0, NULL);
	if (mkdir("/mnt/upper", 0755) || mkdir("/mnt/work", 0755) || mkdir("/mnt/root", 0755))
		fail("/mnt");
	mount_at("overlay", "/mnt/root", "overlay", 0, layers);
	if (chdir("/mnt/root"))
		fail("/mnt/root");
	mkdir("old", 0755);
	mount_at("none", "opt/scpslab", "hostfs", MS_RDONLY, "lab");
	mount_at("none", "cell", "hostfs", MS_RDONLY, "cell");
	// What comes in stays as it is: files of the user's cache may be in there under a second name.
	mount_at("none", "cell/out", "hostfs", 0, "cell/out");
	if (syscall(SYS_pivot_root, ".", "old") || chdir("/"))
		fail("pivot_root");
	mount_at("proc", "/proc", "proc", 0, NULL);
	mount_at("sysfs", "/sys", "sysfs", 0, NULL);
	mount_at("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount_at("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
	mount_at("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	mount_at("tmpfs", "/run", "tmpfs", 0, NULL);
	mount_at("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mount_at("tmpfs", "/var/log", "tmpfs", 0, NULL);
	mount_at("bpf", "/sys/fs/bpf", "bpf", 0, NULL);
	// A second place, because `tc -n` hides everything under /sys while it works.
	mount_at("bpf", "/run/bpf", "bpf", 0, NULL);
	mount_at("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	// From here on the kernel mounts no folder of the user's machine, for nobody, and makes none of these writable (images/lab-kernel/hostfs-sandbox.patch).
	set("/proc/sys/fs/hostfs_sealed", "1\n");
	// The stack of root's programs waits by it; it is more of the kernel than others need to reach.
	set("/proc/sys/kernel/io_uring_group", "0\n");
	set("/proc/sys/kernel/io_uring_disabled", "1\n");
	if (umount2("/old", MNT_DETACH))
		fail("/old");
	rmdir("/old");
	symlink("/proc/self/fd", "/dev/fd");
}

// In virtual time the kernel gets no randomness from outside: without this seed the first blocking getrandom() would wait for ever.
static void seed_random(const char *hex)
{
	struct {
		int bits;
		int size;
		unsigned char seed[SEED_BYTES];
	} entropy = { SEED_BYTES * 8, SEED_BYTES, { 0 } };

	for (int i = 0; i < SEED_BYTES; i++) {
		unsigned int byte;
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
			errno = EINVAL;
			fail("lab_seed");
		}
		entropy.seed[i] = (unsigned char)byte;
	}
	int fd = open("/dev/random", O_RDWR);
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &entropy))
		fail("/dev/random");
	close(fd);
}

int main(void)
{
	const char *seed = getenv("lab_seed");

	build_root();
	if (seed && strlen(seed) == 2 * SEED_BYTES)
		seed_random(seed);
	sethostname("lab", 3);

	pid_t lab = fork();
	if (lab < 0)
		fail("fork");
	if (lab == 0) {
		setsid();
		int console = open("/dev/tty0", O_RDWR);
		if (console >= 0 && ioctl(console, TIOCSCTTY, 1) == 0) {
			dup2(console, 0);
			dup2(console, 1);
			dup2(console, 2);
		}
		setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
		setenv("PYTHONHASHSEED", "0", 1);
		setenv("LANG", "C.UTF-8", 1);
		setenv("HOME", "/root", 1);
		setenv("TERM", getenv("lab_term") ? getenv("lab_term") : "dumb", 1);
		// -S: no site packages are searched, which halves the start-up of the interpreter.
		execl("/usr/bin/python3", "python3", "-S", "-E", "-B", "/opt/scpslab/run_lab.py", (char *)NULL);
		perror("init: python3");
		_exit(127);
	}
	int status;
	while (waitpid(-1, &status, 0) != lab)
		;
	power_off();
}
