/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Words for components' values (sa-multipacket B10, smp-sma 3). */

#include "record_private.h"

/* clang-format off */
#define END                                                                                        \
	{                                                                                          \
		NULL, 0                                                                            \
	}
/* clang-format on */

const struct table_word sa_words_node_type[] = { { "ca", 1 }, { "switch", 2 }, { "router", 3 },
	END };

const struct table_word sa_words_mtu[] = { { "256", 1 }, { "512", 2 }, { "1024", 3 }, { "2048", 4 },
	{ "4096", 5 }, END };

/* Gb/s */
const struct table_word sa_words_rate[] = { { "2.5", 2 }, { "10", 3 }, { "30", 4 }, { "5", 5 },
	{ "20", 6 }, { "40", 7 }, { "60", 8 }, { "80", 9 }, { "120", 10 }, { "14", 11 },
	{ "56", 12 }, { "112", 13 }, { "168", 14 }, { "25", 15 }, { "100", 16 }, { "200", 17 },
	{ "300", 18 }, { "28", 19 }, { "50", 20 }, { "400", 21 }, { "600", 22 }, { "800", 23 },
	END };

const struct table_word sa_words_selector[] = { { "gt", 0 }, { "lt", 1 }, { "eq", 2 }, { "max", 3 },
	END };

const struct table_word sa_words_width[] = { { "1x", 1 }, { "4x", 2 }, { "8x", 4 }, { "12x", 8 },
	{ "2x", 16 }, END };

/* Gb/s per lane */
const struct table_word sa_words_speed[] = { { "2.5", 1 }, { "5", 2 }, { "10", 4 }, END };
const struct table_word sa_words_speed_ext[] = { { "14", 1 }, { "25", 2 }, { "50", 4 },
	{ "100", 8 }, END };

const struct table_word sa_words_port_state[] = { { "no_change", 0 }, { "down", 1 }, { "init", 2 },
	{ "armed", 3 }, { "active", 4 }, END };

const struct table_word sa_words_phys_state[] = { { "no_change", 0 }, { "sleep", 1 },
	{ "polling", 2 }, { "disabled", 3 }, { "training", 4 }, { "link_up", 5 },
	{ "error_recovery", 6 }, { "phy_test", 7 }, END };

const struct table_word sa_words_vls[] = { { "vl0", 1 }, { "vl0-1", 2 }, { "vl0-3", 3 },
	{ "vl0-7", 4 }, { "vl0-14", 5 }, END };

const struct table_word sa_words_sm_state[] = { { "not_active", 0 }, { "discovering", 1 },
	{ "standby", 2 }, { "master", 3 }, END };

const struct table_word sa_words_lease[] = { { "forever", 0xFFFFFFFF }, END };

const struct table_word sa_words_scope[] = { { "link", 2 }, { "site", 5 }, { "organization", 8 },
	{ "global", 14 }, END };

const struct table_word sa_words_join[] = { { "full", 1 }, { "non", 2 }, { "send_only_non", 4 },
	{ "send_only_full", 8 }, END };

const struct table_word sa_words_notice_type[] = { { "fatal", 0 }, { "urgent", 1 },
	{ "security", 2 }, { "sm", 3 }, { "info", 4 }, { "empty", 0x7F }, END };

const struct table_word sa_words_inform_type[] = { { "fatal", 0 }, { "urgent", 1 },
	{ "security", 2 }, { "sm", 3 }, { "info", 4 }, { "all", 0xFFFF }, END };

const struct table_word sa_words_trap[] = { { "all", 0xFFFF }, END };

const struct table_word sa_words_producer[] = { { "ca", 1 }, { "switch", 2 }, { "router", 3 },
	{ "class_manager", 4 }, { "all", 0xFFFFFF }, END };
