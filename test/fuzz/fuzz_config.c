/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The configuration's text, as from a file. */

#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config config;
	struct error err = { 0 };
	char *text = malloc(size + 1);

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	config_init(&config);
	if ((config_load(&config, NULL, text, &err) < 0 || config_check(&config, &err) < 0) &&
			err.text[0] == '\0')
		abort(); /* a refusal always says why */
	free(text);
	return 0;
}
