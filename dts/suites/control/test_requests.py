# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""JSON-RPC 2.0 on the control socket: valid requests are answered, wrong ones get a clear error."""

import json

import pytest

PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
GOOD = '{"jsonrpc":"2.0","id":%s,"method":"version_get"}'


def ask(polca, line):
    """Send one line, receive one line."""
    with polca.client() as c:
        c.send_raw((line if isinstance(line, bytes) else line.encode()) + b'\n')
        return json.loads(c.recv_line(10))


@pytest.mark.parametrize('line', [
    'nonsense', '{', '[', '{"jsonrpc":"2.0"', "{'jsonrpc':'2.0'}", GOOD % 1 + 'x',
    GOOD % 1 + GOOD % 2, '{"jsonrpc":"2.0","id":1,"id":2,"method":"version_get"}',
    b'{"jsonrpc":"2.0","id":1,"method":"version\xff_get"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', b'\x00', b'\x00\x01\x02\xff',
    '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', GOOD % ('9' * 400), GOOD % 'NaN',
    '{"jsonrpc":"2.0","id":1,"method":"version_get",}', 'true false'])
def test_parse_error(polca, line):
    r = ask(polca, line)
    assert r['error']['code'] == PARSE and r['id'] is None
    assert r['error']['message']


@pytest.mark.parametrize('line', [
    '[]', '[' + GOOD % 1 + ']', '1', '"version_get"', 'null', 'true', '{}', '{"id":1}',
    '{"id":1,"method":"version_get"}', '{"jsonrpc":"1.0","id":1,"method":"version_get"}',
    '{"jsonrpc":2.0,"id":1,"method":"version_get"}', '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"method":5}', '{"jsonrpc":"2.0","id":1,"method":null}',
    '{"jsonrpc":"2.0","id":1,"method":"version_get","params":5}',
    '{"jsonrpc":"2.0","id":1,"method":"version_get","extra":1}'])
def test_invalid_request(polca, line):
    r = ask(polca, line)
    assert r['error']['code'] == INVALID and r['error']['message']


@pytest.mark.parametrize('depth', [20, 1000, 100000])
@pytest.mark.parametrize('bracket', ['[]', '{}'])
def test_deep_document(polca, depth, bracket):
    """Deep nesting must not overflow the stack of a recursive parser."""
    text = '[' * depth + ']' * depth if bracket == '[]' else '{"a":' * depth + '1' + '}' * depth
    r = ask(polca, '{"jsonrpc":"2.0","id":1,"method":"version_get","params":%s}' % text)
    assert r['error']['code'] in (INVALID, PARSE, PARAMS)


@pytest.mark.parametrize('name', ['', 'no_such', 'VERSION_GET', 'version_get ', 'x' * 10000,
                                  '../version_get', '\\u0000', '%s%n'])
def test_unknown_method(polca, name):
    r = ask(polca, '{"jsonrpc":"2.0","id":7,"method":"%s"}' % name)
    assert (r['id'], r['error']['code']) == (7, NO_METHOD) or r['error']['code'] == PARSE
    assert len(r['error']['message']) < 2000


@pytest.mark.parametrize('ident', ['1', '-5', '0', '"text"', 'null', '9007199254740993', '""'])
def test_the_id_comes_back(polca, ident):
    r = ask(polca, GOOD % ident)
    assert r['id'] == json.loads(ident) and r['jsonrpc'] == '2.0' and 'version' in r['result']


def test_a_notification_is_not_answered(polca):
    with polca.client() as c:
        c.send_raw(b'{"jsonrpc":"2.0","method":"version_get"}\n' + (GOOD % 2).encode() + b'\n')
        assert json.loads(c.recv_line(10))['id'] == 2


def test_pipelined_requests_are_answered_in_order(polca):
    with polca.client() as c:
        c.send_raw(b''.join((GOOD % i).encode() + b'\n' for i in range(500)))
        assert [json.loads(c.recv_line(20))['id'] for i in range(500)] == list(range(500))


def test_an_octet_at_a_time(polca):
    with polca.client() as c:
        for octet in (GOOD % 3).encode() + b'\n':
            c.send_raw(bytes([octet]))
        assert json.loads(c.recv_line(10))['id'] == 3


def test_errors_in_between_leave_the_connection_good(polca):
    with polca.client() as c:
        for i in range(20):
            c.send_raw(b'{oops}\n')
            assert json.loads(c.recv_line(10))['error']['code'] == PARSE
            assert c('version_get')['pid'] > 0


# ---- parameters, from the table that describes them

WRONG = {
    'number': [True, None, -1, 1.5, 'x', '', '0x', '12', [], {}, 2**63 - 1, '0x1' + '0' * 40],
    'text': [True, None, 5, [], {}, 'x' * 100000],
    'bool': [0, 1, 'true', None, []],
    'list': [5, True, 'x', [5], [[]], [{}], [{'no_such': 1}], None],
    'object': [5, True, 'x', [], None, {'no_such': 1}],
}


