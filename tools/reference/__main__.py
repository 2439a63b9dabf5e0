"""`python -m tools.reference`: writes the schemas and references, and prints what it wrote.

The schemas (scenarios/scenario.schema.json, assignments/*.schema.json) are for editors; docs/scenario-reference.md,
docs/assignment-reference.md and the tables of keys in docs/plan-format.md are for people. All are generated from the
classes that read these files. The tables of commands in docs/cli.md are generated from --help.
"""

from tools.reference.assignments import generated

if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)
        print(path)
