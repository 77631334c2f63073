/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The system calls of a running Polca. `dts/run --trace` compares the list with what the functional
 * suites make; dts/unused_system_calls.txt has the reasons of the rest, such as what glibc calls in
 * rare cases (a lost race, a full pipe, abort()). A new feature that needs another call finds it
 * so, or in the kernel's log: type=1326, syscall=N.
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_common.h>
#include <seccomp.h>

#include "privileges.h"

/* clang-format off */
static const int allowed_calls[] = {
	/* files */
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(close), SCMP_SYS(read), SCMP_SYS(readv),
	SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
	SCMP_SYS(msync), SCMP_SYS(ftruncate), SCMP_SYS(ftruncate64), SCMP_SYS(fallocate),
	SCMP_SYS(flock), SCMP_SYS(fcntl), SCMP_SYS(fcntl64), SCMP_SYS(dup), SCMP_SYS(dup2),
	SCMP_SYS(dup3), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
	SCMP_SYS(statx), SCMP_SYS(fstatfs), SCMP_SYS(statfs), SCMP_SYS(access), SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
	SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rmdir), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
	SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(chmod),
	SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(chown), SCMP_SYS(fchown),
	SCMP_SYS(fchownat), SCMP_SYS(umask), SCMP_SYS(getcwd), SCMP_SYS(pipe2),
	SCMP_SYS(sendfile),
	/* memory */
	SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(munmap), SCMP_SYS(mremap),
	SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(mlock), SCMP_SYS(mlock2), SCMP_SYS(munlock),
	SCMP_SYS(mbind), SCMP_SYS(get_mempolicy), SCMP_SYS(set_mempolicy),
	SCMP_SYS(move_pages), SCMP_SYS(memfd_create), SCMP_SYS(mincore),
	/* threads, signals and time; without execve(), a process can run no other program */
	SCMP_SYS(clone), SCMP_SYS(clone3), SCMP_SYS(futex), SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq), SCMP_SYS(gettid),
	SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
	SCMP_SYS(getegid), SCMP_SYS(getgroups), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler),
	SCMP_SYS(getcpu), SCMP_SYS(prctl), SCMP_SYS(arch_prctl), SCMP_SYS(exit),
	SCMP_SYS(exit_group), SCMP_SYS(restart_syscall), SCMP_SYS(pause), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigpending), SCMP_SYS(sigaltstack), SCMP_SYS(tgkill), SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(getrandom), SCMP_SYS(uname),
	SCMP_SYS(sysinfo), SCMP_SYS(getrlimit), SCMP_SYS(prlimit64), SCMP_SYS(getrusage),
	SCMP_SYS(capget), SCMP_SYS(capset), /* a thread gives up its capabilities; none gains one */
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2),
	SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	/* devices and sockets; socket() itself by its family */
	SCMP_SYS(ioctl), SCMP_SYS(socketpair), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept),
	SCMP_SYS(accept4), SCMP_SYS(connect), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(send), SCMP_SYS(sendto),
	SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg), SCMP_SYS(recv), SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg), SCMP_SYS(recvmmsg), SCMP_SYS(shutdown),
};
/* clang-format on */

static const int socket_families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

static int
allow_family(scmp_filter_ctx f, int family)
{
	return seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
		SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family));
}

static int
fill_filter(scmp_filter_ctx f, const struct link_needs *const *needs, unsigned int ports)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < RTE_DIM(allowed_calls) && ret == 0; i++)
		ret = seccomp_rule_add(f, SCMP_ACT_ALLOW, allowed_calls[i], 0);
	for (i = 0; i < RTE_DIM(socket_families) && ret == 0; i++)
		ret = allow_family(f, socket_families[i]);
	for (i = 0; i < ports && ret == 0; i++) {
		if (needs[i] == NULL)
			continue;
		if (needs[i]->family != 0)
			ret = allow_family(f, needs[i]->family);
		if (ret == 0 && needs[i]->loads_bpf)
			ret = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 0);
	}
	return ret;
}

int
system_calls_restrict(uint32_t mode, const struct link_needs *const *needs, unsigned int ports,
	struct error *err)
{
	scmp_filter_ctx f;
	int ret;

#ifdef POLCA_SANITIZED /* a sanitizer looks for leaks with ptrace() */
	mode = CONFIG_SECCOMP_OFF;
#endif
	if (mode == CONFIG_SECCOMP_OFF)
		return 0;
	f = seccomp_init(mode == CONFIG_SECCOMP_LOG ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(EPERM));
	if (f == NULL)
		return error_set(err, ENOMEM, "security.seccomp: no memory for the filter");
	/* all threads; in the kernel's log; found by bisection */
	ret = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (ret == 0)
		ret = seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1);
	if (ret == 0)
		ret = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (ret == 0)
		ret = fill_filter(f, needs, ports);
	if (ret == 0)
		ret = seccomp_load(f);
	seccomp_release(f);
	if (ret != 0)
		return error_set(err, -ret,
			"security.seccomp: the kernel takes no filter (%s); \"off\" starts without one",
			strerror(-ret));
	return 0;
}
