/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Fuzz the configuration's text. */

#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config config;
	static struct config_errors errs;
	unsigned int i;
	char *text = malloc(size + 1);

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	config_init(&config);
	if ((config_load(&config, NULL, text, &errs) < 0) != (errs.num > 0))
		abort(); /* an error must have a text */
	for (i = 0; i < errs.num && i < CONFIG_ERRORS_MAX; i++)
		if (errs.error[i].text[0] == '\0' || errs.error[i].line == 0)
			abort(); /* and a line */
	free(text);
	return 0;
}
