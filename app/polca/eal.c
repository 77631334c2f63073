/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Start and end DPDK's environment (EAL). */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_pdump.h>

#include "base/eal_host.h"
#include "eal.h"
#include "eal_output.h"
#include "log.h"
#include "numa_cards.h"

RTE_LOG_REGISTER(eal_logtype, polca.app, INFO);

static struct eal_args args; /* static: the EAL keeps pointers to its arguments */
static bool shares_memory; /* the EAL has files in hugetlbfs and in the runtime directory */

static void
say_warning(void *arg, const char *text)
{
	char line[512];

	RTE_SET_USED(arg);
	snprintf(line, sizeof(line), "polca: %s", text);
	log_say(RTE_LOG_WARNING, line);
}

static int
start_environment(const struct config *c, const char *extra, struct error *err)
{
	char *argv[RTE_DIM(args.argv)]; /* the EAL reorders it */
	char reason[160];
	bool failed, refused;

	memcpy(argv, args.argv, sizeof(argv));
	eal_output_hold();
	log_hold();
	failed = rte_eal_init(args.argc, argv) < 0;
	log_take_over();
	refused = eal_output_release(failed, reason, sizeof(reason));
	if (failed && eal_explain_host(err) != 0)
		return -ENOENT;
	if (refused)
		return error_set(err, EINVAL, "DPDK rejects its arguments: %s. Check %s%.60s%s",
			reason, extra != NULL ? "--eal \"" : "eal.lcores, eal.args",
			extra != NULL ? extra : "", extra != NULL ? "\" and eal.args" : "");
	return failed ? eal_explain(c, &args, err) : 0;
}

/* Enable dpdk-dumpcap. Polca also works without it. */
static void
serve_captures(void)
{
	char text[128];

	if (rte_pdump_init() == 0)
		return;
	snprintf(text, sizeof(text), "DPDK's packet capture is not available: %s",
		rte_strerror(rte_errno));
	say_warning(NULL, text);
}

int
eal_start(const struct config *c, const char *extra, struct error *err)
{
	int ret;

	ret = eal_args(c, extra, &args, err);
	if (ret != 0)
		return ret;
	numa_check_hugepages(c, "/sys", say_warning, NULL);
	ret = start_environment(c, extra, err);
	if (ret != 0)
		return ret;
	shares_memory = c->multi_process;
	if (shares_memory)
		serve_captures();
	return 0;
}

void
eal_log_arguments(void)
{
	char text[1024] = "";
	size_t len = 0;
	int i;

	for (i = 1; i < args.argc && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", args.argv[i]);
	rte_log(RTE_LOG_DEBUG, (uint32_t)eal_logtype, "polca: DPDK runs with%s\n", text);
}

void
eal_end(void)
{
	if (shares_memory)
		rte_pdump_uninit();
	eal_cleanup();
	if (shares_memory)
		eal_files_remove(&args);
}
