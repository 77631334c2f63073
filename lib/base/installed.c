/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/installed.h"

const char *
installed_or(const char *installed, const char *in_tree)
{
	return access(installed, F_OK) == 0 ? installed : in_tree;
}

const char *
setup_host_script(void)
{
	return installed_or(POLCA_DATA "/setup-host.sh", "config/setup-host.sh");
}

const char *
example_directory(void)
{
	return installed_or(POLCA_DATA "/examples", "config");
}

const char *
drop_in_advice(const char *drop_in, char *buf, size_t size)
{
	buf[0] = '\0';
	if (getenv("INVOCATION_ID") != NULL) /* systemd.exec(5) */
		snprintf(buf, size,
			"; for the service: copy " POLCA_DATA
			"/systemd/%s to /etc/systemd/system/polca.service.d/, and type systemctl "
			"daemon-reload",
			drop_in);
	return buf;
}