def methods(polca):
    return polca.rpc('rpc_list')['methods']


def kind_of(param):
    t = param['type']
    if 'int' in t or t in ('uint', 'number'):
        return 'number'
    if 'bool' in t:
        return 'bool'
    if 'list' in t or 'flags' in t:
        return 'list'
    if 'object' in t:
        return 'object'
    return 'text'


def test_every_method_is_described(polca):
    names = [m['name'] for m in methods(polca)]
    for name in '''pd_create mr_register mr_read mr_write mr_deregister cq_create cq_poll srq_create
            qp_create qp_modify qp_connect qp_list qp_show qp_destroy post_send post_recv events
            port_list version_get worker_list stats_get rpc_list'''.split():
        assert name in names
    for m in methods(polca):
        assert m['help'] and all(p['help'] and p['type'] for p in m['params']), m['name']


def test_unknown_parameter_is_an_error_in_every_method(polca):
    for m in methods(polca):
        r = polca.rpc.request(m['name'], {'no_such_parameter': 1})
        assert r['error']['code'] == PARAMS, m['name']
        assert 'no_such_parameter' in r['error']['message']


def test_missing_parameters_are_named(polca):
    for m in methods(polca):
        required = [p['name'] for p in m['params'] if p.get('required')]
        if required:
            r = polca.rpc.request(m['name'], {})
            assert r['error']['code'] == PARAMS, m['name']
            assert any(name in r['error']['message'] for name in required), r


def test_wrong_types_are_errors_that_name_the_parameter(polca):
    tried = 0
    for m in methods(polca):
        for p in m['params']:
            for value in WRONG[kind_of(p)]:
                r = polca.rpc.request(m['name'], {p['name']: value})
                if 'error' not in r:  # not everything here is wrong for every parameter
                    assert m['name'] not in ('qp_create', 'mr_register', 'post_send'), (m, value)
                    continue
                assert r['error']['code'] == PARAMS or r['error']['code'] > -32600, r
                assert r['error']['message'] and len(r['error']['message']) < 2000
                tried += 1
    assert tried > 500


def test_an_error_says_what_was_got_and_what_is_allowed(polca):
    r = polca.rpc.request('qp_modify', {'qp_num': 17, 'retry_cnt': 9})
    assert r['error']['code'] == PARAMS
    d = r['error']['data']
    assert d['parameter'] == 'retry_cnt' and '9' in str(d['got']) and '7' in d['allowed']
    r = polca.rpc.request('post_send', {'qp_num': 17, 'wr': [
        {'opcode': 'SEND'}, {'opcode': 'SEND', 'sg_list': [{'length': 'x'}]}]})
    assert r['error']['data']['parameter'] == 'wr[1].sg_list[0].length'


@pytest.mark.parametrize('method,params', [
    ('qp_show', {'qp_num': 0xffffff}), ('qp_destroy', {'qp_num': 0}), ('qp_destroy', {'qp_num': 1}),
    ('cq_poll', {'cq': 4000000000}), ('cq_destroy', {'cq': 4000000000}),
    ('pd_destroy', {'pd': 4000000000}), ('mr_deregister', {'key': 0}),
    ('mr_read', {'key': 0xffffffff, 'length': 1}), ('mw_destroy', {'key': 12345}),
    ('srq_destroy', {'srq': 4000000000}), ('post_recv', {'qp_num': 5, 'wr': [{}]}),
    ('qp_create', {'pd': 99999, 'send_cq': 0}), ('mr_register', {'pd': 99999, 'length': 8}),
    ('mr_register', {'pd': 0, 'length': 2**62}), ('stats_get', {'port': 31}),
    ('stats_get', {'worker': 99}), ('stats_get', {'qp_num': 0xfffffe})])
def test_objects_that_are_not_there(polca, method, params):
    r = polca.rpc.request(method, params)
    assert r['error']['code'] < 0 and r['error']['message']


# ---- objects

def test_tables_run_full_with_a_clear_error_and_recover(polca, hca):
    made = []
    while True:
        r = polca.rpc.request('cq_create', {'depth': 4})
        if 'error' in r:
            break
        made.append(r['result']['cq'])
        assert len(made) <= 256
    assert 'completion queue' in r['error']['message'] or 'max_cq' in r['error']['message']
    for cq in made:
        polca.rpc('cq_destroy', cq=cq)
    hca.cq()


def test_what_is_in_use_is_busy(polca, hca):
    q = hca.qp()
    for method, params in (('cq_destroy', {'cq': q.cq}), ('pd_destroy', {'pd': hca.pd})):
        r = polca.rpc.request(method, params)
        assert r['error']['data']['errno'] == 'EBUSY'


