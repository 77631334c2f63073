/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cap-ng.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_log.h>

#include "privileges.h"

RTE_LOG_REGISTER(privileges_logtype, polca.app, INFO);
#define PRIVILEGES_LOG(level, fmt, ...)                                                            \
	rte_log(RTE_LOG_##level, privileges_logtype, "polca: " fmt "\n", ##__VA_ARGS__)

#define CAP_BIT(cap) (UINT64_C(1) << (cap))

/*
 * The drop-ins of config/systemd name the same capabilities. vfio, vhost-user, and ports in memory
 * need none; mlx4 and mlx5 make queues through the kernel's driver.
 */
static const struct link_needs link_needs[] = {
	{ "net_af_packet", CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN), AF_PACKET, false },
	{ "net_af_xdp", CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN) | CAP_BIT(CAP_SYS_ADMIN),
		AF_XDP, true },
	{ "net_pcap", CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN), AF_PACKET, false },
	{ "net_tap", CAP_BIT(CAP_NET_ADMIN), 0, false },
	{ "mlx", CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN), 0, false },
};

/* Physical addresses, for a card under uio: the kernel shows them to a holder of this only. */
#define PHYSICAL_ADDRESSES CAP_BIT(CAP_SYS_ADMIN)

/*
 * To open files that programs on the verbs socket have mapped (mem/process_range.h). Only for a
 * polca that was given all of them by name, as by the drop-in verbs.conf: root has them by chance.
 * They are effective only while such a file is opened.
 */
#define MAPPED_FILES                                                                               \
	(CAP_BIT(CAP_CHECKPOINT_RESTORE) | CAP_BIT(CAP_SYS_PTRACE) | CAP_BIT(CAP_DAC_READ_SEARCH))

static const struct link_needs *
find_needs(const char *driver)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(link_needs); i++)
		if (strncmp(driver, link_needs[i].driver, strlen(link_needs[i].driver)) == 0)
			return &link_needs[i];
	return NULL;
}

void
privileges_never_gain(void)
{
	unsigned int cap;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (geteuid() == 0 || capng_get_caps_process() != 0)
		return;
	for (cap = 0; cap <= CAP_LAST_CAP; cap++)
		if ((MAPPED_FILES & CAP_BIT(cap)) != 0)
			capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, cap);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		PRIVILEGES_LOG(WARNING, "capabilities of verbs.conf stay effective");
}

/* Those of @p wanted that this process has. */
static uint64_t
capabilities_held(uint64_t wanted)
{
	unsigned int cap;

	if (capng_get_caps_process() != 0)
		return 0;
	for (cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!capng_have_capability(CAPNG_PERMITTED, cap))
			wanted &= ~CAP_BIT(cap);
	return wanted;
}

/*
 * The user to become, or NULL to stay the same. By default, root stays root without the capability
 * to change, as in a container, and with multi_process: files in hugetlbfs belong to root, and
 * secondary processes share them.
 */
static const struct passwd *
account(const struct config *c)
{
	const struct passwd *pw;

	if (geteuid() != 0)
		return NULL;
	if (c->user[0] != '\0')
		return strcmp(c->user, "root") != 0 ? getpwnam(c->user) : NULL;
	if (c->multi_process || capabilities_held(CAP_BIT(CAP_SETUID)) == 0)
		return NULL;
	pw = getpwnam("polca");
	return pw != NULL ? pw : getpwnam("nobody");
}

int
privileges_check(const struct config *c, struct error *err)
{
	const struct passwd *pw = c->user[0] != '\0' ? getpwnam(c->user) : NULL;

	if (c->user[0] == '\0')
		return 0;
	if (pw == NULL)
		return error_set(err, ENOENT, "security.user: this host has no user %s", c->user);
	if (geteuid() != 0 && geteuid() != pw->pw_uid)
		return error_set(err, EPERM,
			"security.user: only root can become %s; start polca as root or as %s",
			c->user, c->user);
	return 0;
}

/* A directory that polca made, or has to itself, is given to the user, who can then tidy it up. */
static void
give_directory(const char *path, const struct passwd *pw)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	/* others may write to /tmp, and a directory of another user is not polca's */
	if (fstat(fd, &st) == 0 && st.st_uid == 0 && (st.st_mode & S_IWOTH) == 0 &&
		fchown(fd, pw->pw_uid, (gid_t)-1) != 0)
		PRIVILEGES_LOG(WARNING, "%s cannot be given to %s: %s", path, pw->pw_name,
			strerror(errno));
	close(fd);
}

/* Let others pass through a directory of root: what is in it keeps its own protection. */
static void
let_pass(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_uid == 0 && (st.st_mode & S_IXOTH) == 0 &&
		fchmod(fd, (st.st_mode & ~S_IFMT) | S_IXOTH) != 0)
		PRIVILEGES_LOG(WARNING, "%s stays closed to others: %s", path, strerror(errno));
	close(fd);
}

