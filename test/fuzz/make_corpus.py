#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Seed corpora for the fuzz targets: make_corpus.py DIR

Writes a folder for each target, from the captures, docs/rpc.md, config/, and messages made here.
"""
import hashlib
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def frames(path):
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def save(folder, blob):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(blob).hexdigest()[:16]).write_bytes(blob)


def record(bth):
    """fuzz_qp's {length, flags, bytes}: aimed at the QP, in sequence."""
    length = len(bth) & ~3
    return bytes([length // 8, length % 8, 0]) + bth[:length]


TO_CLIENT, STRANGER, KEEP_TID, REPLAY, ASK, DATABASE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x40


def mad_record(flags, what=0, pause=10, mad=b""):
    """fuzz_mad's {flags, what, pause, length / 4, bytes}."""
    mad += bytes(-len(mad) % 4)
    return bytes([flags, what, pause, len(mad) // 4]) + mad


def mad_header(version, method, attribute, tid=0x1234, modifier=0):
    return struct.pack(">BBBBHHQHHI", 1, 3, version, method, 0, 0, tid, attribute, 0, modifier)


def mad_v1(method, attribute, segment=0, length=0, flags=0, edit=0, window=64, end_rid=0, **kw):
    return mad_header(1, method, attribute, **kw) + struct.pack(
        ">QQIIBBHI", 0, 0, segment, length, flags, edit, window, end_rid) + bytes(8)


def mad_v2(method, attribute, kind=0, flags=0, status=0, segment=0, length=0, mask=0, **kw):
    return mad_header(2, method, attribute, **kw) + struct.pack(
        ">BBBBIIQHHQ", 1 if kind else 0, kind, flags, status, segment, length, 0, 0, 0, mask)


def mad_exchanges():
    """What the two sides say to each other, and what a third may throw in."""
    for what in range(13):  # every kind of query, the answer undisturbed, then repeated and cut
        yield mad_record(ASK | REPLAY | STRANGER, what, 255)
        yield mad_record(ASK | REPLAY, what, 3) + mad_record(TO_CLIENT | REPLAY, 0, 200) * 2
        yield mad_record(ASK | REPLAY, what, 3) + mad_record(DATABASE | REPLAY, what, 3) * 4
    table = mad_record(KEEP_TID, mad=mad_v1(0x12, 0x11, end_rid=0xFFFFFFFF, window=2))
    for segment, flags in ((2, 0x04), (4, 0x04), (1, 0x10), (3, 0x10), (9, 0x04), (0, 0x01)):
        table += mad_record(KEEP_TID, mad=mad_v1(0x12, 0x11, segment=segment, flags=flags))
    yield table
    config = b""
    for segment, flags in ((1, 0x80), (2, 0), (4, 0), (3, 0), (4, 0), (5, 0x20), (5, 0x20)):
        config += mad_record(KEEP_TID, mad=mad_v1(
            0x14, 0x11, segment=segment, flags=flags, edit=1, length=864) + bytes(range(192)))
    yield config
    table = mad_record(KEEP_TID, mad=mad_v2(0x12, 0x11))
    for kind, segment, last, status in ((2, 1, 9, 0), (2, 9, 25, 0), (2, 4, 3, 0), (2, 99, 99, 0),
                                        (3, 0, 0, 1), (4, 0, 0, 126), (9, 0, 0, 0)):
        table += mad_record(KEEP_TID, mad=mad_v2(0x12, 0x11, kind, 1, status, segment, last))
    yield table
    multi = b""
    for segment, flags, length in ((1, 3, 0), (2, 1, 0), (4, 1, 0), (3, 1, 0), (5, 5, 20)):
        multi += mad_record(KEEP_TID, mad=mad_v2(0x14, 0x3A, 1, flags, 0, segment, length))
    yield multi
    for version in (1, 2, 3):
        yield mad_record(KEEP_TID, mad=mad_header(version, 0x01, 0x01)) + mad_record(
            KEEP_TID, mad=mad_header(version, 0x7E, 0x01))


SMP_HEADER, SMP_DIRECTED, SMP_KEY, SMP_PORT_INFO, SMP_REPRESS, SMP_CAUSE, SMP_FRAME, SMP_LENGTH = (
    1 << i for i in range(8))


def smp(flags, what=0, pause=10, method=0x01, attribute=0x15, modifier=0, data=b"", frame=b"", **kw):
    """fuzz_smp's record: the MAD up to its last byte that is not 0."""
    mad = mad_header(1, method, attribute, modifier=modifier, **kw) + bytes(40) + data
    return mad_record(flags | (SMP_FRAME if frame else 0), what, pause, frame + mad.rstrip(b"\0"))


def port_info(*changes):
    """What is to be XORed to a PortInfo: (offset, byte)"""
    data = bytearray(64)
    for offset, value in changes:
        data[offset] ^= value
    return bytes(data)


def smp_exchanges():
    """Every attribute; a port on its way to Active and down; keys right and wrong; traps and their end."""
    ours = SMP_HEADER | SMP_KEY
    for attribute in (0x02, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x20, 0x30, 0x31, 0xFF00):
        for first in (0x00, 0x0F):
            yield bytes([first]) + b"".join(
                smp(ours | how, 3, 10, method, attribute, modifier, bytes(range(64)))
                for how in (0, SMP_DIRECTED) for method in (1, 2) for modifier in (0, 1, 0x10000))
    # from Initialize (2) to Armed (3) to Active (4), a new LID, Down (1), up again
    climb = [smp(ours | SMP_PORT_INFO, 0, 10, 2, data=port_info(*c)) for c in (
        ((32, 2 ^ 3),), ((32, 3 ^ 4),), ((32, 4), (17, 0x22)), ((32, 4), (51, 0x0C)), ((32, 4 ^ 1),))]
    for first in (0x00, 0x02, 0x0E, 0x20):
        yield bytes([first]) + b"".join(climb) + smp(SMP_CAUSE, 1, 120) + b"".join(climb)
    # causes, repeats until nobody listens, repressed in between
    for what in range(0, 64, 3):
        yield b"\x01" + smp(SMP_CAUSE | ours, what, 60) * 3 + smp(
            ours | SMP_REPRESS, 0, 60, 7, 2) + smp(SMP_CAUSE | ours, what, 255)
    # M_Key of each protection, with and without a lease: Get, Set, TrapRepress of a stranger
    for first in range(0x03, 0x20, 4):
        yield bytes([first]) + b"".join(
            smp(SMP_HEADER | how, 5, 255, method) for method in (1, 2, 7) for how in (0, SMP_DIRECTED)) + smp(ours)
    # headers: LIDs, GRH, queue pairs, opcode, length
    for frame in (bytes((0, 0, 0, 255, 0, 7, 0, 5)), bytes((0, 0x80, 0, 255, 0, 7, 0, 5)),
                  bytes((8, 1, 0, 255, 0, 7, 0, 5)),
                  bytes((2, 0, 0, 255, 0, 7, 255, 255)), bytes((0, 0, 0, 0, 255, 255, 255, 255))):
        yield b"\x01" + smp(ours, frame=frame) + smp(ours | SMP_LENGTH, frame=frame)
    for method in (0x03, 0x05, 0x81, 0x85, 0x10):
        yield b"\x01" + smp(SMP_KEY, 0, 10, method) + smp(SMP_KEY | SMP_DIRECTED, 0, 10, method)


def live_mad(mgmt_class, method, live_type, attribute=0, kind=0, flags=0, status=0, segment=0, length=0):
    return struct.pack(">BBBBHHQHHI", 1, mgmt_class, 1, method, 0, 0, 0x1234, attribute, 0, 0) + struct.pack(
        ">BBBBIII", 1 if kind else 0, kind, flags, status, segment, length, 0x001405) + struct.pack(
        ">B3xHH", live_type, 0x1234, 1) + bytes(range(208))


def live_exchanges():
    """Every request, streams of both directions whole and cut, answers nobody asked for."""
    for what in range(7):
        yield mad_record(ASK | REPLAY | STRANGER, what, 255)
        yield mad_record(ASK | REPLAY, what, 3) + mad_record(TO_CLIENT | REPLAY, 0, 200) * 2
    for live_type in range(8):
        yield mad_record(KEEP_TID, mad=live_mad(0x34, 0x01, live_type)) + mad_record(
            KEEP_TID, mad=live_mad(0x34, 0x03, live_type))
    for mgmt_class, attribute in ((0x32, 0), (0x33, 0x10), (0x33, 0x11), (0x33, 0x12), (0x34, 1)):
        yield mad_record(KEEP_TID, mad=live_mad(mgmt_class, 0x01, 0, attribute)) + mad_record(
            KEEP_TID, mad=live_mad(mgmt_class, 0x01, 0, attribute, 2, 1, 0, 1, 64))
    for live_type in (1, 3, 5):
        echo = b""
        for segment, flags, length in ((1, 3, 652), (2, 1, 0), (4, 5, 20), (3, 1, 0)):
            echo += mad_record(KEEP_TID, mad=live_mad(0x34, 0x01, live_type, 0, 1, flags, 0, segment, length))
        yield echo + mad_record(KEEP_TID, mad=live_mad(0x34, 0x01, live_type, 0, 2, 1, 0, 1, 17))
    yield mad_record(KEEP_TID, mad=live_mad(0x34, 0x01, 1, 0, 1, 7, 0, 1, 12)) * 20


CM_ANSWER, CM_STRANGER, CM_CONNECT, CM_DECIDE, CM_ALTERNATE, CM_EVENT, CM_STALL = (1 << i for i in range(7))
CM_MESSAGES = ("REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR")


def cm_record(message, flags=0, mood=9, pause=2, bytes_from=0, data=b""):
    """fuzz_cm's {flags, what, pause, length, bytes}: a message that fits one that was sent."""
    area = bytes((mood, bytes_from)) + data
    return bytes((CM_ANSWER | flags, CM_MESSAGES.index(message), pause, len(area))) + area


def cm_script(messages, **kw):
    return b"".join(cm_record(m, **kw) for m in messages.split())


def cm_exchanges():
    """Connections of both sides made, moved, refused, left alone; the users' moods are fuzz_cm's."""
    for mood in (0x01, 0x09, 0x0D, 0xC0, 0xD0, 0xE0, 0xF0):
        yield cm_script("REQ RTU LAP DREQ DREQ", mood=mood)
    yield cm_script("SIDR_REQ SIDR_REP") + cm_script("SIDR_REQ", mood=1)
    for answers in ("REP REP DREQ", "MRA REP", "REJ", "DREQ", "RTU", "REQ"):
        yield cm_record(answers.split()[0], CM_CONNECT) + cm_script(answers)
    standing = cm_record("REP", CM_CONNECT)
    yield standing + cm_record("DREP", CM_DECIDE)
    yield standing + cm_record("APR", CM_ALTERNATE) + cm_record("LAP") + cm_record("DREQ", CM_EVENT, 1)
    for event in range(8):
        yield standing + cm_record("RTU", CM_EVENT, event, 255)
    # asked later: again meanwhile, then yes or no
    for decision in (0xC0, 0xC8):
        yield cm_script("REQ REQ REQ", mood=0xC0, pause=0) + cm_record("RTU", CM_DECIDE, decision, 0)
    # a new life of the same QP; the same REQ after the end; a full sink; a third party
    yield cm_script("REQ RTU") + cm_record("REQ", bytes_from=27, data=b"\x01")
    yield cm_script("REQ RTU DREQ REQ", pause=0)
    yield cm_record("REQ", CM_STALL) + cm_record("REP", CM_STALL | CM_CONNECT) + cm_script("RTU DREP")
    yield cm_script("REQ") + cm_script("RTU DREQ REJ", flags=CM_STRANGER)
    yield cm_script("REQ") + bytes((CM_CONNECT, 0, 255, 0)) * 8


def perftest_exchanges():
    """fuzz_perftest's: over a stream (ib_write_bw, and a client without a GID), over a connection."""
    greeting = b"6.06".ljust(16, b"\0") + b"\0\0\x10\0" + b"\0\0\0\x40" + b"3\0"
    line = b"0000:0001:000011:5d0108:000003fd:00007f152ac5f000:"
    gid = b"00:" * 10 + b"ff:ff:0a:63:00:02:00000000:\0"
    yield b"\1" + greeting + (line + gid) * 3 + bytes(8) * 5 + line + gid + b"done\0"
    yield b"\3" + line + b"00000000\0done\0"
    parts = [greeting[:16], greeting[16:20], greeting[20:24], b"3\0\0\0", bytes(56)] + [bytes(8)] * 5
    yield b"\0" + b"".join(bytes([len(p)]) + p for p in parts)


def service_record(op, data=b"", offset=0, imm=0):
    """fuzz_service's {operation, length, immediate data (first and last byte), offset, bytes}."""
    return bytes((op, len(data), imm >> 24, imm & 0xFF, offset)) + data


def service_exchanges():
    """Each service: connected, some messages of its own, each operation."""
    send, imm, write, write_imm, read = range(5)
    messages = {
        3: struct.pack(">QII", 0x1000, 0x123, 64),  # rping: address, key, size
        5: b"0000:0001:000011:5d0108:000003fd:00007f152ac5f000:",  # perftest
        7: bytes((0, 1, 32, 0, 0xA4, 0x81)) + bytes(10) + b"/tmp/copy".ljust(16, b"\0"),  # rcopy: open
    }
    for service in range(8):
        for private in (0, 40):
            head = bytes((service, private)) + bytes(private)
            own = messages.get(service, b"hello")
            yield head + service_record(send, own) * 3
            yield head + b"".join(service_record(op, own) for op in (send, imm, write, read, write_imm))
            # a stream: data for the second address, credits, goodbye
            yield head + service_record(write_imm | 0x80, own, 0, len(own)) * 2 + service_record(
                write_imm, b"", 0, 0x80000010) + service_record(write_imm, b"", 0, 0xE0000000)


def link_record(flags, data=b"", pause=1):
    """fuzz_link's {pause, flags, length, what is XORed to the frame}."""
    return struct.pack(">BBH", pause, flags, len(data)) + data


def link_exchanges():
    """Frames of each kind, whole and cut; a neighbour that is asked for, answers, and moves."""
    ipv4, ipv6, arp, stripped, chained, ask, checksums = (0, 1, 2, 4, 8, 0x10, 0x20)
    for flags in (ipv4, ipv6, arp, ipv4 | stripped, ipv4 | chained, ipv6 | chained):
        yield link_record(flags) * 3 + link_record(flags, bytes(12) + b"\x89\x1d") + link_record(flags, bytes(20))
    reply = bytes(21) + b"\x03"  # ARP's operation: from request to reply
    yield link_record(arp | ask, reply) + link_record(arp, reply + bytes(6) + b"\x01") * 3 + link_record(
        ipv4, pause=255) * 4
    # ICMP echo in place of UDP, and port unreachable
    echo = bytearray(42)
    echo[23] = 17 ^ 1
    echo[34:38] = bytes((0xC1 ^ 8, 0x23, 0, 0))
    yield link_record(ipv4 | checksums, bytes(echo)) * 4
    echo[34:36] = bytes((0xC1 ^ 3, 0x23 ^ 3))
    yield link_record(ipv4 | checksums, bytes(echo)) * 4
    # ICMPv6: neighbour solicitation
    yield link_record(ipv6, bytes(20) + bytes((0x11 ^ 58,)) + bytes(33) + bytes((0xC1 ^ 135, 0x23)))


def neigh_scripts():
    """fuzz_neigh's {operation, argument}."""
    ask, release, own, claim, pause, search, stranger = range(7)
    for host in (4, 5):  # one answers, the other does not
        known = bytes((ask, host, own, host))
        yield known + bytes((claim, host, pause, 1)) + bytes((pause, 11)) * 5
        yield known + bytes((claim, host)) * 3 + bytes((pause, 255)) * 20 + bytes((search, 0))
        yield known + bytes((release, host, search, 0)) * 4 + known
        yield bytes((stranger, host)) * 40 + bytes((search, 0, search, 0, search, 0))


def ring_record(act, arg=0, data=b"", peer=False):
    """fuzz_ring's {action and program, argument, length, bytes}."""
    return bytes((act | 0x80 * peer, arg, len(data))) + data


def ring_exchanges():
    """Requests of each opcode that arrive, or are wrong; indices that jump; queues that come and go."""
    turns, send, receive, index, bell, raw, poll, modify, objects = range(9)
    receives = ring_record(receive, peer=True) * 4 + ring_record(receive) * 2
    for opcode in range(16):
        for flags in (0, 0x20, 0x80):
            yield receives + ring_record(send, opcode | flags) * 3 + ring_record(turns, 40) + ring_record(poll, 31)
    for at in range(8, 16):  # opcode, flags, length of the list, ..., the length of inline data
        for value in (1, 2, 0x80, 0xFF):
            yield receives + ring_record(send, 2, bytes(at) + bytes((value,))) * 2 + ring_record(turns, 20)
    yield receives + ring_record(send, 0x22, bytes(16) + b"\xff\xff\xff\xff") + ring_record(turns, 20)
    for word in range(8):
        for value in (1, 16, 17, 0x7FFFFFFF, 0xFFFFFFFF):
            jump = ring_record(index, word | 8, struct.pack("<I", value))
            yield receives + ring_record(send, 2) + jump + ring_record(turns, 30) + ring_record(send, 2) + jump * 2
    for entry in (0, 1, 0x80000000, 0x80000007, 0xFFFFFFFF):
        yield ring_record(bell, 0, struct.pack("<I", entry)) * 9 + ring_record(turns, 5) + ring_record(send, 2)
    for at in (0, 4096, 8192, 12288, 16384):
        yield ring_record(send, 2) + ring_record(raw, 0, struct.pack("<I", at) + bytes(range(200))) + receives
    for state in range(8):
        yield receives + ring_record(send, 2) * 9 + ring_record(modify, state) + ring_record(send, 2) + receives
    for many in ((1, 0x90, 0x13, 0x13, 0x14), (2,) + (0,) * 9 + (0x03, 0x25)):
        yield b"".join(ring_record(objects, o) for o in many)
    shared = ring_record(objects, 1) + ring_record(objects, 0x90)  # in slots 1 and 2: an SRQ and a QP that uses it
    posted = ring_record(index, 0x19, struct.pack("<I", 5)) + ring_record(turns, 2)  # receives without a list
    for limit in (0, 5, 6, 8, 9):
        arm = ring_record(objects, 0x16, bytes((limit,)))
        yield shared + posted + arm
        yield shared + arm + posted + arm + ring_record(objects, 0x23) + ring_record(objects, 0x14)
    yield (receives + ring_record(send, 2) * 2) * 40 + ring_record(turns, 255)  # the CQ overruns


def verbs_record(code, flags=0, data=b""):
    """fuzz_verbs's {request, flags, length, what changes the request that would succeed}."""
    return bytes((code, flags, len(data))) + data


VERBS_RAW, VERBS_NULL, VERBS_MIRROR, VERBS_SECOND, VERBS_UNREAD, VERBS_TURNS, VERBS_MEMFD, VERBS_SELF = (
    1, 2, 4, 8, 16, 32, 64, 128)


def verbs_requests():
    """One object of each kind, in the order of their use and in others; sizes and descriptors that do not fit."""
    hello = verbs_record(0)
    made = hello + b"".join(verbs_record(code) for code in (1, 2, 4, 6, 8, 10, 21, 13, 14, 15))
    yield made + b"".join(verbs_record(code) for code in (16, 22, 12, 9, 7, 5, 3))
    yield made + b"".join(verbs_record(code) for code in (3, 5, 7, 9, 12, 16, 16, 9))
    for state in range(8):
        yield made + verbs_record(14, VERBS_TURNS, bytes(8) + bytes((1 ^ state,))) + verbs_record(15) + verbs_record(11)
    for code in range(25):
        yield hello + verbs_record(code, VERBS_RAW, struct.pack("<II", code, 0)) + verbs_record(code)
        yield made + verbs_record(code, 0, b"\x01") * 3 + verbs_record(code, 0, b"\xff" * 56)
        yield made + verbs_record(code) * 12
        for passed in (VERBS_NULL, VERBS_MIRROR, VERBS_NULL | VERBS_MIRROR, VERBS_MEMFD, VERBS_SELF | VERBS_MEMFD):
            yield hello + verbs_record(2) + verbs_record(code, passed) * 2
            yield verbs_record(code, passed) + hello
    second = verbs_record(0, VERBS_MIRROR | VERBS_SECOND)
    yield hello + second + verbs_record(2, VERBS_SECOND) + verbs_record(4, VERBS_SECOND)
    yield hello + verbs_record(1, VERBS_UNREAD) * 60
    yield hello + verbs_record(6, VERBS_UNREAD) * 9 + verbs_record(1)


def verbs_cm(command, channel=0, id=0, source=0, flags=0, data=b""):
    """A command of librdmacm: its number, channel, that of MIGRATE_ID, and ID."""
    return verbs_record(20, flags, bytes((command, channel | source << 2 | id << 4)) + data)


def verbs_cm_exchanges():
    """A program that connects to itself, up to each step, and ends in different ways."""
    create, destroy, bind, resolve, route, query_route, connect, listen, accept, reject, end = range(11)
    init, event, option, notify, migrate, query, bind_any, resolve_any = 11, 12, 14, 15, 18, 19, 20, 21
    opened = verbs_record(17) + verbs_record(18) * 3
    steps = [opened + verbs_cm(create) + verbs_cm(create, 1), verbs_cm(bind) + verbs_cm(listen),
             verbs_cm(resolve, 1, 1) + verbs_cm(event, 1), verbs_cm(route, 1, 1) + verbs_cm(event, 1),
             verbs_cm(connect, 1, 1, flags=VERBS_TURNS), verbs_cm(event), verbs_cm(accept, 0, 2, flags=VERBS_TURNS),
             verbs_cm(event, 1), verbs_cm(accept | 0x80, 1, 1, flags=VERBS_TURNS),
             verbs_cm(notify, 0, 2) + verbs_cm(event), verbs_cm(end, 1, 1, flags=VERBS_TURNS)]
    ends = (b"", verbs_cm(destroy), verbs_cm(destroy, 1, 1), verbs_cm(reject, 0, 2), verbs_cm(reject, 1, 1),
            verbs_cm(migrate, 2, 2) + verbs_cm(destroy, 2, 2) + verbs_cm(destroy),
            verbs_cm(migrate, 2, 0) + verbs_record(19), verbs_cm(migrate, 2, 1, 1) + verbs_cm(event, 2),
            verbs_record(19), verbs_record(19, 0, b"\x01"),
            verbs_cm(init, 0, 2) + verbs_cm(init, 1, 1, data=bytes(12) + b"\x03"))
    for n in range(1, len(steps) + 1):
        for last in ends:
            yield b"".join(steps[:n]) + last + verbs_record(1, VERBS_TURNS)
    for command in range(24):
        yield opened + verbs_cm(create) * 2 + verbs_cm(command) + verbs_cm(command, 1) + verbs_cm(command, 3, 9)
        yield opened + verbs_cm(create) + verbs_cm(bind) + verbs_cm(command, data=b"\xff" * 12) + verbs_cm(command) * 7
    for what in range(4):
        yield opened + verbs_cm(create) + verbs_cm(query, data=bytes(12) + bytes((what,)))
        value = bytes(16) + bytes((what, 0, 0, 0, 1))
        yield opened + verbs_cm(create) + verbs_cm(option, data=value) + verbs_cm(query_route)
    yield opened + verbs_cm(create) + verbs_cm(bind_any) + verbs_cm(resolve_any) * 2
    nobody = verbs_cm(resolve, data=bytes(35) + b"\x7d")  # 192.0.2.127
    yield opened + verbs_cm(create) + nobody + verbs_cm(destroy)
    yield opened + verbs_cm(create) + nobody + verbs_cm(migrate, 1) + verbs_record(19)


def etcd_texts():
    """fuzz_etcd's {kind, text}: messages of a watch, errors and replies, as etcd 3.4 writes them."""
    header = b'"header":{"cluster_id":"13455796455940752355","member_id":"4","revision":"42","raft_term":"2"}'
    kv = b'{"key":"a2V5","create_revision":"3","mod_revision":"41","version":"5","value":"dmFsdWU="}'
    yield b'\0{"result":{' + header + b',"created":true}}'
    yield b'\0{"result":{' + header + b',"events":[{"kv":' + kv + b'},{"type":"DELETE","kv":' + kv + b'}]}}'
    yield b'\0{"result":{' + header + b',"canceled":true,"compact_revision":"40"}}'
    yield b'\0{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}}'
    for code, text in ((3, b'too many operations in txn request'), (11, b'mvcc: required revision has been compacted'),
                       (5, b'requested lease not found'), (8, b'mvcc: database space exceeded'), (14, b'no leader')):
        yield b'\1{"error":"etcdserver: %s","code":%d}' % (text, code)
    yield b'\1<html>Bad Gateway</html>'
    yield b'\2{' + header + b',"kvs":[' + kv + b',' + kv + b'],"more":true,"count":"2"}'
    for text in (b'', b'Zg==', b'eHk=', b'Zm9v', b'//79'):
        yield b'\2' + text


def forward_bytes():
    """fuzz_forward's {kind, bytes}: a request of each kind, answers, and a subscription's tail."""
    for kind, attribute in ((0, 0x31), (1, 0x31), (2, 0x38), (3, 0x38), (4, 0x03), (5, 0x38), (6, 0x11)):
        for version in (0, 1, 2):
            yield struct.pack('>BBBBHQIB', 0, 1, kind, version, attribute, 0xFF, 7, 1) + bytes(415)
    yield b'\1\1' + bytes(7) + bytes(range(176))
    yield b'\1\1\x07\0' + bytes(5)
    yield b'\2\1' + bytes(8) + b'\2' + bytes(85)


def main():
    out = pathlib.Path(sys.argv[1])
    for pcap in sorted((ROOT / "test/data/captures").glob("*.pcap")):
        stream = b""
        for frame in frames(pcap):
            kind = struct.unpack(">H", frame[12:14])[0]
            if kind not in (0x0800, 0x86DD):
                continue
            l3 = frame[14:]
            save(out / "packet", bytes([0 if kind == 0x0800 else 1]) + l3)
            start = (20 if kind == 0x0800 else 40) + 8
            bth = bytearray(l3[start:-4])
            if len(bth) >= 12 and bth[0] < 0x20 and len(stream) < 4000 and len(bth) < 1100:
                bth[11] = 0
                stream += record(bytes(bth))
        if stream:
            save(out / "qp", stream)
    for exchange in mad_exchanges():
        save(out / "mad", exchange)
    for exchange in smp_exchanges():
        save(out / "smp", exchange)
    for exchange in live_exchanges():
        save(out / "live", exchange)
    for exchange in cm_exchanges():
        save(out / "cm", exchange)
    for exchange in perftest_exchanges():
        save(out / "perftest", exchange)
    for exchange in service_exchanges():
        save(out / "service", exchange)
    for exchange in link_exchanges():
        save(out / "link", exchange)
    for script in neigh_scripts():
        save(out / "neigh", script)
    for exchange in ring_exchanges():
        save(out / "ring", exchange)
    for exchange in (*verbs_requests(), *verbs_cm_exchanges()):
        save(out / "verbs", exchange)
    for text in etcd_texts():
        save(out / "etcd", text)
    for blob in forward_bytes():
        save(out / "forward", blob)
    for line in re.findall(r'^\{.*"jsonrpc".*\}$', (ROOT / "docs/rpc.md").read_text(), re.M):
        save(out / "rpc", line.encode())
    save(out / "rpc", b'{"jsonrpc": "2.0", "id": 1, "method": "rpc_list"}')
    for example in (ROOT / "config").glob("*.json"):
        save(out / "config", example.read_bytes())
    # fuzz_import's first byte: 3 mod 4 is JSON
    nodes = (ROOT / "config/fabric-example.ibnetdiscover").read_text().split("\n\n")
    for some in (nodes[1:2], nodes[:1] + nodes[-2:], nodes[20:30]):
        save(out / "import", b"\x00" + "\n\n".join(some).encode())
    save(out / "import", b'\x05caguid=0x1\nCa\t1 "H-1"\t# "a"\n'
         b'[1](2) \t"R-3"[1] (4) \t\t# lid 1 lmc 0 "b" lid 4 1xQDR s=4 w=1 v=2\n'
         b'\nrtguid=0x3\nRt\t1 "R-3"\t# "b"\n[1](4) \t"H-1"[1] (2) \t\t# lid 4 lmc 2 "a" lid 1 1xQDR s=4 w=1 v=2\n')
    save(out / "import", b'\x03{"records": [{"record": "LinkRecord", "rid": "0x1", "from_lid": 2}, '
         b'{"record": "service", "rid": "0x9", "service_name": "a\\\\x00b", "service_data8": "1,0x2"}]}')
    save(out / "import", b'\x03[{"record": "path", "slid": 4, "dlid": 66, "sl": 3}]')
    save(out / "import", b'\x05Unicast lids [0x0-0x4] of switch Lid 2 guid 0x5 (s):\n  Lid  Out\n'
         b'0x0002 000 : (x)\n0x0004 007\n'
         b'2 valid lids dumped\n\nMulticast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x5 (s):\n            0\n'
         b'     Ports: 0 1 2\n MLid\n0xc000        x x\n1 valid mlids dumped\n')


if __name__ == "__main__":
    main()
