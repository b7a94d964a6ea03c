"use strict";
// Filters, opens and copies rows. It never writes markup: text from a server stays text.
(() => {
  const one = (selector) => document.querySelector(selector);
  const rows = [...document.querySelectorAll("details.row")];
  const fields = ["text", "class", "area", "level", "verdict"].map((name) => one(`#${name}`));
  const [text, ofClass, area, level, verdict] = fields;
  const words = new WeakMap();
  let current = null;

  const wordsOf = (row) => {
    if (!words.has(row)) words.set(row, row.textContent.toLowerCase());
    return words.get(row);
  };
  const fits = (row, wanted) =>
    (!ofClass.value || row.dataset.class === ofClass.value) &&
    (!area.value || row.dataset.area === area.value) &&
    (!level.value || row.dataset.level === level.value) &&
    (!verdict.value || row.dataset.verdict === verdict.value) &&
    wanted.every((word) => wordsOf(row).includes(word));
  const shown = () => rows.filter((row) => !row.hidden);

  const filter = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !fits(row, wanted);
    const number = shown().length;
    one("#shown").textContent = `${number} of ${rows.length}`;
    one("#none").hidden = number > 0;
  };
  const reset = () => {
    for (const field of fields) field.value = "";
    filter();
  };

  const mark = (row) => {
    current?.classList.remove("at");
    current = row;
    row.classList.add("at");
  };
  const goTo = (row) => {
    if (!row) return;
    mark(row);
    row.firstElementChild.focus({ preventScroll: true });
    row.scrollIntoView({ block: row.open ? "start" : "nearest" });
  };
  const move = (by, rowsToVisit) => {
    const position = rowsToVisit.indexOf(current);
    if (position >= 0) return goTo(rowsToVisit[Math.min(Math.max(position + by, 0), rowsToVisit.length - 1)]);
    // From a hidden row, continue at its position in the page.
    const after = rowsToVisit.filter((row) => current && current.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING);
    goTo(after[0] ?? rowsToVisit[0]);
  };
  const toggle = () => {
    if (!current) return;
    current.open = !current.open;
    history.replaceState(null, "", current.open ? `#${current.id}` : location.pathname + location.search);
  };

  const openNamed = () => {
    const named = rows.find((row) => `#${row.id}` === location.hash.toUpperCase());
    if (!named) return;
    if (named.hidden) reset();
    named.open = true;
    goTo(named);
  };

  const keys = {
    "/": () => text.focus(),
    j: () => move(1, shown()),
    k: () => move(-1, shown()),
    n: () => move(1, shown().filter((row) => ["fail", "error"].includes(row.dataset.verdict))),
    Enter: toggle,
    o: toggle,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select");
    if (event.key === "Escape") {
      if (!typing && current?.open) toggle();
      else { reset(); document.activeElement.blur(); }
    } else if (typing) {
      if (event.key === "Enter") { event.preventDefault(); goTo(shown()[0]); }
    } else if (event.target.matches("a, button, .raw summary, .options summary")) {
      return;
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  // Whoever comes with Tab or a screen reader is where the focus is.
  document.addEventListener("focusin", (event) => {
    if (event.target.matches(".row > summary")) mark(event.target.parentElement);
  });
  document.addEventListener("click", (event) => {
    const summary = event.target.closest(".row > summary");
    if (!summary) return;
    mark(summary.parentElement);
    history.replaceState(null, "", current.open ? location.pathname + location.search : `#${current.id}`);
  });

  const copy = async (button, source) => {
    const done = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
    if (!done) getSelection().selectAllChildren(source);
    button.textContent = done ? "copied" : "selected: press Ctrl+C";
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  };
  for (const block of document.querySelectorAll(".curl")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", () => copy(button, block.querySelector("pre")));
    block.append(button);
  }

  const printed = new Set();
  addEventListener("beforeprint", () => {
    for (const row of rows) {
      if (["fail", "error"].includes(row.dataset.verdict) && !row.open) { row.open = true; printed.add(row); }
    }
  });
  addEventListener("afterprint", () => {
    for (const row of printed) row.open = false;
    printed.clear();
  });
  one("form.filter").addEventListener("submit", (event) => event.preventDefault());
  for (const field of fields) field.addEventListener("input", filter);
  addEventListener("hashchange", openNamed);
  filter();
  openNamed();
})();
