#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Run a command for each endport that goes down or comes up. usage: polca-ctl --json live watch
... | endport-hook.py COMMAND [ARGUMENT...]

Reads the events of live watch and runs COMMAND ARGUMENT... ENDPORT STATE MESSAGE: STATE is
"down" or "up", MESSAGE the reason. The command does not run for an endport that answers its
first request, nor for suspect ones.
"""

import json
import subprocess
import sys


def main(command):
    told = {}  # endport -> the state last passed to the command
    for line in sys.stdin:
        event = json.loads(line)
        if event['event'] != 'state' or event['state'] not in ('up', 'down'):
            continue
        endport, state = event['endport'], event['state']
        if state != told.get(endport, 'up'):
            message = event.get('message', '')
            status = subprocess.run([*command, endport, state, message], check=False).returncode
            if status != 0:
                print('%s %s %s: exit status %d' % (command[0], endport, state, status),
                      file=sys.stderr)
        told[endport] = state


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
