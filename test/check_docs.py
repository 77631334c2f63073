#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Check the documents: links and their anchors exist, pictures match their sources, a test runs
every command that a document tells to type, and what is named in backticks exists.
usage: check_docs.py

Needs only Python, and takes a second.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.path[:0] = [os.path.join(ROOT, 'dts', 'lib'), os.path.join(ROOT, 'docs', 'diagrams')]
sys.dont_write_bytecode = True

import draw  # noqa: E402
import guide  # noqa: E402
import uncovered  # noqa: E402

DOCUMENTS = ('README.md', 'docs/operator-guide.md', 'docs/connect.md', 'docs/services.md',
             'docs/benchmark.md', 'docs/compatibility.md', 'docs/fleet.md')
SOURCES = 'dts/suites/service/test_without_packages.py::'
PACKAGE = 'dts/suites/service/test_package.py::'
TYPED = 'dts/suites/control/test_documents.py::'
BENCH = 'test/bench/commands.py::look_at_documented'
METAL = 'dts/suites/bare-metal/test_guide.py::test_every_command_of_the_section_was_run'
CLIENTS = 'dts/suites/cm/test_linux_clients.py::'
RSOCKETS = 'dts/suites/cm/test_rsockets.py::'
PERFTEST = 'dts/suites/bench/test_perftest.py::'
CONNECT = 'dts/suites/bench/test_connect.py::'
VERBS = 'dts/suites/verbs/test_readme.py::'
MEMIF = 'dts/suites/bench/test_memif.py::'

