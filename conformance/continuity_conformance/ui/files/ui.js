// Sends the form, and shows what the server of this page says. It makes no markup of its own from texts: they are text nodes,
// and markup comes from the server of this page, which has escaped it. The key stays in its field: it is stored nowhere.
const one = (selector) => document.querySelector(selector);
const field = (name) => document.getElementById(name);
const MARKS = { "": "…", pass: "✓", fail: "✗", error: "!", not_tested: "?", not_applicable: "-" };
const WORDS = { "": "not decided yet", pass: "passed", fail: "failed", error: "error", not_tested: "not tested", not_applicable: "not applicable" };
const PROSPECTS = { testable: "testable", refutable: "can only fail", not_tested: "not tested", not_applicable: "not applicable", by_review: "by review" };

// Small parts

const element = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const put = (place, markup) => {
  place.replaceChildren(...new DOMParser().parseFromString(markup, "text/html").body.childNodes);
  place.hidden = !markup.trim();
};
const say = (text) => {
  field("message").textContent = text;
  field("message").hidden = !text;
};
const ask = async (path, form) => {
  const options = form ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(form) } : {};
  try {
    return await fetch(path, options);
  } catch {
    say("The server of this page has ended. Run continuity ui again, and open the address that it prints.");
    return null;
  }
};
const reading = async (answer) => answer && answer.json().catch(() => ({ error: `The page's server answers ${answer.status}.` }));
const show = async (path, place) => {
  const answer = await ask(path);
  if (answer?.ok) put(place, await answer.text());
  return Boolean(answer?.ok);
};

// The form

const chosenClasses = () => [...document.querySelectorAll("input[name=class]:checked")].map((box) => box.value);
const form = () => ({
  target: field("target").value,
  key: field("key").value,
  profile: field("profile").value,
  file: field("file").value,
  classes: chosenClasses(),
  only: field("only").value,
});
const tellChoice = () => {
  const parts = [chosenClasses().join(", "), field("only").value.trim()].filter(Boolean);
  field("chosen").textContent = parts.join("; ") || "everything";
};

// The doctor

let written = "";
const fillProfile = (text) => {
  written = text;
  field("profile").value = text;
};
// What was found at another address, and the profile that was written for it, say wrong things about this one.
const forgetFindings = () => {
  field("findings").hidden = true;
  if (written && field("profile").value === written) fillProfile("");
};
const count = (requirements) => {
  const counts = new Map();
  for (const each of requirements) counts.set(each.prospect, (counts.get(each.prospect) ?? 0) + 1);
  return Object.entries(PROSPECTS).filter(([name]) => counts.has(name)).map(([name, words]) => `${counts.get(name)} ${words}`).join(", ");
};
const missing = (requirements) => {
  const reasons = new Map();
  for (const each of requirements) {
    if (each.prospect === "not_tested" || each.prospect === "refutable") reasons.set(each.reason, (reasons.get(each.reason) ?? 0) + 1);
  }
  return [...reasons].sort((a, b) => b[1] - a[1]);
};
const tellFindings = (findings) => {
  const place = field("findings");
  const list = element("dl");
  let last = "";
  for (const { topic, text } of findings.said) {
    if (topic !== last) list.append(element("dt", topic));
    list.append(element("dd", text));
    last = topic;
  }
  if (findings.requirements.length) list.append(element("dt", "a run"), element("dd", count(findings.requirements)));
  place.replaceChildren(element("h2", `The server at ${findings.url}`), list);
  const reasons = missing(findings.requirements);
  if (reasons.length) {
    const more = element("details");
    more.append(element("summary", "What is missing to test more"));
    for (const [reason, number] of reasons) more.append(element("p", `${reason} (${number})`));
    place.append(more);
  }
  place.hidden = !findings.said.length;
};
const examine = async () => {
  say("");
  field("examine").disabled = true;
  field("busy").textContent = "examining…";
  const answer = await ask("/doctor", form());
  const told = await reading(answer);
  field("examine").disabled = false;
  field("busy").textContent = "";
  if (!told) return;
  field("findings").hidden = true;
  if (told.findings) tellFindings(told.findings);
  if (told.profile) {
    fillProfile(told.profile);
    one(".more").open = true;
  }
  if (told.error) say(told.error);
};

// The board

