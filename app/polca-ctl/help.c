/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "args.h"
#include "help.h"
#include "methods.h"

#define COLUMN 26 /* where explanations begin */
#define WIDTH  96

static const char usage[] =
	"polca-ctl - talk to a running polca over its control socket\n"
	"\n"
	"Usage: polca-ctl [OPTION...] NOUN VERB [VALUE...] [--PARAMETER VALUE...]\n"
	"\n"
	"Options, anywhere on the line:\n"
	"  -s, --socket PATH   control socket; default: $POLCA_SOCKET, else /run/polca/polca.sock for root,\n"
	"                      $XDG_RUNTIME_DIR/polca.sock (or /tmp/polca-UID/polca.sock) for others;\n"
	"                      without that one root's, for whom its group admits\n"
	"      --json          print the result as JSON: exact numbers, for programs\n"
	"      --wait SECONDS  how long to wait for the reply (default 10, plus what a command itself waits)\n"
	"  -h, --help          this help, or that of a command: polca-ctl qp connect --help, polca-ctl help qp connect\n"
	"      --version\n";

static const char tail[] =
	"\n"
	"A first session, on the default of two ports joined back to back:\n"
	"  polca-ctl port list                       # the addresses\n"
	"  polca-ctl pd create                       # -> pd 1\n"
	"  polca-ctl mr register --pd 1 --length 1M --access LOCAL_WRITE,REMOTE_WRITE,REMOTE_READ\n"
	"  polca-ctl cq create                       # -> cq 0\n"
	"  polca-ctl qp create --pd 1 --send-cq 0    # once for each end: -> qp_num and sq_psn\n"
	"  polca-ctl qp connect QPN ADDRESS --dest-qp-num PEER --rq-psn PEERS_SQ_PSN [--port 1]\n"
	"  polca-ctl post send QPN --opcode RDMA_WRITE --sg-list key=KEY,length=1M --remote-addr VA --rkey KEY\n"
	"  polca-ctl cq poll 0 --timeout-ms 1000\n"
	"  polca-ctl cm listen rping --port 7471     # or let both ends negotiate all this: rping -c connects here\n"
	"\n"
	"Numbers may be written 4096, 0x1000 or 4K, and added: 0x7f0000000000+1K. " NUMBER_SUFFIXES
	". The first values on a line stand for the required parameters.\n"
	"\n"
	"Exit status: 0 done; 1 the server refused or failed; 2 the command line is wrong; 3 no connection, or no reply;\n"
	"4 (sa, smp, cm connect) the peer refused or did not answer. For ping and live ping, 1 means no answer; for live watch, 1 means that not all endports are up.\n";

void
help_help(void)
{
	printf("Explain commands.\n"
	       "\n"
	       "Usage: polca-ctl help [NOUN [VERB]]\n"
	       "\n"
	       "  polca-ctl help             all commands, and options for each of them\n"
	       "  polca-ctl help qp          the commands that begin with qp\n"
	       "  polca-ctl help qp connect  one command; the same as polca-ctl qp connect --help\n");
}

/* Print text from a column on, broken between words. @param at  the current column */
static void
print_wrapped(const char *text, int column, int at)
{
	size_t len;

	if (at >= column && at > 0)
		printf("\n%*s", column, "");
	else
		printf("%*s", column - at, "");
	at = column;
	while (*text != '\0') {
		len = strcspn(text, " ");
		if (at > column && at + 1 + (int)len > WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			at += printf(" ");
		}
		at += printf("%.*s", (int)len, text);
		text += len + (text[len] != '\0');
	}
	putchar('\n');
}

static void
list_method(const json_t *m)
{
	char words[128], text[256];
	const char *help = method_text(m, "help");

	snprintf(text, sizeof(text), "%.*s", first_sentence(help), help);
	print_wrapped(text, COLUMN,
		printf("  %s", method_words(method_text(m, "name"), words, sizeof(words))));
}

void
help_all(const json_t *methods)
{
	const char *area = "";
	json_t *m;
	size_t i;

	fputs(usage, stdout);
	json_array_foreach(methods, i, m) {
		if (strcmp(area, method_text(m, "area")) != 0)
			printf("\n%s:\n", method_text(m, "area"));
		area = method_text(m, "area");
		list_method(m);
	}
	fputs(tail, stdout);
}

