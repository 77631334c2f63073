/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * libbpf and libxdp print about six lines when net_af_xdp starts, even without an error. These
 * lines go to the log at level debug. The kernel's message about a program that it rejects is kept
 * for the error text. Only the driver's plug-in is linked with the two libraries, hence dlopen().
 */

#include <dlfcn.h>
#include <stdarg.h>

#include "link/device.h"
#include "link/private.h"

#define KERNEL "Kernel error message: "

/* As libbpf_print_fn_t and libxdp_print_fn_t, which differ only in the names of the levels. */
typedef int print_fn(int level, const char *fmt, va_list args);

static char kernel_words[128];
static bool begun;

static int __attribute__((format(printf, 2, 0)))
xdp_log_print(__rte_unused int level, const char *fmt, va_list args)
{
	const char *words;
	char text[256];

	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	words = strstr(text, KERNEL);
	if (words != NULL)
		snprintf(kernel_words, sizeof(kernel_words), "%s", words + strlen(KERNEL));
	LINK_LOG(DEBUG, "%s", text);
	return 0;
}

/* Other versions of the libraries still print to stderr. */
static void
set_print(const char *library, const char *function)
{
	print_fn *(*set)(print_fn * fn);
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	if (handle == NULL)
		return;
	*(void **)&set = dlsym(handle, function);
	if (set != NULL)
		set(xdp_log_print);
	dlclose(handle); /* the driver keeps it loaded */
}

void
xdp_log_begin(void)
{
	begun = true;
	kernel_words[0] = '\0';
	set_print("libbpf.so.1", "libbpf_set_print");
	set_print("libxdp.so.1", "libxdp_set_print");
}

const char *
xdp_log_kernel(void)
{
	return begun ? kernel_words : NULL;
}