static void
give_files(const struct config *c, const struct passwd *pw)
{
	char dir[PATH_MAX];

	give_directory(rte_eal_get_runtime_dir(), pw);
	/* EAL makes the directory above for its owner only, and the user removes files below it */
	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	let_pass(dirname(dir));
	if (!c->socket_directory_made)
		return;
	snprintf(dir, sizeof(dir), "%s", c->socket);
	give_directory(dirname(dir), pw);
}

/* A memif client opens the server's socket again when the server restarts. */
static bool
must_override_access(struct engine *e)
{
	char path[PATH_MAX];
	unsigned int i;

	for (i = 0; i < link_num_ports(engine_link(e)); i++)
		if (link_server_socket(engine_link(e), i, path, sizeof(path)) &&
			faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
			return true;
	return false;
}

static int
apply_capabilities(uint64_t keep, uint64_t idle)
{
	unsigned int cap;

	capng_clear(CAPNG_SELECT_CAPS);
	for (cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (((keep | idle) & CAP_BIT(cap)) != 0)
			capng_update(CAPNG_ADD, CAPNG_PERMITTED, cap);
		if ((keep & CAP_BIT(cap)) != 0)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, cap);
	}
	return capng_apply(CAPNG_SELECT_CAPS);
}

static void
print_capabilities(uint64_t set, char *text, size_t size)
{
	size_t len = 0;
	unsigned int cap;

	snprintf(text, size, "none");
	for (cap = 0; cap <= CAP_LAST_CAP && len < size; cap++)
		if ((set & CAP_BIT(cap)) != 0)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len > 0 ? " " : "",
				capng_capability_to_name(cap));
}

/* This thread keeps some capabilities. The others lose theirs with root's user ID. */
static int
become(const struct passwd *pw, uint64_t keep, struct error *err)
{
	unsigned int cap;
	int ret;

	capng_clear(CAPNG_SELECT_BOTH);
	for (cap = 0; cap <= CAP_LAST_CAP; cap++)
		if ((keep & CAP_BIT(cap)) != 0)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, cap);
	ret = capng_change_id((int)pw->pw_uid, (int)pw->pw_gid,
		CAPNG_INIT_SUPP_GRP | CAPNG_CLEAR_BOUNDING);
	if (ret != 0 || geteuid() != pw->pw_uid)
		return error_set(err, EPERM,
			"cannot become user %s (step %d of libcap-ng: %s); security.user \"root\" stays root",
			pw->pw_name, -ret, strerror(errno));
	return 0;
}

/* Become the user, with what the ports need: @p keep, of which this process may lack some. */
static int
give_up_root(const struct config *c, struct engine *e, const struct passwd *pw, uint64_t *keep,
	struct error *err)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	const uint64_t override = CAP_BIT(CAP_DAC_OVERRIDE);
	int ret;

	/* memory that is registered later is locked for a card, too */
	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	give_files(c, pw);
	ret = become(pw, *keep | override, err);
	if (ret != 0)
		return ret;
	if (apply_capabilities(*keep, override) == 0 && must_override_access(e))
		*keep |= override;
	return 0;
}

int
privileges_drop(const struct config *c, struct engine *e, const struct verbs_server *verbs,
	struct error *err)
{
	const struct link_needs *needs[LINK_PORTS_MAX] = { NULL };
	const struct passwd *pw = account(c);
	bool stays_root = pw == NULL && geteuid() == 0;
	unsigned int i, ports = link_num_ports(engine_link(e));
	char names[256] = "as before";
	struct link_state state;
	uint64_t keep = 0, idle = 0;
	int ret = 0;

	for (i = 0; i < ports; i++) {
		link_state(engine_link(e), i, &state);
		needs[i] = find_needs(state.driver);
		if (needs[i] != NULL)
			keep |= needs[i]->capabilities;
	}
	if (c->hugepages && rte_eal_iova_mode() == RTE_IOVA_PA)
		keep |= PHYSICAL_ADDRESSES;
	keep = capabilities_held(keep);
	if (verbs != NULL && geteuid() != 0 && capabilities_held(MAPPED_FILES) == MAPPED_FILES)
		idle = MAPPED_FILES;
	if (pw != NULL && verbs != NULL)
		verbs_tree_give(verbs, pw->pw_uid);
	if (pw != NULL)
		ret = give_up_root(c, e, pw, &keep, err);
	if (ret == 0 && !stays_root && apply_capabilities(keep, idle) != 0)
		ret = error_set(err, EPERM, "capabilities cannot be given up: %s", strerror(errno));
	if (ret == 0 && !stays_root)
		ret = privileges_drop_others(err);
	if (ret == 0)
		ret = system_calls_restrict(c->seccomp, needs, ports, err);
	if (ret != 0)
		return ret;
	if (!stays_root)
		print_capabilities(keep | idle, names, sizeof(names));
	PRIVILEGES_LOG(INFO, "runs as user %u, capabilities: %s", (unsigned int)geteuid(), names);
	return 0;
}
