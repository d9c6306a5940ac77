#!/usr/bin/env python3
"""order.py [LIB]: where lib/lower emits code in an order that C leaves open: by two arguments of a call, or by two operands
of an operator. gcc and clang choose differently, and the same input would be other PTX. Prints FILE:LINE: NAME for each,
and fails if there is one. Name the values first, in the order that is wanted.

It reads the text as clang-format leaves it. A function emits if it calls one of ROOTS, at whatever depth. What is called
through a pointer is taken to emit. Lists in braces are left alone, and CG() and PTX() make such lists: both compilers
take them from left to right."""
import pathlib
import re
import sys

ROOTS = {"ptx_emit", "ptx_emit_form", "ptx_reg_new", "ptx_label_new", "ptx_label_here", "ptx_array_new", "cg_temp"}
NOISE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
MACRO = re.compile(r"^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)$", re.M)
FUNCTION = re.compile(
    r"^(?:__attribute__\(\(.*\)\) )?(static\b)?[^\n{};#]*?(\w+)\((?:[^{};\n]|\n(?!\n))*\) *\n\{\n(.*?)^\}", re.M | re.S)
TOKEN = re.compile(r"(->|\.)?\b([A-Za-z_]\w*)\(|\b(?:if|for|while|switch) \(|[(\[{)\]},;?:]|&&|\|\|")


def without_noise(text):
    """Comments are gone, and literals are 0. Lines keep their numbers."""
    return NOISE.sub(lambda m: "\n" * m[0].count("\n") if m[0][0] == "/" else "0", text)


class Brackets:
    """Brackets that are open: those of a call, if there is a name."""

    def __init__(self, name, ends, emits, before_list):
        self.name = name
        self.ends = ends  # what is behind is another expression
        self.emits = emits  # the function itself
        self.before_list = before_list  # arguments of a macro before those that become a list
        self.number = 0  # of this argument
        self.emitting = 0  # arguments that do
        self.here = False  # this one does
        self.operand = False  # what is left of the next operator does

    def end_argument(self):
        self.emitting += self.here
        self.here = self.operand = False

    def comma(self):
        self.operand = False
        if self.number < self.before_list:
            self.end_argument()
        self.number += 1


class Sources:
    def __init__(self, lib):
        self.body = {}  # (its file if it is static, name): the text
        self.where = {}  # and its file and line
        self.before_list = {}  # macro: how many arguments come before its list
        for path in [*sorted((lib / "lower").rglob("*.[ch]")), lib / "ptx/ptx.h"]:
            self.read(path)
        self.emits = {(None, name) for name in ROOTS}
        self.find_emitting()

    def read(self, path):
        text = without_noise(path.read_text())
        for m in MACRO.finditer(text):
            self.body[None, m[1]] = m[3]
            if m[2].endswith("..."):
                self.before_list[m[1]] = m[2].count(",")
        text = MACRO.sub(lambda m: "\n" * m[0].count("\n"), text)
        for m in FUNCTION.finditer(text):
            key = (path if m[1] and path.suffix == ".c" else None, m[2])
            self.body[key] = m[3]
            self.where[key] = (path, text.count("\n", 0, m.start(3)) + 1)

    def find(self, file, name):
        return (file, name) if (file, name) in self.body else (None, name)

    def find_emitting(self):
        calls = {}
        for key, text in self.body.items():
            file = self.where[key][0] if key in self.where else None
            calls[key] = {self.find(file, m[2]) for m in TOKEN.finditer(text) if m[2]}
        more = self.emits
        while more:
            more = {key for key, called in calls.items() if key not in self.emits and called & self.emits}
            self.emits = self.emits | more

    def open(self, file, m):
        emits = bool(m[2] and (m[1] or self.find(file, m[2]) in self.emits))
        is_head = len(m[0]) > 1 and not m[2]
        return Brackets(m[2], is_head or m[0] == "{", emits, self.before_list.get(m[2], sys.maxsize))

    def sites(self, key):
        """The line and name of each."""
        file, line = self.where[key]
        text = self.body[key]
        open_ones = [Brackets(None, True, False, 0)]
        for m in TOKEN.finditer(text):
            top = open_ones[-1]
            if m[0][-1] in "([{":
                open_ones.append(self.open(file, m))
            elif m[0] == ",":
                top.comma()
            elif m[0] in ")]}":
                top.end_argument()
                at = line + text.count("\n", 0, m.start())
                if top.name and top.emitting > 1:
                    yield at, top.name
                open_ones.pop()
                up = open_ones[-1]
                if top.ends:
                    up.operand = False
                elif top.emits or top.emitting:
                    if up.operand:
                        yield at, "operands"
                    up.operand = True
                up.here = up.here or top.emits or top.emitting > 0
            else:
                top.operand = False


def main():
    sources = Sources(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "lib"))
    found = sorted((str(sources.where[key][0]), *site) for key in sources.where for site in sources.sites(key))
    for file, line, name in found:
        print(f"{file}:{line}: {name}")
    return 1 if found else 0


sys.exit(main())
