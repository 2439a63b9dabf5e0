// SPDX-License-Identifier: Apache-2.0
// Starts the lab kernel on the user's machine with no more of that machine than it needs. Not part of a guest.
// `confine [--run FILE] [--read PATH] [--write FOLDER] … -- COMMAND…`: COMMAND ends with the process that called this, gets no more rights and leaves no
//   core files. Landlock lets it run, read, or read and change what is named, and nothing else of the file system; seccomp lets it make the system calls
//   below, and no others. Where the machine's kernel has neither, COMMAND runs all the same: `confine --state` says which there are.
// docs/security.md says what each of them holds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Landlock's interface, as in linux/landlock.h, which the machine that compiles this may have in an older version than the one that runs it.
enum { SYS_CREATE_RULESET = 444, SYS_ADD_RULE, SYS_RESTRICT_SELF };
enum { RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };
enum {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_DIR = 1 << 7,
	MAKE_REG = 1 << 8,
	REFER = 1 << 13,
	TRUNCATE = 1 << 14,
};
// What a version knows: its rights are the lowest bits.
static const int RIGHTS_OF_VERSION[] = { 0, 13, 14, 15, 15, 16 };
enum { NETWORK_VERSION = 4, SCOPE_VERSION = 6 };
enum { BIND_AND_CONNECT = 3, ABSTRACT_SOCKETS_AND_SIGNALS = 3 };

struct ruleset_attributes {
	uint64_t files, network, scoped;
};

struct path_rule {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

static int fail(const char *what)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	return 126;
}

static int landlock_version(void)
{
	long version = syscall(SYS_CREATE_RULESET, NULL, 0, RULESET_VERSION);
	return version > 0 ? (int)version : 0;
}

static uint64_t known_rights(int version)
{
	int last = sizeof RIGHTS_OF_VERSION / sizeof *RIGHTS_OF_VERSION - 1;
	return (1ULL << RIGHTS_OF_VERSION[version < last ? version : last]) - 1;
}

static int new_ruleset(int version)
{
	struct ruleset_attributes wanted = {
		.files = known_rights(version),
		.network = version >= NETWORK_VERSION ? BIND_AND_CONNECT : 0,
		.scoped = version >= SCOPE_VERSION ? ABSTRACT_SOCKETS_AND_SIGNALS : 0,
	};
	size_t size = version >= SCOPE_VERSION ? 24 : version >= NETWORK_VERSION ? 16 : 8;
	return (int)syscall(SYS_CREATE_RULESET, &wanted, size, 0);
}

static int allow(int ruleset, int version, const char *kind, const char *path)
{
	uint64_t rights;
	struct stat found;
	struct path_rule rule = { .fd = open(path, O_PATH | O_CLOEXEC) };

	if (rule.fd < 0 || fstat(rule.fd, &found))
		return fail(path);
	if (!strcmp(kind, "--run"))
		rights = READ_FILE | EXECUTE;
	else if (!strcmp(kind, "--read"))
		rights = READ_FILE | READ_DIR;
	else
		rights = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG | MAKE_DIR | REMOVE_FILE | REMOVE_DIR | REFER;
	if (!S_ISDIR(found.st_mode))
		rights &= READ_FILE | WRITE_FILE | TRUNCATE | EXECUTE;
	rule.rights = rights & known_rights(version);
	if (syscall(SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0))
		return fail(path);
	close(rule.fd);
	return 0;
}

// What the lab kernel, a static program, asks of its host while it starts, runs and ends. It opens no sockets but pairs that lead to itself, so there is no call for one.
// Attributes of files are changed by open files only: Landlock says which may be opened, and nothing of attributes by name.
static const int CALLS[] = {
	// memory and processes: a guest's process is one of the host's, which the kernel traces
	SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_ptrace, SYS_wait4, SYS_exit, SYS_exit_group, SYS_execve,
	SYS_fork, SYS_vfork, SYS_kill, SYS_tgkill, SYS_tkill, SYS_getpid, SYS_gettid, SYS_getppid, SYS_setpgid, SYS_setsid, SYS_getpgrp, SYS_arch_prctl,
	SYS_set_tid_address, SYS_set_robust_list, SYS_futex, SYS_prlimit64, SYS_getrlimit, SYS_setrlimit, SYS_sched_yield, SYS_sched_getaffinity,
	SYS_sched_setaffinity, SYS_personality, SYS_uname, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_sysinfo,
	// signals and time
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_rt_sigpending, SYS_sigaltstack, SYS_pause,
	SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_time, SYS_alarm, SYS_setitimer, SYS_getitimer,
	SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_delete, SYS_restart_syscall,
	// files, pipes and the terminal
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_open, SYS_openat, SYS_openat2, SYS_close, SYS_dup, SYS_dup2,
	SYS_dup3, SYS_fcntl, SYS_pipe, SYS_pipe2, SYS_stat, SYS_lstat, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_access,
	SYS_faccessat, SYS_faccessat2, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_fchmod, SYS_fchown,
	SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_unlink, SYS_unlinkat, SYS_rename, SYS_renameat, SYS_renameat2, SYS_umask, SYS_poll, SYS_ppoll, SYS_select,
	SYS_pselect6, SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait, SYS_eventfd2, SYS_getrandom,
	// for a kernel that is forked: fewer files than it was given
	SYS_CREATE_RULESET, SYS_ADD_RULE, SYS_RESTRICT_SELF,
};
enum { CALL_COUNT = sizeof CALLS / sizeof *CALLS, FILTER_MOST = 64 + 2 * CALL_COUNT };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOW_OF(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument]))
#define HIGH_OF(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument]) + 4)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, yes, no)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