# Document, section, beginning of the command ('': all of the section), the test that runs it. A
# section's own test takes the commands from its text; other tests run the same command with
# different addresses. A file without a test name is a script that contains the command.
RUN = (
    ('README.md', 'Two commands', 'config/quickstart.sh', 'config/fresh.sh'),
    ('README.md', 'Two commands', 'config/test.sh', '.ci/run'),
    ('README.md', 'Verbs programs of this host', 'build/app/polca-run', VERBS + 'test_readme'),
    ('README.md', 'Verbs programs of this host', '', TYPED + 'test_readme_verbs_programs'),
    ('README.md', 'A first session', '', TYPED + 'test_readme_first_session'),
    ('README.md', 'On a real NIC', 'sudo config/setup-host.sh', METAL),
    ('README.md', 'On a real NIC', 'sudo build/app/polca/polca', METAL),

    ('docs/benchmark.md', 'A program of libibverbs', '',
     'dts/suites/verbs/test_programs.py::test_polca_bench'),

    ('docs/operator-guide.md', 'Build and install', 'config/quickstart.sh', 'config/fresh.sh'),
    ('docs/operator-guide.md', 'On bare metal', '', METAL),
    ('docs/operator-guide.md', 'Write the configuration', 'polca -c', METAL),
    ('docs/operator-guide.md', 'Start it', 'polca -c', METAL),
    ('docs/operator-guide.md', 'Start it', 'ping', 'dts/suites/rc/test_addresses.py::test_ping'),
    ('docs/operator-guide.md', 'The flight recorder', 'polca-ctl',
     'dts/suites/rc/test_explain.py::test_recorded_steps_are_shown_and_come_with_the_event'),
    ('docs/operator-guide.md', 'Connect a Linux host', 'polca-ctl',
     TYPED + 'test_guide_connect_a_linux_host'),
    ('docs/operator-guide.md', 'Connect a Linux host', 'modprobe', 'dts/guest/init'),
    ('docs/operator-guide.md', 'Connect a Linux host', 'rdma link add', 'dts/guest/init'),
    ('docs/operator-guide.md', 'Connect a Linux host', 'ibv_devinfo',
     'dts/suites/rxe/test_pingpong.py::test_gids_as_the_guide_shows_them'),
    ('docs/operator-guide.md', 'Subnet administration', 'polca-ctl',
     TYPED + 'test_guide_subnet_administration'),
    ('docs/operator-guide.md', 'Native InfiniBand ports', 'polca-ctl sm ',
     TYPED + 'test_guide_subnet_manager_behind_a_port'),
    ('docs/operator-guide.md', 'Native InfiniBand ports', 'polca-ctl',
     TYPED + 'test_guide_native_infiniband_ports'),
    ('docs/operator-guide.md', 'Subnet administration', 'echo /polca/sa',
     TYPED + 'test_guide_subnet_administration'),
    ('docs/operator-guide.md', 'Build and install', 'meson install', TYPED + 'test_guide_install'),
    ('docs/operator-guide.md', 'Build and install', 'config/package.sh', PACKAGE + 'test_install'),
    ('docs/operator-guide.md', 'Build and install', 'apt install', PACKAGE + 'test_install'),
    ('docs/operator-guide.md', 'Build and install', 'systemd-', SOURCES + 'test_service_of_meson_install'),
    ('docs/operator-guide.md', 'Build and install', 'systemctl daemon-reload',
     SOURCES + 'test_service_of_meson_install'),
    ('docs/operator-guide.md', 'After a reboot', 'systemctl',
     PACKAGE + 'test_a_boot_sets_the_host_up_before_polca_starts'),
    ('docs/operator-guide.md', 'Watch it', 'dpdk-dumpcap',
     'dts/suites/robustness/test_start.py::test_dpdk_dumpcap_captures'),
    ('docs/operator-guide.md', 'Watch it', 'RUNTIME_DIRECTORY=/run/polca runuser',
     PACKAGE + 'test_capture_as_documented'),
    ('docs/operator-guide.md', 'Start it', 'systemctl enable',
     PACKAGE + 'test_start_returns_when_the_control_socket_answers'),
    ('docs/operator-guide.md', 'Change the configuration of a running Polca', 'polca-ctl config diff',
     'dts/suites/control/test_reload.py::test_diff_shows_what_a_reload_would_do'),
    ('docs/operator-guide.md', 'Change the configuration of a running Polca', 'polca-ctl config reload',
     'dts/suites/control/test_reload.py::test_a_bad_file_changes_nothing_and_the_log_says_why'),
    ('docs/operator-guide.md', 'Watch it', 'echo /polca/port,0 | RUNTIME_DIRECTORY',
     TYPED + 'test_guide_watch_it'),
    ('docs/operator-guide.md', 'Watch it', 'echo /polca/port,0 | dpdk-telemetry.py',
     TYPED + 'test_guide_watch_it'),
    ('docs/operator-guide.md', 'Native InfiniBand ports', 'tshark', 'dts/lib/capture.py'),
    ('docs/operator-guide.md', 'Ping over management datagrams', '', TYPED + 'test_guide_ping'),
    ('docs/operator-guide.md', 'Watch endports', 'polca-ctl',
     TYPED + 'test_guide_watch_endports'),
    ('docs/operator-guide.md', 'Watch it', 'polca-ctl', TYPED + 'test_guide_watch_it'),

    ('docs/compatibility.md', 'What a version promises', 'systemctl restart',
     PACKAGE + 'test_records_survive_an_upgrade_and_a_downgrade'),

    ('docs/fleet.md', 'Try it', '', 'dts/suites/fleet/test_example.py::test_page'),

    ('docs/connect.md', 'Start a service', '', TYPED + 'test_connect_page'),
    ('docs/connect.md', 'From a Linux host', 'rping', CLIENTS + 'test_rping'),
    ('docs/connect.md', 'From a Linux host', 'rdma_client', CLIENTS + 'test_rdma_client'),
    ('docs/connect.md', 'From a Linux host', 'ucmatose', CLIENTS + 'test_ucmatose'),
    ('docs/connect.md', 'From a Linux host', 'rstream', RSOCKETS + 'test_rstream'),
    ('docs/connect.md', 'From a Linux host', 'rcopy', RSOCKETS + 'test_rcopy'),
    ('docs/connect.md', 'From a Linux host', 'ib_write_bw',
     'dts/suites/cm/test_perftest.py::test_each'),
    ('docs/connect.md', 'From a Linux host', 'polca-ctl', TYPED + 'test_connect_page'),
    ('docs/connect.md', 'To a Linux host', 'rping',
     'dts/suites/cm/test_linux_servers.py::test_rping'),
    ('docs/connect.md', 'To a Linux host', 'polca-ctl', TYPED + 'test_connect_page'),
    ('docs/connect.md', 'Measure with perftest', 'polca-ctl', TYPED + 'test_connect_page'),
    ('docs/connect.md', 'Measure with perftest', 'ib_write_bw',
     'dts/suites/cm/test_perftest.py::test_each'),

    ('docs/services.md', 'rstream', 'rstream', RSOCKETS + 'test_rstream_server'),
    ('docs/services.md', 'rstream', 'polca-ctl cm connect', RSOCKETS + 'test_rstream_server'),
    ('docs/services.md', 'rcopy', 'polca-ctl cm listen', TYPED + 'test_services_page_rcopy'),
    ('docs/services.md', 'rcopy', 'rcopy', RSOCKETS + 'test_rcopy_into_a_region'),
    ('docs/services.md', 'rcopy', 'polca-ctl cm connect', RSOCKETS + 'test_rcopy_server'),

    ('docs/benchmark.md', 'polca-bench', '', BENCH),
    ('docs/benchmark.md', 'A picture', '', BENCH),
    ('docs/benchmark.md', 'Many queue pairs, several workers', '', BENCH),
    ('docs/benchmark.md', 'Loss, bulk beside a ping-pong, timers', '', BENCH),
    ('docs/benchmark.md', 'The agents', '', BENCH),
    ('docs/benchmark.md', 'What bounds it', '', BENCH),
    ('docs/benchmark.md', 'Two processes', 'polca-bench server', MEMIF + 'test_two_processes'),
    ('docs/benchmark.md', 'Two processes', 'polca-bench send -s 64', MEMIF + 'test_two_processes'),
    ('docs/benchmark.md', 'Two processes', 'polca-bench send -s 4K',
     MEMIF + 'test_zero_copy_on_hugepages'),
    ('docs/benchmark.md', 'Over a network', 'polca-bench write',
     CONNECT + 'test_writes_are_in_the_services_memory'),
    ('docs/benchmark.md', 'Over a network', 'polca-bench send lat',
     CONNECT + 'test_echo_comes_back_as_it_was_sent'),
    ('docs/benchmark.md', 'Against perftest', '', PERFTEST + 'test_each'),
    ('docs/benchmark.md', 'Any other program', 'polca-bench send lat',
     PERFTEST + 'test_pingpong_told_by_hand'),
    ('docs/benchmark.md', 'Any other program', 'polca-bench read',
     PERFTEST + 'test_memory_told_by_hand'),
)

