#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""man.py polca|polca-ctl|polca-bench|polca-run PROGRAM VERSION DATADIR, man.py polca.json SCHEMA VERSION DATADIR

Print a manual page. The pages of programs are their --help; polca-ctl's has a section for each command. That of the
configuration is made from its JSON schema. The drop-ins of the service are described as their files do. So little is
to be kept true by hand: files and variables, here. The date is that of the version in CHANGELOG.md.
"""

import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
CONFIGURATION = '/etc/polca/polca.json'
FILES = {'polca': {
    CONFIGURATION: "the service's configuration, see polca.json(5)",
    '/etc/default/polca': 'cards and hugepages for polca-setup.service',
    '/run/polca/polca.sock': 'control socket of the service, and of a polca that root has started',
    '/var/lib/polca': "for the subnet administration's database, where sa.path says so",
    'DATADIR/polca/examples': 'configurations to start from',
    'DATADIR/polca/systemd': 'drop-ins for polca.service',
    'DATADIR/doc/polca/operator-guide.md': 'from a bare server to traffic'}}
ENVIRONMENT = {'polca': {
    'RUNTIME_DIRECTORY': 'directory of the control socket and of DPDK\'s files; systemd sets it (RuntimeDirectory=)',
    'XDG_RUNTIME_DIR': 'directory of the control socket for other users than root',
    'NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID': 'how systemd is told that polca is ready, and that it does not hang',
    'JOURNAL_STREAM': 'systemd sets it where the log goes to its journal: lines then begin with a priority',
}, 'polca-ctl': {
    'POLCA_SOCKET': 'control socket, if the command line has no --socket',
    'XDG_RUNTIME_DIR': 'directory of the control socket for other users than root',
    'COLUMNS': 'width of tables'
}, 'polca-run': {
    'POLCA_VERBS_SOCKET': 'verbs socket, if the command line has no --socket',
    'POLCA_DEBUG': 'the provider says on standard error why polca refused a request',
    'XDG_RUNTIME_DIR': 'directory of the verbs socket for other users than root'}}
SERVICE = (
    'polca.service runs polca as the user polca, without a capability, with the configuration ' + CONFIGURATION +
    '. For links that need more, copy a drop-in from DATADIR/polca/systemd to /etc/systemd/system/polca.service.d/ '
    'and run systemctl daemon-reload:',
    'polca-setup.service gives cards and hugepages to Polca at each boot, as /etc/default/polca says. It must be '
    'enabled.')
LINKS = ('memory', 'memif')  # polca-bench lists them as it does its commands
PAGES = {
    'polca': (8, 'software InfiniBand and RoCE channel adapter in user space', 'polca.json(5), polca-ctl(1)'),
    'polca-ctl': (1, 'talk to a running polca over its control socket', 'polca(8), polca-bench(1)'),
    'polca-run': (1, 'run verbs programs on the devices of a running polca', 'polca(8)'),
    'polca-bench': (1, 'measure how fast polca is on this host', 'polca(8), polca-ctl(1)'),
    'polca.json': (5, 'configuration of polca', 'polca(8)'),
}


def roff(text):
    """Text that man shows as it is."""
    text = text.replace('\\', r'\e').replace('-', r'\-')
    return re.sub(r"(?m)^([.'])", r'\\&\1', text)


def date_of(version):
    with open(os.path.join(HERE, '..', 'CHANGELOG.md')) as f:
        m = re.search(r'(?m)^## %s - (.*)' % re.escape(version), f.read())
    return m.group(1) if m else ''


def drop_ins():
    """What the comment of each drop-in says, by its file's name."""
    for path in sorted(glob.glob(os.path.join(HERE, 'systemd', '*.conf'))):
        with open(path) as f:
            comment = re.match(r'(?:#.*\n){2}#\n((?:# .*\n)+)', f.read()).group(1)
        yield os.path.basename(path), ' '.join(line[2:] for line in comment.splitlines())


class Page:
    def __init__(self, name, version, datadir):
        section, what, also = PAGES[name]
        self.also, self.datadir = also, datadir
        self.lines = ['.TH %s %d "%s" "Polca %s" "Polca"' % (roff(name.upper()), section, date_of(version), version),
                      '.SH NAME', roff(name) + r' \- ' + roff(what)]

    def section(self, name):
        self.command(name.upper())

    def command(self, name):
        """A section about something that is typed in small letters."""
        self.lines.append('.SH "%s"' % roff(name))

    def subsection(self, name):
        self.lines.append('.SS "%s"' % roff(name))

    def paragraph(self, text):
        self.lines += ['.PP', roff(text)]

    def item(self, term, text):
        self.lines += ['.TP', r'\fB%s\fR' % roff(term), roff(text)]

    def literal(self, lines):
        self.lines += ['.PP', '.nf', roff('\n'.join(lines)), '.fi']

    def items(self, name, terms):
        if terms:
            self.section(name)
        for term, text in terms.items():
            self.item(term.replace('DATADIR', self.datadir), text)

    def end(self):
        self.section('see also')
        self.lines.append(roff(self.also))
        print('\n'.join(self.lines))


def help_of(program, *command):
    r = subprocess.run([program, *command, '--help'], stdout=subprocess.PIPE, text=True, check=True)
    return r.stdout.rstrip('\n').split('\n')