def test_memory_is_bounded_at_both_ends(polca, hca):
    mr = hca.mr(4096)
    mr.write(4090, b'123456')
    assert mr.read(4090, 6) == b'123456'
    for method, more in (('mr_read', {'length': 7}), ('mr_write', {'data': '00' * 7})):
        r = polca.rpc.request(method, dict({'key': mr.key, 'offset': 4090}, **more))
        assert 'error' in r
        r = polca.rpc.request(method, dict({'key': mr.key, 'offset': 2**63 - 1}, **more))
        assert 'error' in r
    for data in ('0', 'zz', '0x00', 5, '00 00'):
        assert 'error' in polca.rpc.request('mr_write', {'key': mr.key, 'data': data})
    assert mr.read(4090, 6) == b'123456'


@pytest.mark.parametrize('wr', [
    {'opcode': 'SEND', 'sg_list': [{'key': 1, 'length': 1}]},
    {'opcode': 'SEND', 'inline_data': '00' * 513},
    {'opcode': 'SEND', 'inline_data': '00', 'sg_list': [{'key': 1, 'length': 1}]},
    {'opcode': 'NOPE'}, {'opcode': 'BIND_MW'}, {'opcode': 'SEND', 'bind_mw': {'mw_key': 1}},
    {'opcode': 'SEND', 'send_flags': ['LOUD']}, {'opcode': 'SEND', 'send_flags': ['INLINE']},
    {'opcode': 'RDMA_WRITE', 'remote_addr': -1}, {'opcode': 'SEND', 'imm_data': 2**32}])
def test_work_requests_that_cannot_be(polca, traffic, wr):
    r = polca.rpc.request('post_send', {'qp_num': traffic.qa.qpn, 'wr': [wr]})
    assert r['error']['code'] < 0
    traffic.qa.expect_no_completion()


def test_a_full_queue_says_how_many_went(polca, hca):
    q = hca.qp(max_recv_wr=4)
    q.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=[])
    r = polca.rpc.request('post_recv', {'qp_num': q.qpn, 'wr': [{}] * 5})
    assert r['error']['data'] == {'posted': 4, 'errno': 'ENOMEM'}


def test_lists_page(polca, hca):
    mine = [hca.cq() for _ in range(10)]
    seen, cursor = [], None
    while True:
        page = polca.rpc('cq_list', max=3, **({} if cursor is None else {'cursor': cursor}))
        assert len(page['cqs']) <= 3
        seen += [row['cq'] for row in page['cqs']]
        cursor = page['cursor']
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) and set(mine) <= set(seen)


# ---- state machine of ibv_modify_qp (rc-transport 11)

def test_modify_names_what_is_missing_and_what_is_not_allowed(polca, hca):
    q = hca.qp()
    bad = [dict(qp_state='INIT'), dict(qp_state='INIT', port=0, pkey_index=0),
           dict(qp_state='RTR'), dict(qp_state='RTS'), dict(qp_state='SQD'), dict(qp_state='ERR'),
           dict(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=[], retry_cnt=1),
           dict(qp_state='INIT', port=7, pkey_index=0, qp_access_flags=[]),
           dict(qp_state='INIT', port=0, pkey_index=99, qp_access_flags=[])]
    for attr in bad:
        r = polca.rpc.request('qp_modify', dict(attr, qp_num=q.qpn))
        assert r['error']['data']['errno'] in ('EINVAL', 'ENETUNREACH'), (attr, r)
        assert r['error']['message']
        assert q.state() == 'RESET'
    q.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=[])
    assert q.state() == 'INIT'
    q.modify(qp_state='RESET')
    assert q.state() == 'RESET'


def test_connect_that_fails_leaves_the_queue_pair_in_reset(polca, hca):
    q = hca.qp()
    r = polca.rpc.request('qp_connect', dict(qp_num=q.qpn, dest_qp_num=1, dgid='fd00::1', rq_psn=0))
    assert r['error']['message'] and q.state() == 'RESET'
    r = polca.rpc.request('qp_connect', dict(qp_num=q.qpn, dest_qp_num=1, dgid='192.0.2.2',
                                             rq_psn=0, path_mtu=1000))
    assert 'error' in r and q.state() == 'RESET'


@pytest.mark.parametrize('group', ['239.1.2.3', 'ff0e::7'])
def test_a_reliable_connection_to_a_group_is_refused(polca, hca, group):
    q = hca.qp()
    r = polca.rpc.request('qp_connect', dict(qp_num=q.qpn, dest_qp_num=1, dgid=group, rq_psn=0,
                                             sgid_index=0))
    assert r['error']['message'] == ('dgid: got %s, a multicast group, expected the address of '
                                     'one endport' % group)
    assert q.state() == 'RESET'


def test_zero_rnr_timer_earns_a_warning(hca):
    q = hca.qp()
    r = q.connect(dest_qp_num=5, dgid='192.0.2.2', rq_psn=0, sq_psn=0, min_rnr_timer=0)
    assert '655' in r['warnings'][0]
