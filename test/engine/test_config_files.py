#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The committed schema is the one the table makes, and every example is valid by it and by polca.

usage: test_config_files.py POLCA CONFIG_DIR
"""

import json
import pathlib
import subprocess
import sys

import jsonschema


def main():
    polca, config = sys.argv[1], pathlib.Path(sys.argv[2])
    committed = (config / "polca.schema.json").read_text()
    made = subprocess.run([polca, "--print-schema"], check=True, capture_output=True, text=True)
    if made.stdout != committed:
        sys.exit("config/polca.schema.json is stale: run polca --print-schema > it")
    schema = json.loads(committed)
    jsonschema.Draft7Validator.check_schema(schema)
    examples = [p for p in sorted(config.glob("*.json")) if p.name != "polca.schema.json"]
    if len(examples) < 5:
        sys.exit(f"only {len(examples)} examples in {config}")
    for path in examples:
        jsonschema.validate(json.loads(path.read_text()), schema)
        subprocess.run([polca, "-c", path, "--print-config"], check=True, stdout=subprocess.DEVNULL)
        print("valid:", path.name)
    # what polca prints is valid too, and the embedded default is config/default.json
    printed = [
        json.loads(subprocess.run([polca, *args, "--print-config"], check=True,
                                  capture_output=True, text=True).stdout)
        for args in ([], ["-c", config / "default.json"])
    ]
    jsonschema.validate(printed[0], schema)
    if printed[0] != printed[1]:
        sys.exit("the embedded default differs from config/default.json")


if __name__ == "__main__":
    main()
