/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "screen.h"
#include "stopped.h"

/* xterm's sequences, which all terminals of today know */
#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define BOLD  "\033[7m"
#define PLAIN "\033[0m"
#define ERASE "\033[K" /* the rest of the line */

static struct termios before;

void
screen_close(void)
{
	if (write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1) < 0)
		return; /* the terminal is gone */
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void
screen_crashed(int sig)
{
	screen_close();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* The signal only has to end a wait. */
static void
screen_resized(int sig)
{
	(void)sig;
}

bool
screen_open(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT };
	struct termios raw;
	size_t i;

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
		return false;
	raw = before;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* Ctrl-Z would leave this screen behind */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		stopped_set_handler(crashes[i], screen_crashed);
	stopped_set_handler(SIGWINCH, screen_resized);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	return write(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1) > 0;
}

void
screen_size(unsigned int *columns, unsigned int *rows)
{
	struct winsize ws = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
	*columns = ws.ws_col > 0 ? ws.ws_col : 80;
	*rows = ws.ws_row > 0 ? ws.ws_row : 24;
}

void
screen_show(const char *text, const char *footer)
{
	unsigned int columns, rows, row;
	const char *line = text;
	size_t len;

	screen_size(&columns, &rows);
	printf(HOME);
	for (row = 0; row + 1 < rows; row++) {
		len = strcspn(line, "\n");
		printf("%s%.*s" ERASE PLAIN "\r\n", row == 0 ? BOLD : "",
			(int)(len < columns ? len : columns), line);
		line += len + (line[len] != '\0');
	}
	printf("%.*s" ERASE, (int)columns, footer);
	fflush(stdout);
}

int
screen_key(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char key;
	int n = poll(&p, 1, ms);

	if (n < 0)
		return errno == EINTR ? 0 : -1;
	if (n == 0)
		return 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}
