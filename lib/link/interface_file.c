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
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>

#include "link/interface.h"
#include "link/private.h"

#define TRIES      10
#define RECORD_MAX 256

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
	char text[RECORD_MAX], mac[24], set_mac[24];
	ssize_t n;

	if (now->file < 0)
		return false;
	n = pread(now->file, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*was = *now;
	if (sscanf(text, "mtu %d %d flags %hx %hx mac %hu %23s %23s", &was->mtu, &was->set_mtu,
		    &was->flags, &was->set_flags, &was->hwaddr.sa_family, mac, set_mac) != 7)
		return false;
	return rte_ether_unformat_addr(mac, (void *)was->hwaddr.sa_data) == 0 &&
		rte_ether_unformat_addr(set_mac, (void *)was->set_mac) == 0;
}

void
interface_file_write(const struct interface_state *s)
{
	char text[RECORD_MAX], mac[RTE_ETHER_ADDR_FMT_SIZE], set_mac[RTE_ETHER_ADDR_FMT_SIZE];
	int len;

	if (s->file < 0)
		return;
	rte_ether_format_addr(mac, sizeof(mac), (const void *)s->hwaddr.sa_data);
	rte_ether_format_addr(set_mac, sizeof(set_mac), (const void *)s->set_mac);
	len = snprintf(text, sizeof(text), "mtu %d %d flags %hx %hx mac %hu %s %s\n", s->mtu,
		s->set_mtu, s->flags, s->set_flags, s->hwaddr.sa_family, mac, set_mac);
	if (pwrite(s->file, text, len, 0) != len || ftruncate(s->file, len) != 0)
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
