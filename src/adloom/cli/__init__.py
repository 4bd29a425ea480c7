"""The commands: one file a group."""

import os

from adloom.runtime.process.bytecode import keep_bytecode

keep_bytecode(__file__, os.environ)  # Before anything that takes long to compile.
