/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The numbers of libibverbs, which peers and operators know, and their names (rc-transport 11). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/verdict.h"
#include "rc/verbs_types.h"
#include "wire/wire.h"

static void
test_completion_statuses(void **state)
{
	static const char *const names[] = { "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR",
		"LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
		"LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR",
		"RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR" };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(wc_status_name(i), names[i]);
	assert_string_equal(wc_status_name(20), "RESP_TIMEOUT_ERR");
	assert_string_equal(wc_status_name(24), "unknown");
	assert_int_equal(WC_LOC_LEN_ERR, 1);
	assert_int_equal(WC_LOC_QP_OP_ERR, 2);
	assert_int_equal(WC_LOC_PROT_ERR, 4);
	assert_int_equal(WC_WR_FLUSH_ERR, 5);
	assert_int_equal(WC_MW_BIND_ERR, 6);
	assert_int_equal(WC_BAD_RESP_ERR, 7);
	assert_int_equal(WC_REM_INV_REQ_ERR, 9);
	assert_int_equal(WC_REM_ACCESS_ERR, 10);
	assert_int_equal(WC_REM_OP_ERR, 11);
	assert_int_equal(WC_RETRY_EXC_ERR, 12);
	assert_int_equal(WC_RNR_RETRY_EXC_ERR, 13);
}

static void
test_opcodes(void **state)
{
	static const char *const wr[] = {
		"RDMA_WRITE",
		"RDMA_WRITE_WITH_IMM",
		"SEND",
		"SEND_WITH_IMM",
		"RDMA_READ",
		"ATOMIC_CMP_AND_SWP",
		"ATOMIC_FETCH_AND_ADD",
		"LOCAL_INV",
		"BIND_MW",
		"SEND_WITH_INV",
	};
	static const char *const wc[] = { "SEND", "RDMA_WRITE", "RDMA_READ", "COMP_SWAP",
		"FETCH_ADD", "BIND_MW", "LOCAL_INV" };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(wr) / sizeof(wr[0]); i++)
		assert_string_equal(wr_opcode_name(i), wr[i]);
	for (i = 0; i < sizeof(wc) / sizeof(wc[0]); i++)
		assert_string_equal(wc_opcode_name(i), wc[i]);
	assert_string_equal(wc_opcode_name(0x80), "RECV");
	assert_string_equal(wc_opcode_name(0x81), "RECV_RDMA_WITH_IMM");
	assert_int_equal(SEND_FENCE, 1);
	assert_int_equal(SEND_SIGNALED, 2);
	assert_int_equal(SEND_SOLICITED, 4);
	assert_int_equal(SEND_INLINE, 8);
}

static void
test_states_and_attribute_bits(void **state)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	static const uint32_t bits[] = {
		QP_ATTR_STATE,
		QP_ATTR_CUR_STATE,
		QP_ATTR_EN_SQD_ASYNC_NOTIFY,
		QP_ATTR_ACCESS_FLAGS,
		QP_ATTR_PKEY_INDEX,
		QP_ATTR_PORT,
		QP_ATTR_QKEY,
		QP_ATTR_AV,
		QP_ATTR_PATH_MTU,
		QP_ATTR_TIMEOUT,
		QP_ATTR_RETRY_CNT,
		QP_ATTR_RNR_RETRY,
		QP_ATTR_RQ_PSN,
		QP_ATTR_MAX_QP_RD_ATOMIC,
		QP_ATTR_ALT_PATH,
		QP_ATTR_MIN_RNR_TIMER,
		QP_ATTR_SQ_PSN,
		QP_ATTR_MAX_DEST_RD_ATOMIC,
		QP_ATTR_PATH_MIG_STATE,
		QP_ATTR_CAP,
		QP_ATTR_DEST_QPN,
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		assert_string_equal(qp_state_name(i), states[i]);
	assert_string_equal(mig_state_name(0), "MIGRATED");
	assert_string_equal(mig_state_name(1), "REARM");
	assert_string_equal(mig_state_name(2), "ARMED");
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		assert_int_equal(bits[i], 1u << i);
}

static void
test_asynchronous_events(void **state)
{
	static const char *const names[] = { "CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR",
		"COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR", "unknown", "PORT_ACTIVE",
		"PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "unknown",
		"SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE" };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(event_type_name(i), names[i]);
	assert_string_equal(event_type_name(EVENT_SM_SMP), "SM_SMP");
	assert_string_equal(event_type_name(EVENT_QP_ERROR), "QP_ERROR");
	assert_string_equal(event_type_name(EVENT_ADDRESS_CONFLICT), "ADDRESS_CONFLICT");
	assert_string_equal(event_type_name(EVENT_PEER_PAUSED), "PEER_PAUSED");
	assert_string_equal(event_type_name(EVENT_FLEET_LEADS), "FLEET_LEADS");
	assert_string_equal(event_type_name(EVENT_FLEET_AWAY), "FLEET_AWAY");
	assert_string_equal(event_type_name(EVENT_FLEET_ROOM), "FLEET_ROOM");
	assert_string_equal(event_type_name(EVENT_FLEET_REFUSED), "FLEET_REFUSED");
	assert_string_equal(event_type_name(EVENT_FLEET_REFUSED + 1), "unknown");
	assert_int_equal(EVENT_CQ_ERR, 0);
	assert_int_equal(EVENT_QP_REQ_ERR, 2);
	assert_int_equal(EVENT_QP_ACCESS_ERR, 3);
	assert_int_equal(EVENT_COMM_EST, 4);
	assert_int_equal(EVENT_SQ_DRAINED, 5);
	assert_int_equal(EVENT_SRQ_LIMIT_REACHED, 15);
	assert_int_equal(EVENT_QP_LAST_WQE_REACHED, 16);
}

/* The event that tells of a failed QP says why in words. */
static void
test_reasons_of_a_failure(void **state)
{
	static const struct {
		struct qp_failure why;
		const char *text;
	} rows[] = {
		{ { .reason = QP_FAILURE_CQ_OVERRUN }, "its completion queue has overrun" },
		{ { .syndrome = AETH_NAK_PSN_SEQUENCE, .verdict = VERDICT_NAK_SENT },
			"it refused a request: sent NAK 0x60 (PSN sequence error)" },
		{ { .syndrome = AETH_NAK_PSN_SEQUENCE + 2, .verdict = VERDICT_RESPONSE },
			"the peer refused its request: received NAK 0x62 (remote access error)" },
		{ { .status = WC_RETRY_EXC_ERR },
			"the peer did not answer, in spite of all retries" },
		{ { .status = WC_RNR_RETRY_EXC_ERR },
			"the peer had no receive posted, in spite of all retries" },
		{ { .status = WC_LOC_PROT_ERR }, "a work request failed: LOC_PROT_ERR" },
	};
	char buf[QP_FAILURE_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(qp_failure_print(&rows[i].why, buf), rows[i].text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completion_statuses),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_states_and_attribute_bits),
		cmocka_unit_test(test_asynchronous_events),
		cmocka_unit_test(test_reasons_of_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
