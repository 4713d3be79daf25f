#!/usr/bin/env python3
"""Counts what there is to read: lines of Rust by crate and module, and the patterns that
CONTRIBUTING limits. `make lines` runs it; it reads files only.

A line counts if it is not blank. Test code is what a release build leaves out: folders `tests`,
`benches` and `examples`, files that a `#[cfg(test)] mod` names, and inline test modules.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z ]+\))? )?mod (\w+)\s*([;{])")
MODULE = re.compile(r"^\s*(?:pub(?:\([a-z ]+\))? )?mod (\w+)\s*;", re.M)


def tracked(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\n")
    return sorted(ROOT / name for name in listed if name and (ROOT / name).is_file())


def children_of(path):
    """The folder in which the modules that `path` declares are."""
    return path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")


def closing(text, begin):
    """The position behind the brace that closes the one before `begin`."""
    depth, position = 1, begin
    while depth and position < len(text):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        position += 1
    return position


def split_tests(path, test_files):
    """The production text and the test text of a file; notes the files of its test modules."""
    text = path.read_text()
    relative = path.relative_to(ROOT).parts
    if path in test_files or {"tests", "benches", "examples"} & set(relative[:-1]):
        return "", text
    production, tests, position = [], [], 0
    for found in TEST_MODULE.finditer(text):
        if found.start() < position:
            continue
        if found[2] == ";":
            folder = children_of(path)
            test_files.add(folder / f"{found[1]}.rs")
            for file in (folder / found[1]).rglob("*.rs"):
                test_files.add(file)
            continue
        end = closing(text, found.end())
        production.append(text[position:found.start()])
        tests.append(text[found.start():end])
        position = end
    production.append(text[position:])
    return "".join(production), "".join(tests)


def lines(text):
    return sum(1 for line in text.split("\n") if line.strip() and not line.lstrip().startswith("//"))


def code(text):
    """The text without comments and with the contents of its strings blanked."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def module_of(path):
    """(crate, module below it): what a reader would call the place."""
    parts = list(path.relative_to(ROOT).parts)
    if parts[0] in ("crates", "tools"):
        crate, inside = parts[1], parts[3:] if len(parts) > 3 else parts[2:]
    else:
        crate, inside = "pais", parts[1:]
    return crate, inside[0].removesuffix(".rs")


def imports(files):
    """For each file of a crate, the files of the same crate whose items it names."""
    by_module = {}
    for path in files:
        crate_root, parts = root_of(path)
        by_module[(crate_root, parts)] = path
    edges = defaultdict(set)
    for path, text in files.items():
        crate_root, here = root_of(path)
        text = code(text)
        for raw in re.findall(r"\buse\s+([^;]+);", text) + re.findall(
            r"\b((?:crate|super)(?:::\w+)+)", text
        ):
            for segments in paths_of(raw):
                base = list(here)
                if not segments or segments[0] not in ("crate", "super", "self"):
                    continue
                while segments and segments[0] in ("super", "self"):
                    if segments.pop(0) == "super" and base:
                        base.pop()
                if segments and segments[0] == "crate":
                    base, segments = [], segments[1:]
                target = base + segments
                # The longest prefix that is a file.
                while target and (crate_root, tuple(target)) not in by_module:
                    target.pop()
                found = by_module.get((crate_root, tuple(target)))
                # A parent's re-exports are its own: only real files count as targets.
                if found and found != path and found.name not in ("mod.rs", "lib.rs"):
                    edges[path].add(found)
    return edges


def root_of(path):
    parts = path.relative_to(ROOT).parts
    cut = parts.index("src")
    inside = list(parts[cut + 1:])
    inside[-1] = inside[-1].removesuffix(".rs")
    if inside[-1] in ("mod", "lib", "main"):
        inside.pop()
    return parts[:cut], tuple(inside)


def paths_of(raw):
    """The paths of a `use` tree, as lists of segments."""
    raw = re.sub(r"\s+", " ", raw).strip()
    found = []

    def walk(prefix, text):
        depth, begin, items = 0, 0, []
        for index, character in enumerate(text):
            if character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
            elif character == "," and depth == 0:
                items.append(text[begin:index])
                begin = index + 1
        items.append(text[begin:])
        for item in items:
            item = item.strip().split(" as ")[0].strip()
            if not item:
                continue
            if "{" in item:
                head, rest = item.split("{", 1)
                walk(prefix + [part for part in head.split("::") if part.strip()], rest[:-1])
            else:
                found.append([part.strip() for part in prefix + item.split("::") if part.strip() not in ("*", "")])

    walk([], raw)
    return found


