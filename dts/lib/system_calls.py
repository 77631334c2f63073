# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The system calls of the appliance, recorded while tests run (dts/run --trace), and compared with
the list that a running polca may make (app/polca/system_calls.c, app/polca/privileges.c).

strace writes a file for each process, named after its kinds of ports. What counts begins when polca
takes its filter: calls before that need no place in the list.
"""

import collections
import os
import re
import textwrap

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCES = os.path.join(HERE, '..', '..', 'app', 'polca')
UNUSED = os.path.join(HERE, '..', 'unused_system_calls.txt')
CALL = re.compile(r'\d+ +(?:<\.\.\. )?(\w+)(?:\((\w*)| resumed)')
BEGIN = re.compile(r'seccomp\(SECCOMP_SET_MODE_FILTER, [^,]*, \{')  # without one it is a probe: NULL


def kind(port):
    """The kind of a port's link, as configured: af_packet, memif, ..."""
    device = port.get('device', 'pair')
    if re.match(r'[0-9a-f]+:[0-9a-f]+', device):
        return 'pci'
    return re.sub(r'\d+$', '', device.split(',')[0].removeprefix('net_'))


def traced(argv, directory, config):
    """The same command under strace, which leaves the process ID to it."""
    kinds = '+'.join(sorted({kind(p) for p in config.get('ports', [])})) or 'none'
    n = len(os.listdir(directory))
    path = os.path.join(directory, '%s-%d-%d.strace' % (kinds, os.getpid(), n))
    return ['strace', '-D', '-f', '-qq', '-s', '0', '-e', 'signal=none', '-o', path, '--'] + argv


class Allowed:
    """The list in the sources."""

    def __init__(self):
        text = self.source('system_calls.c')
        table = text[text.index('allowed_calls[] = {'):]
        self.calls = set(re.findall(r'SCMP_SYS\((\w+)\)', table[:table.index('};')]))
        families = text[text.index('socket_families[] = {'):]
        self.families = set(re.findall(r'AF_\w+', families[:families.index('};')]))
        self.links = []  # (how the driver's name begins, family, bpf)
        text = self.source('privileges.c')
        text = text[text.index('link_needs[] = {'):]
        for name, needs in re.findall(r'\{ "(\w+)",([^}]*)\}', text[:text.index('};')]):
            family = re.search(r'AF_\w+', needs)
            self.links.append((name, family and family.group(), 'true' in needs))

    @staticmethod
    def source(name):
        with open(os.path.join(SOURCES, name)) as f:
            return f.read()

    def of(self, kinds):
        """Calls and families for a process with ports of these kinds."""
        mine = [link for link in self.links if any(
            ('net_' + k).startswith(link[0]) or (k == 'pci' and link[0] == 'mlx') for k in kinds)]
        return (self.calls | ({'bpf'} if any(link[2] for link in mine) else set()),
                self.families | {link[1] for link in mine})


def read(path):
    """Calls that one process made under its filter: Counter of (name, family of a socket)."""
    seen, filtered = collections.Counter(), False
    with open(path, errors='replace') as f:
        for line in f:
            m = filtered and CALL.match(line)
            if m and 'resumed' not in m.group():
                name = m.group(1)
                seen[name, m.group(2) if name == 'socket' else ''] += 1
            filtered = filtered or bool(BEGIN.search(line))
    return seen


def reasons():
    """Calls of the list that no suite makes: name to reason."""
    with open(UNUSED) as f:
        rows = [line.split(':', 1) for line in f if line.strip() and not line.startswith('#')]
    return {name: why.strip() for names, why in rows for name in names.split()}


def report(directory, whole):
    """Print what the recorded processes called and the list lacks, and what only the list has.
    whole: all suites ran, so a listed call that none made needs a reason. Returns False if the list
    lacks a call, or a call of it lacks its reason."""
    allowed, by_kind, missing, processes = Allowed(), {}, {}, 0
    for name in sorted(os.listdir(directory)):
        kinds = name.split('-')[0].split('+')
        calls, families = allowed.of(kinds)
        seen = read(os.path.join(directory, name))
        processes += bool(seen)
        for (call, family), n in seen.items():
            for k in kinds:
                by_kind.setdefault(k, collections.Counter())[call] += n
            if call not in calls | {'socket'} or (family and family not in families):
                missing.setdefault((call, family), []).append(name)
    used = set().union(*by_kind.values()) if by_kind else set()
    print('\nsystem calls of %d processes under their filter' % processes)
    for k, calls in sorted(by_kind.items()):
        only = sorted(set(calls).difference(*(c for o, c in by_kind.items() if o != k)))
        print('%-12s %d calls, only here: %s' % (k, len(calls), ' '.join(only) or 'none'))
    why = reasons()
    for (call, family), where in sorted(missing.items()):
        print('MISSING in the list: %s %s (%s)' % (call, family, ', '.join(where[:3])))
    needless = allowed.calls - used - set(why)
    listed = (('in the list, not made, and without a reason', needless),
              ('made, although there is a reason why not', set(why) & used),
              ('with a reason, but not in the list', set(why) - allowed.calls))
    for what, names in listed:
        if names:
            print(textwrap.fill('%s (%s): %s' % (what, os.path.basename(UNUSED),
                                                 ' '.join(sorted(names))), 100))
    return processes > 0 and not missing and not (whole and needless)
