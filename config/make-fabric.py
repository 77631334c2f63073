#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""make-fabric.py [--leaves N] [--spines N] [--hosts N]: write a two-level fat tree in ibsim's
format.

Every leaf has one cable to every spine, and the hosts are distributed over the leaves in turn.
docs/fabric-example.md says how the output becomes config/fabric-example.ibnetdiscover.
"""
import argparse

PORTS = 36
HOST, TRUNK = "4xEDR", "4xHDR"  # width and speed of the cables


def node(kind, ports, name, guid, cables):
    """One node: its header and a line for each cabled port, {port: (peer, peer's port, width and speed)}."""
    key = "switchguid" if kind == "Switch" else "caguid"
    print(f"vendid=0x2c9\nsysimgguid=0x{guid:016x}\n{key}=0x{guid:016x}")
    print(f'{kind}\t{ports} "{name}"')
    own = "" if kind == "Switch" else "lid 0 lmc 0 "  # the SM assigns LIDs; ibsim needs them in the line
    for port, (peer, peer_port, link) in sorted(cables.items()):
        print(f'[{port}]\t"{peer}"[{peer_port}]\t\t# {own}"{peer}" lid 0 {link}')
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=16)
    parser.add_argument("--spines", type=int, default=8)
    parser.add_argument("--hosts", type=int, default=200)
    args = parser.parse_args()
    down = -(-args.hosts // args.leaves)
    if min(args.leaves, args.spines, args.hosts) < 1 or down + args.spines > PORTS or args.leaves > PORTS:
        parser.error(f"a switch has {PORTS} ports: leaves <= {PORTS}, hosts / leaves + spines <= {PORTS}")

    hosts = {h: (h % args.leaves, h // args.leaves + 1) for h in range(args.hosts)}  # leaf, its port
    for h, (leaf, port) in hosts.items():
        node("Hca", 1, f"host{h + 1:03}", 0x0002C90300100000 + h * 0x10, {1: (f"leaf{leaf + 1:02}", port, HOST)})
    for leaf in range(args.leaves):
        cables = {port: (f"host{h + 1:03}", 1, HOST) for h, (at, port) in hosts.items() if at == leaf}
        cables |= {down + 1 + s: (f"spine{s + 1:02}", leaf + 1, TRUNK) for s in range(args.spines)}
        node("Switch", PORTS, f"leaf{leaf + 1:02}", 0x0002C90200200000 + leaf * 0x10, cables)
    for s in range(args.spines):
        cables = {leaf + 1: (f"leaf{leaf + 1:02}", down + 1 + s, TRUNK) for leaf in range(args.leaves)}
        node("Switch", PORTS, f"spine{s + 1:02}", 0x0002C90200300000 + s * 0x10, cables)


if __name__ == "__main__":
    main()