// `asked`: the run that was started on this page, not before it was opened.
const board = { run: "", asked: "", tiles: new Map(), left: null };
const group = (name) => {
  const made = element("section", "", { class: "group" });
  made.append(element("h3", name), element("div", "", { class: "tiles" }));
  field("classes").append(made);
  return made;
};
const tile = ({ id, text, class: name }) => {
  const made = element("button", "", { type: "button", class: "tile", title: text, "data-requirement": id, "data-class": name });
  made.append(element("span", "", { "aria-hidden": "true" }), element("span", id));
  board.tiles.set(id, made);
  mark(made, "", text);
  return made;
};
const mark = (made, verdict, reason) => {
  made.dataset.verdict = verdict;
  made.firstElementChild.textContent = MARKS[verdict];
  made.setAttribute("aria-label", `${made.dataset.requirement} ${WORDS[verdict]}`);
  if (reason) made.title = reason;
};
const setUp = (requirements) => {
  const groups = new Map();
  const known = [...document.querySelectorAll("input[name=class]")].map((box) => box.value);
  const names = [...new Set([...known, ...requirements.map((each) => each.class)])];
  for (const name of names.filter((each) => requirements.some((one) => one.class === each))) groups.set(name, group(name || "no class"));
  for (const each of requirements) groups.get(each.class).lastElementChild.append(tile(each));
  field("progress").max = requirements.length;
  field("board").hidden = false;
  tally();
};
const tally = () => {
  const verdicts = [...board.tiles.values()].map((each) => each.dataset.verdict);
  const decided = verdicts.filter(Boolean);
  const parts = [`${decided.length} of ${verdicts.length} decided`];
  for (const name of ["pass", "fail", "error", "not_tested", "not_applicable"]) {
    const number = decided.filter((each) => each === name).length;
    if (number) parts.push(`${number} ${WORDS[name]}`);
  }
  if (board.left !== null && decided.length < verdicts.length) parts.push(`about ${Math.max(1, board.left)} s left`);
  field("count").textContent = parts.join(" · ");
  field("progress").value = decided.length;
  for (const each of document.querySelectorAll(".group")) {
    const own = [...each.querySelectorAll(".tile")];
    const passed = own.filter((made) => made.dataset.verdict === "pass").length;
    const applicable = own.filter((made) => made.dataset.verdict !== "not_applicable").length;
    const share = applicable ? `${passed} of ${applicable} passed` : WORDS.not_applicable;
    each.firstElementChild.textContent = `${own[0].dataset.class || "no class"} ${share}`;
  }
};

// A run

const running = (is) => {
  field("run").disabled = is;
  field("stop").hidden = !is;
  field("stop").disabled = false;
  field("busy").textContent = is ? "running…" : "";
};
const start = async () => {
  say("");
  field("run").disabled = true;
  const answer = await ask("/runs", form());
  const told = await reading(answer);
  if (answer?.ok) {
    board.asked = told.run;
    return;
  }
  running(false);
  if (told) say(told.error);
};
const stop = async () => {
  field("stop").disabled = true;
  field("busy").textContent = "stopping…";
  await ask("/stop", {});
};
const finish = async ({ run, message, began }) => {
  running(false);
  if (message) say(message);
  const answer = began ? await ask(`/runs/${run}`) : null;
  const markup = answer?.ok ? await answer.text() : "";
  // Meanwhile the next run may have begun.
  if (markup && board.run === run) {
    put(field("summary"), markup);
    field("summary").dataset.run = run;
    // Somebody who opens the page types an address: an earlier run does not take the focus away.
    if (board.asked === run) field("summary").focus();
  }
  await show("/runs", field("earlier"));
};
const handlers = {
  begin: ({ run }) => {
    Object.assign(board, { run, left: null });
    board.tiles.clear();
    field("classes").replaceChildren();
    for (const name of ["board", "summary"]) field(name).hidden = true;
    running(true);
  },
  start: ({ requirements }) => setUp(requirements),
  result: ({ id, verdict, reason }) => {
    mark(board.tiles.get(id), verdict, reason);
    tally();
  },
  left: ({ seconds }) => {
    board.left = seconds;
    tally();
  },
  ended: finish,
};
const events = new EventSource("/events");
events.addEventListener("message", ({ data }) => {
  const event = JSON.parse(data);
  handlers[event.event]?.(event);
});
events.addEventListener("error", () => {
  if (events.readyState === EventSource.CLOSED) say("The server of this page has ended. Run continuity ui again, and open the address that it prints.");
});

// One requirement

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
const open = async (id) => {
  const place = field("shown");
  place.replaceChildren(element("p", "…"));
  field("detail").showModal();
  // Evidence is written each second while the run goes on.
  for (let tries = 0; tries < 4; tries += 1) {
    if (await show(`/runs/${board.run}/requirements/${encodeURIComponent(id)}`, place)) return;
    await pause(500);
  }
  place.replaceChildren(element("p", `Nothing is written about ${id} yet.`));
};

document.addEventListener("click", (event) => {
  const id = event.target.closest("[data-requirement]")?.dataset.requirement;
  if (id) open(id);
});
field("form").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
field("form").addEventListener("input", tellChoice);
field("target").addEventListener("input", forgetFindings);
field("examine").addEventListener("click", examine);
field("stop").addEventListener("click", stop);
tellChoice();
show("/runs", field("earlier"));
