"""What of an op's entry does not fit together."""

from __future__ import annotations

from gradcli.ops.definition.op import Op, parameters_of


def mismatches(entry: Op) -> list[str]:
    """The slips of an entry, each in a few words; none for a right one."""
    rules = [*entry.rules.values(), *([entry.joint] if entry.joint else [])]
    found = []
    if bool(entry.node_name) is not bool(rules):
        found.append("a node without rules, or rules without a node")
    for name in {*entry.inputs, *entry.tensors, *entry.keeps} - {*entry.parameters}:
        found.append(f"{name} is no parameter")
    if entry.rules and tuple(entry.rules) != entry.inputs:
        found.append(f"rules of {', '.join(entry.rules)}, inputs {', '.join(entry.inputs)}")
    known = {"grad", "grads", "needs", *entry.parameters, *entry.outputs}
    known |= {f"{tensor}_sizes" for tensor in (*entry.tensors, *entry.lists)}
    known |= {f"{tensor}_strides" for tensor in entry.tensors}
    for rule in rules:
        found += [f"a rule takes {name!r}" for name in {*parameters_of(rule)} - known]
    return found