def add_help(page, lines, heading):
    """Help text: "Heading:" begins a section, indented "TERM  text" an item, which goes on in deeper lines."""
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        if not line:
            continue
        m = re.match(r'^( +)(\S.*?)(?: {2,}(\S.*))?$', line)
        if not m and re.match(r'(?i)^usage:', line):
            usage = [line[6:].strip()]
            while i < len(lines) and lines[i]:
                usage.append(lines[i].strip())
                i += 1
            page.literal(usage)
        elif not m and re.match(r'^[A-Z].*:$', line):
            heading(line[:-1])
        elif not m:
            text = [line]
            while i < len(lines) and lines[i] and not lines[i].startswith(' ') and not lines[i].endswith(':'):
                text.append(lines[i])
                i += 1
            page.paragraph(' '.join(text))
        else:
            indent, term, text = len(m.group(1)), m.group(2), [m.group(3) or '']
            while i < len(lines) and re.match(r'^ {%d,}\S' % (indent + 6), lines[i]):
                text.append(lines[i].strip())
                i += 1
            page.item(term, ' '.join(text).strip())


def usage_first(page, lines):
    """The synopsis: the lines of "usage:". Returns the lines before and after it, which are the description."""
    at = next(i for i, line in enumerate(lines) if line.lower().startswith('usage:'))
    end = next((i for i in range(at, len(lines)) if not lines[i]), len(lines))
    page.section('synopsis')
    page.literal([re.sub(r'(?i)^usage:', '', line).strip() for line in lines[at:end]])
    return lines[:at] + lines[end:]


def without_exit_status(lines):
    """The lines without "Exit status: ...", and this text: it has a section of its own."""
    at = next(i for i, line in enumerate(lines) if re.match(r'Exit (status|codes): ', line))
    end = next((i for i in range(at, len(lines)) if not lines[i]), len(lines))
    return lines[:at] + lines[end:], ' '.join(lines[at:end]).partition(': ')[2]


def program_page(name, program, version, datadir):
    page = Page(name, version, datadir)
    lines, status = without_exit_status(usage_first(page, help_of(program)))
    # the program names the source tree's examples while nothing is installed
    lines = [re.sub(r'(?<=Examples to start from are in )\S+(?=/\.)', datadir + '/polca/examples', line)
             for line in lines]
    page.section('description')
    add_help(page, lines[1:], page.section)
    for command in commands_of(lines) if name != 'polca' else []:
        page.command(name + ' ' + command)
        add_help(page, help_of(program, *command.split()), page.subsection)
    if name == 'polca':
        page.section('service')
        page.paragraph(SERVICE[0].replace('DATADIR', datadir))
        for file, text in drop_ins():
            page.item(file, text)
        page.paragraph(SERVICE[1])
    page.section('exit status')
    page.paragraph(status)
    page.items('environment', ENVIRONMENT.get(name, {}))
    page.items('files', FILES.get(name, {}))
    page.end()


def commands_of(lines):
    """The commands that a help text lists: words that are no option, with two blanks before and after."""
    found = (re.match(r'^  ([a-z][a-z ]*?) {2,}\S', line) for line in lines)
    return [m.group(1) for m in found if m and m.group(1) not in LINKS]


def schema_type(s):
    words = [s.get('type', '') if isinstance(s.get('type', ''), str) else ' or '.join(s['type'])]
    if 'enum' in s:
        words = ['one of ' + ', '.join(json.dumps(v) for v in s['enum'])]
    if 'minimum' in s and 'maximum' in s:
        words.append('%d to %d' % (s['minimum'], s['maximum']))
    if 'default' in s:
        words.append('default ' + json.dumps(s['default']))
    return ', '.join(w for w in words if w)


def add_schema(page, schema, path):
    for key, s in schema.get('properties', {}).items():
        name = path + key
        text = s.get('description', '')
        kind = schema_type(s)
        page.item(name, text + (' (%s)' % kind if kind else ''))
        items = [s['items']] if isinstance(s.get('items'), dict) else []
        for sub in [s] + items + s.get('oneOf', []) + s.get('anyOf', []):
            if sub is not s or 'properties' in sub:
                add_schema(page, sub, name + ('[].' if 'items' in s and sub is s.get('items') else '.'))


def schema_page(name, path, version, datadir):
    with open(path) as f:
        schema = json.load(f)
    page = Page(name, version, datadir)
    page.section('description')
    page.paragraph('The service reads %s, and any other polca the file that its option -c names.' % CONFIGURATION)
    page.paragraph(schema.get('description', 'A JSON object. Keys that are not given have their defaults.'))
    page.paragraph("'polca -c FILE --print-config' checks a file and prints it with all defaults.")
    page.section('keys')
    add_schema(page, schema, '')
    page.section('example')
    page.paragraph('Two ports that are joined in memory, with services to try out:')
    with open(os.path.join(HERE, 'default.json')) as f:
        page.literal(line for line in f.read().splitlines() if '"$schema"' not in line)
    page.items('files', {CONFIGURATION: "the service's configuration",
                         'DATADIR/polca/examples': 'further examples, one for each kind of link',
                         'DATADIR/polca/polca.schema.json': 'JSON schema, for editors'})
    page.end()


def main(name, source, version, datadir):
    (schema_page if name == 'polca.json' else program_page)(name, source, version, datadir)


if __name__ == '__main__':
    if len(sys.argv) != 5 or sys.argv[1] not in PAGES:
        sys.exit(__doc__)
    main(*sys.argv[1:])
