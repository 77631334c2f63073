# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Install, start, kill, hang, stop and purge: Polca's packages under a real systemd, as an operator sees them."""

import glob
import json
import os
import re
import subprocess

import pytest

import hugepages
from conn import wait_until
from guide import Section

TEST_SECONDS = 600  # the first test waits for the packages and the container

# one of each release, written by it (CONTRIBUTING, "A release")
DATABASES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../test/data/store')
WATCHDOG = '[Service]\nWatchdogSec=2\n'


def main_pid(host):
    return int(host.show('MainPID'))


def answers(host):
    return host.run('polca-ctl version get').returncode == 0


def test_install(host):
    # the container has no network, and what is only recommended is not all in it
    typed = Section('Build and install').command('apt install')
    host(typed.replace('apt install', 'apt-get -y --no-install-recommends install').replace('./build-deb', '/packages'))
    assert host('id -un polca').strip() == 'polca'
    assert host('stat -c %U:%a /var/lib/polca').strip() == 'polca:750'
    # the operator names card and addresses first
    assert host('systemctl is-enabled polca', check=False).strip() == 'disabled'
    assert host.show('ActiveState') == 'inactive'
    conffiles = host('dpkg-query -W -f "\\${Conffiles}" polca')
    assert '/etc/polca/polca.json' in conffiles and '/etc/default/polca' in conffiles
    for page in ('man8/polca.8', 'man5/polca.json.5', 'man1/polca-ctl.1', 'man1/polca-bench.1'):
        host('test -s /usr/share/man/%s.gz' % page)


DOCUMENTS = ('operator-guide', 'connect', 'services', 'rpc', 'security', 'compatibility')


def test_documents_are_installed(host):
    for name in DOCUMENTS:
        host('test -s /usr/share/doc/polca/%s.md' % name)
        for picture in re.findall(r'\]\((images/[^)]*)\)', host('cat /usr/share/doc/polca/%s.md' % name)):
            host('test -s /usr/share/doc/polca/' + picture)
    host('test -x /usr/share/doc/polca/examples/endport-hook.py')
    host('test -s /usr/share/doc/polca/examples/fabric-example.ibnetdiscover')


def test_an_editor_finds_the_schema(host):
    for file in ['/etc/polca/polca.json', *host('ls /usr/share/polca/examples/*.json').split()]:
        schema = json.loads(host('cat ' + file))['$schema']
        host('test -s ' + os.path.join(os.path.dirname(file), schema))


def test_manual_pages_have_the_sections_that_readers_look_for(host):
    def page(name):
        return host('zcat /usr/share/man/%s.gz' % name)

    daemon = page('man8/polca.8')
    for heading in ('FILES', 'ENVIRONMENT', 'EXIT STATUS', 'SERVICE'):
        assert '\n.SH "%s"\n' % heading in daemon, heading
    for word in ('/etc/polca/polca.json', '/run/polca/polca.sock', 'RUNTIME_DIRECTORY', *DROP_INS):
        assert word.replace('-', r'\-') in daemon, word
    config = page('man5/polca.json.5')
    assert '/etc/polca/polca.json' in config and '\n.SH "EXAMPLE"\n' in config
    assert 'config/' not in daemon and daemon.count('/usr/share/polca/examples') == 2
    # the heading of a command is what a user types
    assert '\n.SH "polca\\-ctl cm connect"\n' in page('man1/polca-ctl.1')
    for name in ('man8/polca.8', 'man5/polca.json.5', 'man1/polca-ctl.1', 'man1/polca-bench.1'):
        assert re.match(r'\.TH \S+ \d "(\d{4}-\d\d-\d\d|not released)" ', page(name)), name


# the unit, and the unit with each drop-in: capture opens nothing to the daemon, af_xdp and uio have CAP_SYS_ADMIN
EXPOSURES = {None: 2.4, 'capture': 2.4, 'vfio': 2.4, 'af_packet': 2.6, 'verbs': 2.2,
             'af_xdp': 2.7, 'uio': 3.0}
DROP_INS = ['%s.conf' % name for name in EXPOSURES if name is not None]


WHERE = '/etc/systemd/system/polca.service.d'


def remove_drop_ins(host):
    host('rm -rf %s; systemctl daemon-reload' % WHERE)


def add_drop_in(host, drop_in):
    remove_drop_ins(host)
    if drop_in is not None:
        host('mkdir -p %s; cp /usr/share/polca/systemd/%s.conf %s; systemctl daemon-reload' % (WHERE, drop_in, WHERE))


