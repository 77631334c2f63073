/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* An error's text is what JSON can carry, whatever it quotes. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void
error_says(const char *quoted, const char *expected)
{
	struct error err;

	assert_int_equal(error_set(&err, EINVAL, "got \"%s\"", quoted), -EINVAL);
	assert_string_equal(err.text, expected);
}

static void
test_utf8_stays_as_it_is(void **state)
{
	(void)state;
	error_says("k\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80",
		"got \"k\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

/* RFC 3629 3: Latin-1, a lone continuation, overlong forms, surrogates, beyond U+10FFFF */
static void
test_bytes_that_are_no_text_become_question_marks(void **state)
{
	(void)state;
	error_says("k\xf6ln", "got \"k?ln\"");
	error_says("\x80", "got \"?\"");
	error_says("\xc0\xaf", "got \"??\"");
	error_says("\xed\xa0\x80", "got \"???\"");
	error_says("\xf4\x90\x80\x80", "got \"????\"");
}

static void
test_a_character_cut_at_the_end(void **state)
{
	char quoted[sizeof(((struct error *)NULL)->text)];
	struct error err;

	(void)state;
	memset(quoted, 'x', sizeof(quoted));
	memcpy(quoted + sizeof(quoted) - 2, "\xc3", 2);
	error_set(&err, EINVAL, "%s\xb6", quoted);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + sizeof(err.text) - 3, "x?");
}

static void
test_no_text_is_wanted(void **state)
{
	(void)state;
	assert_int_equal(error_set(NULL, ENOMEM, "\xff"), -ENOMEM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8_stays_as_it_is),
		cmocka_unit_test(test_bytes_that_are_no_text_become_question_marks),
		cmocka_unit_test(test_a_character_cut_at_the_end),
		cmocka_unit_test(test_no_text_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