# Commands that no test runs, and why.
NOT_RUN = ()

# Blocks without commands: document, section, beginning of the block.
NO_COMMANDS = (
    ('docs/operator-guide.md', 'After a reboot', 'NICS='),
    ('docs/operator-guide.md', 'Prometheus', '"metrics"'),
    ('README.md', 'Two commands', 'direction '),
    ('docs/operator-guide.md', 'Congestion', '"congestion"'),
    ('docs/operator-guide.md', 'Watch endports', '{"time"'),
    ('docs/connect.md', 'Start a service', '"services"'),
    ('docs/benchmark.md', 'What it prints', 'cpu '),
)
# Sections that list the sources of a folder: document, section, folder.
MAPS = (('docs/design.md', "lib/rc, in the order of a packet's life", 'lib/rc'),)
# Documents whose names in backticks (counters, keys, members, functions) the sources contain.
NAMED = DOCUMENTS + ('docs/design.md', 'docs/glossary.md', 'docs/security.md', 'docs/store.md', 'docs/coverage.md')
# Where they are. Not test: a test of an error may contain a name that does not exist.
NAMES_OF = ('app', 'config', 'debian', 'dts', 'lib', 'provider')
# Names of other programs, which no source of ours contains.
NAMES_OF_OTHERS = {'copy_file_range', 'm_key_protection_level', 'timerfd_gettime'}
# output of a program within a block of commands
SAID = re.compile(r'gid=[\d.]+,qpn=|polca(-\w+)?: ')


# ---- links

def tracked():
    """Markdown files of the tree, by name from its root."""
    try:
        out = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard', '*.md'],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True).stdout
        found = out.split('\n')
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        found = [os.path.relpath(os.path.join(d, f), ROOT) for d, dirs, files in os.walk(ROOT)
                 for f in files if f.endswith('.md') and '/build' not in d]
    return sorted(f for f in found if f and os.path.exists(os.path.join(ROOT, f)))


def text_of(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def without_code(text):
    """Make lines of indented and fenced blocks, and words in backticks, empty."""
    lines, fenced = [], False
    for line in text.split('\n'):
        fence = line.startswith('```')
        code = fenced or fence or line.startswith('    ')
        fenced ^= fence
        lines.append('' if code else re.sub(r'`[^`]*`(?!\])', '', line))
    return lines


def anchors(path):
    """The anchors of its headings, as GitHub generates them."""
    found, seen = set(), {}
    fenced = False
    for line in text_of(path).split('\n'):
        fenced ^= line.startswith('```')
        heading = re.match(r'#+ (.*)', line)
        if fenced or not heading:
            continue
        name = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading.group(1))
        name = re.sub(r'[^\w\- ]', '', name.replace('`', '').lower()).strip().replace(' ', '-')
        seen[name] = seen.get(name, -1) + 1
        found.add(name + ('-%d' % seen[name] if seen[name] else ''))
    return found


def links(path):
    """(line number, target) of each link and picture."""
    for number, line in enumerate(without_code(text_of(path)), 1):
        for target in re.findall(r'\]\(([^)\s]+)\)', line):
            yield number, target