def circles(edges):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, on_stack, stack, found, counter = {}, {}, set(), [], [], [0]

    def visit(node):
        index[node] = low[node] = counter[0]
        counter[0] += 1
        stack.append(node)
        on_stack.add(node)
        for next_node in edges.get(node, ()):
            if next_node not in index:
                visit(next_node)
                low[node] = min(low[node], low[next_node])
            elif next_node in on_stack:
                low[node] = min(low[node], index[next_node])
        if low[node] == index[node]:
            component = []
            while True:
                top = stack.pop()
                on_stack.discard(top)
                component.append(top)
                if top == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def main():
    verbose = "--verbose" in sys.argv
    test_files, production, tests = set(), {}, {}
    # Parents come before children, so that a test module marks its files in time.
    for path in sorted(tracked("*.rs"), key=lambda path: (len(path.parts), path.name not in ("lib.rs", "main.rs", "mod.rs"), path)):
        production[path], tests[path] = split_tests(path, test_files)
    for path in test_files & production.keys():
        if production[path]:
            production[path], tests[path] = "", path.read_text()
    table = defaultdict(lambda: [0, 0, 0])
    crates = defaultdict(lambda: [0, 0, 0])
    for path in production:
        crate, module = module_of(path)
        for row in (table[crate, module], crates[crate]):
            row[0] += lines(production[path])
            row[1] += lines(tests[path])
            row[2] += bool(production[path])
    print(f"{'crate or module':40} {'production':>10} {'tests':>8} {'files':>6}")
    for crate in sorted(crates):
        print(f"{crate:40} {crates[crate][0]:>10,} {crates[crate][1]:>8,} {crates[crate][2]:>6}")
        for (owner, module), row in sorted(table.items()):
            if owner == crate:
                print(f"  {module:38} {row[0]:>10,} {row[1]:>8,} {row[2]:>6}")
    total = [sum(row[i] for row in crates.values()) for i in range(3)]
    print(f"{'total':40} {total[0]:>10,} {total[1]:>8,} {total[2]:>6}")

    sources = {path: text for path, text in production.items() if text and "src" in path.relative_to(ROOT).parts}
    plain = {path: code(text) for path, text in sources.items()}
    found_circles = circles(imports(sources))

    def tuple_parameters(text):
        count = 0
        for found in re.finditer(r"\bfn\s+\w+(?:<[^(]*>)?\(", text):
            depth, position = 1, found.end()
            while depth and position < len(text):
                depth += {"(": 1, ")": -1}.get(text[position], 0)
                position += 1
            parameters = text[found.end():position - 1]
            count += len(re.findall(r"[\w)]\s*:\s*(?:&(?:'\w+ )?(?:mut )?)?(?:\[|Vec<|Option<|&\[)?\((?!\)|dyn |impl )", parameters))
        return count

    def total_of(pattern):
        return sum(len(re.findall(pattern, text, re.M)) for text in plain.values())

    words = sum(len(path.read_text().split()) for path in tracked("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/**/*.md"))
    pages = {path: len(path.read_text().split()) for path in tracked("README.md", "docs/*.md", "docs/**/*.md")}
    short = sum(1 for text in sources.values() if lines(text) < 100)
    print()
    for name, value in (
        ("production files", len(sources)),
        ("production files under 100 lines", short),
        ("import circles", f"{len(found_circles)} ({sum(map(len, found_circles))} files, the largest {max(map(len, found_circles), default=0)})"),
        ("circles between folders", sum(1 for circle in found_circles if len({path.parent for path in circle}) > 1)),
        ("tuple parameters", sum(tuple_parameters(text) for text in plain.values())),
        ("match on a bool", total_of(r"^\s*true =>|[,{] *true =>")),
        ("try_get", total_of(r"\.try_get\b")),
        ("public items", total_of(r"^\s*pub (?:const fn|async fn|fn|struct|enum|trait|type|const|static|union)\b")),
        ("words of documentation", f"{words:,}"),
        ("longest page", "{1:,} words in {0}".format(*max(((path.relative_to(ROOT), count) for path, count in pages.items()), key=lambda row: row[1]))),
    ):
        print(f"{name:40} {value:>10}" if isinstance(value, int) else f"{name:40} {value}")
    if verbose:
        for circle in found_circles:
            print("circle:", " ".join(str(path.relative_to(ROOT)) for path in circle))


if __name__ == "__main__":
    main()
