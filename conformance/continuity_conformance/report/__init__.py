"""Report formats: HTML, Markdown, JUnit, badge, checklist, comparison, shell script.

Each is made from results.json alone (`results.read`), and takes its numbers from `results.tally`. Text from a server is data in all of them, never markup or code.
"""