def test_an_empty_configuration_is_told_of_the_installed_examples(host):
    r = host.run('polca --print-config -c /dev/null')
    assert r.returncode == 1 and 'examples are in /usr/share/polca/examples/' in r.stdout, r
    assert 'Examples to start from are in /usr/share/polca/examples/.' in host('polca --help')


def test_each_drop_in_has_a_limit(host):
    assert sorted(host('ls /usr/share/polca/systemd').split()) == sorted(DROP_INS)


@pytest.mark.parametrize('drop_in', EXPOSURES)
def test_systemd_accepts_the_unit(host, drop_in):
    """With each drop-in: no unknown name, no wrong value, and no program that is missing."""
    add_drop_in(host, drop_in)
    said = host.run('systemd-analyze verify --man=no --recursive-errors=no polca.service')
    remove_drop_ins(host)
    assert said.returncode == 0 and not said.stdout.strip(), said.stdout


@pytest.mark.parametrize('drop_in', EXPOSURES)
def test_exposure(host, drop_in):
    add_drop_in(host, drop_in)
    text = host('systemd-analyze security polca --no-pager')
    remove_drop_ins(host)
    exposure = float(re.search(r'Overall exposure level for polca.service: ([\d.]+)', text).group(1))
    assert exposure <= EXPOSURES[drop_in], text


def package_field(packages, name, field):
    package, = glob.glob('%s/%s_*.deb' % (packages, name))
    return subprocess.run(['dpkg-deb', '-f', package, field], check=True, stdout=subprocess.PIPE, text=True).stdout


def test_dependencies_of_the_packages(packages):
    """The daemon never lacks the plugin of its packet buffers; polca-ctl, and what programs on the verbs socket load,
    are installed without DPDK."""
    assert 'librte-mempool-ring' in package_field(packages, 'polca', 'Depends')
    recommends = package_field(packages, 'polca', 'Recommends')
    assert 'librte-meta-bus' in recommends and 'librte-meta-net' in recommends
    for name, wanted in ('polca-tools', 'libc6'), ('polca-verbs', 'libibverbs1'):
        depends = package_field(packages, name, 'Depends')
        assert wanted in depends and not re.search('librte|dpdk', depends), depends


def test_polca_bench_names_the_plugin_that_is_missing(host, packages):
    assert 'librte-mempool-ring' in package_field(packages, 'polca-tools', 'Recommends')
    r = host.run('mkdir /root/plugin; cd /usr/lib/*/dpdk/pmds-*; mv librte_mempool_ring.* /root/plugin; '
                 'polca-bench send -D 1; status=$?; mv /root/plugin/* .; exit $status')
    assert r.returncode != 0 and 'librte_mempool_ring' in r.stdout and 'no memory' not in r.stdout, r.stdout


def test_start_returns_when_the_control_socket_answers(host):
    host('systemctl enable --now polca')
    assert host('polca-ctl version get').strip()
    assert host.show('StatusText') == '2 ports, %s workers, control socket /run/polca/polca.sock' % (
        len(json.loads(host('polca-ctl --json worker list'))['workers']))


def test_it_runs_as_its_own_user_without_capabilities(host):
    status = host('cat /proc/%d/status' % main_pid(host))
    uid = host('id -u polca').strip()
    assert re.search(r'^Uid:\t%s\t%s\t%s' % (uid, uid, uid), status, re.M)
    assert re.search(r'^CapEff:\t0+$', status, re.M) and re.search(r'^CapBnd:\t0+$', status, re.M)
    assert re.search(r'^NoNewPrivs:\t1$', status, re.M) and re.search(r'^Seccomp:\t2$', status, re.M)


def test_rping_traffic(host):
    text = host('polca-ctl cm connect 192.0.2.2 7174 --service rping --count 10 --verify')
    assert re.search(r'\b10\b', text), text


def test_dpdk_telemetry_as_documented(host):
    text = host('echo /ethdev/list | RUNTIME_DIRECTORY=/run/polca dpdk-telemetry.py -f polca')
    assert '"/ethdev/list": [' in text.replace("'", '"'), text


def test_each_line_is_in_the_journal_once(host):
    lines = [line for line in host.journal().split('\n') if 'ready: ' in line]
    assert len(lines) == 1


