"""The documentation site: what mkdocs generates from the spec, the command line, the schemas and the published results.

Nothing of it is committed, so nothing of it can be stale: `make docs` makes every page anew.

    hooks          what mkdocs calls: adds the generated pages, and makes links to files outside docs/ work
    repository     which page of the site shows which file of the project
    sequence       the dialogue of a scenario as HTML
    requirements   a page for each requirement, and the list of all
    commands, plugin_api, schemas, openapi
                   the other pages of the reference
    compatibility  which server does what, by class and by requirement, and the verdicts of each run
    agent_files    llms.txt, the requirements as plain Markdown, and the skill
"""