enum { NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET };

static int install_filter(void)
{
	static const struct sock_filter BEGIN[] = {
		LOAD(arch),
		IF_EQUAL(AUDIT_ARCH_X86_64, 1, 0),
		REFUSE(EPERM),
		LOAD(nr),
		// A child, but no namespace.
		IF_EQUAL(SYS_clone, 0, 4),
		LOW_OF(0),
		IF_ANY_BIT((unsigned int)NEW_NAMESPACES, 0, 1),
		REFUSE(EPERM),
		ALLOW,
		// Its flags are in memory, which a filter does not see: the C library then takes the older call.
		IF_EQUAL(SYS_clone3, 0, 1),
		REFUSE(ENOSYS),
		// The terminal, but nothing that types into it.
		IF_EQUAL(SYS_ioctl, 0, 5),
		LOW_OF(1),
		IF_EQUAL(TIOCSTI, 1, 0),
		IF_EQUAL(TIOCLINUX, 0, 1),
		REFUSE(EPERM),
		ALLOW,
		// What the kernel takes for a pipe to its own helper, which watches the size of the terminal's window.
		IF_EQUAL(SYS_socketpair, 0, 4),
		LOW_OF(0),
		IF_EQUAL(AF_UNIX, 0, 1),
		ALLOW,
		REFUSE(EPERM),
		IF_EQUAL(SYS_prctl, 0, 7),
		LOW_OF(0),
		IF_EQUAL(PR_SET_PDEATHSIG, 4, 0),
		IF_EQUAL(PR_SET_NAME, 3, 0),
		IF_EQUAL(PR_SET_TSC, 2, 0),
		IF_EQUAL(PR_SET_PTRACER, 1, 0),
		REFUSE(EPERM),
		ALLOW,
		// The times of an open file, not those of a name.
		IF_EQUAL(SYS_utimensat, 0, 6),
		LOW_OF(1),
		IF_EQUAL(0, 0, 3),
		HIGH_OF(1),
		IF_EQUAL(0, 0, 1),
		ALLOW,
		REFUSE(EPERM),
	};
	static struct sock_filter code[FILTER_MOST];
	unsigned short length = sizeof BEGIN / sizeof *BEGIN;

	memcpy(code, BEGIN, sizeof BEGIN);
	for (int i = 0; i < CALL_COUNT; i++) {
		code[length++] = (struct sock_filter)IF_EQUAL((unsigned int)CALLS[i], 0, 1);
		code[length++] = (struct sock_filter)ALLOW;
	}
	code[length++] = (struct sock_filter)REFUSE(EPERM);
	struct sock_fprog program = { length, code };
	// No slower for speculation's sake: what the guest runs is not in this process's memory.
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program))
		return 0;
	// Only kernels without seccomp may go on without it.
	return errno == ENOSYS || errno == EINVAL ? 0 : fail("seccomp");
}

static int restrict_files(int count, char **options)
{
	int version = landlock_version();

	if (!version)
		return 0;
	int ruleset = new_ruleset(version);
	if (ruleset < 0)
		return fail("landlock");
	for (int i = 0; i + 1 < count; i += 2)
		if (allow(ruleset, version, options[i], options[i + 1]))
			return 126;
	if (syscall(SYS_RESTRICT_SELF, ruleset, 0))
		return fail("landlock");
	close(ruleset);
	return 0;
}

// The lab kernel's memory begins with its program and goes on behind its heap. A heap at a random address, up to 1 GiB further on, would cost every guest another
// part of its memory, up to 16 MiB, and what the guest's kernel orders by address would have another order. Some containers refuse the call: it is not worth failing for.
static int fix_addresses(void)
{
	int now = personality(0xffffffff);

	return now != -1 && personality((unsigned int)now | ADDR_NO_RANDOMIZE) != -1;
}

static int print_state(void)
{
	unsigned int action = SECCOMP_RET_ERRNO;
	int has_filters = !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);

	printf("landlock %d\nseccomp %d\naddresses %d\n", landlock_version(), has_filters, fix_addresses());
	return 0;
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	pid_t parent = getppid();
	int first = 1;

	if (argc == 2 && !strcmp(argv[1], "--state"))
		return print_state();
	while (first + 1 < argc && (!strcmp(argv[first], "--run") || !strcmp(argv[first], "--read") || !strcmp(argv[first], "--write")))
		first += 2;
	if (first + 1 >= argc || strcmp(argv[first], "--")) {
		fprintf(stderr, "confine: expected [--run FILE] [--read PATH] [--write FOLDER] … -- COMMAND…, or --state\n");
		return 2;
	}
	// The caller may have ended before it was asked for.
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		return fail("parent");
	if (setrlimit(RLIMIT_CORE, &no_core) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail("rights");
	// Restartable sequences are noted in the static kernel's own memory, which the processes of the guest, its children, do not have.
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	fix_addresses();
	if (restrict_files(first - 1, argv + 1) || install_filter())
		return 126;
	execv(argv[first + 1], argv + first + 1);
	fail(argv[first + 1]);
	return 127;
}