def bad_links(path):
    for number, target in links(path):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(os.path.join(ROOT, file)):
            yield '%s:%d: %s: there is no %s' % (path, number, target, file)
        elif anchor and (not file.endswith('.md') or anchor not in anchors(file)):
            yield '%s:%d: %s: %s has no heading for #%s' % (path, number, target, file, anchor)


# ---- commands

def covers(row, path, section, text):
    return row[:2] == (path, section) and text.startswith(row[2])


def bad_commands(path, used):
    for section, block in guide.blocks(path):
        rows = [r for r in NO_COMMANDS if covers(r, path, section, block[0])]
        if rows:
            used.update(rows)
            continue
        for line in block:
            text = guide.split(line)[0]
            rows = [r for r in RUN + NOT_RUN if covers(r, path, section, text)]
            used.update(rows)
            if not rows and not SAID.match(text):
                yield ('%s: section "%s": no test runs: %s\n    Name one in RUN of '
                       'test/check_docs.py' % (path, section, text))


def bad_tests():
    """Every named test exists; every named script contains the command's words."""
    for path, section, start, where in RUN:
        file, _, name = where.partition('::')
        if not os.path.exists(os.path.join(ROOT, file)):
            yield 'RUN: %s "%s": there is no %s' % (path, start, file)
        elif name and not re.search(r'^def %s\(' % name, text_of(file), re.M):
            yield 'RUN: %s "%s": %s has no %s' % (path, start, file, name)
        elif not name and start.split()[0] not in text_of(file):
            yield 'RUN: %s "%s": %s does not run it' % (path, start, file)


# ---- names

NAME = re.compile(r'(?<![\w/.-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w*])')
# A metric is a counter with a prefix and an end (lib/ctl/metrics.c): rx_errors, polca_port_receive_errors_total.
METRIC = re.compile(r'polca_[a-z]+_(receive_|transmit_)?(\w+)_total')


def known_names():
    """Every word of the sources."""
    found = set(NAMES_OF_OTHERS)
    for folder in NAMES_OF:
        for where, _, files in os.walk(os.path.join(ROOT, folder)):
            for file in files:
                if not file.endswith(('.md', '.pyc', '.pcap')):
                    with open(os.path.join(where, file), encoding='utf-8', errors='replace') as f:
                        found.update(re.findall(r'\w+', f.read()))
    return found


def is_known(name, known):
    metric = METRIC.fullmatch(name)
    if name in known or not metric:
        return name in known
    way = {'receive_': 'rx_', 'transmit_': 'tx_', None: ''}[metric.group(1)]
    return way + metric.group(2) in known


def bad_names(path, known):
    for number, line in enumerate(text_of(path).split('\n'), 1):
        for code in re.findall(r'`([^`]+)`', line):
            for name in NAME.findall(code):
                if not is_known(name, known):
                    yield '%s:%d: no source contains the name %s' % (path, number, name)


# ---- lists of files and functions

def bad_map():
    """A section of MAPS names all sources of its folder, and no others."""
    for path, title, folder in MAPS:
        section = re.search(r'^## %s\n.*?(?=^## |\Z)' % re.escape(title), text_of(path), re.M | re.S)
        named = set(re.findall(r'`(\w+\.c)`', section.group() if section else ''))
        there = {f for f in os.listdir(os.path.join(ROOT, folder)) if f.endswith('.c')}
        for name in sorted(there - named):
            yield '%s: section "%s" does not name %s/%s' % (path, title, folder, name)
        for name in sorted(named - there):
            yield '%s: section "%s": there is no %s/%s' % (path, title, folder, name)


def main():
    wrong, used = [], set()
    files = tracked()
    for path in files:
        wrong += bad_links(path)
    wrong += ['docs/images/%s.svg is not drawn from its source: run docs/diagrams/draw.py' % name
              for name in draw.stale()]
    for path in DOCUMENTS:
        wrong += bad_commands(path, used)
    wrong += ['%s: section "%s": "%s" of test/check_docs.py is not there any more' % row[:3]
              for row in RUN + NOT_RUN + NO_COMMANDS if row not in used]
    wrong += bad_tests()
    wrong += bad_map()
    wrong += uncovered.wrong_rows()
    known = known_names()
    for path in NAMED:
        wrong += bad_names(path, known)
    for why in wrong:
        print(why)
    if not wrong:
        print('%d documents, %d links, %d pictures, %d rows of commands' % (
            len(files), sum(1 for f in files for _ in links(f)), len(draw.names()), len(RUN)))
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
