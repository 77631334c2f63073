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

#define TRIES 10
/* The file's content. It is from another process, and perhaps from another version. */
#define RECORD_LEN offsetof(struct interface_state, name)
#define RECORD     UINT64_C(0x31746e6961636c70) /* another number for another form of it */

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
	uint8_t bytes[RECORD_LEN + 1]; /* a longer one is another version's */

	if (now->file < 0 || pread(now->file, bytes, sizeof(bytes), 0) != RECORD_LEN)
		return false;
	*was = *now; /* it may have been renamed since */
	memcpy(was, bytes, RECORD_LEN);
	return was->magic == RECORD && was->size == RECORD_LEN;
}

void
interface_file_write(struct interface_state *s)
{
	if (s->file < 0)
		return;
	s->magic = RECORD;
	s->size = RECORD_LEN;
	if (pwrite(s->file, s, RECORD_LEN, 0) != RECORD_LEN || ftruncate(s->file, RECORD_LEN) != 0)
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
