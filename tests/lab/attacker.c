// What somebody would try who has taken over the lab kernel's process itself: system calls of the machine, with no kernel of a guest between.
// `attacker SECRET FOLDER PORT`: tries to read SECRET, to change files beside FOLDER (which it may write to), and to reach the machine's processes
// and sockets. One line an attempt: its name, and "got it" or the error.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(const char *name, long result)
{
	printf("%s: %s\n", name, result >= 0 ? "got it" : strerror(errno));
}

static long connect_to(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, sizeof address);
}

static long read_memory_of(pid_t other)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)connect_to, 1 };

	return process_vm_readv(other, &here, 1, &there, 1, 0);
}

static long run(const char *program)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		execl(program, program, (char *)NULL);
		_exit(errno);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

int main(int argc, char **argv)
{
	char path[4096], parameters[256] = { 0 };
	struct rlimit core;

	if (argc != 4)
		return 2;
	const char *secret = argv[1], *folder = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof path, "%s/file", folder);
	report("write where it may", open(path, O_CREAT | O_WRONLY, 0644));
	report("read a file", open(secret, O_RDONLY));
	report("write a file", open(secret, O_WRONLY));
	report("truncate a file", truncate(secret, 0));
	report("remove a file", unlink(secret));
	report("change a file's mode", chmod(secret, 0777));
	report("change a file's mode at", fchmodat(AT_FDCWD, secret, 0777, 0));
	report("change a file's owner", chown(secret, 1, 1));
	report("change a file's times", utimensat(AT_FDCWD, secret, NULL, 0));
	report("change an attribute", syscall(SYS_setxattr, secret, "user.x", "x", 1, 0));
	snprintf(path, sizeof path, "%s/link", folder);
	report("leave a symbolic link", symlink(secret, path));
	report("leave a hard link", link(secret, path));
	report("leave a pipe", mknod(path, S_IFIFO | 0644, 0));
	report("list a folder", open("/etc", O_RDONLY | O_DIRECTORY));
	report("run a shell", run("/bin/sh"));
	report("open an internet socket", connect_to(atoi(argv[3])));
	report("open a local socket", socket(AF_UNIX, SOCK_STREAM, 0));
	report("open a packet socket", socket(AF_PACKET, SOCK_RAW, 0));
	report("open a netlink socket", socket(AF_NETLINK, SOCK_RAW, 0));
	report("set up an io_uring", syscall(SYS_io_uring_setup, 8, parameters));
	report("signal the parent", kill(getppid(), 0));
	report("trace the parent", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	report("read the parent's memory", read_memory_of(getppid()));
	report("take the parent's files", syscall(SYS_pidfd_open, getppid(), 0));
	report("make a user namespace", unshare(CLONE_NEWUSER));
	report("make a child in one", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	report("mount", mount("none", folder, "tmpfs", 0, NULL));
	report("enter a namespace", setns(0, 0));
	report("change root", chroot(folder));
	report("load a program into the kernel", syscall(SYS_bpf, 0, parameters, 64));
	report("count its events", syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0));
	report("use its keys", syscall(SYS_add_key, "user", "x", "x", 1, -2));
	report("share memory by number", shmget(1, 4096, IPC_CREAT | 0600));
	report("type into the terminal", ioctl(0, TIOCSTI, "x"));
	report("keep a core file", getrlimit(RLIMIT_CORE, &core) || core.rlim_max == 0 ? (errno = EPERM, -1) : 0);
	return 0;
}
