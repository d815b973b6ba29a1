"""
Runs ClusterShell's own tests of node sets and prints what they ask it, as JSON lines on the given file descriptor:
each expression that is parsed with its names or the error, and each set that is written with its text.
Usage: record-nodesets.py CHECKOUT DESCRIPTOR; only standard modules and the checkout are needed.
"""
import glob
import json
import os
import sys
import unittest

# No file is written into the checkout.
sys.dont_write_bytecode = True

checkout, descriptor = os.path.abspath(sys.argv[1]), int(sys.argv[2])
sys.path[:0] = [os.path.join(checkout, "lib"), checkout]
os.chdir(checkout)
sys.argv = sys.argv[:1]

from ClusterShell import NodeSet, NodeUtils  # noqa: E402

MOST_NAMES = 20000
output = os.fdopen(descriptor, "w")
lookups = []


def write(record):
    output.write(json.dumps(record) + "\n")


def names_of(nodeset):
    return [str(node) for node in nodeset] if len(nodeset) <= MOST_NAMES else None


def record_expressions():
    parse = NodeSet.ParsingEngine.parse_string

    def recorded(self, text, autostep, namespace=None):
        if lookups:
            return parse(self, text, autostep, namespace)
        lookups.append({"groups": {}, "hasGroups": self.group_resolver is not None})
        try:
            result = parse(self, text, autostep, namespace)
        except NodeSet.NodeSetException as error:
            write({"set": text, "error": type(error).__name__ + ": " + str(error), **lookups.pop()})
            raise
        except BaseException:
            lookups.pop()
            raise
        seen = lookups.pop()
        if namespace is None:
            write({"set": text, "names": names_of(result), **seen})
        return result

    NodeSet.ParsingEngine.parse_string = recorded


def record_groups():
    group_nodes = NodeUtils.GroupResolver.group_nodes
    all_nodes = NodeSet.ParsingEngine.all_nodes

    def recorded_group(self, group, namespace=None):
        found = group_nodes(self, group, namespace)
        if lookups:
            name = group if namespace is None else namespace + ":" + group
            lookups[-1]["groups"][name] = list(found)
        return found

    def recorded_all(self, namespace=None):
        found = all_nodes(self, namespace)
        if lookups and namespace is None:
            lookups[-1]["all"] = list(found)
        return found

    NodeUtils.GroupResolver.group_nodes = recorded_group
    NodeSet.ParsingEngine.all_nodes = recorded_all


def record_folding():
    fold = NodeSet.NodeSetBase.__str__

    def recorded(self):
        text = fold(self)
        if not lookups and type(self) is NodeSet.NodeSet and self._autostep is None and not self.fold_axis:
            lookups.append(None)
            try:
                write({"fold": names_of(self), "text": text})
            finally:
                lookups.pop()
        return text

    NodeSet.NodeSetBase.__str__ = recorded


record_expressions()
record_groups()
record_folding()
files = glob.glob("tests/NodeSet*Test.py") + ["tests/CLINodesetTest.py"]
suite = unittest.TestLoader().loadTestsFromNames(sorted(name[:-3].replace("/", ".") for name in files))
result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
output.close()
