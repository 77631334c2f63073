/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A killed process cannot restore its interface. So the interface's old state is in a file from
 * before the first change until it is restored, and the next process that uses the interface
 * restores it.
 *
 * The file is next to EAL's runtime directories (/run/dpdk) and locked while its process lives; a
 * file without lock was left by a killed process. Its name contains the network namespace and the
 * interface's index.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/file.h>

#include <rte_eal.h>

#include "link/interface.h"
#include "link/private.h"

#define TRIES  10
#define RECORD UINT64_C(0x31746e6961636c70) /* another number for another struct record */

/* The file's content. It is from another process, and perhaps from another version. */
struct record {
	uint64_t magic; /* RECORD */
	uint32_t size; /* of this */
	int32_t mtu;
	int32_t set_mtu;
	uint16_t flags;
	uint16_t set_flags;
	struct sockaddr hwaddr;
	uint8_t set_mac[MAC_LEN];
	uint8_t reserved[2];
};

static bool
file_path(const struct interface_state *s, char path[PATH_MAX])
{
	const char *slash = strrchr(rte_eal_get_runtime_dir(), '/');
	struct stat ns;

	if (slash == NULL || stat("/proc/self/ns/net", &ns) != 0)
		return false;
	return snprintf(path, PATH_MAX, "%.*s/polca-interface-%" PRIu64 "-%u",
		       (int)(slash - rte_eal_get_runtime_dir()), rte_eal_get_runtime_dir(),
		       (uint64_t)ns.st_ino, s->index) < PATH_MAX;
}

void
interface_file_open(struct interface_state *s)
{
	char path[PATH_MAX];
	struct stat st;
	unsigned int i;

	s->file = -1;
	if (!file_path(s, path))
		return;
	for (i = 0; i < TRIES && s->file < 0; i++) {
		s->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (s->file < 0)
			return;
		if (flock(s->file, LOCK_EX | LOCK_NB) == 0 && fstat(s->file, &st) == 0 &&
			st.st_nlink > 0)
			return;
		/* a living process has it, or another one removed it just now: try again */
		close(s->file);
		s->file = -1;
	}
}

bool
interface_file_read(const struct interface_state *now, struct interface_state *was)
{
	uint8_t bytes[sizeof(struct record) + 1]; /* a longer one is another version's */
	struct record r;

	if (now->file < 0 || pread(now->file, bytes, sizeof(bytes), 0) != sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	if (r.magic != RECORD || r.size != sizeof(r))
		return false;
	*was = *now; /* it may have been renamed since */
	was->mtu = r.mtu;
	was->set_mtu = r.set_mtu;
	was->flags = r.flags;
	was->set_flags = r.set_flags;
	was->hwaddr = r.hwaddr;
	memcpy(was->set_mac, r.set_mac, sizeof(r.set_mac));
	return true;
}

void
interface_file_write(const struct interface_state *s)
{
	struct record r = {
		.magic = RECORD,
		.size = sizeof(r),
		.mtu = s->mtu,
		.set_mtu = s->set_mtu,
		.flags = s->flags,
		.set_flags = s->set_flags,
		.hwaddr = s->hwaddr,
	};

	if (s->file < 0)
		return;
	memcpy(r.set_mac, s->set_mac, sizeof(r.set_mac));
	if (pwrite(s->file, &r, sizeof(r), 0) != sizeof(r) || ftruncate(s->file, sizeof(r)) != 0)
		LINK_LOG(WARNING, "%s: what it was could not be noted: %m", s->name);
}

void
interface_file_remove(struct interface_state *s)
{
	char path[PATH_MAX];

	if (s->file < 0)
		return;
	/* polca without root may not remove a file of EAL's directory: empty, it says nothing */
	if (ftruncate(s->file, 0) != 0)
		LINK_LOG(WARNING, "%s: the record of what it was stays: %m", s->name);
	if (file_path(s, path))
		unlink(path);
	close(s->file);
	s->file = -1;
}