def test_reload_keeps_queue_pairs(host):
    old = host('cat /etc/polca/polca.json')
    pid, pd = main_pid(host), json.loads(host('polca-ctl --json pd create'))['pd']
    cq = json.loads(host('polca-ctl --json cq create'))['cq']
    qp = json.loads(host('polca-ctl --json qp create --pd %d --send-cq %d' % (pd, cq)))['qp_num']
    host.write('/etc/polca/polca.json', json.dumps(dict(json.loads(old), services=[{'kind': 'sink', 'port': 7300}],
                                                        limits={'max_cq': 300})))
    host('systemctl reload polca')
    wait_until(lambda: 'sink' in host('polca-ctl cm services'))
    # what a reload cannot do is a warning, what it has done is none
    wait_until(lambda: 'reload: limits.max_cq: ' in host.journal('-p', 'warning'))
    assert 'reload: services' not in host.journal('-p', 'warning') and 'reload: services' in host.journal()
    assert main_pid(host) == pid
    assert qp in [q['qp_num'] for q in json.loads(host('polca-ctl --json qp list'))['qps']]
    host.write('/etc/polca/polca.json', '{')
    assert host.run('systemctl reload polca').returncode != 0
    assert main_pid(host) == pid and 'sink' in host('polca-ctl cm services')
    # only the running polca knows DPDK's log components
    unknown = [{'component': 'pmd.nix', 'level': 'info'}]
    host.write('/etc/polca/polca.json', json.dumps(dict(json.loads(old), log=unknown)))
    assert host.run('systemctl reload polca').returncode != 0
    host.write('/etc/polca/polca.json', old)
    host('systemctl reload polca')


def test_restart_after_kill_9(host):
    old = main_pid(host)
    host('kill -9 %d' % old)
    wait_until(lambda: host.show('NRestarts') == '1' and host.show('ActiveState') == 'active', 60)
    assert main_pid(host) != old and answers(host)


def test_the_watchdog_restarts_a_process_that_hangs(host):
    host.write('/etc/systemd/system/polca.service.d/watchdog.conf', WATCHDOG)
    host('systemctl daemon-reload; systemctl restart polca')
    old = main_pid(host)
    host('kill -STOP %d' % old)
    wait_until(lambda: main_pid(host) not in (0, old) and host.show('ActiveState') == 'active', 60)
    assert 'watchdog' in host('journalctl -u polca --no-pager').lower() and answers(host)


def test_stop_drains_and_is_no_failure(host):
    host('systemctl stop polca')
    assert host.show('Result') == 'success' and host.show('ExecMainStatus') == '0'
    assert 'stopping (signal 15)' in host.journal()


def test_a_fatal_start_is_in_the_journal_as_an_error(host):
    host.write('/etc/polca/polca.json', '{ "workers": { "count": -1 }, "ports": [] }')
    assert host.run('systemctl start polca').returncode != 0
    errors = host.journal('-p', 'err')
    assert '/etc/polca/polca.json:1: workers.count: got -1' in errors, host.journal()
    # systemd tries again some times, and then no more
    wait_until(lambda: host.show('ActiveState') == 'failed', 60)
    assert int(host.show('NRestarts')) <= 5
    host('systemctl reset-failed polca', check=False)


# Each example with the drop-in of its link. bare-metal needs PCI cards: config/test.sh --long vfio.
EXAMPLES = {
    'default': None, 'verbs': None, 'services': 'af_packet', 'memif-server': None, 'memif-client': None,
    'af_packet': 'af_packet', 'af_xdp': 'af_xdp', 'sa-server': 'af_packet', 'infiniband': 'af_packet',
    'infiniband-static': 'af_packet'}

# The kernel counts an AF_XDP port's buffers as locked memory. The unit raises the limit, which the host of this
# container may forbid; with the capability no limit applies.
LOCK = '[Service]\nCapabilityBoundingSet=CAP_IPC_LOCK\nAmbientCapabilities=CAP_IPC_LOCK\n'


def test_every_example_is_tested(host):
    names = host('cd /usr/share/polca/examples; ls *.json').replace('.json', '').split()
    assert sorted(names) == sorted([*EXAMPLES, 'bare-metal'])


@pytest.fixture
def memif_server(host):
    """A memif server, by a copy of the unit: a client's peer."""
    host('sed s,/etc/polca/polca.json,/usr/share/polca/examples/memif-server.json, /lib/systemd/system/polca.service '
         '>/etc/systemd/system/memif-server.service; systemctl daemon-reload; systemctl start memif-server')
    yield
    host('systemctl stop memif-server; rm /etc/systemd/system/memif-server.service')


