# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Check values against JSON schemas, as far as lib/table writes them."""

import re

TYPES = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool,
         'null': type(None)}


def has_type(names, v):
    names = [names] if isinstance(names, str) else names
    return any(isinstance(v, TYPES[n]) and (n == 'boolean' or not isinstance(v, bool)) for n in names)


def fault(schema, v, path='result'):
    """What is wrong with the value, or None."""
    if 'type' in schema and not has_type(schema['type'], v):
        return '%s: got %r, allowed: %s' % (path, v, schema['type'])
    if 'enum' in schema and v not in schema['enum']:
        return '%s: got %r, allowed: %s' % (path, v, schema['enum'])
    if isinstance(v, str) and not re.search(schema.get('pattern', ''), v):
        return '%s: got %r, allowed: %s' % (path, v, schema['pattern'])
    if isinstance(v, int) and not schema.get('minimum', v) <= v <= schema.get('maximum', v):
        return '%s: got %r, out of range' % (path, v)
    if 'anyOf' in schema and all(fault(s, v, path) for s in schema['anyOf']):
        return fault(schema['anyOf'][0], v, path)
    if isinstance(v, list):
        return next(filter(None, (fault(schema.get('items', {}), item, '%s[%d]' % (path, i))
                                  for i, item in enumerate(v))), None)
    if isinstance(v, dict):
        return object_fault(schema, v, path)
    return None


def object_fault(schema, v, path):
    for name in schema.get('required', ()):
        if name not in v:
            return '%s.%s: missing' % (path, name)
    others = schema.get('additionalProperties', {})
    for name, member in v.items():
        s = schema.get('properties', {}).get(name, others)
        if s is False:
            return '%s.%s: not in the schema' % (path, name)
        why = fault(s, member, '%s.%s' % (path, name))
        if why:
            return why
    return None
