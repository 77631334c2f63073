/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <rte_common.h>
#include <rte_debug.h>

#include "base/fault.h"

#define HANDLERS_MAX 4

static const int fault_signals[] = { SIGBUS, SIGSEGV };
static struct sigaction former_action[RTE_DIM(fault_signals)];
static fault_handler handler[HANDLERS_MAX]; /* up to the first NULL */

static const void *
instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (const void *)(uintptr_t)context->uc_mcontext.pc;
#else
	RTE_SET_USED(context);
	return NULL;
#endif
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	const struct fault f = { sig, info->si_addr, instruction_of(context) };
	const struct sigaction *former = &former_action[sig == fault_signals[1]];

	for (unsigned int i = 0; i < HANDLERS_MAX && handler[i] != NULL; i++)
		if (handler[i](&f))
			return;
	if (former->sa_flags & SA_SIGINFO)
		former->sa_sigaction(sig, info, context);
	else
		sigaction(sig, former, NULL); /* the access is repeated, and faults again */
}

static void
catch_signal(int sig, struct sigaction *former)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, now;

	sigaction(sig, NULL, &now);
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
		return;
	*former = now;
	sigaction(sig, &sa, NULL);
}

void
fault_add(fault_handler h)
{
	unsigned int i;

	for (i = 0; i < HANDLERS_MAX && handler[i] != NULL && handler[i] != h; i++)
		;
	RTE_VERIFY(i < HANDLERS_MAX);
	handler[i] = h;
	for (i = 0; i < RTE_DIM(fault_signals); i++)
		catch_signal(fault_signals[i], &former_action[i]);
}

struct code_search {
	const char *name;
	struct code_range found;
};

static int
look_at_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct code_search *s = arg;
	const ElfW(Phdr) *segment = object->dlpi_phdr, *end = segment + object->dlpi_phnum;

	RTE_SET_USED(size);
	if (strstr(object->dlpi_name, s->name) == NULL)
		return 0;
	while (segment < end && (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0))
		segment++;
	if (segment < end) {
		s->found.from = (const char *)(object->dlpi_addr + segment->p_vaddr);
		s->found.to = (const char *)s->found.from + segment->p_memsz;
	}
	return 1;
}

struct code_range
code_of_object(const char *name)
{
	struct code_search s = { .name = name };

	dl_iterate_phdr(look_at_object, &s);
	return s.found;
}