@pytest.mark.parametrize('example', EXAMPLES)
def test_examples_start_as_shipped(host, example, request):
    if host.run('ip link show eth1').returncode != 0:
        host('ip link add eth1 type veth peer name eth2 && ip link set eth1 up && ip link set eth2 up')
    if example == 'memif-client':
        request.getfixturevalue('memif_server')
    host.start('/usr/share/polca/examples/%s.json' % example, EXAMPLES[example], LOCK if example == 'af_xdp' else None)
    socket = json.loads(host('polca -c /etc/polca/polca.json --print-config'))['control']['socket']
    ports = json.loads(host('polca-ctl -s %s --json port list' % (socket or '/run/polca/polca.sock')))['ports']
    assert 'ACTIVE' in [p['state'] for p in ports] or example.startswith(('memif-server', 'infiniband')), ports
    host('systemctl stop polca')
    assert host.show('Result') == 'success', host.journal()


def test_an_operators_configuration_survives_an_upgrade(host):
    host.write('/etc/polca/polca.json', '{ "ports": [ { "name": "port7", "back_to_back": "port8", "addresses": '
               '["192.0.2.1/24"] }, { "name": "port8", "back_to_back": "port7", "addresses": ["192.0.2.2/24"] } ] }')
    host.start()
    host('dpkg --force-confold -i /packages/polca_*.deb')
    host('systemctl restart polca')
    assert 'port7' in host('polca-ctl port list')


# A host that is made up: two pages where 256 MiB are wanted, and a card that vfio-pci has already.
SETUP = """HUGEPAGES=256
NICS="0000:3b:00.0"
OPTIONS="--node 0"
POLCA_SYS=/root/sys
"""
PAGES = '/root/sys/devices/system/node/node0/hugepages/hugepages-2048kB'
CARD = '/root/sys/bus/pci/devices/0000:3b:00.0'


def test_a_boot_sets_the_host_up_before_polca_starts(host):
    assert host('systemctl is-enabled polca-setup', check=False).strip() == 'disabled'
    host('mkdir -p {0} {1} /root/sys/bus/pci/drivers/vfio-pci; echo 2 >{0}/nr_hugepages; echo 2 >{0}/free_hugepages; '
         'echo 0x020000 >{1}/class; ln -s ../../drivers/vfio-pci {1}/driver'.format(PAGES, CARD))
    host.write('/etc/default/polca', SETUP)
    host('cp /usr/share/polca/examples/default.json /etc/polca/polca.json; systemctl enable polca polca-setup')
    host.reboot()
    wait_until(lambda: host.show('ActiveState') == 'active', 60)
    said = host('journalctl -b -u polca-setup --no-pager -o cat')
    assert host('cat %s/nr_hugepages' % PAGES).strip() == '128', said
    assert '0000:3b:00.0: has vfio-pci already' in said
    ended = int(host('systemctl show -P ExecMainExitTimestampMonotonic polca-setup'))
    assert 0 < ended < int(host.show('ExecMainStartTimestampMonotonic'))
    host('systemctl disable polca-setup; systemctl stop polca; rm -r /root/sys')


CAPTURE = json.dumps({'eal': {'hugepages': True, 'multi_process': True, 'memory_mb': 400},
                      'services': [{'kind': 'rping', 'port': 7174}], 'workers': {'idle': 'backoff'}, 'ports': [
    {'name': 'port0', 'back_to_back': 'port1', 'addresses': ['192.0.2.1/24']},
    {'name': 'port1', 'back_to_back': 'port0', 'addresses': ['192.0.2.2/24']}]})


def test_capture_as_documented(host):
    with hugepages.free(600):
        host.start(CAPTURE, 'capture')
        try:
            typed = Section('Watch it').command('RUNTIME_DIRECTORY=/run/polca runuser')
            host('timeout 60 env %s -c 20 >/root/dumpcap.log 2>&1 </dev/null &' % typed)
            wait_until(lambda: host.run('pidof dpdk-dumpcap').returncode == 0)

            def ended():
                """A connection's packets may come before the capture begins."""
                host('polca-ctl cm connect 192.0.2.2 7174 --service rping --count 50 --verify')
                return host.run('pidof dpdk-dumpcap').returncode != 0
            wait_until(ended)
            assert int(host('stat -c %%s %s' % typed.split()[typed.split().index('-w') + 1])) > 20 * 60
        finally:
            host('systemctl stop polca')