void
help_group(const json_t *methods, char **words, int num)
{
	char prefix[128] = "";
	json_t *m;
	size_t i;
	int w;

	for (w = 0; w < num; w++)
		snprintf(prefix + strlen(prefix), sizeof(prefix) - strlen(prefix), "%s_", words[w]);
	printf("Commands:\n");
	json_array_foreach(methods, i, m) {
		if (strncmp(method_text(m, "name"), prefix, strlen(prefix)) == 0)
			list_method(m);
	}
	printf("\n\"polca-ctl");
	for (w = 0; w < num; w++)
		printf(" %s", words[w]);
	printf(" VERB --help\" explains one.\n");
}

static void
help_param(const json_t *p, const char *prefix, int indent)
{
	const char *type = method_text(p, "type");
	json_t *field;
	char name[64], option[64], text[1500];
	size_t i;
	int at;

	snprintf(name, sizeof(name), "%s%s", prefix, method_text(p, "name"));
	snprintf(text, sizeof(text), "%s", method_text(p, "help"));
	if (strcmp(type, "object") != 0 && strcmp(type, "list") != 0 &&
		strcmp(type, "address") != 0 && strcmp(type, "boolean") != 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; %s",
			method_text(p, "allowed"));
	if (json_is_true(json_object_get(p, "required")))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " (required)");
	else if (json_object_get(p, "default") != NULL)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " (default: %s)",
			method_text(p, "default"));
	at = printf("%*s", indent, "");
	if (json_object_get(p, "short") != NULL)
		at += printf("-%s, ", method_text(p, "short"));
	at += printf("%s", option_of(name, option, sizeof(option)));
	if (strcmp(type, "list") == 0 || args_takes_words(p))
		at += printf(" ...");
	print_wrapped(text, COLUMN + indent - 2, at);
	json_array_foreach(json_object_get(p, "fields"), i, field)
		help_param(field, args_prefix(p), indent + 2);
}

static void
help_result(const char *text)
{
	const char *colon, *end;
	char line[1024];
	int at;

	if (*text == '\0')
		return;
	printf("\nResult:\n");
	for (; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
		end = strchrnul(text, '\n');
		colon = strchr(text, ':');
		at = printf("  %.*s", (int)(colon - text), text);
		snprintf(line, sizeof(line), "%.*s", (int)(end - colon - 2), colon + 2);
		print_wrapped(line, COLUMN, at);
	}
}

/* True if a parameter is of type map, which takes NAME=VALUE words (see args_params()). */
static bool
takes_fields(const json_t *params)
{
	json_t *p;
	size_t i;

	json_array_foreach(params, i, p) {
		if (strcmp(method_text(p, "type"), "map") == 0)
			return true;
	}
	return false;
}

void
help_method(const json_t *method)
{
	json_t *p, *params = json_object_get(method, "params");
	char words[128];
	bool nested = false, numbers = false;
	size_t i;

	print_wrapped(method_text(method, "help"), 0, 0);
	printf("\nUsage: polca-ctl %s",
		method_words(method_text(method, "name"), words, sizeof(words)));
	json_array_foreach(params, i, p) {
		if (json_is_true(json_object_get(p, "required")))
			printf(" %s", method_text(p, "name"));
		else if (json_is_true(json_object_get(p, "plain")))
			printf(" [%s%s]", method_text(p, "name"), args_takes_words(p) ? "..." : "");
	}
	if (takes_fields(params))
		printf(" [FIELD=VALUE...]");
	printf("%s\n", json_array_size(params) > 0 ? " [--PARAMETER VALUE...]" : "");
	if (json_array_size(params) > 0)
		printf("\nParameters:\n");
	json_array_foreach(params, i, p) {
		help_param(p, "", 2);
		nested |= json_object_get(p, "fields") != NULL;
		numbers |= strcmp(method_text(p, "type"), "integer") == 0;
	}
	if (numbers)
		printf("\n" NUMBER_SUFFIXES ".\n");
	if (nested)
		printf("\nFields of an object are options too, if their name is unambiguous, or are given together: --sg-list "
		       "key=0x1a2b,length=4K.\nRepeat an option marked ... for each further item, or give JSON.\n");
	help_result(method_text(method, "result"));
	printf("\nExample:\n  %s\n", method_text(method, "example"));
}
