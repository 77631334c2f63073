/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "imports.h"

#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_IMPORT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

struct redirection {
	const char *library;
	const char *function;
	void (*to)(void);
	int changed;
};

/* What a library's dynamic section says. */
struct dynamic {
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * relocations[2]; /* of data and of calls */
	size_t bytes[2];
};

static void
read_dynamic(const ElfW(Dyn) * d, struct dynamic *to)
{
	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			to->symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			to->names = (const char *)d->d_un.d_ptr;
			break;
		case DT_RELA:
			to->relocations[0] = (const ElfW(Rela) *)d->d_un.d_ptr;
			break;
		case DT_RELASZ:
			to->bytes[0] = d->d_un.d_val;
			break;
		case DT_JMPREL:
			to->relocations[1] = (const ElfW(Rela) *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			to->bytes[1] = d->d_un.d_val;
			break;
		default:
			break;
		}
	}
}

/* True if the linker has made the entry read-only after relocation. */
static bool
is_relro(const struct dl_phdr_info *info, uintptr_t entry)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_GNU_RELRO && entry - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/*
 * Two threads never change entries at once: dl_iterate_phdr() of the GNU C library holds the
 * dynamic linker's lock while it calls. What leads there already is left alone, and its page
 * read-only.
 */
static void
change_entry(const struct dl_phdr_info *info, uintptr_t entry, struct redirection *r)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)(entry & ~(page - 1));
	bool relro = is_relro(info, entry);

	if (__atomic_load_n((const uintptr_t *)entry, __ATOMIC_RELAXED) == (uintptr_t)r->to)
		return;
	if (relro && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
		return;
	__atomic_store_n((uintptr_t *)entry, (uintptr_t)r->to, __ATOMIC_RELEASE);
	if (relro)
		mprotect(start, page, PROT_READ);
	r->changed++;
}

static int
redirect_in_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
	struct redirection *r = arg;
	struct dynamic dyn = { 0 };

	(void)size;
	if (strncmp(name, r->library, strlen(r->library)) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_dynamic((const ElfW(Dyn) *)(info->dlpi_addr +
					     info->dlpi_phdr[i].p_vaddr),
				&dyn);
	for (int t = 0; t < 2 && dyn.symbols != NULL && dyn.names != NULL; t++) {
		const ElfW(Rela) *rela = dyn.relocations[t];

		for (size_t i = 0; rela != NULL && i < dyn.bytes[t] / sizeof(*rela); i++)
			if (IS_IMPORT(ELF64_R_TYPE(rela[i].r_info)) &&
				strcmp(dyn.names + dyn.symbols[ELF64_R_SYM(rela[i].r_info)].st_name,
					r->function) == 0)
				change_entry(info, info->dlpi_addr + rela[i].r_offset, r);
	}
	return 0;
}

int
imports_redirect(const char *library, const char *function, void (*to)(void))
{
	struct redirection r = { library, function, to, 0 };

	dl_iterate_phdr(redirect_in_object, &r);
	return r.changed;
}
