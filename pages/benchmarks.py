"""Benchmarks: upload what was measured, see which cells it fills, compare runs, and keep what is stored in order."""

from ui import parts, resources, state
from ui.benchmarks import compare, matrix, stored, upload
from ui.story import about_poc, words
from ui.text import t

asked = state.current()
runs = resources.runs()

parts.heading(t("Benchmarks"), words.describe(asked.scenario))
parts.answer(about_poc.sentence(runs), about_poc.figures(runs), good=True if runs else None)
names = {"upload": t("Upload"), "matrix": t("Matrix"), "compare": t("Compare"), "stored": t("In the store")}
views = {"upload": upload, "matrix": matrix, "compare": compare, "stored": stored}
view = parts.switch(t("View"), names, "benchmarks_view", "upload", linked=True)
views[view].show(asked)

parts.notes(asked.notes)
parts.remarks([words.versions(asked.scenario)])
