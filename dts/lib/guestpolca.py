# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A built Polca, brought into a soft-RoCE guest that runs: the programs, the provider, DPDK's drivers, and the
libraries and ibv_devices, which the guest lacks."""

import glob
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading

import bare_metal
from polca import BUILD
from verbs import RUN

RUN_IN_GUEST = '/opt/polca/build/app/polca-run/polca-run'
SOCKET = '/run/polca/verbs.sock'


def _strip(path):
    subprocess.run(['strip', '--strip-debug', path], check=True)


def _files(top, config):
    """The files, below the directory top."""
    bare_metal.overlay(top)
    shutil.rmtree(os.path.join(top, 'opt'))
    build = os.path.join(top, 'opt/polca/build')
    run = os.path.join(build, 'app/polca-run/polca-run')
    os.makedirs(os.path.dirname(run))
    shutil.copy(RUN, run)
    os.makedirs(os.path.join(build, 'provider'))
    for path in glob.glob(os.path.join(BUILD, 'provider/*.so')):
        shutil.copy(path, os.path.join(build, 'provider'))
    shutil.copy(shutil.which('ibv_devices'), os.path.join(top, 'usr/local/bin'))
    for path in glob.glob(os.path.join(top, 'usr/local/bin/polca*')):
        _strip(path)
    with open(os.path.join(top, 'opt/polca/polca.json'), 'w') as f:
        json.dump(config, f)


def _drop_what_is_there(guest, top):
    """Libraries of the guest are in use; they are the same ones."""
    there = set(guest.check('ls /%s' % bare_metal.LIBDIR).split())
    for name in os.listdir(os.path.join(top, bare_metal.LIBDIR)):
        if name in there and not os.path.isdir(os.path.join(top, bare_metal.LIBDIR, name)):
            os.unlink(os.path.join(top, bare_metal.LIBDIR, name))


def install(guest, config):
    """Send them to the guest over TCP."""
    with tempfile.TemporaryDirectory() as top, socket.create_server(('127.0.0.1', 0)) as listener:
        os.chmod(top, 0o755)  # it becomes the guest's root directory
        _files(top, config)
        _drop_what_is_there(guest, top)

        def serve():
            there, _ = listener.accept()
            with there:
                subprocess.run(['tar', '-c', '-C', top, '.'], stdout=there.fileno(), check=True)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        guest.check('nc 10.0.2.2 %d </dev/null | tar -x -C /' % listener.getsockname()[1], 120)
        thread.join(30)