SA = json.dumps({'sa': {'path': '/var/lib/polca/sa', 'map_mb': 64}, 'ports': [
    {'name': 'port0', 'back_to_back': 'port1', 'addresses': ['192.0.2.1/24']},
    {'name': 'port1', 'back_to_back': 'port0', 'addresses': ['192.0.2.2/24']}]})


def records(host):
    """The service and the link that are in the database, besides those of the own ports."""
    names = [r['service_name'] for r in json.loads(host('polca-ctl --json sa table service'))['records']]
    links = [int(r['from_lid']) for r in json.loads(host('polca-ctl --json sa table link'))['records']]
    return names, [lid for lid in links if lid > 2]


def version(host):
    return host('dpkg-query -W -f "\\${Version}" polca')


def test_an_upgrade_brings_its_unit(host, older):
    """The older package's unit has another line (conftest.py)."""
    host('systemctl stop polca; dpkg -i %s/*.deb' % older)
    host.start(SA)
    assert host.show('OOMScoreAdjust') == '-400'
    host('dpkg -i /packages/polca_*.deb /packages/polca-tools_*.deb /packages/polca-verbs_*.deb')
    assert (host.show('OOMScoreAdjust'), host.show('NeedDaemonReload')) == ('-500', 'no')


def test_records_survive_an_upgrade_and_a_downgrade(host, older):
    """As docs/compatibility.md promises, while the store's format is the same."""
    host('systemctl stop polca; dpkg -i %s/*.deb' % older)
    assert version(host) == '0.0.0'
    host.start(SA)
    host('polca-ctl sa set service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff service_lease=0xffffffff '
         'service_name=kept')
    host('polca-ctl sa config add link from_lid=7 from_port=1 to_lid=8 to_port=1')
    new = '/packages/polca_*.deb /packages/polca-tools_*.deb /packages/polca-verbs_*.deb'
    for packages in (new, older + '/*.deb', new):
        pid = main_pid(host)
        host('dpkg -i ' + packages)
        assert (version(host) == '0.0.0') == (packages != new)
        # connections live on until the operator restarts
        assert main_pid(host) == pid and answers(host)
        host('systemctl restart polca')
        assert records(host) == (['kept'], [7])


@pytest.mark.parametrize('database', sorted(os.listdir(DATABASES)))
def test_database_of_a_release_is_read(host, database):
    host('systemctl stop polca; rm -rf /var/lib/polca/sa')
    host.copy(os.path.join(DATABASES, database), '/var/lib/polca/sa/data.mdb.gz')
    host('gunzip /var/lib/polca/sa/data.mdb.gz; chown -R polca: /var/lib/polca/sa')
    host.start(SA)
    assert records(host) == (['kept'], [7])


def test_remove_stops_the_service_and_keeps_its_files(host):
    host.start(SA)
    pid = main_pid(host)
    host('dpkg -r polca')
    assert host.run('kill -0 %d' % pid).returncode != 0
    assert host.show('LoadState') == 'not-found'
    host('test -s /etc/polca/polca.json; test -s /var/lib/polca/sa/data.mdb; id polca')
    host('dpkg -i /packages/polca_*.deb')
    host.start()
    assert records(host) == (['kept'], [7])


def test_purge_of_a_running_service_leaves_nothing(host):
    host('systemctl enable polca polca-setup; systemctl restart polca')
    pid = main_pid(host)
    host('dpkg --purge polca polca-tools polca-verbs')
    assert host.run('kill -0 %d' % pid).returncode != 0
    assert host.show('LoadState') == 'not-found'
    assert host.run('id polca').returncode != 0
    assert host('find / -xdev -iname "*polca*" ! -path "/packages*" ! -path "/older*" ! -path "/proc/*" '
                '! -path "/var/log/*"') == ''


def test_purge_ends_while_the_user_is_in_use(host):
    """By a process that an operator runs: the user stays, the package does not."""
    host('dpkg -i /packages/polca_*.deb')
    pid = host('setsid setpriv --reuid=polca --clear-groups sleep 1000 >/dev/null 2>&1 </dev/null & echo $!').strip()
    wait_until(lambda: 'sleep' in host('cat /proc/%s/comm' % pid))
    try:
        assert 'the user polca stays' in host('dpkg --purge polca')
        assert host.run('dpkg-query -W polca').returncode != 0
    finally:
        host('kill %s; while kill -0 %s; do sleep 0.1; done; userdel polca' % (pid, pid), check=False)
